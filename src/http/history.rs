//! `/v1/history`: what scans have seen (jobs-api, "History").

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::AppState;
use super::auth::Caller;
use super::docs::ListErrors;
use super::error::ApiError;
use super::extract::Pairs;
use super::scans::{desk, next_page, tenant};
use crate::contract::history::{FlightHistoryPage, FlightHistoryQuery, HotelHistoryPage, HotelHistoryQuery};
use crate::history::query;

/// List what was seen of a route
///
/// Newest first. A degraded search leaves an observation without a price, so that gaps are visible.
#[utoipa::path(
    get, path = "/v1/history/flights", tag = "History", params(FlightHistoryQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = FlightHistoryPage), ListErrors)
)]
pub(super) async fn flights(State(app): State<AppState>, caller: Caller, pairs: Pairs) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let asked = FlightHistoryQuery::from_query(pairs.iter())?;
    let page = match tenant(desk).await? {
        Some(tenant) => query::flights(desk.pool, tenant, &asked).await?,
        None => FlightHistoryPage { data: Vec::new(), next_cursor: None },
    };
    Ok((next_page("/v1/history/flights", &pairs, page.next_cursor.as_deref()), Json(page)).into_response())
}

/// List what was seen of a hotel, or of a place's hotels
///
/// Newest first; exactly one of `hotel_name`, `destination` and `hotel_booking_id`.
#[utoipa::path(
    get, path = "/v1/history/hotels", tag = "History", params(HotelHistoryQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = HotelHistoryPage), ListErrors)
)]
pub(super) async fn hotels(State(app): State<AppState>, caller: Caller, pairs: Pairs) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let asked = HotelHistoryQuery::from_query(pairs.iter())?;
    let page = match tenant(desk).await? {
        Some(tenant) => query::hotels(desk.pool, tenant, &asked).await?,
        None => HotelHistoryPage { data: Vec::new(), next_cursor: None },
    };
    Ok((next_page("/v1/history/hotels", &pairs, page.next_cursor.as_deref()), Json(page)).into_response())
}
