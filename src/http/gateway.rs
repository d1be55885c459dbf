//! One search of a synchronous caller, from request to answer: the order of work (contract 4) and the headers that every answer
//! carries (contract 1, 5, 15). The two columns of the outcome table are in `flights` and `hotels`.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use super::AppState;
use super::auth::Caller;
use super::error::ApiError;
use super::extract::{SEARCH_BODY, object};
use super::guesses::Verdict;
use super::layers::request_id;
use super::prefer;
use crate::contract::{Alias, Endpoint, ErrorType, Faults, Request as Checked, SearchStatus};
use crate::queue::charge::Spent;
use crate::search::{AnswerBody, Finding, Incomplete, Outcome, RateLimit, Search};
use crate::tenants::acceptance::{shows_acceptance, shows_refusal};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ALIASED: HeaderName = HeaderName::from_static("x-field-aliased");
const BILLED: HeaderName = HeaderName::from_static("x-upstream-requests");
const STATUS: HeaderName = HeaderName::from_static("x-search-status");
const REASON: HeaderName = HeaderName::from_static("x-search-reason");
const RESULTS: HeaderName = HeaderName::from_static("x-search-results");

/// A body of ours, and how many results it holds.
pub(super) struct Found {
    pub(super) body: AnswerBody,
    pub(super) results: usize,
}

/// How an endpoint answers what was found. `Finding`s that are answered alike everywhere never get here.
pub(super) type Column = fn(&Search, Finding) -> Result<Found, ApiError>;

/// Body and alias, then the key, then validation, then upstream (contract 4), unless the caller prefers a scan.
pub(super) async fn search(
    app: &AppState,
    endpoint: Endpoint,
    request: Request,
    column: Column,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = match object(body, SEARCH_BODY).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    let alias = body
        .as_ref()
        .ok()
        .and_then(|body| Alias::of(endpoint, body));
    let mut response = ask(app, endpoint, &parts, body, column)
        .await
        .into_response();
    if let Some(value) = alias.and_then(|alias| HeaderValue::from_str(&alias.header_value()).ok()) {
        response.headers_mut().insert(ALIASED, value);
    }
    prefer::vary(endpoint, &mut response);
    response
}

async fn ask(
    app: &AppState,
    endpoint: Endpoint,
    parts: &Parts,
    body: Result<Map<String, Value>, Faults>,
    column: Column,
) -> Result<Response, ApiError> {
    let caller = Caller::of(parts)?;
    let search = Search::of_caller(Checked::check(endpoint, &body?)?.request);
    if let Some(response) = prefer::deferred(app, parts, &caller, &search, column).await? {
        return Ok(response);
    }
    let pass = app.admit_search(&caller.key).await?;
    let outcome = app
        .upstream
        .ask(
            &search,
            &caller.key,
            request_id(&parts.extensions),
            || async { true },
        )
        .await;
    pass.learn(verdict(outcome.http_status));
    app.charge(&caller.key, Spent::by_search(&search, &outcome));
    Ok(answer(&search, outcome, column))
}

/// What an answer says of the key.
fn verdict(http_status: Option<u16>) -> Verdict {
    match http_status {
        Some(status) if shows_acceptance(status) => Verdict::Accepted,
        Some(status) if shows_refusal(status) => Verdict::Refused,
        _ => Verdict::Unknown,
    }
}

/// What an outcome is for who asked, whether just now or through a scan.
pub(super) fn answer(search: &Search, outcome: Outcome, column: Column) -> Response {
    let Outcome {
        finding,
        search_headers,
        plan_headers,
        billed_requests,
        ..
    } = outcome;
    let mut headers = HeaderMap::new();
    forward(&mut headers, &search_headers);
    settle_status(&mut headers, search, &finding);
    forward(&mut headers, &plan_headers);
    headers.insert(BILLED, billed_requests.into());
    headers.remove(RESULTS);
    let response = match finding {
        Finding::RateLimited(limit) => unchanged(limit),
        Finding::KeyRejected { message } => {
            ApiError::invalid_api_key(format!("the marketplace refuses this key: {message}"))
                .into_response()
        }
        Finding::NotSubscribed { api, message } => {
            ApiError::not_subscribed(api, &message).into_response()
        }
        Finding::Refused { message } => {
            ApiError::invalid_request(format!("the marketplace refuses this request: {message}"))
                .into_response()
        }
        finding @ (Finding::Answer(_) | Finding::Nothing { .. } | Finding::Incomplete(_)) => {
            match column(search, finding) {
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

/// Names and values come from a response that was parsed; should one not go out again, the others do.
pub(super) fn forward(headers: &mut HeaderMap, forwarded: &[(String, String)]) {
    for (name, value) in forwarded {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    }
}

/// A status is added only where it is certain (contract 15): `degraded` for no usable answer, whatever its headers said; `empty` for an
/// empty answer to a strict question that states nothing.
fn settle_status(headers: &mut HeaderMap, search: &Search, finding: &Finding) {
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

/// 429 as it came: body, content type, `Retry-After` (contract 17).
fn unchanged(limit: RateLimit) -> Response {
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

/// No usable answer, where that is an error of the marketplace: the hotels column and verify.
pub(super) fn upstream_failed(incomplete: &Incomplete) -> ApiError {
    let failed = |status: u16| {
        let error = ApiError::new(
            ErrorType::UpstreamError,
            format!("the marketplace answered with status {status}; try again later"),
        );
        match StatusCode::from_u16(status) {
            Ok(status) if status.is_server_error() => error.with_status(status),
            _ => error,
        }
    };
    match incomplete {
        Incomplete::Timeout => ApiError::new(
            ErrorType::UpstreamTimeout,
            "the marketplace did not answer in time; try again later",
        ),
        Incomplete::Connection => ApiError::new(
            ErrorType::UpstreamUnreachable,
            "the marketplace cannot be reached; try again later",
        ),
        Incomplete::Unreadable => ApiError::new(
            ErrorType::UpstreamInvalidResponse,
            "the marketplace's answer cannot be read; try again later",
        ),
        Incomplete::Status(status) => failed(*status),
        Incomplete::Stated { .. } => failed(503),
    }
}
