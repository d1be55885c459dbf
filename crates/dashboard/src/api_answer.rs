//! Answers of the API for a browser that has a session in place of a key: files and streams of
//! events.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use tower::ServiceExt as _;

use super::failure::PageFailure;
use super::session::Session;
use farescan_core::app::auth::add_session_key;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The routes of the API.
#[derive(Debug, Clone)]
pub(super) struct ApiRoutes(Router);

impl ApiRoutes {
    pub(super) fn new(api: Router) -> Self {
        Self(api)
    }

    /// The response to `GET path?query` for the session's caller: CSV if the query names no format.
    /// `path` is made of checked parts only, so that it names the route that the page means.
    /// The session ends before, so that its caller's permits are those of the API's request alone.
    pub(super) async fn get(
        self,
        session: Session,
        path: &str,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Response, PageFailure> {
        let mut request = Request::get(format!("{path}?{query}"))
            .body(Body::empty())
            .map_err(|_| PageFailure::not_found("page"))?;
        add_session_key(&mut request, session.caller().key.clone());
        drop(session);
        let accepted = [(
            ACCEPT,
            HeaderValue::from_static("text/csv, application/json;q=0.5"),
        )];
        request.headers_mut().extend(accepted);
        if let Some(last) = headers.get(LAST_EVENT_ID) {
            request.headers_mut().insert(LAST_EVENT_ID, last.clone());
        }
        let response = self.0.oneshot(request).await;
        Ok(response
            .unwrap_or_else(|never| match never {})
            .into_response())
    }
}
