//! The response to an outcome and its headers (gateway.md, rules 1, 5 and 15). `flights` and
//! `hotels` map the outcomes that they answer differently.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use farescan_core::app::error::ApiError;
use farescan_core::app::upstream_failed::forward;
use farescan_core::contract::SearchStatus;
use farescan_core::search::{AnswerBody, Finding, Outcome, RateLimit, Search};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BILLED: HeaderName = HeaderName::from_static("x-upstream-requests");
const STATUS: HeaderName = HeaderName::from_static("x-search-status");
const REASON: HeaderName = HeaderName::from_static("x-search-reason");
const RESULTS: HeaderName = HeaderName::from_static("x-search-results");

/// A response body and its number of results.
pub(super) struct SearchBody {
    pub(super) body: AnswerBody,
    pub(super) results: usize,
}

/// Maps a finding to the response of an endpoint. Findings that all endpoints answer alike never
/// get here.
pub(super) type MapFinding = fn(&Search, Finding) -> Result<SearchBody, ApiError>;

/// The response to an outcome, of a call just made or of a scan.
pub(super) fn outcome_response(
    search: &Search,
    outcome: Outcome,
    map_finding: MapFinding,
) -> Response {
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
            match map_finding(search, finding) {
                Ok(found) => {
                    headers.insert(RESULTS, found.results.into());
                    (
                        [(CONTENT_TYPE, JSON)],
                        Body::from(found.body.text().clone()),
                    )
                        .into_response()
                }
                Err(error) => error.into_response(),
            }
        }
    };
    (headers, response).into_response()
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
