//! Reading back what was seen: prices of a route or a hotel, newest first, by pages or all of them.

use futures::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::filter::Filter;
use super::shown::{Shown, hotel_or_room};
use super::store::find::{self, ObservationRow};
use crate::contract::history::{
    FlightHistoryPage, FlightHistoryQuery, FlightObservation, HotelHistoryPage, HotelHistoryQuery,
    HotelObservation,
};
use crate::contract::primitives::{Cursor, PageLimit};
use crate::contract::{Endpoint, SearchStatus, Verdict};
use crate::ids::TenantId;
use crate::paging::{self, PageError};

const FLIGHTS: &str = "flights";
const HOTELS: &str = "hotels";

/// How many observations an export reads at a time: some hundred kilobytes.
const EXPORT_ROWS: usize = 500;

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
pub async fn flights(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &FlightHistoryQuery,
) -> Result<FlightHistoryPage, PageError> {
    let before = place(FLIGHTS, query.cursor.as_ref())?;
    let (rows, next) = page(
        conn,
        tenant,
        &query.into(),
        before,
        rows_of(query.limit_or_default()),
    )
    .await?;
    Ok(FlightHistoryPage {
        data: {
            let mut shown = Shown::by_fares();
            rows.into_iter().map(|row| fare(row, &mut shown)).collect()
        },
        next_cursor: next.map(|next| next.cursor(FLIGHTS)),
    })
}

/// What was seen of a hotel, or of a place's hotels.
///
/// # Errors
/// When the cursor is none of this list's, or the database does not answer.
pub async fn hotels(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &HotelHistoryQuery,
) -> Result<HotelHistoryPage, PageError> {
    let before = place(HOTELS, query.cursor.as_ref())?;
    let (rows, next) = page(
        conn,
        tenant,
        &query.into(),
        before,
        rows_of(query.limit_or_default()),
    )
    .await?;
    Ok(HotelHistoryPage {
        data: {
            let mut shown = Shown::by_rates();
            rows.into_iter().map(|row| rate(row, &mut shown)).collect()
        },
        next_cursor: next.map(|next| next.cursor(HOTELS)),
    })
}

/// All that was seen of a route, row by row; cursor and limit do not count.
pub fn all_flights(
    pool: &PgPool,
    tenant: TenantId,
    query: &FlightHistoryQuery,
) -> impl Stream<Item = Result<FlightObservation, PageError>> + Send + use<> {
    let mut shown = Shown::by_fares();
    all(pool.clone(), tenant, query.into()).map_ok(move |row| fare(row, &mut shown))
}

/// All that was seen of a hotel, or of a place's hotels, row by row; cursor and limit do not count.
pub fn all_hotels(
    pool: &PgPool,
    tenant: TenantId,
    query: &HotelHistoryQuery,
) -> impl Stream<Item = Result<HotelObservation, PageError>> + Send + use<> {
    let mut shown = Shown::by_rates();
    all(pool.clone(), tenant, query.into()).map_ok(move |row| rate(row, &mut shown))
}

/// What comes after the walk has begun is newer, so it is not met.
fn all(
    pool: PgPool,
    tenant: TenantId,
    filter: Filter,
) -> impl Stream<Item = Result<ObservationRow, PageError>> + Send {
    paging::walk(None, move |before| {
        let (pool, filter) = (pool.clone(), filter.clone());
        async move {
            let (rows, next) = page(
                &mut *pool.acquire().await?,
                tenant,
                &filter,
                before,
                EXPORT_ROWS,
            )
            .await?;
            Ok((rows, next.map(Some)))
        }
    })
}

/// At most `limit` observations, and the last of them if there are more.
async fn page(
    conn: &mut PgConnection,
    tenant: TenantId,
    filter: &Filter,
    before: Option<Place>,
    limit: usize,
) -> sqlx::Result<(Vec<ObservationRow>, Option<Place>)> {
    let mut rows =
        find::observations(conn, tenant, filter, before, paging::one_more_than(limit)).await?;
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
    let Some(cursor) = cursor else {
        return Ok(None);
    };
    let [observed_at, item, number] = paging::read(list, cursor)?;
    let place = || {
        let observed_at = Timestamp::from_microsecond(observed_at.parse().ok()?).ok()?;
        Some(Place {
            observed_at,
            item: item.parse().ok()?,
            number: number.parse().ok()?,
        })
    };
    Ok(Some(place().ok_or_else(|| paging::refused(cursor))?))
}

impl Place {
    fn cursor(&self, list: &str) -> String {
        let key = [
            self.observed_at.as_microsecond().to_string(),
            self.item.simple().to_string(),
            self.number.to_string(),
        ];
        paging::after(list, key)
    }
}

fn status(word: &str) -> SearchStatus {
    SearchStatus::parse(word).unwrap_or(SearchStatus::Degraded)
}

fn count(number: Option<i32>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

fn fare(row: ObservationRow, shown: &mut Shown) -> FlightObservation {
    let endpoint = Endpoint::parse(&row.endpoint).unwrap_or(Endpoint::FlightsOneway);
    FlightObservation {
        endpoint,
        from_airport: row.origin.unwrap_or_default(),
        to_airport: row.place,
        departure_date: row.first_date.to_jiff(),
        return_date: row.last_date.map(jiff_sqlx::Date::to_jiff),
        product: shown.product(endpoint, &row.product),
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

fn rate(row: ObservationRow, shown: &mut Shown) -> HotelObservation {
    let endpoint = Endpoint::parse(&row.endpoint).unwrap_or(Endpoint::HotelsByName);
    let (hotel, room) = hotel_or_room(endpoint, row.seller);
    let first_date = row.first_date.to_jiff();
    HotelObservation {
        endpoint,
        place: row.place,
        checkin_date: first_date,
        checkout_date: row.last_date.map_or(first_date, jiff_sqlx::Date::to_jiff),
        proxy_country: row.market,
        product: shown.product(endpoint, &row.product),
        price: row.price.map(|price| price.normalize()),
        currency: row.currency,
        hotel,
        room,
        results: count(row.results),
        search_status: status(&row.search_status),
        reason: row.reason,
        observed_at: row.observed_at.to_jiff(),
        item_id: row.item_id.into(),
    }
}
