//! The history of hotels.

use jiff::Timestamp;
use rust_decimal::Decimal;

use super::{Product, count};
use crate::contract::history::{
    HotelHistoryPage, HotelHistoryQuery, HotelObservation, ProductFields,
};
use crate::contract::history_grid::{HotelGridQuery, HotelSide};
use crate::contract::history_verdict::HistoryVerdict;
use crate::contract::latest::{HotelCalendar, HotelLatest, HotelLatestQuery};
use crate::contract::primitives::{Cursor, FreeText, HotelBookingId, PageLimit};
use crate::contract::series::{HotelBucket, HotelSeries, HotelSeriesQuery, time_range};
use crate::contract::{Endpoint, ValidationErrors};
use crate::history::aggregate::BucketStats;
use crate::history::buckets::BucketRange;
use crate::history::filter::Filter;
use crate::history::grid::{HistoryAxis, HistoryLayout};
use crate::history::latest::age_seconds;
use crate::history::store::products::ProductRow;
use crate::history::store::select::{LatestRow, ObservationRow};

/// Rates of a hotel, or of a place's hotels.
#[derive(Debug)]
pub enum Hotels {}

/// The stays that a query selects, without its dates.
macro_rules! stays {
    ($query:expr) => {
        Filter {
            currency: $query
                .currency
                .as_ref()
                .map(|code| code.as_str().to_owned()),
            market: $query
                .proxy_country
                .as_ref()
                .map(|code| code.as_str().to_owned()),
            adults: $query.adults.map(|adults| adults.get().into()),
            children: $query.children.map(|children| children.get().into()),
            ..subject(
                $query.hotel_name.as_ref(),
                $query.destination.as_ref(),
                $query.hotel_booking_id.as_ref(),
            )
        }
    };
}

/// The stays that a query selects, which has a day of check-in or a range of days.
macro_rules! checkins {
    ($query:expr) => {
        Filter {
            first_from: $query.checkin_date.or($query.checkin_from),
            first_to: $query.checkin_date.or($query.checkin_to),
            last_date: $query.checkout_date,
            ..stays!($query)
        }
    };
}

