//! The history of flights.

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

use super::{Product, count};
use crate::contract::history::{
    FlightHistoryPage, FlightHistoryQuery, FlightObservation, ProductFields,
};
use crate::contract::history_grid::{FlightGridQuery, FlightSide};
use crate::contract::history_verdict::HistoryVerdict;
use crate::contract::latest::{FlightCalendar, FlightLatest, FlightLatestQuery};
use crate::contract::primitives::{Airport, Currency, Cursor, PageLimit};
use crate::contract::series::{FlightBucket, FlightSeries, FlightSeriesQuery, time_range};
use crate::contract::{Endpoint, ValidationErrors};
use crate::history::aggregate::BucketStats;
use crate::history::buckets::BucketRange;
use crate::history::filter::Filter;
use crate::history::grid::{HistoryAxis, HistoryLayout};
use crate::history::latest::age_seconds;
use crate::history::store::products::ProductRow;
use crate::history::store::select::{LatestRow, ObservationRow};

/// Fares of a route.
#[derive(Debug)]
pub enum Flights {}

/// The flights that a query selects, which has a day of departure or a range of days.
macro_rules! departures {
    ($query:expr) => {
        route(
            [&$query.from_airport, &$query.to_airport],
            [
                $query.departure_date.or($query.departure_from),
                $query.departure_date.or($query.departure_to),
            ],
            $query.return_date,
            $query.currency.as_ref(),
        )
    };
}

