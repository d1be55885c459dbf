//! What surrounds every handler, and the answers of requests that reach none.

use std::any::Any;

use axum::extract::{MatchedPath, Request};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, REFERRER_POLICY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version,
};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use percent_encoding::percent_decode_str;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};
use tower_http::request_id::{MakeRequestId, RequestId};
use tracing::{Span, info_span};
use uuid::Uuid;

use super::error::ApiError;
use super::serve::HEAD_BYTES;
use crate::contract::{ErrorBody, ErrorType};
use crate::measure;

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Ids of requests. Always ours: what a caller sends under that name goes nowhere (contract 2).
#[derive(Debug, Clone, Copy)]
pub(super) struct OurRequestId;

impl MakeRequestId for OurRequestId {
    fn make_request_id<B>(&mut self, _request: &axum::http::Request<B>) -> Option<RequestId> {
        HeaderValue::try_from(Uuid::now_v7().to_string())
            .ok()
            .map(RequestId::new)
    }
}

/// The id of a request, as it stands in `X-Request-Id`.
pub(super) fn request_id(extensions: &Extensions) -> &str {
    extensions
        .get::<RequestId>()
        .and_then(|id| id.header_value().to_str().ok())
        .unwrap_or_default()
}

tokio::task_local! {
    /// The id of the request whose answer this task makes.
    static CURRENT: String;
}

/// Lets whatever answers the request know its id: an error says it in its body.
pub(super) async fn identified(request: Request, next: Next) -> Response {
    let id = request_id(request.extensions()).to_owned();
    CURRENT.scope(id, next.run(request)).await
}

/// The id of the request that this task answers, if it answers one.
pub(super) fn current_request_id() -> Option<String> {
    CURRENT
        .try_with(Clone::clone)
        .ok()
        .filter(|id| !id.is_empty())
}

/// Drops the caller's request id, so that ours is taken.
pub(super) async fn forget_request_id(mut request: Request, next: Next) -> Response {
    request.headers_mut().remove(REQUEST_ID);
    next.run(request).await
}

/// Counts and times a request by its route's template.
pub(super) async fn measured(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let mut passage = measure::request(route.map(MatchedPath::as_str), request.method().as_str());
    let response = next.run(request).await;
    passage.answered(response.status().as_u16());
    response
}

/// The span of a request. Its route, never its path or query: a key may stand in either by mistake, and the query may say whom a caller
/// looks for.
pub(super) fn span(request: &Request) -> Span {
    let id = request_id(request.extensions());
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("none", MatchedPath::as_str);
    info_span!("request", method = %request.method(), route, id)
}

/// A panic is answered in the specified form, and logged with its text.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the layer hands over the box"
)]
pub(super) fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    ApiError::internal(format_args!("panic: {}", text.unwrap_or("without a text"))).into_response()
}

/// What every answer carries unless its handler says otherwise. No cache keeps prices, which are the caller's alone; whatever a body is (the
/// marketplace's 429 goes out as it came), a browser neither guesses its type nor runs, frames or follows anything in it.
static ANSWER_HEADERS: [(HeaderName, HeaderValue); 5] = [
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox"),
    ),
];

/// Refuses what cannot be a request to anything here, and gives every answer the headers that all of them have.
pub(super) async fn guarded(request: Request, next: Next) -> Response {
    let mut response = match refused(&request) {
        Some(error) => error.into_response(),
        None => next.run(request).await,
    };
    let is_unauthorized = response.status() == StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    for (name, value) in &ANSWER_HEADERS {
        headers.entry(name).or_insert_with(|| value.clone());
    }
    if is_unauthorized {
        headers
            .entry(WWW_AUTHENTICATE)
            .or_insert(HeaderValue::from_static("Bearer"));
    }
    response
}

fn refused(request: &Request) -> Option<ApiError> {
    if let Some(wrong) = wrong_host(request) {
        return Some(ApiError::invalid_request(format!(
            "the header `Host` {wrong}; allowed: it stands there once"
        )));
    }
    // Every path here is text, so no handler has to say what becomes of one that is not.
    percent_decode_str(request.uri().path())
        .decode_utf8()
        .err()
        .map(|_| ApiError::not_found("there is nothing at this path: what it encodes is not UTF-8"))
}

