//! `/v1/history`: what scans have seen (jobs-api, "History"), as pages of JSON or whole as CSV and NDJSON.
//!
//! Who asks is looked up in the database that all is written to; what was seen is read from the replica, where there is one. Not here:
//! prices over time (`series`), grids (`grid`).

pub(super) mod grid;
pub(super) mod series;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use futures::{Stream, StreamExt as _, stream};
use serde::Serialize;
use sqlx::Postgres;
use sqlx::pool::PoolConnection;
use utoipa::ToSchema;

use super::AppState;
use super::auth::Caller;
use super::docs::{ListErrors, NotAcceptable};
use super::error::ApiError;
use super::export::{Columns, Form, Wanted, export, varied};
use super::extract::Pairs;
use super::scans::{desk, next_page, tenant};
use crate::contract::history::{
    FlightHistoryPage, FlightHistoryQuery, FlightObservation, HotelHistoryPage, HotelHistoryQuery,
    HotelObservation,
};
use crate::contract::latest::{
    FlightCalendar, FlightLatest, FlightLatestQuery, HotelCalendar, HotelLatest, HotelLatestQuery,
};
use crate::history::{fare_products, latest, query, rate_products};
use crate::ids::TenantId;
use crate::paging::PageError;
use crate::scans::Desk;
use crate::tenants;

/// Who asks, and a connection to where the history is read: the one that told who it is, unless there is a replica. `None`: who never ordered
/// anything has seen nothing.
async fn reader(
    app: &AppState,
    desk: Desk<'_>,
) -> Result<Option<(PoolConnection<Postgres>, TenantId)>, ApiError> {
    let (mut conn, tenant) =
        tenants::store::find_connected(desk.pool, desk.ring, desk.key, desk.now).await?;
    let Some(tenant) = tenant else {
        return Ok(None);
    };
    if let Some(replica) = app.replica() {
        // Not both at once: who holds one and waits for another may wait for himself.
        drop(conn);
        conn = replica.acquire().await?;
    }
    Ok(Some((conn, tenant)))
}

/// All that a caller has seen as a file, each field of its products in a column; who never ordered anything has seen nothing.
async fn file<Row: ToSchema + Serialize + Send + 'static>(
    app: &AppState,
    caller: &Caller,
    form: Form,
    name: &str,
    products: &[&'static str],
    rows: Option<impl Stream<Item = Result<Row, PageError>> + Send + 'static>,
) -> Result<Response, ApiError> {
    let columns = Columns::of::<Row>()
        .flattened("product", products)
        .ordered(&[], "product");
    let permits = app.bounds.export(&caller.key).await?;
    export(form, name, columns, stream::iter(rows).flatten(), permits).await
}

/// List what was seen of a route
///
/// Newest first. A degraded search leaves an observation without a price, so that gaps are visible.
///
/// As CSV, NDJSON or Parquet (by `format` or `Accept`) all that was seen, streamed; `limit` and `cursor` are refused. The columns of CSV are the
/// fields of an observation, then one for each field of the product (`product.seat_type`). A body that breaks off is not whole.
#[utoipa::path(
    get, path = "/v1/history/flights", operation_id = "list_flight_observations", tag = "History", params(FlightHistoryQuery),
    responses(
        (
            status = 200, description = "A page, `Link` names the next one; or a file",
            content(
                (FlightHistoryPage = "application/json"), (String = "text/csv"), (FlightObservation = "application/x-ndjson"),
                (String = "application/vnd.apache.parquet")
            )
        ),
        ListErrors, NotAcceptable
    )
)]
pub(super) async fn flights(
    State(app): State<AppState>,
    caller: Caller,
    wanted: Wanted,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let asked = FlightHistoryQuery::from_query(pairs.iter())?;
    wanted.check(&pairs)?;
    if let Some(form) = wanted.0 {
        let pool = app.history_pool()?;
        let rows = tenant(desk)
            .await?
            .map(|tenant| query::all_flights(pool, tenant, &asked));
        return file(&app, &caller, form, "flights", &fare_products(), rows).await;
    }
    let page = match reader(&app, desk).await? {
        Some((mut conn, tenant)) => query::flights(&mut conn, tenant, &asked).await?,
        None => FlightHistoryPage::default(),
    };
    Ok(varied((
        next_page("/v1/history/flights", &pairs, page.next_cursor.as_deref()),
        Json(page),
    )))
}