impl Product for Flights {
    const NAME: &'static str = "flights";
    const ENDPOINTS: &'static [Endpoint] = &[Endpoint::FlightsOneway, Endpoint::FlightsRoundtrip];
    const COLUMNS: &'static [&'static str] = &["from_airport", "to_airport", "currency"];

    type ListQuery = FlightHistoryQuery;
    type Observation = FlightObservation;
    type Page = FlightHistoryPage;

    fn list_filter(query: &FlightHistoryQuery) -> Filter {
        Filter {
            since: query.since,
            until: query.until,
            ..departures!(query)
        }
    }

    fn paging(query: &FlightHistoryQuery) -> (Option<&Cursor>, PageLimit) {
        (query.cursor.as_ref(), query.limit_or_default())
    }

    fn observation(row: ObservationRow, product: ProductFields) -> FlightObservation {
        FlightObservation {
            endpoint: row.endpoint,
            from_airport: row.origin.unwrap_or_default(),
            to_airport: row.place,
            departure_date: row.first_date.to_jiff(),
            return_date: row.last_date.map(jiff_sqlx::Date::to_jiff),
            product,
            price: row.price.map(|price| price.normalize()),
            currency: row.currency,
            carrier: row.seller,
            results: count(row.results),
            price_insights_low: row.band_low.map(|price| price.normalize()),
            price_insights_high: row.band_high.map(|price| price.normalize()),
            verdict: row.verdict,
            search_status: row.search_status,
            reason: row.reason,
            observed_at: row.observed_at.to_jiff(),
            item_id: row.item_id.into(),
        }
    }

    fn page(data: Vec<FlightObservation>, next_cursor: Option<String>) -> FlightHistoryPage {
        FlightHistoryPage { data, next_cursor }
    }

    type LatestQuery = FlightLatestQuery;
    type Latest = FlightLatest;
    type Calendar = FlightCalendar;

    fn latest_filter(query: &FlightLatestQuery) -> Filter {
        route(
            [&query.from_airport, &query.to_airport],
            [Some(query.departure_from), Some(query.departure_to)],
            query.return_date,
            query.currency.as_ref(),
        )
    }

    fn is_latest_judged(query: &FlightLatestQuery) -> bool {
        query.history_verdict_or_default()
    }

    fn latest(
        row: LatestRow,
        product: ProductFields,
        verdict: Option<HistoryVerdict>,
        now: Timestamp,
    ) -> FlightLatest {
        let is_round_trip = row.endpoint == Endpoint::FlightsRoundtrip;
        let observed_at = row.observed_at.to_jiff();
        FlightLatest {
            endpoint: row.endpoint,
            from_airport: row.origin.unwrap_or_default(),
            to_airport: row.place,
            departure_date: row.first_date.to_jiff(),
            return_date: is_round_trip.then(|| row.last_date.to_jiff()),
            product,
            price: row.price.normalize(),
            currency: row.currency,
            carrier: row.seller,
            price_insights_low: row.band_low.map(|price| price.normalize()),
            price_insights_high: row.band_high.map(|price| price.normalize()),
            verdict: row.verdict,
            observed_at,
            age_seconds: age_seconds(observed_at, now),
            item_id: row.item_id.into(),
            history_verdict: verdict,
        }
    }

    fn calendar(data: Vec<FlightLatest>, truncated: bool) -> FlightCalendar {
        FlightCalendar { data, truncated }
    }

    type SeriesQuery = FlightSeriesQuery;
    type Bucket = FlightBucket;
    type Series = FlightSeries;

    fn series_filter(query: &FlightSeriesQuery) -> Filter {
        departures!(query)
    }

    fn range(query: &FlightSeriesQuery, now: Timestamp) -> Result<BucketRange, ValidationErrors> {
        let (since, until) = time_range(query.since, query.until, now)?;
        Ok(BucketRange {
            since,
            until,
            bucket: query.bucket_or_default(),
            zone: query.timezone_or_default().as_str().to_owned(),
        })
    }

    fn is_series_judged(query: &FlightSeriesQuery) -> bool {
        query.history_verdict_or_default()
    }

    fn bucket(
        row: &ProductRow,
        product: ProductFields,
        stats: BucketStats,
        verdict: Option<HistoryVerdict>,
    ) -> FlightBucket {
        FlightBucket {
            bucket: stats.bucket,
            endpoint: row.endpoint,
            from_airport: row.origin.clone().unwrap_or_default(),
            to_airport: row.place.clone(),
            product,
            currency: row.currency.clone(),
            observations: stats.observations,
            prices: stats.prices,
            minimum: stats.range.map(|range| range.lowest),
            median: stats.range.map(|range| range.middle),
            maximum: stats.range.map(|range| range.highest),
            implausible: stats.implausible,
            lowest_implausible: stats.lowest_implausible.map(Decimal::from),
            price_insights_low: stats.band_low.map(Decimal::from),
            price_insights_high: stats.band_high.map(Decimal::from),
            empty: stats.empty,
            degraded: stats.degraded,
            degraded_share: stats.degraded_share(),
            history_verdict: verdict,
        }
    }

    fn series(range: BucketRange, data: Vec<FlightBucket>, truncated: bool) -> FlightSeries {
        FlightSeries {
            since: range.since,
            until: range.until,
            bucket: range.bucket,
            timezone: range.zone,
            data,
            truncated,
        }
    }

    type GridQuery = FlightGridQuery;

    fn grid_filter(query: &FlightGridQuery) -> Filter {
        let mut filter = route(
            [&query.from_airport, &query.to_airport],
            [Some(query.departure_from), Some(query.departure_to)],
            None,
            query.currency.as_ref(),
        );
        // One-way flights have no nights.
        if query.nights.is_some()
            || query.rows == FlightSide::Nights
            || query.columns == Some(FlightSide::Nights)
        {
            filter.endpoints = vec![Endpoint::FlightsRoundtrip];
        }
        filter
    }

    fn layout(query: &FlightGridQuery) -> HistoryLayout {
        let side = |side: FlightSide| match side {
            FlightSide::DepartureDate => (HistoryAxis::First, side.as_str()),
            FlightSide::Nights => (HistoryAxis::Nights, side.as_str()),
        };
        HistoryLayout {
            rows: side(query.rows),
            columns: query.columns.map(side),
            dates: [query.departure_from, query.departure_to],
            nights: query.nights,
        }
    }
}

/// Flights of a route. A return date selects round trips only.
fn route(
    [from, to]: [&Airport; 2],
    [first_from, first_to]: [Option<Date>; 2],
    return_date: Option<Date>,
    currency: Option<&Currency>,
) -> Filter {
    Filter {
        endpoints: match return_date {
            None => Flights::ENDPOINTS.to_vec(),
            Some(_) => vec![Endpoint::FlightsRoundtrip],
        },
        origin: Some(from.as_str().to_owned()),
        place: to.as_str().to_owned(),
        currency: currency.map(|currency| currency.as_str().to_owned()),
        first_from,
        first_to,
        last_date: return_date,
        ..Filter::default()
    }
}
