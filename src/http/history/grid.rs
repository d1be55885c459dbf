//! `/v1/history/flights/grid` and `/v1/history/hotels/grid`: the last known prices as grids.

use axum::Json;
use axum::extract::State;

use super::reader;
use crate::contract::grids::{FlightGridQuery, HistoryGrids, HotelGridQuery};
use crate::history::grid;
use crate::http::AppState;
use crate::http::auth::Caller;
use crate::http::docs::{ListErrors, NotAcceptable};
use crate::http::error::ApiError;
use crate::http::export::JsonOnly;
use crate::http::extract::Pairs;
use crate::http::scans::desk;

/// What is known to a caller who never ordered anything.
const NOTHING: HistoryGrids = HistoryGrids {
    data: Vec::new(),
    truncated: false,
};

/// Read the last known fares of a route as grids
///
/// Days of departure against lengths of stay, from what scans have seen: it costs no request. A grid for each product. A cell says how old
/// its price is, what the last look came to, or that nobody ever looked.
#[utoipa::path(
    get, path = "/v1/history/flights/grid", operation_id = "get_flight_history_grid", tag = "History", params(FlightGridQuery),
    responses((status = 200, description = "The grids", body = HistoryGrids), ListErrors, NotAcceptable)
)]
pub(in crate::http) async fn flights(
    State(app): State<AppState>,
    caller: Caller,
    _: JsonOnly,
    pairs: Pairs,
) -> Result<Json<HistoryGrids>, ApiError> {
    let desk = desk(&app, &caller)?;
    let asked = FlightGridQuery::from_query(pairs.iter())?;
    let _permits = app.bounds.heavy(&caller.key).await?;
    let Some((mut conn, tenant)) = reader(&app, desk).await? else {
        return Ok(Json(NOTHING));
    };
    Ok(Json(
        grid::flights(&mut conn, tenant, &asked, desk.now).await?,
    ))
}

/// Read the last known rates of a hotel or place as grids
///
/// Days of check-in against lengths of stay or markets, from what scans have seen: it costs no request. A grid for each product; prices
/// from different markets stand beside each other where `proxy_country` is a side, else each market has a grid. Exactly one of
/// `hotel_name`, `destination` and `hotel_booking_id`.
#[utoipa::path(
    get, path = "/v1/history/hotels/grid", operation_id = "get_hotel_history_grid", tag = "History", params(HotelGridQuery),
    responses((status = 200, description = "The grids", body = HistoryGrids), ListErrors, NotAcceptable)
)]
pub(in crate::http) async fn hotels(
    State(app): State<AppState>,
    caller: Caller,
    _: JsonOnly,
    pairs: Pairs,
) -> Result<Json<HistoryGrids>, ApiError> {
    let desk = desk(&app, &caller)?;
    let asked = HotelGridQuery::from_query(pairs.iter())?;
    let _permits = app.bounds.heavy(&caller.key).await?;
    let Some((mut conn, tenant)) = reader(&app, desk).await? else {
        return Ok(Json(NOTHING));
    };
    Ok(Json(
        grid::hotels(&mut conn, tenant, &asked, desk.now).await?,
    ))
}
