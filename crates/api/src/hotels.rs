//! `POST /v1/hotels/*`, and what each endpoint answers when nothing was found (gateway.md, rule
//! 19).

use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::gateway::search;
use super::openapi::{HotelErrors, ResolveErrors, SearchAccepted, SearchHeaders};
use super::outcome_response::SearchBody;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::app::upstream_failed::upstream_failed;
use farescan_core::contract::Endpoint;
use farescan_core::contract::hotels::{
    HotelByNameRequest, HotelByNameResponse, HotelRoomsRequest, HotelRoomsResponse,
    HotelSearchRequest, HotelSearchResponse, ResolveRequest, ResolveResponse,
};
use farescan_core::search::{Finding, Search};

/// Search the hotels of a place
///
/// At most 50 properties; narrow with `filters` and `budget_per_night`. No property is 404.
#[utoipa::path(
    post, path = "/v1/hotels/search", operation_id = "search_hotels", tag = "Hotels", request_body = HotelSearchRequest,
    params(SearchHeaders),
    responses((status = 200, description = "The properties; prices are for the whole stay", body = HotelSearchResponse), SearchAccepted, HotelErrors)
)]
pub(super) async fn by_place(State(app): State<AppState>, request: Request) -> Response {
    search(&app, Endpoint::HotelsSearch, request, map_finding).await
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
    search(&app, Endpoint::HotelsByName, request, map_finding).await
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
    search(&app, Endpoint::HotelsRooms, request, map_finding).await
}

/// Resolve a hotel's name to its booking id
///
/// The id can be used for later rooms calls. No match is 404.
#[utoipa::path(
    post, path = "/v1/hotels/resolve", operation_id = "resolve_hotel", tag = "Hotels", request_body = ResolveRequest,
    responses((status = 200, description = "The hotel's booking id", body = ResolveResponse), ResolveErrors)
)]
pub(super) async fn resolve(State(app): State<AppState>, request: Request) -> Response {
    search(&app, Endpoint::HotelsResolve, request, map_finding).await
}

fn map_finding(search: &Search, finding: Finding) -> Result<SearchBody, ApiError> {
    let endpoint = search.endpoint();
    match finding {
        Finding::Incomplete(incomplete) => Err(upstream_failed(&incomplete)),
        Finding::Answer(answer) => match (endpoint, answer.results) {
            (Endpoint::HotelsSearch, 0) => Err(ApiError::not_found("no property matched")),
            (Endpoint::HotelsResolve, 0) => Err(ApiError::not_found("no hotel matched this name")),
            (Endpoint::HotelsByName, 0) => Ok(SearchBody {
                body: unavailable_hotel(answer.body.value()).into(),
                results: 0,
            }),
            (_, results) => Ok(SearchBody {
                body: answer.body,
                results,
            }),
        },
        Finding::Nothing { .. } if endpoint == Endpoint::HotelsByName => Ok(SearchBody {
            body: unavailable_hotel(json!({})).into(),
            results: 0,
        }),
        Finding::Nothing { message } => Err(ApiError::not_found(message)),
        _ => Err(ApiError::internal(
            "a finding that hotel searches do not map",
        )),
    }
}

/// A hotel that is not available: `available` is false and every price null; other fields of the
/// marketplace stay.
fn unavailable_hotel(body: Value) -> Value {
    const FIELDS: [&str; 10] = [
        "review_score",
        "review_count",
        "room_type",
        "image_url",
        "link",
        "nights",
        "adults",
        "children",
        "name",
        "available",
    ];
    let mut hotel = match body {
        Value::Object(hotel) => hotel,
        _ => Map::new(),
    };
    for field in FIELDS {
        hotel.entry(field).or_insert(Value::Null);
    }
    hotel.insert("available".into(), json!(false));
    hotel.insert("price_string".into(), Value::Null);
    hotel.insert("price".into(), Value::Null);
    Value::Object(hotel)
}
