//! Observations of a route or hotel, newest first, in pages or as a stream.

use futures::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::filter::Filter;
use super::presenter::{ProductPresenter, seller_as_hotel_or_room};
use super::store::select::{self, ObservationRow};
use crate::contract::history::{
    FlightHistoryPage, FlightHistoryQuery, FlightObservation, HotelHistoryPage, HotelHistoryQuery,
    HotelObservation,
};
use crate::contract::primitives::{Cursor, PageLimit};
use crate::ids::TenantId;
use crate::paging::{self, PageError};

const FLIGHTS: &str = "flights";
const HOTELS: &str = "hotels";

/// Rows that an export reads at a time: some hundred kilobytes.
const ROWS_PER_EXPORT_PAGE: usize = 500;

/// Last observation of the previous page.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObservationCursor {
    pub(super) observed_at: Timestamp,
    pub(super) item: Uuid,
    pub(super) number: i32,
}

/// A page of observations of a route.
///
/// # Errors
/// The cursor belongs to another list; database errors.
pub async fn flights(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &FlightHistoryQuery,
) -> Result<FlightHistoryPage, PageError> {
    let before = parse_cursor(FLIGHTS, query.cursor.as_ref())?;
    let (rows, next) = page(
        conn,
        tenant,
        &query.into(),
        before,
        row_limit(query.limit_or_default()),
    )
    .await?;
    Ok(FlightHistoryPage {
        data: {
            let mut presenter = ProductPresenter::for_fares();
            rows.into_iter()
                .map(|row| fare(row, &mut presenter))
                .collect()
        },
        next_cursor: next.map(|next| next.encode(FLIGHTS)),
    })
}

/// A page of observations of a hotel, or of a place's hotels.
///
/// # Errors
/// The cursor belongs to another list; database errors.
pub async fn hotels(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &HotelHistoryQuery,
) -> Result<HotelHistoryPage, PageError> {
    let before = parse_cursor(HOTELS, query.cursor.as_ref())?;
    let (rows, next) = page(
        conn,
        tenant,
        &query.into(),
        before,
        row_limit(query.limit_or_default()),
    )
    .await?;
    Ok(HotelHistoryPage {
        data: {
            let mut presenter = ProductPresenter::for_rates();
            rows.into_iter()
                .map(|row| rate(row, &mut presenter))
                .collect()
        },
        next_cursor: next.map(|next| next.encode(HOTELS)),
    })
}

/// All observations of a route as a stream; ignores the query's cursor and limit.
pub fn stream_flights(
    pool: &PgPool,
    tenant: TenantId,
    query: &FlightHistoryQuery,
) -> impl Stream<Item = Result<FlightObservation, PageError>> + Send + use<> {
    let mut presenter = ProductPresenter::for_fares();
    stream(pool.clone(), tenant, query.into()).map_ok(move |row| fare(row, &mut presenter))
}

/// All observations of a hotel or place as a stream; ignores the query's cursor and limit.
pub fn stream_hotels(
    pool: &PgPool,
    tenant: TenantId,
    query: &HotelHistoryQuery,
) -> impl Stream<Item = Result<HotelObservation, PageError>> + Send + use<> {
    let mut presenter = ProductPresenter::for_rates();
    stream(pool.clone(), tenant, query.into()).map_ok(move |row| rate(row, &mut presenter))
}

/// The stream runs from newest to oldest, so it never meets observations that arrive meanwhile.
fn stream(
    pool: PgPool,
    tenant: TenantId,
    filter: Filter,
) -> impl Stream<Item = Result<ObservationRow, PageError>> + Send {
    paging::stream_rows(None, move |before| {
        let (pool, filter) = (pool.clone(), filter.clone());
        async move {
            let (rows, next) = page(
                &mut *pool.acquire().await?,
                tenant,
                &filter,
                before,
                ROWS_PER_EXPORT_PAGE,
            )
            .await?;
            Ok((rows, next.map(Some)))
        }
    })
}

/// At most `limit` observations, and a cursor if there are more.
async fn page(
    conn: &mut PgConnection,
    tenant: TenantId,
    filter: &Filter,
    before: Option<ObservationCursor>,
    limit: usize,
) -> sqlx::Result<(Vec<ObservationRow>, Option<ObservationCursor>)> {
    let mut rows =
        select::observations(conn, tenant, filter, before, paging::limit_plus_one(limit)).await?;
    let next = paging::truncate_page(&mut rows, limit).map(|last| ObservationCursor {
        observed_at: last.observed_at.to_jiff(),
        item: last.item_id,
        number: last.number,
    });
    Ok((rows, next))
}

fn row_limit(limit: PageLimit) -> usize {
    usize::from(limit.get())
}

fn parse_cursor(
    list: &str,
    cursor: Option<&Cursor>,
) -> Result<Option<ObservationCursor>, PageError> {
    let Some(cursor) = cursor else {
        return Ok(None);
    };
    let [observed_at, item, number] = paging::decode_cursor(list, cursor)?;
    let parse = || {
        let observed_at = Timestamp::from_microsecond(observed_at.parse().ok()?).ok()?;
        Some(ObservationCursor {
            observed_at,
            item: item.parse().ok()?,
            number: number.parse().ok()?,
        })
    };
    Ok(Some(parse().ok_or_else(|| paging::invalid_cursor(cursor))?))
}

impl ObservationCursor {
    fn encode(&self, list: &str) -> String {
        let key = [
            self.observed_at.as_microsecond().to_string(),
            self.item.simple().to_string(),
            self.number.to_string(),
        ];
        paging::encode_cursor(list, key)
    }
}

fn count(number: Option<i32>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

fn fare(row: ObservationRow, presenter: &mut ProductPresenter) -> FlightObservation {
    let endpoint = row.endpoint;
    FlightObservation {
        endpoint,
        from_airport: row.origin.unwrap_or_default(),
        to_airport: row.place,
        departure_date: row.first_date.to_jiff(),
        return_date: row.last_date.map(jiff_sqlx::Date::to_jiff),
        product: presenter.product(endpoint, &row.product),
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

fn rate(row: ObservationRow, presenter: &mut ProductPresenter) -> HotelObservation {
    let endpoint = row.endpoint;
    let (hotel, room) = seller_as_hotel_or_room(endpoint, row.seller);
    let first_date = row.first_date.to_jiff();
    HotelObservation {
        endpoint,
        place: row.place,
        checkin_date: first_date,
        checkout_date: row.last_date.map_or(first_date, jiff_sqlx::Date::to_jiff),
        proxy_country: row.market,
        product: presenter.product(endpoint, &row.product),
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
