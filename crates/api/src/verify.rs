//! `GET /v1/verify`: whether the key is valid, and the remaining quota of its plans (gateway.md,
//! rule 20).

use axum::extract::State;
use axum::http::Extensions;
use axum::response::Response;

use super::openapi::VerifyErrors;
use farescan_core::app::AppState;
use farescan_core::app::auth::UnlimitedApiKey;
use farescan_core::app::error::ApiError;
use farescan_core::app::extract::QueryPairs;
use farescan_core::app::key_check::probe_apis;
use farescan_core::app::request_id::request_id;
use farescan_core::contract::ValidationError;
use farescan_core::contract::verify::{VerifyResponse, VerifyScope};

/// Verify the caller's key
///
/// One cheap call per checked API. Without `api`: flights, and hotels only if flights is not
/// subscribed.
#[utoipa::path(
    get, path = "/v1/verify", operation_id = "verify_key", tag = "Account",
    params(("api" = Option<VerifyScope>, Query, description = "Which APIs to check")),
    responses((status = 200, description = "The key is valid for at least one checked API", body = VerifyResponse), VerifyErrors)
)]
pub(super) async fn verify(
    State(app): State<AppState>,
    UnlimitedApiKey(caller): UnlimitedApiKey,
    pairs: QueryPairs,
    extensions: Extensions,
) -> Result<Response, ApiError> {
    let scope = scope(&pairs)?;
    let permit = app.admit_search(&caller.key).await?;
    let verification = probe_apis(&app, &caller, scope, request_id(&extensions)).await;
    permit.record_verdict(verification.verdict());
    verification.charge(&app, &caller);
    Ok(verification.into_response(caller.key_source))
}

/// Other fields are ignored: a client may add one to bypass caches.
fn scope(pairs: &QueryPairs) -> Result<Option<VerifyScope>, ApiError> {
    let mut given = pairs
        .iter()
        .filter_map(|(name, word)| (name == "api").then_some(word));
    let Some(word) = given.next() else {
        return Ok(None);
    };
    let expected = match given.next() {
        Some(_) => "one value; it is given more than once",
        None => match VerifyScope::parse(word) {
            Some(scope) => return Ok(Some(scope)),
            None => "one of `flights`, `hotels`, `both`",
        },
    };
    Err(ValidationError::new("api", &word.into(), expected).into())
}
