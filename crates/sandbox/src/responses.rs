//! Builds the responses of the engines and of the marketplace in front of them.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::civil::DateTime;
use serde::Serialize;
use serde_json::json;

use super::plans::RemainingQuota;
use super::wire::shape::Detail;

/// Set if the marketplace itself answered, not an engine (gateway.md, rule 3).
const PROXY_RESPONSE: HeaderName = HeaderName::from_static("x-rapidapi-proxy-response");

/// The sandbox's own date, if it has a clock or a scenario of its own. Not the header `Date`: that is
/// when the answer was sent, and caches count its age from it.
const SANDBOX_DATE: HeaderName = HeaderName::from_static("x-sandbox-date");

/// Adds the sandbox's date to an answer that does not say it yet.
pub(super) fn with_sandbox_date(mut response: Response, now: DateTime) -> Response {
    let text = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().entry(SANDBOX_DATE).or_insert(value);
    }
    response
}

/// An engine's answer.
pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    (status, axum::Json(body)).into_response()
}

/// An engine's error with a message.
pub(super) fn message(status: StatusCode, text: &str) -> Response {
    json(status, &json!({ "message": text }))
}

/// The marketplace's own error.
pub(super) fn marketplace(status: StatusCode, text: &str) -> Response {
    let mut response = message(status, text);
    response
        .headers_mut()
        .insert(PROXY_RESPONSE, HeaderValue::from_static("true"));
    response
}

/// The marketplace's 429.
pub(super) fn too_many(text: &str, retry_after_seconds: Option<u64>) -> Response {
    let mut response = marketplace(StatusCode::TOO_MANY_REQUESTS, text);
    if let Some(seconds) = retry_after_seconds {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The engine's refusal of an invalid body.
pub(super) fn unprocessable(details: &[Detail]) -> Response {
    json(
        StatusCode::UNPROCESSABLE_ENTITY,
        &json!({ "detail": details }),
    )
}

/// The error for a search that did not complete (gateway.md, rule 45).
pub(super) fn search_incomplete(reason: &str) -> Response {
    let body = json!({"error": {
        "type": "search_incomplete",
        "reason": reason,
        "message": "The search did not complete; nothing can be said about availability. A retry is safe.",
    }});
    json(StatusCode::SERVICE_UNAVAILABLE, &body)
}

/// An engine that is down.
pub(super) fn failed() -> Response {
    message(StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable")
}

/// A web page instead of JSON.
pub(super) fn garbage() -> Response {
    let page =
        "<!doctype html><title>Just a moment…</title><p>Checking that you are not a robot.</p>";
    (
        [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
        Body::from(page),
    )
        .into_response()
}

/// Adds the quota headers of gateway.md, rule 44: the plan's always, the rate window's if the plan
/// has one.
pub(super) fn with_quota(mut response: Response, quota: RemainingQuota) -> Response {
    let headers = response.headers_mut();
    let mut set = |name: &'static str, value: u64| {
        headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
    };
    set("x-ratelimit-requests-limit", quota.limit);
    set("x-ratelimit-requests-remaining", quota.remaining);
    set("x-ratelimit-requests-reset", quota.reset_seconds);
    if let Some(window) = quota.window {
        set("x-ratelimit-limit", window.limit);
        set("x-ratelimit-remaining", window.remaining);
        set("x-ratelimit-reset", window.reset_seconds);
    }
    response
}

/// The flights engine's report on a search (gateway.md, rule 38).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SearchReport {
    pub(super) status: &'static str,
    pub(super) reason: Option<&'static str>,
    pub(super) results: usize,
    pub(super) attempts: usize,
    pub(super) combinations: usize,
    pub(super) retries: usize,
    pub(super) unreadable_pages: usize,
}

/// Adds the headers of gateway.md, rule 38.
pub(super) fn with_report(mut response: Response, report: SearchReport) -> Response {
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert("x-search-status", HeaderValue::from_static(report.status));
    if let Some(reason) = report.reason {
        headers.insert("x-search-reason", HeaderValue::from_static(reason));
    }
    for (name, count) in [
        ("x-search-results", report.results),
        ("x-search-attempts", report.attempts),
        ("x-search-combinations", report.combinations),
        ("x-search-retries", report.retries),
        ("x-search-unreadable-pages", report.unreadable_pages),
    ] {
        headers.insert(name, HeaderValue::from(count));
    }
    response
}
