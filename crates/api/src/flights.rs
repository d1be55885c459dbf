//! `POST /v1/flights/*`.

use axum::extract::{Request, State};
use axum::response::Response;

use super::gateway::search;
use super::openapi::{FlightErrors, SearchAccepted, SearchHeaders};
use farescan_core::app::AppState;
use farescan_core::contract::Endpoint;
use farescan_core::contract::flights::{
    OnewayFlight, OnewayRequest, RoundtripItinerary, RoundtripRequest,
};

/// Search one-way fares
///
/// Sorted by `sort_type`, at most `limit`. The array may be empty: read `X-Search-Status` first.
#[utoipa::path(
    post, path = "/v1/flights/oneway", operation_id = "search_oneway_flights", tag = "Flights", request_body = OnewayRequest,
    params(SearchHeaders),
    responses((status = 200, description = "One object per itinerary", body = Vec<OnewayFlight>), SearchAccepted, FlightErrors)
)]
pub(super) async fn oneway(State(app): State<AppState>, request: Request) -> Response {
    search(&app, Endpoint::FlightsOneway, request).await
}

/// Search round-trip fares
///
/// `max_stops` sets each per-leg stop limit that is not given; `X-Field-Aliased` names them.
#[utoipa::path(
    post, path = "/v1/flights/roundtrip", operation_id = "search_roundtrip_flights", tag = "Flights", request_body = RoundtripRequest,
    params(SearchHeaders),
    responses(
        (status = 200, description = "One object per outbound and return pair, priced together", body = Vec<RoundtripItinerary>),
        SearchAccepted, FlightErrors
    )
)]
pub(super) async fn roundtrip(State(app): State<AppState>, request: Request) -> Response {
    search(&app, Endpoint::FlightsRoundtrip, request).await
}