impl Product for Hotels {
    const NAME: &'static str = "hotels";
    const ENDPOINTS: &'static [Endpoint] = &[
        Endpoint::HotelsSearch,
        Endpoint::HotelsByName,
        Endpoint::HotelsRooms,
    ];
    const COLUMNS: &'static [&'static str] = &[
        "hotel_name",
        "destination",
        "hotel_booking_id",
        "currency",
        "proxy_country",
    ];

    type ListQuery = HotelHistoryQuery;
    type Observation = HotelObservation;
    type Page = HotelHistoryPage;

    fn list_filter(query: &HotelHistoryQuery) -> Filter {
        Filter {
            since: query.since,
            until: query.until,
            ..checkins!(query)
        }
    }

    fn paging(query: &HotelHistoryQuery) -> (Option<&Cursor>, PageLimit) {
        (query.cursor.as_ref(), query.limit_or_default())
    }

    fn observation(row: ObservationRow, product: ProductFields) -> HotelObservation {
        let (hotel, room) = hotel_or_room(row.endpoint, row.seller);
        let first_date = row.first_date.to_jiff();
        HotelObservation {
            endpoint: row.endpoint,
            place: row.place,
            checkin_date: first_date,
            checkout_date: row.last_date.map_or(first_date, jiff_sqlx::Date::to_jiff),
            proxy_country: row.market,
            product,
            price: row.price.map(|price| price.normalize()),
            currency: row.currency,
            hotel,
            room,
            results: count(row.results),
            search_status: row.search_status,
            reason: row.reason,
            observed_at: row.observed_at.to_jiff(),
            item_id: row.item_id.into(),
        }
    }

    fn page(data: Vec<HotelObservation>, next_cursor: Option<String>) -> HotelHistoryPage {
        HotelHistoryPage { data, next_cursor }
    }

    type LatestQuery = HotelLatestQuery;
    type Latest = HotelLatest;
    type Calendar = HotelCalendar;

    fn latest_filter(query: &HotelLatestQuery) -> Filter {
        Filter {
            first_from: Some(query.checkin_from),
            first_to: Some(query.checkin_to),
            last_date: query.checkout_date,
            ..stays!(query)
        }
    }

    fn is_latest_judged(query: &HotelLatestQuery) -> bool {
        query.history_verdict_or_default()
    }

    fn latest(
        row: LatestRow,
        product: ProductFields,
        verdict: Option<HistoryVerdict>,
        now: Timestamp,
    ) -> HotelLatest {
        let (hotel, room) = hotel_or_room(row.endpoint, row.seller);
        let observed_at = row.observed_at.to_jiff();
        HotelLatest {
            endpoint: row.endpoint,
            place: row.place,
            checkin_date: row.first_date.to_jiff(),
            checkout_date: row.last_date.to_jiff(),
            proxy_country: row.market,
            product,
            price: row.price.normalize(),
            currency: row.currency,
            hotel,
            room,
            observed_at,
            age_seconds: age_seconds(observed_at, now),
            item_id: row.item_id.into(),
            history_verdict: verdict,
        }
    }

    fn calendar(data: Vec<HotelLatest>, truncated: bool) -> HotelCalendar {
        HotelCalendar { data, truncated }
    }

    type SeriesQuery = HotelSeriesQuery;
    type Bucket = HotelBucket;
    type Series = HotelSeries;

    fn series_filter(query: &HotelSeriesQuery) -> Filter {
        checkins!(query)
    }

    fn range(query: &HotelSeriesQuery, now: Timestamp) -> Result<BucketRange, ValidationErrors> {
        let (since, until) = time_range(query.since, query.until, now)?;
        Ok(BucketRange {
            since,
            until,
            bucket: query.bucket_or_default(),
            zone: query.timezone_or_default().as_str().to_owned(),
        })
    }

    fn is_series_judged(query: &HotelSeriesQuery) -> bool {
        query.history_verdict_or_default()
    }

    fn bucket(
        row: &ProductRow,
        product: ProductFields,
        stats: BucketStats,
        verdict: Option<HistoryVerdict>,
    ) -> HotelBucket {
        HotelBucket {
            bucket: stats.bucket,
            endpoint: row.endpoint,
            place: row.place.clone(),
            proxy_country: row.market.clone(),
            product,
            currency: row.currency.clone(),
            observations: stats.observations,
            prices: stats.prices,
            minimum: stats.range.map(|range| range.lowest),
            median: stats.range.map(|range| range.middle),
            maximum: stats.range.map(|range| range.highest),
            implausible: stats.implausible,
            lowest_implausible: stats.lowest_implausible.map(Decimal::from),
            empty: stats.empty,
            degraded: stats.degraded,
            degraded_share: stats.degraded_share(),
            history_verdict: verdict,
        }
    }

    fn series(range: BucketRange, data: Vec<HotelBucket>, truncated: bool) -> HotelSeries {
        HotelSeries {
            since: range.since,
            until: range.until,
            bucket: range.bucket,
            timezone: range.zone,
            data,
            truncated,
        }
    }

    type GridQuery = HotelGridQuery;

    fn grid_filter(query: &HotelGridQuery) -> Filter {
        Filter {
            first_from: Some(query.checkin_from),
            first_to: Some(query.checkin_to),
            ..stays!(query)
        }
    }

    fn layout(query: &HotelGridQuery) -> HistoryLayout {
        let side = |side: HotelSide| match side {
            HotelSide::CheckinDate => (HistoryAxis::First, side.as_str()),
            HotelSide::Nights => (HistoryAxis::Nights, side.as_str()),
            HotelSide::ProxyCountry => (HistoryAxis::Market, side.as_str()),
        };
        HistoryLayout {
            rows: side(query.rows),
            columns: query.columns.map(side),
            dates: [query.checkin_from, query.checkin_to],
            nights: query.nights,
        }
    }
}

/// The stays of a subject. The contract guarantees exactly one.
fn subject(
    name: Option<&FreeText>,
    destination: Option<&FreeText>,
    id: Option<&HotelBookingId>,
) -> Filter {
    let (endpoint, place) = match (name, destination, id) {
        (Some(name), ..) => (Endpoint::HotelsByName, name_key(name)),
        (None, Some(destination), _) => (Endpoint::HotelsSearch, name_key(destination)),
        (None, None, Some(id)) => (Endpoint::HotelsRooms, id.as_str().to_owned()),
        (None, None, None) => return Filter::default(),
    };
    Filter {
        endpoints: vec![endpoint],
        place,
        ..Filter::default()
    }
}

/// Normalizes a name as the SQL function `place_key` does.
fn name_key(name: &FreeText) -> String {
    name.as_str().trim_matches(' ').to_ascii_lowercase()
}

/// Assigns the seller's name: the hotel in a hotel search, otherwise the room.
fn hotel_or_room(endpoint: Endpoint, seller: Option<String>) -> (Option<String>, Option<String>) {
    if endpoint == Endpoint::HotelsSearch {
        (seller, None)
    } else {
        (None, seller)
    }
}
