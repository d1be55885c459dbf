//! The response to an outcome and its headers (gateway.md, rules 1, 5 and 15). Flights and hotels
//! answer some outcomes differently.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use farescan_core::app::error::ApiError;
use farescan_core::app::upstream_response::{forward, upstream_failed};
use farescan_core::contract::{Api, Endpoint, SearchStatus};
use farescan_core::search::{AnswerBody, Finding, Outcome, RateLimit, Search};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BILLED: HeaderName = HeaderName::from_static("x-upstream-requests");
const STATUS: HeaderName = HeaderName::from_static("x-search-status");
const REASON: HeaderName = HeaderName::from_static("x-search-reason");
const RESULTS: HeaderName = HeaderName::from_static("x-search-results");

/// A response body and its number of results.
type SearchBody = (AnswerBody, usize);

/// The response to an outcome, of a call just made or of a scan.
pub(super) fn outcome_response(search: &Search, outcome: Outcome) -> Response {
    let Outcome {
        finding,
        search_headers,
        plan_headers,
        billed_requests,
        ..
    } = outcome;
    let mut headers = HeaderMap::new();
    forward(&mut headers, &search_headers);
    set_search_status(&mut headers, search, &finding);
    forward(&mut headers, &plan_headers);
    headers.insert(BILLED, billed_requests.into());
    headers.remove(RESULTS);
    let response = match finding {
        Finding::RateLimited(limit) => relay_rate_limit(limit),
        Finding::KeyRejected { message } => {
            ApiError::invalid_api_key(format!("the marketplace rejected this key: {message}"))
                .into_response()
        }
        Finding::NotSubscribed { api, message } => {
            ApiError::not_subscribed(api, &message).into_response()
        }
        Finding::Refused { message } => {
            ApiError::invalid_request(format!("the marketplace rejected this request: {message}"))
                .into_response()
        }
        finding @ (Finding::Answer(_) | Finding::Nothing { .. } | Finding::Incomplete(_)) => {
            let found = match search.endpoint().api() {
                Api::Flights => flights_body(search, finding),
                Api::Hotels => hotels_body(search.endpoint(), finding),
            };
            match found {
                Ok((body, results)) => {
                    headers.insert(RESULTS, results.into());
                    ([(CONTENT_TYPE, JSON)], Body::from(body.text().clone())).into_response()
                }
                Err(error) => error.into_response(),
            }
        }
    };
    (headers, response).into_response()
}

/// An incomplete search is an empty array, unless the caller set `strict` (gateway.md, rules 16 and
/// 37).
fn flights_body(search: &Search, finding: Finding) -> Result<SearchBody, ApiError> {
    match finding {
        Finding::Answer(answer) => Ok((answer.body, answer.results)),
        Finding::Incomplete(incomplete) if search.is_strict() => {
            Err(ApiError::search_incomplete(incomplete.reason()))
        }
        _ => Ok((json!([]).into(), 0)),
    }
}

/// What each endpoint answers when nothing was found: gateway.md, rule 19.
fn hotels_body(endpoint: Endpoint, finding: Finding) -> Result<SearchBody, ApiError> {
    match finding {
        Finding::Incomplete(incomplete) => Err(upstream_failed(&incomplete)),
        Finding::Answer(answer) => match (endpoint, answer.results) {
            (Endpoint::HotelsSearch, 0) => Err(ApiError::not_found("no property matched")),
            (Endpoint::HotelsResolve, 0) => Err(ApiError::not_found("no hotel matched this name")),
            (Endpoint::HotelsByName, 0) => Ok((unavailable_hotel(answer.body.value()).into(), 0)),
            (_, results) => Ok((answer.body, results)),
        },
        Finding::Nothing { .. } if endpoint == Endpoint::HotelsByName => {
            Ok((unavailable_hotel(json!({})).into(), 0))
        }
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

/// Sets the search status only where it is certain (gateway.md, rule 15): `degraded` if there is no
/// usable response, whatever its headers; `empty` for an empty response to a strict search without
/// a stated status.
fn set_search_status(headers: &mut HeaderMap, search: &Search, finding: &Finding) {
    match finding {
        Finding::Incomplete(incomplete) => {
            headers.insert(
                STATUS,
                HeaderValue::from_static(SearchStatus::Degraded.as_str()),
            );
            if let Ok(reason) = HeaderValue::from_str(incomplete.reason()) {
                headers.insert(REASON, reason);
            }
        }
        Finding::Answer(answer)
            if search.is_strict() && answer.results == 0 && !headers.contains_key(STATUS) =>
        {
            headers.insert(
                STATUS,
                HeaderValue::from_static(SearchStatus::Empty.as_str()),
            );
        }
        _ => {}
    }
}

/// Passes on the marketplace's 429: body, content type, `Retry-After` (gateway.md, rule 17).
fn relay_rate_limit(limit: RateLimit) -> Response {
    let mut response = Response::new(Body::from(limit.body));
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    for (name, value) in [
        (CONTENT_TYPE, limit.content_type),
        (RETRY_AFTER, limit.retry_after),
    ] {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
