//! A synchronous search: the order of its steps (gateway.md, rule 4).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::header::AGE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use super::cache_control::CacheControl;
use super::outcome_response::outcome_response;
use super::prefer::{self, Preference};
use farescan_core::app::AppState;
use farescan_core::app::auth::ApiKey;
use farescan_core::app::error::ApiError;
use farescan_core::app::extract::{SEARCH_BODY, read_json_object};
use farescan_core::app::request_id::request_id;
use farescan_core::app::search_call::SearchCall;
use farescan_core::app::stored_answer;
use farescan_core::charges::CallUsage;
use farescan_core::contract::{
    Endpoint, ErrorType, FieldAlias, Request as ValidRequest, ValidationError, ValidationErrors,
};
use farescan_core::metrics;
use farescan_core::queue::recorded_search::WantedBy;
use farescan_core::search::{CallerKey, Outcome, Search};

const ALIASED: HeaderName = HeaderName::from_static("x-field-aliased");

/// What the headers of a search ask for; those of a resolve ask for nothing.
#[derive(Default)]
struct SearchOptions {
    cache: CacheControl,
    preference: Option<Preference>,
}

impl SearchOptions {
    fn of(endpoint: Endpoint, headers: &HeaderMap) -> Result<Self, ValidationError> {
        if !Endpoint::SEARCHES.contains(&endpoint) {
            return Ok(Self::default());
        }
        Ok(Self {
            cache: CacheControl::of(headers)?,
            preference: Preference::of(headers),
        })
    }
}

/// Body and alias, then the key, then validation, then a stored answer, a scan or upstream
/// (gateway.md, rule 4).
pub(super) async fn search(app: &AppState, endpoint: Endpoint, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = match read_json_object(body, SEARCH_BODY).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    let alias = body
        .as_ref()
        .ok()
        .and_then(|body| FieldAlias::detect(endpoint, body));
    let mut response = respond(app, endpoint, &parts, body).await.into_response();
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
) -> Result<Response, ApiError> {
    let caller = ApiKey::from_parts(parts)?;
    let search = Search::for_caller(ValidRequest::check(endpoint, &body?)?.request);
    let SearchOptions { cache, preference } = SearchOptions::of(endpoint, &parts.headers)?;
    // Steps that few searches take are boxed: the others would keep their memory while they wait.
    let oldest = cache.oldest();
    if let Some(oldest) = oldest {
        match Box::pin(stored_answer::find(app, &caller.key, &search, oldest)).await {
            Ok(Some(stored)) => {
                let age = stored.age.unsigned_abs();
                let (key, outcome) = (&caller.key, stored.outcome);
                return Ok(reuse(app, key, &search, "stored", outcome, age));
            }
            Err(error) if cache.only_if_cached => return Err(error),
            Ok(None) | Err(_) => {}
        }
    }
    if cache.only_if_cached {
        return Err(ApiError::new(
            ErrorType::NotCached,
            "no stored answer to this search is as young as `Cache-Control` asks for; send it without `only-if-cached` to search",
        ));
    }
    if let Some(preference) = preference {
        let scan = Box::pin(prefer::respond_as_scan(
            app, parts, &caller, &search, preference,
        ));
        if let Some(response) = scan.await? {
            return Ok(response);
        }
    }
    let call = SearchCall {
        permit: app.admit_search(&caller.key).await?,
        app: app.clone(),
        key: caller.key.clone(),
        search: Arc::new(search),
        request_id: request_id(&parts.extensions).to_owned(),
    };
    let search = Arc::clone(&call.search);
    if cache.stores() {
        let (outcome, age) = Box::pin(app.shared_calls.join_or_start(call, oldest)).await?;
        return Ok(match age {
            Some(age) => reuse(app, &caller.key, &search, "joined", outcome, age),
            None => outcome_response(&search, outcome),
        });
    }
    let stores = !cache.no_store && call.is_stored_by_setting();
    let (outcome, _) = call.send(stores.then_some(WantedBy::Setting)).await;
    Ok(outcome_response(&search, outcome))
}

/// The response of an answer that was not searched for this request, from where and how old it is:
/// its plan headers may no longer hold, and it cost nothing.
fn reuse(
    app: &AppState,
    key: &CallerKey,
    search: &Search,
    from: &'static str,
    mut outcome: Outcome,
    age: Duration,
) -> Response {
    metrics::search_reused(from);
    app.charge(key, CallUsage::from_reuse(search, app.now().ok()));
    outcome.plan_headers.clear();
    outcome.billed_requests = 0;
    let age = [(AGE, HeaderValue::from(age.as_secs()))];
    (age, outcome_response(search, outcome)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn future_size<F>(_: impl FnOnce(&'static AppState, Endpoint, Request) -> F) -> usize {
        size_of::<F>()
    }

    /// A thousand searches may wait at once. Steps that few of them take are boxed.
    #[test]
    fn a_waiting_search_takes_little_memory() {
        let bytes = future_size(search);
        assert!(bytes < 4_096, "{bytes} bytes");
    }
}