/// RFC 9112, 3.2: a request of HTTP/1.1 names its host once, and no request names two.
fn wrong_host(request: &Request) -> Option<&'static str> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let is_host = |host: &HeaderValue| {
        host.as_bytes()
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~:[]%".contains(byte))
    };
    match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => Some("is there twice"),
        (Some(host), None) if !is_host(host) => Some("holds no host"),
        (None, _) if request.version() == Version::HTTP_11 => Some("is missing"),
        _ => None,
    }
}

/// Smaller bodies gain nothing.
const LEAST_COMPRESSED: u64 = 1024;

/// What is compressed already.
const COMPACT: [&str; 2] = ["image/png", "application/vnd.apache.parquet"];
/// What has to arrive as it comes.
const EVENTS: &str = "text/event-stream";

/// Compresses what is worth it for those who accept that.
pub(super) fn compression() -> CompressionLayer<impl Predicate> {
    let is_worth_it = |_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions| {
        let kind = headers
            .get(CONTENT_TYPE)
            .map(HeaderValue::as_bytes)
            .unwrap_or_default();
        is_worth_compressing(u64::MAX, kind)
    };
    CompressionLayer::new().compress_when(SizeAbove::new(LEAST_COMPRESSED).and(is_worth_it))
}

/// Whether a body of so many bytes and this type is.
pub(super) fn is_worth_compressing(bytes: u64, content_type: &[u8]) -> bool {
    bytes > LEAST_COMPRESSED
        && COMPACT
            .iter()
            .chain([&EVENTS])
            .all(|kind| !content_type.starts_with(kind.as_bytes()))
}

/// The whole answer to a head that cannot be read, for the connection to write: nobody else sees such a request.
pub(super) fn refused_by_transport(status: u16) -> Option<Bytes> {
    let status = StatusCode::from_u16(status).ok()?;
    let message = match status {
        StatusCode::URI_TOO_LONG => format!(
            "the path and query are too long; allowed: at most {} bytes",
            u16::MAX - 1
        ),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            format!(
                "the head of the request is too large; allowed: at most {} KiB and 100 headers",
                HEAD_BYTES / 1024
            )
        }
        _ => "the head of the request cannot be read; allowed: HTTP/1.1".to_owned(),
    };
    let body = serde_json::to_string(&ErrorBody::new(ErrorType::InvalidRequest, message)).ok()?;
    let mut answer =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\n");
    let (id, length) = (Uuid::now_v7().to_string(), body.len().to_string());
    let ours = [(REQUEST_ID, id.as_str()), (CONTENT_LENGTH, length.as_str())];
    let shared = ANSWER_HEADERS
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.to_str().ok()?)));
    for (name, value) in ours.into_iter().chain(shared) {
        answer.extend([name.as_str(), ": ", value, "\r\n"]);
    }
    answer.extend(["\r\n", &body]);
    Some(answer.into())
}

pub(super) async fn no_such_path(uri: Uri) -> ApiError {
    nothing_at(&uri, "/docs lists what there is")
}

/// The same on the admin listener.
pub(super) async fn no_such_admin_path(uri: Uri) -> ApiError {
    nothing_at(
        &uri,
        "this listener has /healthz, /readyz and /metrics, the API is on another",
    )
}

fn nothing_at(uri: &Uri, what_is: &str) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::not_found(format!("there is nothing at {path}; {what_is}"))
}

pub(super) async fn no_such_method(method: Method, uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(
        ErrorType::MethodNotAllowed,
        format!("{path} does not take {method}; the header Allow says what it takes"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_what_is_compact_already_are_never_compressed() {
        for (bytes, kind, is_worth_it) in [
            (1_025, "application/json", true),
            (1_024, "application/json", false),
            (u64::MAX, "text/csv; charset=utf-8", true),
            (u64::MAX, "", true),
            (u64::MAX, "text/event-stream", false),
            (u64::MAX, "text/event-stream; charset=utf-8", false),
            (u64::MAX, "application/vnd.apache.parquet", false),
            (u64::MAX, "image/png", false),
        ] {
            assert_eq!(
                is_worth_compressing(bytes, kind.as_bytes()),
                is_worth_it,
                "{bytes} {kind}"
            );
        }
    }
}
