//! Reading back what was seen: prices of a route or a hotel, newest first, by pages or all of them.

use futures::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use serde_json::{Map, Value};
use sqlx::PgPool;
use uuid::Uuid;

use super::filter::Filter;
use super::series::product_fields;
use super::store::find::{self, ObservationRow};
use crate::contract::history::{
    FlightHistoryPage, FlightHistoryQuery, FlightObservation, HotelHistoryPage, HotelHistoryQuery, HotelObservation,
};
use crate::contract::primitives::{Cursor, PageLimit};
use crate::contract::{Endpoint, SearchStatus, Verdict};
use crate::ids::TenantId;
use crate::paging::{self, PageError};

const FLIGHTS: &str = "flights";
const HOTELS: &str = "hotels";

/// How many observations an export reads at a time: some hundred kilobytes.
const EXPORT_ROWS: usize = 500;

/// Fields of a product that a fare shows by themselves.
pub(super) const FARE_SHOWS: [&str; 3] = ["from_airport", "to_airport", "currency"];
/// Fields of a product that a rate shows by themselves.
pub(super) const RATE_SHOWS: [&str; 5] = ["hotel_name", "destination", "hotel_booking_id", "currency", "proxy_country"];

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
    let (rows, next) = page(pool, tenant, &query.into(), before, rows_of(query.limit_or_default())).await?;
    Ok(FlightHistoryPage {
        data: rows.into_iter().map(FlightObservation::from).collect(),
        next_cursor: next.map(|next| next.cursor(FLIGHTS)),
    })
}

/// What was seen of a hotel, or of a place's hotels.
///
/// # Errors
/// When the cursor is none of this list's, or the database does not answer.
pub async fn hotels(pool: &PgPool, tenant: TenantId, query: &HotelHistoryQuery) -> Result<HotelHistoryPage, PageError> {
    let before = place(HOTELS, query.cursor.as_ref())?;
    let (rows, next) = page(pool, tenant, &query.into(), before, rows_of(query.limit_or_default())).await?;
    Ok(HotelHistoryPage {
        data: rows.into_iter().map(HotelObservation::from).collect(),
        next_cursor: next.map(|next| next.cursor(HOTELS)),
    })
}

/// All that was seen of a route, row by row; cursor and limit do not count.
pub fn all_flights(
    pool: &PgPool,
    tenant: TenantId,
    query: &FlightHistoryQuery,
) -> impl Stream<Item = Result<FlightObservation, PageError>> + Send + use<> {
    all(pool.clone(), tenant, query.into()).map_ok(FlightObservation::from)
}

/// All that was seen of a hotel, or of a place's hotels, row by row; cursor and limit do not count.
pub fn all_hotels(
    pool: &PgPool,
    tenant: TenantId,
    query: &HotelHistoryQuery,
) -> impl Stream<Item = Result<HotelObservation, PageError>> + Send + use<> {
    all(pool.clone(), tenant, query.into()).map_ok(HotelObservation::from)
}

/// What comes after the walk has begun is newer, so it is not met.
fn all(pool: PgPool, tenant: TenantId, filter: Filter) -> impl Stream<Item = Result<ObservationRow, PageError>> + Send {
    paging::walk(None, move |before| {
        let (pool, filter) = (pool.clone(), filter.clone());
        async move {
            let (rows, next) = page(&pool, tenant, &filter, before, EXPORT_ROWS).await?;
            Ok((rows, next.map(Some)))
        }
    })
}

/// At most `limit` observations, and the last of them if there are more.
async fn page(
    pool: &PgPool,
    tenant: TenantId,
    filter: &Filter,
    before: Option<Place>,
    limit: usize,
) -> sqlx::Result<(Vec<ObservationRow>, Option<Place>)> {
    let mut rows = find::observations(pool, tenant, filter, before, paging::one_more_than(limit)).await?;
    let next = paging::cut(&mut rows, limit).map(|last| Place {
        observed_at: last.observed_at.to_jiff(),
        item: last.item_id,
        number: last.number,
    });
    Ok((rows, next))
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

impl Place {
    fn cursor(&self, list: &str) -> String {
        let key = [self.observed_at.as_microsecond().to_string(), self.item.simple().to_string(), self.number.to_string()];
        paging::after(list, key)
    }
}

/// The fields that `product` can have in a fare, whatever the journey.
#[must_use]
pub fn fare_products() -> Vec<&'static str> {
    products(&[Endpoint::FlightsOneway, Endpoint::FlightsRoundtrip], &FARE_SHOWS)
}

/// The fields that `product` can have in a rate, whatever was asked.
#[must_use]
pub fn rate_products() -> Vec<&'static str> {
    products(&[Endpoint::HotelsSearch, Endpoint::HotelsByName, Endpoint::HotelsRooms], &RATE_SHOWS)
}

fn products(endpoints: &[Endpoint], shown: &[&str]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for field in endpoints.iter().flat_map(|endpoint| product_fields(*endpoint)) {
        if !shown.contains(&field.name) && !names.contains(&field.name) {
            names.push(field.name);
        }
    }
    names
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
            product: other_fields(endpoint, &row.product, &FARE_SHOWS),
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
        Self {
            endpoint,
            place: row.place,
            checkin_date: first_date,
            checkout_date: row.last_date.map_or(first_date, jiff_sqlx::Date::to_jiff),
            proxy_country: row.market,
            product: other_fields(endpoint, &row.product, &RATE_SHOWS),
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
