//! Middleware of all handlers, and responses to requests that reach no handler.

use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HOST, REFERRER_POLICY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use ipnet::IpNet;
use percent_encoding::percent_decode_str;
use tracing::{Level, Span, info_span};
use uuid::Uuid;

use farescan_core::app::client_address::{ConnectionAddresses, client_network};
use farescan_core::app::error::ApiError;
use farescan_core::app::request_id::{REQUEST_ID, request_id, scope_request};
use farescan_core::contract::{ErrorBody, ErrorType};
use farescan_core::metrics;

/// Which listener a request came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listener {
    Api,
    Admin,
}

impl Listener {
    /// The level of a response's log line.
    pub(super) fn log_level(self) -> Level {
        match self {
            Self::Api => Level::INFO,
            Self::Admin => Level::DEBUG,
        }
    }
}

/// Runs the handler, unless the request's target is invalid. Requests to the API are counted and
/// timed by their route template.
///
/// One middleware for all that has to wait for the handler: each layer with a future of its own costs
/// a request two boxes and a clone of everything beneath it.
pub(super) async fn answer(
    listener: Listener,
    proxies: Arc<[IpNet]>,
    request: Request,
    next: Next,
) -> Response {
    let mut passage = (listener == Listener::Api).then(|| {
        let route = request.extensions().get::<MatchedPath>();
        metrics::request_started(route.map(MatchedPath::as_str), request.method().as_str())
    });
    let id = request_id(request.extensions()).to_owned();
    let network = client_network(request.extensions(), request.headers(), &proxies);
    let answering = async {
        match invalid_target(listener, &request) {
            Some(error) => error.into_response(),
            None => next.run(request).await,
        }
    };
    let response = scope_request(id, network, answering).await;
    if let Some(passage) = &mut passage {
        passage.answered(response.status().as_u16());
    }
    response
}

/// The span of a request. It names the route, never the path or query: a caller may put a key there
/// by mistake, and the query may be personal.
pub(super) fn request_span(request: &Request) -> Span {
    let id = request_id(request.extensions());
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("none", MatchedPath::as_str);
    info_span!("request", method = %request.method(), route, id)
}

/// Turns a panic into an error response and logs its text.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the layer hands over the box"
)]
pub(super) fn panic_response(panic: Box<dyn Any + Send>) -> Response {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    ApiError::internal(format_args!("panic: {}", text.unwrap_or("without a text"))).into_response()
}

/// Headers of every response unless its handler sets them. Prices are the caller's alone, so no
/// cache stores them. Whatever a body is (the marketplace's 429 is passed on unchanged), a browser
/// neither guesses its type nor runs or frames it.
static SECURITY_HEADERS: [(HeaderName, HeaderValue); 5] = [
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox"),
    ),
];

/// Adds the security headers to a response.
pub(super) fn harden<B>(mut response: axum::http::Response<B>) -> axum::http::Response<B> {
    let is_unauthorized = response.status() == StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    for (name, value) in &SECURITY_HEADERS {
        headers.entry(name).or_insert_with(|| value.clone());
    }
    if is_unauthorized {
        headers
            .entry(WWW_AUTHENTICATE)
            .or_insert(HeaderValue::from_static("Bearer"));
    }
    response
}

fn invalid_target(listener: Listener, request: &Request) -> Option<ApiError> {
    if let Some(wrong) = host_error(request) {
        return Some(ApiError::invalid_request(format!(
            "the header `Host` {wrong}; expected exactly one host"
        )));
    }
    if listener == Listener::Admin && !is_own_host(request) {
        return Some(ApiError::invalid_request(
            "the header `Host` names another host; on loopback this listener expects an IP address or `localhost`",
        ));
    }
    // Every route has a UTF-8 path, so no handler has to check this.
    percent_decode_str(request.uri().path())
        .decode_utf8()
        .err()
        .map(|_| ApiError::not_found("no such path: it is not valid UTF-8 after percent-decoding"))
}

/// Whether a request that came by loopback names this machine. A page of a browser here could have
/// made its own name lead to 127.0.0.1, and read the answer (security.md, rule 28).
fn is_own_host(request: &Request) -> bool {
    let connection = request.extensions().get::<ConnectionAddresses>();
    let host = request
        .headers()
        .get(HOST)
        .and_then(|host| host.to_str().ok());
    let (Some(connection), Some(host)) = (connection, host) else {
        return true;
    };
    let authority = host.parse::<Authority>();
    let name = authority
        .as_ref()
        .map_or(host, |authority| authority.host());
    let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let is_own = is_address || name.is_empty() || name.eq_ignore_ascii_case("localhost");
    is_own || !connection.own.is_loopback()
}

/// RFC 9112, 3.2: a request of HTTP/1.1 has exactly one `Host`; no request has two.
fn host_error(request: &Request) -> Option<&'static str> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let is_host = |host: &HeaderValue| {
        host.as_bytes()
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~:[]%".contains(byte))
    };
    match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => Some("occurs more than once"),
        (Some(host), None) if !is_host(host) => Some("is not a valid host"),
        (None, _) if request.version() == Version::HTTP_11 => Some("is missing"),
        _ => None,
    }
}

/// The maximum number of bytes of a head.
pub(super) const HEAD_BYTES: usize = 128 * 1024;

/// The complete response to a request head that hyper cannot parse; no middleware sees such a
/// request.
pub(super) fn head_error_response(status: u16) -> Option<Bytes> {
    let status = StatusCode::from_u16(status).ok()?;
    let message = match status {
        StatusCode::URI_TOO_LONG => format!(
            "the path and query are too long; expected at most {} bytes",
            u16::MAX - 1
        ),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            format!(
                "the request head is too large; expected at most {} KiB and 100 headers",
                HEAD_BYTES / 1024
            )
        }
        _ => "the request head cannot be parsed; expected HTTP/1.1".to_owned(),
    };
    let id = Uuid::now_v7().to_string();
    let mut body = ErrorBody::new(ErrorType::InvalidRequest, message);
    body.error.request_id = Some(id.clone());
    let body = serde_json::to_string(&body).ok()?;
    let mut answer =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\n");
    let length = body.len().to_string();
    let ours = [(REQUEST_ID, id.as_str()), (CONTENT_LENGTH, length.as_str())];
    let shared = SECURITY_HEADERS
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.to_str().ok()?)));
    for (name, value) in ours.into_iter().chain(shared) {
        answer.extend([name.as_str(), ": ", value, "\r\n"]);
    }
    answer.extend(["\r\n", &body]);
    Some(answer.into())
}

pub(super) async fn unknown_path(uri: Uri) -> ApiError {
    path_not_found(&uri, "see /docs")
}

/// The same on the admin listener.
pub(super) async fn unknown_admin_path(uri: Uri) -> ApiError {
    path_not_found(
        &uri,
        "this listener serves /healthz, /readyz and /metrics; the API has another one",
    )
}

fn path_not_found(uri: &Uri, hint: &str) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::not_found(format!("no such path {path}; {hint}"))
}

pub(super) async fn method_not_allowed(method: Method, uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(
        ErrorType::MethodNotAllowed,
        format!("{path} does not support {method}; the header Allow lists its methods"),
    )
}
