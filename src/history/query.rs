//! Reading back what was seen: prices of a route or a hotel, newest first.

use jiff::Timestamp;
use serde_json::{Map, Value};
use sqlx::PgPool;
use uuid::Uuid;

use super::store::{self, ObservationRow};
use crate::contract::history::{
    FlightHistoryPage, FlightHistoryQuery, FlightObservation, HotelHistoryPage, HotelHistoryQuery, HotelObservation,
};
use crate::contract::primitives::{Cursor, FreeText, HotelBookingId, PageLimit};
use crate::contract::{Endpoint, SearchStatus, Verdict};
use crate::ids::TenantId;
use crate::paging::{self, PageError};

const FLIGHTS: &str = "flights";
const HOTELS: &str = "hotels";

/// The last observation of the page before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) observed_at: Timestamp,
    pub(super) item: Uuid,
    pub(super) number: i32,
}

/// What was seen of a route.
///
/// # Errors
/// When the cursor is none of this list's, or the database does not answer.
pub async fn flights(pool: &PgPool, tenant: TenantId, query: &FlightHistoryQuery) -> Result<FlightHistoryPage, PageError> {
    let before = place(FLIGHTS, query.cursor.as_ref())?;
    let limit = rows_of(query.limit_or_default());
    let rows = store::flights(pool, tenant, query, before, paging::one_more_than(limit)).await?;
    let (rows, next_cursor) = cut(FLIGHTS, rows, limit);
    Ok(FlightHistoryPage { data: rows.into_iter().map(FlightObservation::from).collect(), next_cursor })
}

/// What was seen of a hotel, or of a place's hotels.
///
/// # Errors
/// When the cursor is none of this list's, or the database does not answer.
pub async fn hotels(pool: &PgPool, tenant: TenantId, query: &HotelHistoryQuery) -> Result<HotelHistoryPage, PageError> {
    let before = place(HOTELS, query.cursor.as_ref())?;
    let limit = rows_of(query.limit_or_default());
    let subject = hotel_subject(query.hotel_name.as_ref(), query.destination.as_ref(), query.hotel_booking_id.as_ref());
    let Some(subject) = subject else { return Ok(HotelHistoryPage { data: Vec::new(), next_cursor: None }) };
    let rows = store::hotels(pool, tenant, subject, query, before, paging::one_more_than(limit)).await?;
    let (rows, next_cursor) = cut(HOTELS, rows, limit);
    Ok(HotelHistoryPage { data: rows.into_iter().map(HotelObservation::from).collect(), next_cursor })
}

/// What a hotel query is about: it names exactly one.
pub(super) fn hotel_subject<'a>(
    name: Option<&'a FreeText>,
    destination: Option<&'a FreeText>,
    id: Option<&'a HotelBookingId>,
) -> Option<(Endpoint, &'a str)> {
    match (name, destination, id) {
        (Some(name), ..) => Some((Endpoint::HotelsByName, name.as_str())),
        (None, Some(destination), _) => Some((Endpoint::HotelsSearch, destination.as_str())),
        (None, None, Some(id)) => Some((Endpoint::HotelsRooms, id.as_str())),
        (None, None, None) => None,
    }
}

fn rows_of(limit: PageLimit) -> usize {
    usize::from(limit.get())
}

fn place(list: &str, cursor: Option<&Cursor>) -> Result<Option<Place>, PageError> {
    let Some(cursor) = cursor else { return Ok(None) };
    let [observed_at, item, number] = paging::read(list, cursor)?;
    let place = || {
        let observed_at = Timestamp::from_microsecond(observed_at.parse().ok()?).ok()?;
        Some(Place { observed_at, item: item.parse().ok()?, number: number.parse().ok()? })
    };
    Ok(Some(place().ok_or_else(|| paging::refused(cursor))?))
}

/// A page's rows, and its next cursor if there is a row more.
fn cut(list: &str, mut rows: Vec<ObservationRow>, limit: usize) -> (Vec<ObservationRow>, Option<String>) {
    let more = rows.len() > limit;
    rows.truncate(limit);
    let key = |last: &ObservationRow| {
        [last.observed_at.to_jiff().as_microsecond().to_string(), last.item_id.simple().to_string(), last.number.to_string()]
    };
    let next_cursor = rows.last().filter(|_| more).map(|last| paging::after(list, key(last)));
    (rows, next_cursor)
}

/// The product without the fields that an observation shows by themselves, in the contract's order.
pub(super) fn other_fields(endpoint: Endpoint, product: &Value, shown: &[&str]) -> Map<String, Value> {
    let fields = endpoint.fields().iter().filter(|field| !shown.contains(&field.name));
    fields.filter_map(|field| Some((field.name.to_owned(), product.get(field.name)?.clone()))).collect()
}

fn status(word: &str) -> SearchStatus {
    SearchStatus::parse(word).unwrap_or(SearchStatus::Degraded)
}

fn count(number: Option<i32>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

impl From<ObservationRow> for FlightObservation {
    fn from(row: ObservationRow) -> Self {
        let endpoint = Endpoint::parse(&row.endpoint).unwrap_or(Endpoint::FlightsOneway);
        Self {
            endpoint,
            from_airport: row.origin.unwrap_or_default(),
            to_airport: row.place,
            departure_date: row.first_date.to_jiff(),
            return_date: row.last_date.map(jiff_sqlx::Date::to_jiff),
            product: other_fields(endpoint, &row.product, &["from_airport", "to_airport", "currency"]),
            price: row.price.map(|price| price.normalize()),
            currency: row.currency,
            carrier: row.seller,
            results: count(row.results),
            price_insights_low: row.band_low.map(|price| price.normalize()),
            price_insights_high: row.band_high.map(|price| price.normalize()),
            verdict: row.verdict.as_deref().and_then(Verdict::parse),
            search_status: status(&row.search_status),
            reason: row.reason,
            observed_at: row.observed_at.to_jiff(),
            item_id: row.item_id.into(),
        }
    }
}

impl From<ObservationRow> for HotelObservation {
    fn from(row: ObservationRow) -> Self {
        let endpoint = Endpoint::parse(&row.endpoint).unwrap_or(Endpoint::HotelsByName);
        let first_date = row.first_date.to_jiff();
        let shown = ["hotel_name", "destination", "hotel_booking_id", "currency", "proxy_country"];
        Self {
            endpoint,
            place: row.place,
            checkin_date: first_date,
            checkout_date: row.last_date.map_or(first_date, jiff_sqlx::Date::to_jiff),
            proxy_country: row.market,
            product: other_fields(endpoint, &row.product, &shown),
            price: row.price.map(|price| price.normalize()),
            currency: row.currency,
            room: row.seller,
            results: count(row.results),
            search_status: status(&row.search_status),
            reason: row.reason,
            observed_at: row.observed_at.to_jiff(),
            item_id: row.item_id.into(),
        }
    }
}
