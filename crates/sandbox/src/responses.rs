//! Builds the responses of the engines and of the marketplace in front of them.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
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
    Html("<!doctype html><title>Just a moment…</title><p>Checking that you are not a robot.</p>")
        .into_response()
}

/// Keys, magic values and paths as plain text.
pub(super) async fn front_page() -> &'static str {
    include_str!("front_page.txt")
}

/// Adds the quota headers of gateway.md, rule 44: the plan's always, the rate window's if the plan
/// has one.
pub(super) fn with_quota(mut response: Response, quota: RemainingQuota) -> Response {
    let headers = response.headers_mut();
    let mut set = |name: &'static str, value: u64| {
        headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
    };
    set("x-ratelimit-requests-limit", quota.month.limit);
    set("x-ratelimit-requests-remaining", quota.month.remaining);
    set("x-ratelimit-requests-reset", quota.month.reset_seconds);
    if let Some(window) = quota.window {
        set("x-ratelimit-limit", window.limit);
        set("x-ratelimit-remaining", window.remaining);
        set("x-ratelimit-reset", window.reset_seconds);
    }
    response
}
