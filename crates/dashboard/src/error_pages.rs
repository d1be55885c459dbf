//! Errors outside of the pages, for a person: an unknown path, a method that a path does not have,
//! a request that no handler could read, a file or stream that the API refuses (`api_answer`). Errors
//! of the pages themselves are `failure`.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, VARY};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use maud::html;

use super::layout;
use farescan_core::app::accept::prefers_html;
use farescan_core::contract::ErrorBody;

/// Under this path a browser gets JSON too: old HTTP libraries of programs prefer `text/html`.
const API: &str = "/v1";
/// The longest error that is read again to be shown.
const MAX_ERROR: usize = 64 * 1024;

/// Adds these pages to the errors of every route of `router`.
pub fn with_error_pages(router: Router) -> Router {
    router.layer(from_fn(show))
}

/// Shows an error that is not a page as one, if a person asks. Its status and headers stay.
async fn show(request: Request, next: Next) -> Response {
    let path: String = request.uri().path().chars().take(200).collect();
    let is_api = path == API || path.starts_with("/v1/");
    let is_person = !is_api && prefers_html(request.headers());
    let has_body = request.method() != Method::HEAD;
    let mut response = next.run(request).await;
    if is_api || !is_other_error(&response) {
        return response;
    }
    response
        .headers_mut()
        .append(VARY, HeaderValue::from_static("accept"));
    if !is_person {
        return response;
    }
    let (parts, body) = response.into_parts();
    let message = message(&to_bytes(body, MAX_ERROR).await.unwrap_or_default());
    let wait = parts.headers.get(RETRY_AFTER);
    let wait = wait.and_then(|wait| wait.to_str().ok());
    let mut page = error_page(parts.status, &path, message.as_deref(), wait);
    let own = std::mem::take(page.headers_mut());
    *page.headers_mut() = parts.headers;
    page.headers_mut().remove(CONTENT_LENGTH);
    for (name, value) in &own {
        page.headers_mut().insert(name, value.clone());
    }
    if has_body {
        page
    } else {
        page.map(|_| Body::empty())
    }
}

/// An error whose body is no page, and not compressed.
fn is_other_error(response: &Response) -> bool {
    let status = response.status();
    let is_page = |headers: &HeaderMap| {
        let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        kind.is_some_and(|kind| kind.starts_with(b"text/html"))
    };
    (status.is_client_error() || status.is_server_error())
        && !is_page(response.headers())
        && !response.headers().contains_key(CONTENT_ENCODING)
}

/// The sentence of an error of this service.
fn message(body: &[u8]) -> Option<String> {
    let error: ErrorBody = serde_json::from_slice(body).ok()?;
    Some(error.error.message)
}

fn error_page(
    status: StatusCode,
    path: &str,
    message: Option<&str>,
    wait: Option<&str>,
) -> Response {
    let title = match status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::METHOD_NOT_ALLOWED => "Not possible here",
        StatusCode::TOO_MANY_REQUESTS => "Too many requests",
        status if status.is_server_error() => "Not available",
        _ => "Not possible",
    };
    layout::bare_page(
        status,
        title,
        html! {
            h1 { (title) }
            @match (status, message) {
                (StatusCode::NOT_FOUND, message) if message.is_none_or(|text| text.starts_with("no such path")) => {
                    p { "There is no page " code { (path) } "." }
                }
                (StatusCode::METHOD_NOT_ALLOWED, _) => {
                    p { "The address " code { (path) } " only takes the form of a page: open that page and send its form. Nothing was done." }
                }
                (_, Some(message)) => { p { (message) } }
                (status, None) => { p { "The request was answered with " (status) "." } }
            }
            @if let Some(wait) = wait { p { "Try again in " (wait) " s." } }
            (layout::ways_onward())
        },
    )
}
