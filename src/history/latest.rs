//! The last known prices by date, from `latest_prices`: a calendar that costs no request.

use jiff::Timestamp;
use jiff_sqlx::Date;
use rust_decimal::Decimal;
use serde_json::Value;
use sqlx::PgPool;
use uuid::Uuid;

use super::query::{hotel_subject, other_fields};
use super::store;
use crate::contract::latest::{FlightCalendar, FlightLatest, FlightLatestQuery, HotelCalendar, HotelLatest, HotelLatestQuery};
use crate::contract::{Endpoint, Verdict};
use crate::ids::TenantId;

/// The most rows of a calendar: twelve products over the longest range.
const MAX_ROWS: usize = 5_000;

/// The last known lowest fare of each day of departure.
///
/// # Errors
/// When the database does not answer.
pub async fn flights(pool: &PgPool, tenant: TenantId, query: &FlightLatestQuery, now: Timestamp) -> sqlx::Result<FlightCalendar> {
    let mut rows = store::latest_flights(pool, tenant, query, crate::paging::one_more_than(MAX_ROWS)).await?;
    let truncated = rows.len() > MAX_ROWS;
    rows.truncate(MAX_ROWS);
    Ok(FlightCalendar { data: rows.into_iter().map(|row| fare(row, now)).collect(), truncated })
}

/// The last known lowest rate of each day of check-in and length of stay.
///
/// # Errors
/// When the database does not answer.
pub async fn hotels(pool: &PgPool, tenant: TenantId, query: &HotelLatestQuery, now: Timestamp) -> sqlx::Result<HotelCalendar> {
    let subject = hotel_subject(query.hotel_name.as_ref(), query.destination.as_ref(), query.hotel_booking_id.as_ref());
    let Some(subject) = subject else { return Ok(HotelCalendar { data: Vec::new(), truncated: false }) };
    let mut rows = store::latest_hotels(pool, tenant, subject, query, crate::paging::one_more_than(MAX_ROWS)).await?;
    let truncated = rows.len() > MAX_ROWS;
    rows.truncate(MAX_ROWS);
    Ok(HotelCalendar { data: rows.into_iter().map(|row| rate(row, now)).collect(), truncated })
}

/// A latest price with its series.
pub(super) struct LatestRow {
    pub(super) endpoint: String,
    pub(super) origin: Option<String>,
    pub(super) place: String,
    pub(super) product: Value,
    pub(super) currency: String,
    pub(super) market: Option<String>,
    pub(super) first_date: Date,
    /// The first date where there is no second.
    pub(super) last_date: Date,
    pub(super) observed_at: jiff_sqlx::Timestamp,
    pub(super) price: Decimal,
    pub(super) seller: Option<String>,
    pub(super) band_low: Option<Decimal>,
    pub(super) band_high: Option<Decimal>,
    pub(super) verdict: Option<String>,
    pub(super) item_id: Uuid,
}

/// Whole seconds since; none for a price from another machine's future.
fn age_seconds(observed_at: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(now.duration_since(observed_at).as_secs()).unwrap_or_default()
}

fn fare(row: LatestRow, now: Timestamp) -> FlightLatest {
    let endpoint = Endpoint::parse(&row.endpoint).unwrap_or(Endpoint::FlightsOneway);
    let observed_at = row.observed_at.to_jiff();
    FlightLatest {
        endpoint,
        from_airport: row.origin.unwrap_or_default(),
        to_airport: row.place,
        departure_date: row.first_date.to_jiff(),
        return_date: (endpoint == Endpoint::FlightsRoundtrip).then(|| row.last_date.to_jiff()),
        product: other_fields(endpoint, &row.product, &["from_airport", "to_airport", "currency"]),
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

fn rate(row: LatestRow, now: Timestamp) -> HotelLatest {
    let endpoint = Endpoint::parse(&row.endpoint).unwrap_or(Endpoint::HotelsByName);
    let shown = ["hotel_name", "destination", "hotel_booking_id", "currency", "proxy_country"];
    let observed_at = row.observed_at.to_jiff();
    HotelLatest {
        endpoint,
        place: row.place,
        checkin_date: row.first_date.to_jiff(),
        checkout_date: row.last_date.to_jiff(),
        proxy_country: row.market,
        product: other_fields(endpoint, &row.product, &shown),
        price: row.price.normalize(),
        currency: row.currency,
        room: row.seller,
        observed_at,
        age_seconds: age_seconds(observed_at, now),
        item_id: row.item_id.into(),
    }
}
