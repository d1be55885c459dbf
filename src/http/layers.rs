//! What surrounds every handler, and the answers of requests that reach none.

use std::any::Any;

use axum::extract::{MatchedPath, Request};
use axum::http::header::CACHE_CONTROL;
use axum::http::{Extensions, HeaderName, HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower_http::request_id::{MakeRequestId, RequestId};
use tracing::{Span, info_span};
use uuid::Uuid;

use super::error::ApiError;
use crate::contract::ErrorType;
use crate::measure;

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Ids of requests. Always ours: what a caller sends under that name goes nowhere (contract 2).
#[derive(Debug, Clone, Copy)]
pub(super) struct OurRequestId;

impl MakeRequestId for OurRequestId {
    fn make_request_id<B>(&mut self, _request: &axum::http::Request<B>) -> Option<RequestId> {
        HeaderValue::try_from(Uuid::now_v7().to_string()).ok().map(RequestId::new)
    }
}

/// The id of a request, as it stands in `X-Request-Id`.
pub(super) fn request_id(extensions: &Extensions) -> &str {
    extensions.get::<RequestId>().and_then(|id| id.header_value().to_str().ok()).unwrap_or_default()
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
    CURRENT.try_with(Clone::clone).ok().filter(|id| !id.is_empty())
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

/// The span of a request. Its path only: the query may say whom a caller looks for.
pub(super) fn span(request: &Request) -> Span {
    let id = request_id(request.extensions());
    info_span!("request", method = %request.method(), path = request.uri().path(), id)
}

/// A panic is answered in the specified form, and logged with its text.
#[expect(clippy::needless_pass_by_value, reason = "the layer hands over the box")]
pub(super) fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    ApiError::internal(format_args!("panic: {}", text.unwrap_or("without a text"))).into_response()
}

/// Prices are the caller's alone: no cache keeps them (security).
pub(super) async fn no_store(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

pub(super) async fn no_such_path(uri: Uri) -> ApiError {
    nothing_at(&uri, "/docs lists what there is")
}

/// The same on the admin listener.
pub(super) async fn no_such_admin_path(uri: Uri) -> ApiError {
    nothing_at(&uri, "this listener has /healthz, /readyz and /metrics, the API is on another")
}

fn nothing_at(uri: &Uri, what_is: &str) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::not_found(format!("there is nothing at {path}; {what_is}"))
}

pub(super) async fn no_such_method(method: Method, uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(ErrorType::MethodNotAllowed, format!("{path} does not take {method}; the header Allow says what it takes"))
}
