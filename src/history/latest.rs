//! The last known prices by date, from `latest_prices`: a calendar that costs no request.

use futures::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use jiff::civil::Date;
use sqlx::{PgConnection, PgPool};

use super::filter::Filter;
use super::shown::{Shown, hotel_or_room};
use super::store::find::{self, LatestRow};
use crate::contract::latest::{
    FlightCalendar, FlightLatest, FlightLatestQuery, HotelCalendar, HotelLatest, HotelLatestQuery,
};
use crate::contract::{Endpoint, Verdict};
use crate::ids::TenantId;
use crate::paging::{self, PageError};

/// The most rows of a calendar: twelve products over the longest range.
const MAX_ROWS: usize = 5_000;

/// How many prices an export reads at a time: some hundred kilobytes.
const EXPORT_ROWS: usize = 500;

/// The last price of the page before.
#[derive(Debug, Clone)]
pub(super) struct Day {
    pub(super) first_date: Date,
    pub(super) stay: Date,
    pub(super) endpoint: String,
    pub(super) series: Vec<u8>,
}

/// The last known lowest fare of each day of departure.
///
/// # Errors
/// When the database does not answer.
pub async fn flights(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &FlightLatestQuery,
    now: Timestamp,
) -> sqlx::Result<FlightCalendar> {
    let (rows, next) = page(conn, tenant, &query.into(), None, MAX_ROWS).await?;
    let mut shown = Shown::by_fares();
    Ok(FlightCalendar {
        data: rows
            .into_iter()
            .map(|row| fare(row, now, &mut shown))
            .collect(),
        truncated: next.is_some(),
    })
}

/// The last known lowest rate of each day of check-in and length of stay.
///
/// # Errors
/// When the database does not answer.
pub async fn hotels(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &HotelLatestQuery,
    now: Timestamp,
) -> sqlx::Result<HotelCalendar> {
    let (rows, next) = page(conn, tenant, &query.into(), None, MAX_ROWS).await?;
    let mut shown = Shown::by_rates();
    Ok(HotelCalendar {
        data: rows
            .into_iter()
            .map(|row| rate(row, now, &mut shown))
            .collect(),
        truncated: next.is_some(),
    })
}

/// The last known lowest fares, row by row, without the bound of a calendar.
pub fn all_flights(
    pool: &PgPool,
    tenant: TenantId,
    query: &FlightLatestQuery,
    now: Timestamp,
) -> impl Stream<Item = Result<FlightLatest, PageError>> + Send + use<> {
    let mut shown = Shown::by_fares();
    all(pool.clone(), tenant, query.into()).map_ok(move |row| fare(row, now, &mut shown))
}

/// The last known lowest rates, row by row, without the bound of a calendar.
pub fn all_hotels(
    pool: &PgPool,
    tenant: TenantId,
    query: &HotelLatestQuery,
    now: Timestamp,
) -> impl Stream<Item = Result<HotelLatest, PageError>> + Send + use<> {
    let mut shown = Shown::by_rates();
    all(pool.clone(), tenant, query.into()).map_ok(move |row| rate(row, now, &mut shown))
}

fn all(
    pool: PgPool,
    tenant: TenantId,
    filter: Filter,
) -> impl Stream<Item = Result<LatestRow, PageError>> + Send {
    paging::walk(None, move |after: Option<Day>| {
        let (pool, filter) = (pool.clone(), filter.clone());
        async move {
            let (rows, next) = page(
                &mut *pool.acquire().await?,
                tenant,
                &filter,
                after.as_ref(),
                EXPORT_ROWS,
            )
            .await?;
            Ok((rows, next.map(Some)))
        }
    })
}

/// At most `limit` prices, and the last of them if there are more.
async fn page(
    conn: &mut PgConnection,
    tenant: TenantId,
    filter: &Filter,
    after: Option<&Day>,
    limit: usize,
) -> sqlx::Result<(Vec<LatestRow>, Option<Day>)> {
    let mut rows = find::latest(conn, tenant, filter, after, paging::one_more_than(limit)).await?;
    let next = paging::cut(&mut rows, limit).map(|last| Day {
        first_date: last.first_date.to_jiff(),
        stay: last.stay.to_jiff(),
        endpoint: last.endpoint.clone(),
        series: last.series.clone(),
    });
    Ok((rows, next))
}

/// Whole seconds since; none for a price from another machine's future.
pub(super) fn age_seconds(observed_at: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(now.duration_since(observed_at).as_secs()).unwrap_or_default()
}

fn fare(row: LatestRow, now: Timestamp, shown: &mut Shown) -> FlightLatest {
    let endpoint = Endpoint::parse(&row.endpoint).unwrap_or(Endpoint::FlightsOneway);
    let observed_at = row.observed_at.to_jiff();
    FlightLatest {
        endpoint,
        from_airport: row.origin.unwrap_or_default(),
        to_airport: row.place,
        departure_date: row.first_date.to_jiff(),
        return_date: (endpoint == Endpoint::FlightsRoundtrip).then(|| row.last_date.to_jiff()),
        product: shown.product(endpoint, &row.product),
        price: row.price.normalize(),
        currency: row.currency,
        carrier: row.seller,
        price_insights_low: row.band_low.map(|price| price.normalize()),
        price_insights_high: row.band_high.map(|price| price.normalize()),
        verdict: row.verdict.as_deref().and_then(Verdict::parse),
        observed_at,
        age_seconds: age_seconds(observed_at, now),
        item_id: row.item_id.into(),
    }
}

fn rate(row: LatestRow, now: Timestamp, shown: &mut Shown) -> HotelLatest {
    let endpoint = Endpoint::parse(&row.endpoint).unwrap_or(Endpoint::HotelsByName);
    let (hotel, room) = hotel_or_room(endpoint, row.seller);
    let observed_at = row.observed_at.to_jiff();
    HotelLatest {
        endpoint,
        place: row.place,
        checkin_date: row.first_date.to_jiff(),
        checkout_date: row.last_date.to_jiff(),
        proxy_country: row.market,
        product: shown.product(endpoint, &row.product),
        price: row.price.normalize(),
        currency: row.currency,
        hotel,
        room,
        observed_at,
        age_seconds: age_seconds(observed_at, now),
        item_id: row.item_id.into(),
    }
}
