//! `POST /v1/hotels/*`.

use axum::extract::{Request, State};
use axum::response::Response;

use super::gateway::search;
use super::openapi::{HotelErrors, ResolveErrors, SearchAccepted, SearchHeaders};
use farescan_core::app::AppState;
use farescan_core::contract::Endpoint;
use farescan_core::contract::hotels::{
    HotelByNameRequest, HotelByNameResponse, HotelRoomsRequest, HotelRoomsResponse,
    HotelSearchRequest, HotelSearchResponse, ResolveRequest, ResolveResponse,
};

/// Search the hotels of a place
///
/// At most 50 properties; narrow with `filters` and `budget_per_night`. No property is 404.
#[utoipa::path(
    post, path = "/v1/hotels/search", operation_id = "search_hotels", tag = "Hotels", request_body = HotelSearchRequest,
    params(SearchHeaders),
    responses((status = 200, description = "The properties; prices are for the whole stay", body = HotelSearchResponse), SearchAccepted, HotelErrors)
)]
pub(super) async fn by_place(State(app): State<AppState>, request: Request) -> Response {
    search(&app, Endpoint::HotelsSearch, request).await
}

/// Price one hotel by its name
///
/// The same hotel over several `proxy_country` shows what each market pays. No such hotel is 200
/// with `available: false`.
#[utoipa::path(
    post, path = "/v1/hotels/by-name", operation_id = "find_hotel_by_name", tag = "Hotels", request_body = HotelByNameRequest,
    params(SearchHeaders),
    responses((status = 200, description = "Availability and price", body = HotelByNameResponse), SearchAccepted, HotelErrors)
)]
pub(super) async fn by_name(State(app): State<AppState>, request: Request) -> Response {
    search(&app, Endpoint::HotelsByName, request).await
}

/// List the rooms of a hotel
///
/// Every bookable room type with price and board; none is 200 with an empty list.
#[utoipa::path(
    post, path = "/v1/hotels/rooms", operation_id = "list_hotel_rooms", tag = "Hotels", request_body = HotelRoomsRequest,
    params(SearchHeaders),
    responses((status = 200, description = "The rooms", body = HotelRoomsResponse), SearchAccepted, HotelErrors)
)]
pub(super) async fn rooms(State(app): State<AppState>, request: Request) -> Response {
    search(&app, Endpoint::HotelsRooms, request).await
}

/// Resolve a hotel's name to its booking id
///
/// The id can be used for later rooms calls. No match is 404.
#[utoipa::path(
    post, path = "/v1/hotels/resolve", operation_id = "resolve_hotel", tag = "Hotels", request_body = ResolveRequest,
    responses((status = 200, description = "The hotel's booking id", body = ResolveResponse), ResolveErrors)
)]
pub(super) async fn resolve(State(app): State<AppState>, request: Request) -> Response {
    search(&app, Endpoint::HotelsResolve, request).await
}
