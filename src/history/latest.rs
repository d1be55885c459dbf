//! Price calendars from `latest_prices`: the last known price of each date, without upstream calls.

use futures::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use jiff::civil::Date;
use sqlx::{PgConnection, PgPool};

use super::filter::Filter;
use super::presenter::{ProductPresenter, seller_as_hotel_or_room};
use super::store::select::{self, LatestRow};
use crate::contract::Endpoint;
use crate::contract::latest::{
    FlightCalendar, FlightLatest, FlightLatestQuery, HotelCalendar, HotelLatest, HotelLatestQuery,
};
use crate::ids::TenantId;
use crate::paging::{self, PageError};

/// Rows of a calendar: twelve products over the longest range.
const MAX_ROWS: usize = 5_000;

/// Rows that an export reads at a time: some hundred kilobytes.
const ROWS_PER_EXPORT_PAGE: usize = 500;

/// Last row of the previous page.
#[derive(Debug, Clone)]
pub(super) struct LatestCursor {
    pub(super) first_date: Date,
    pub(super) stay: Date,
    pub(super) endpoint: Endpoint,
    pub(super) series: Vec<u8>,
}

/// The last known lowest fare of each departure date.
pub async fn flights(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &FlightLatestQuery,
    now: Timestamp,
) -> sqlx::Result<FlightCalendar> {
    let (rows, next) = page(conn, tenant, &query.into(), None, MAX_ROWS).await?;
    let mut presenter = ProductPresenter::for_fares();
    Ok(FlightCalendar {
        data: rows
            .into_iter()
            .map(|row| fare(row, now, &mut presenter))
            .collect(),
        truncated: next.is_some(),
    })
}

/// The last known lowest rate of each check-in date and length of stay.
pub async fn hotels(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &HotelLatestQuery,
    now: Timestamp,
) -> sqlx::Result<HotelCalendar> {
    let (rows, next) = page(conn, tenant, &query.into(), None, MAX_ROWS).await?;
    let mut presenter = ProductPresenter::for_rates();
    Ok(HotelCalendar {
        data: rows
            .into_iter()
            .map(|row| rate(row, now, &mut presenter))
            .collect(),
        truncated: next.is_some(),
    })
}

/// The last known lowest fares as a stream, without the row limit of a calendar.
pub fn stream_flights(
    pool: &PgPool,
    tenant: TenantId,
    query: &FlightLatestQuery,
    now: Timestamp,
) -> impl Stream<Item = Result<FlightLatest, PageError>> + Send + use<> {
    let mut presenter = ProductPresenter::for_fares();
    stream(pool.clone(), tenant, query.into()).map_ok(move |row| fare(row, now, &mut presenter))
}

/// The last known lowest rates as a stream, without the row limit of a calendar.
pub fn stream_hotels(
    pool: &PgPool,
    tenant: TenantId,
    query: &HotelLatestQuery,
    now: Timestamp,
) -> impl Stream<Item = Result<HotelLatest, PageError>> + Send + use<> {
    let mut presenter = ProductPresenter::for_rates();
    stream(pool.clone(), tenant, query.into()).map_ok(move |row| rate(row, now, &mut presenter))
}

fn stream(
    pool: PgPool,
    tenant: TenantId,
    filter: Filter,
) -> impl Stream<Item = Result<LatestRow, PageError>> + Send {
    paging::stream_rows(None, move |after: Option<LatestCursor>| {
        let (pool, filter) = (pool.clone(), filter.clone());
        async move {
            let (rows, next) = page(
                &mut *pool.acquire().await?,
                tenant,
                &filter,
                after.as_ref(),
                ROWS_PER_EXPORT_PAGE,
            )
            .await?;
            Ok((rows, next.map(Some)))
        }
    })
}

/// At most `limit` rows, and a cursor if there are more.
async fn page(
    conn: &mut PgConnection,
    tenant: TenantId,
    filter: &Filter,
    after: Option<&LatestCursor>,
    limit: usize,
) -> sqlx::Result<(Vec<LatestRow>, Option<LatestCursor>)> {
    let mut rows =
        select::latest(conn, tenant, filter, after, paging::limit_plus_one(limit)).await?;
    let next = paging::truncate_page(&mut rows, limit).map(|last| LatestCursor {
        first_date: last.first_date.to_jiff(),
        stay: last.stay.to_jiff(),
        endpoint: last.endpoint,
        series: last.series.clone(),
    });
    Ok((rows, next))
}

/// Whole seconds; 0 for a time in the future.
pub(super) fn age_seconds(observed_at: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(now.duration_since(observed_at).as_secs()).unwrap_or_default()
}

fn fare(row: LatestRow, now: Timestamp, presenter: &mut ProductPresenter) -> FlightLatest {
    let endpoint = row.endpoint;
    let observed_at = row.observed_at.to_jiff();
    FlightLatest {
        endpoint,
        from_airport: row.origin.unwrap_or_default(),
        to_airport: row.place,
        departure_date: row.first_date.to_jiff(),
        return_date: (endpoint == Endpoint::FlightsRoundtrip).then(|| row.last_date.to_jiff()),
        product: presenter.product(endpoint, &row.product),
        price: row.price.normalize(),
        currency: row.currency,
        carrier: row.seller,
        price_insights_low: row.band_low.map(|price| price.normalize()),
        price_insights_high: row.band_high.map(|price| price.normalize()),
        verdict: row.verdict,
        observed_at,
        age_seconds: age_seconds(observed_at, now),
        item_id: row.item_id.into(),
    }
}

fn rate(row: LatestRow, now: Timestamp, presenter: &mut ProductPresenter) -> HotelLatest {
    let endpoint = row.endpoint;
    let (hotel, room) = seller_as_hotel_or_room(endpoint, row.seller);
    let observed_at = row.observed_at.to_jiff();
    HotelLatest {
        endpoint,
        place: row.place,
        checkin_date: row.first_date.to_jiff(),
        checkout_date: row.last_date.to_jiff(),
        proxy_country: row.market,
        product: presenter.product(endpoint, &row.product),
        price: row.price.normalize(),
        currency: row.currency,
        hotel,
        room,
        observed_at,
        age_seconds: age_seconds(observed_at, now),
        item_id: row.item_id.into(),
    }
}
