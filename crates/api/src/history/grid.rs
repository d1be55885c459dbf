//! `/v1/history/flights/grid` and `/v1/history/hotels/grid`: the last known prices as grids.

use axum::Json;

use super::reader;
use crate::export::JsonOnly;
use crate::openapi::{ListErrors, NotAcceptable};
use farescan_core::app::api_request::ApiRequest;
use farescan_core::app::error::ApiResult;
use farescan_core::contract::HistoryQuery;
use farescan_core::contract::history_grid::{FlightGridQuery, HistoryGrids, HotelGridQuery};
use farescan_core::history::{PriceQuery, judged_grid};

async fn grids<Q: HistoryQuery>(request: ApiRequest) -> ApiResult<Json<HistoryGrids>> {
    let context = request.context()?;
    let query = PriceQuery::read::<Q>(request.pairs.iter())?;
    let _permits = request.heavy_permits().await?;
    let grids = match reader(&request.app, context).await? {
        Some((mut conn, tenant)) => {
            judged_grid::grids(&mut conn, tenant, &query, context.now).await?
        }
        None => HistoryGrids {
            data: Vec::new(),
            truncated: false,
        },
    };
    Ok(Json(grids))
}

/// Read the last known fares of a route as grids
///
/// Departure dates by lengths of stay, from stored observations: it costs no request. One grid for
/// each product. A cell has the age of its price, or the result of the last search, or that there
/// was none.
#[utoipa::path(
    get, path = "/v1/history/flights/grid", operation_id = "get_flight_history_grid", tag = "History", params(FlightGridQuery),
    responses((status = 200, description = "The grids", body = HistoryGrids), ListErrors, NotAcceptable)
)]
pub(crate) async fn flights(request: ApiRequest, _: JsonOnly) -> ApiResult<Json<HistoryGrids>> {
    grids::<FlightGridQuery>(request).await
}

/// Read the last known rates of a hotel or place as grids
///
/// Check-in dates by lengths of stay or markets, from stored observations: it costs no request. One
/// grid for each product. With `proxy_country` as an axis a grid compares markets, else each market
/// has its own grid. Exactly one of `hotel_name`, `destination` and `hotel_booking_id`.
#[utoipa::path(
    get, path = "/v1/history/hotels/grid", operation_id = "get_hotel_history_grid", tag = "History", params(HotelGridQuery),
    responses((status = 200, description = "The grids", body = HistoryGrids), ListErrors, NotAcceptable)
)]
pub(crate) async fn hotels(request: ApiRequest, _: JsonOnly) -> ApiResult<Json<HistoryGrids>> {
    grids::<HotelGridQuery>(request).await
}