/// List what was seen of a hotel, or of a place's hotels
///
/// Newest first; exactly one of `hotel_name`, `destination` and `hotel_booking_id`.
///
/// As CSV, NDJSON or Parquet (by `format` or `Accept`) all that was seen, streamed; `limit` and `cursor` are refused. The columns of CSV are the
/// fields of an observation, then one for each field of the product (`product.adults`). A body that breaks off is not whole.
#[utoipa::path(
    get, path = "/v1/history/hotels", operation_id = "list_hotel_observations", tag = "History", params(HotelHistoryQuery),
    responses(
        (
            status = 200, description = "A page, `Link` names the next one; or a file",
            content(
                (HotelHistoryPage = "application/json"), (String = "text/csv"), (HotelObservation = "application/x-ndjson"),
                (String = "application/vnd.apache.parquet")
            )
        ),
        ListErrors, NotAcceptable
    )
)]
pub(super) async fn hotels(
    State(app): State<AppState>,
    caller: Caller,
    wanted: Wanted,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let asked = HotelHistoryQuery::from_query(pairs.iter())?;
    wanted.check(&pairs)?;
    if let Some(form) = wanted.0 {
        let pool = app.history_pool()?;
        let rows = tenant(desk)
            .await?
            .map(|tenant| query::all_hotels(pool, tenant, &asked));
        return file(&app, &caller, form, "hotels", &rate_products(), rows).await;
    }
    let page = match reader(&app, desk).await? {
        Some((mut conn, tenant)) => query::hotels(&mut conn, tenant, &asked).await?,
        None => HotelHistoryPage::default(),
    };
    Ok(varied((
        next_page("/v1/history/hotels", &pairs, page.next_cursor.as_deref()),
        Json(page),
    )))
}

/// Read the last known fares of a route by date
///
/// From what scans have seen, with the age of each: a calendar that costs no request.
///
/// As CSV, NDJSON or Parquet (by `format` or `Accept`) all of it, streamed, beyond the bound of a JSON answer too. A body that breaks off is not
/// whole.
#[utoipa::path(
    get, path = "/v1/history/flights/latest", operation_id = "list_latest_flight_prices", tag = "History", params(FlightLatestQuery),
    responses(
        (
            status = 200, description = "The calendar, or a file of its rows",
            content(
                (FlightCalendar = "application/json"), (String = "text/csv"), (FlightLatest = "application/x-ndjson"),
                (String = "application/vnd.apache.parquet")
            )
        ),
        ListErrors, NotAcceptable
    )
)]
pub(super) async fn latest_flights(
    State(app): State<AppState>,
    caller: Caller,
    wanted: Wanted,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let asked = FlightLatestQuery::from_query(pairs.iter())?;
    if let Some(form) = wanted.0 {
        let pool = app.history_pool()?;
        let rows = tenant(desk)
            .await?
            .map(|tenant| latest::all_flights(pool, tenant, &asked, desk.now));
        return file(
            &app,
            &caller,
            form,
            "flights-latest",
            &fare_products(),
            rows,
        )
        .await;
    }
    let calendar = match reader(&app, desk).await? {
        Some((mut conn, tenant)) => latest::flights(&mut conn, tenant, &asked, desk.now).await?,
        None => FlightCalendar::default(),
    };
    Ok(varied(Json(calendar)))
}

/// Read the last known rates of a hotel or place by date
///
/// From what scans have seen, with the age of each: a calendar that costs no request. Exactly one of `hotel_name`, `destination` and
/// `hotel_booking_id`.
///
/// As CSV, NDJSON or Parquet (by `format` or `Accept`) all of it, streamed, beyond the bound of a JSON answer too. A body that breaks off is not
/// whole.
#[utoipa::path(
    get, path = "/v1/history/hotels/latest", operation_id = "list_latest_hotel_prices", tag = "History", params(HotelLatestQuery),
    responses(
        (
            status = 200, description = "The calendar, or a file of its rows",
            content(
                (HotelCalendar = "application/json"), (String = "text/csv"), (HotelLatest = "application/x-ndjson"),
                (String = "application/vnd.apache.parquet")
            )
        ),
        ListErrors, NotAcceptable
    )
)]
pub(super) async fn latest_hotels(
    State(app): State<AppState>,
    caller: Caller,
    wanted: Wanted,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let asked = HotelLatestQuery::from_query(pairs.iter())?;
    if let Some(form) = wanted.0 {
        let pool = app.history_pool()?;
        let rows = tenant(desk)
            .await?
            .map(|tenant| latest::all_hotels(pool, tenant, &asked, desk.now));
        return file(&app, &caller, form, "hotels-latest", &rate_products(), rows).await;
    }
    let calendar = match reader(&app, desk).await? {
        Some((mut conn, tenant)) => latest::hotels(&mut conn, tenant, &asked, desk.now).await?,
        None => HotelCalendar::default(),
    };
    Ok(varied(Json(calendar)))
}
