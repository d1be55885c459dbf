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
use crate::contract::latest::{FlightCalendar, FlightLatestQuery, HotelCalendar, HotelLatestQuery};
use crate::history::{latest, query};

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

/// Read the last known fares of a route by date
///
/// From what scans have seen, with the age of each: a calendar that costs no request.
#[utoipa::path(
    get, path = "/v1/history/flights/latest", tag = "History", params(FlightLatestQuery),
    responses((status = 200, description = "The calendar", body = FlightCalendar), ListErrors)
)]
pub(super) async fn latest_flights(
    State(app): State<AppState>,
    caller: Caller,
    pairs: Pairs,
) -> Result<Json<FlightCalendar>, ApiError> {
    let desk = desk(&app, &caller)?;
    let asked = FlightLatestQuery::from_query(pairs.iter())?;
    let calendar = match tenant(desk).await? {
        Some(tenant) => latest::flights(desk.pool, tenant, &asked, desk.now).await?,
        None => FlightCalendar { data: Vec::new(), truncated: false },
    };
    Ok(Json(calendar))
}

/// Read the last known rates of a hotel or place by date
///
/// From what scans have seen, with the age of each: a calendar that costs no request. Exactly one of `hotel_name`, `destination` and
/// `hotel_booking_id`.
#[utoipa::path(
    get, path = "/v1/history/hotels/latest", tag = "History", params(HotelLatestQuery),
    responses((status = 200, description = "The calendar", body = HotelCalendar), ListErrors)
)]
pub(super) async fn latest_hotels(
    State(app): State<AppState>,
    caller: Caller,
    pairs: Pairs,
) -> Result<Json<HotelCalendar>, ApiError> {
    let desk = desk(&app, &caller)?;
    let asked = HotelLatestQuery::from_query(pairs.iter())?;
    let calendar = match tenant(desk).await? {
        Some(tenant) => latest::hotels(desk.pool, tenant, &asked, desk.now).await?,
        None => HotelCalendar { data: Vec::new(), truncated: false },
    };
    Ok(Json(calendar))
}
