//! A synchronous search: the order of its steps (gateway.md, rule 4).

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use super::outcome_response::{MapFinding, outcome_response};
use super::{cached_search, prefer};
use farescan_core::app::AppState;
use farescan_core::app::auth::ApiKey;
use farescan_core::app::error::ApiError;
use farescan_core::app::extract::{SEARCH_BODY, read_json_object};
use farescan_core::app::request_id::request_id;
use farescan_core::app::search_call;
use farescan_core::contract::{Endpoint, FieldAlias, Request as ValidRequest, ValidationErrors};
use farescan_core::search::Search;

const ALIASED: HeaderName = HeaderName::from_static("x-field-aliased");

/// Body and alias, then the key, then validation, then upstream (gateway.md, rule 4), unless the
/// caller prefers a scan.
pub(super) async fn search(
    app: &AppState,
    endpoint: Endpoint,
    request: Request,
    map_finding: MapFinding,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = match read_json_object(body, SEARCH_BODY).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    let alias = body
        .as_ref()
        .ok()
        .and_then(|body| FieldAlias::detect(endpoint, body));
    let mut response = respond(app, endpoint, &parts, body, map_finding)
        .await
        .into_response();
    if let Some(value) = alias.and_then(|alias| HeaderValue::from_str(&alias.header_value()).ok()) {
        response.headers_mut().insert(ALIASED, value);
    }
    prefer::add_vary(endpoint, &mut response);
    response
}

async fn respond(
    app: &AppState,
    endpoint: Endpoint,
    parts: &Parts,
    body: Result<Map<String, Value>, ValidationErrors>,
    map_finding: MapFinding,
) -> Result<Response, ApiError> {
    let caller = ApiKey::from_parts(parts)?;
    let search = Search::for_caller(ValidRequest::check(endpoint, &body?)?.request);
    if let Some(response) =
        cached_search::respond(app, parts, &caller, &search, map_finding).await?
    {
        return Ok(response);
    }
    if let Some(response) =
        prefer::respond_as_scan(app, parts, &caller, &search, map_finding).await?
    {
        return Ok(response);
    }
    let permit = app.admit_search(&caller.key).await?;
    let id = request_id(&parts.extensions);
    let outcome = if cached_search::forbids_storing(parts) {
        search_call::send(app, &search, &caller.key, id, permit).await
    } else {
        search_call::send_and_store_if_set(app, &search, &caller.key, id, permit).await
    };
    Ok(outcome_response(&search, outcome, map_finding))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn future_size<F>(
        _: impl FnOnce(&'static AppState, Endpoint, Request, MapFinding) -> F,
    ) -> usize {
        size_of::<F>()
    }

    /// A thousand searches may wait at once. Steps that few of them take are boxed.
    #[test]
    fn a_waiting_search_takes_little_memory() {
        let bytes = future_size(search);
        assert!(bytes < 4_096, "{bytes} bytes");
    }
}
