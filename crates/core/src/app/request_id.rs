//! The id of each request (gateway.md, rule 2), and the request that a task handles.

use axum::extract::Request;
use axum::http::{Extensions, HeaderName, HeaderValue};
use ipnet::IpNet;
use tower_http::request_id::{MakeRequestId, RequestId};
use uuid::Uuid;

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Generates the id of each request. An id that the caller sends is dropped (gateway.md, rule 2).
#[derive(Debug, Clone, Copy)]
pub struct GenerateRequestId;

impl MakeRequestId for GenerateRequestId {
    fn make_request_id<B>(&mut self, _request: &axum::http::Request<B>) -> Option<RequestId> {
        HeaderValue::try_from(Uuid::now_v7().to_string())
            .ok()
            .map(RequestId::new)
    }
}

/// The id of a request, as in `X-Request-Id`.
pub fn request_id(extensions: &Extensions) -> &str {
    extensions
        .get::<RequestId>()
        .and_then(|id| id.header_value().to_str().ok())
        .unwrap_or_default()
}

tokio::task_local! {
    /// The id and the client's network of the request that this task handles.
    static CURRENT: (String, Option<IpNet>);
}

/// Makes the id available to the error bodies that `response` makes, and the network to the limits
/// that it asks.
pub async fn scope_request<R>(
    id: String,
    network: Option<IpNet>,
    response: impl Future<Output = R>,
) -> R {
    CURRENT.scope((id, network), response).await
}

/// The id of the request that this task handles, if any.
pub fn current_request_id() -> Option<String> {
    let id = CURRENT.try_with(|(id, _)| id.clone()).ok();
    id.filter(|id| !id.is_empty())
}

/// The network of the request that this task handles, if it is known.
pub fn current_network() -> Option<IpNet> {
    CURRENT.try_with(|(_, network)| *network).ok().flatten()
}

/// Drops the caller's request id; the service generates its own.
pub fn remove_request_id(mut request: Request) -> Request {
    request.headers_mut().remove(REQUEST_ID);
    request
}
