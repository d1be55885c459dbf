//! `GET /v1/verify`: whether the key is valid, and the remaining quota of its plans (gateway.md,
//! rule 20).

use axum::Json;
use axum::extract::State;
use axum::http::{Extensions, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::AppState;
use super::auth::{ApiKey, UnlimitedApiKey};
use super::error::ApiError;
use super::extract::QueryPairs;
use super::key_guessing::KeyVerdict;
use super::openapi::VerifyErrors;
use super::outcome_response::{forward, upstream_failed};
use super::request_id::{current_request_id, request_id};
use crate::charges::CallUsage;
use crate::contract::verify::{
    ApiUsage, PlanUsage, VerifyCheck, VerifyReason, VerifyResponse, VerifyScope,
};
use crate::contract::{Api, ValidationError};
use crate::search::{CallerKey, PlanQuota};
use crate::upstream::{Probe, probe_endpoint};

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

impl AppState {
    /// Asks the marketplace whether it accepts `key`, as `GET /v1/verify` does, unless the database
    /// knows it as accepted.
    ///
    /// # Errors
    /// 401 for a key that the marketplace does not know or that has no subscription; 502, 503 or
    /// 504 when it cannot be asked; 429 while too many unknown keys are tried.
    pub(crate) async fn check_key(&self, key: &CallerKey) -> Result<(), ApiError> {
        if self.is_accepted(key).await {
            return Ok(());
        }
        let caller = ApiKey::without_permits(key.clone(), "session");
        let permit = self.admit_search(key).await?;
        let id = current_request_id().unwrap_or_default();
        let mut verification = probe_apis(self, &caller, None, &id).await;
        permit.record_verdict(verification.verdict());
        verification.charge(self, &caller);
        if verification.is_valid() {
            self.record_acceptance(key).await;
            return Ok(());
        }
        Err(verification.take_failure().unwrap_or_else(|| {
            ApiError::invalid_api_key(
                "the marketplace does not know this key, or it has no subscription to flights or hotels",
            )
        }))
    }
}

/// Probes the APIs of a scope.
pub(super) async fn probe_apis(
    app: &AppState,
    caller: &ApiKey,
    scope: Option<VerifyScope>,
    request_id: &str,
) -> KeyVerification {
    let mut verification = KeyVerification::default();
    for api in [Api::Flights, Api::Hotels] {
        if verification.should_probe(api, scope) {
            let began_at = app.now().ok();
            let probe = app.upstream.probe(api, &caller.key, request_id).await;
            let spent = CallUsage::from_probe(api, &probe, began_at);
            verification.spent.push(spent);
            verification.add(api, probe);
        }
    }
    verification
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

/// The results of the probes so far.
#[derive(Default)]
pub(super) struct KeyVerification {
    checks: Vec<VerifyCheck>,
    usage: ApiUsage,
    /// The quota headers of the first subscribed API, else of the last one probed.
    plan_headers: Vec<(String, String)>,
    billed: u16,
    failed: Option<ApiError>,
    spent: Vec<CallUsage>,
}

impl KeyVerification {
    /// Hotels after flights only on request, or when the key is known and not subscribed to
    /// flights. A key that the marketplace does not know is not worth a second call.
    fn should_probe(&self, api: Api, scope: Option<VerifyScope>) -> bool {
        if self.failed.is_some() {
            return false;
        }
        match (scope, api) {
            (Some(VerifyScope::Both), _) | (Some(VerifyScope::Flights) | None, Api::Flights) => {
                true
            }
            (Some(VerifyScope::Hotels), api) => api == Api::Hotels,
            (Some(VerifyScope::Flights), Api::Hotels) => false,
            (None, Api::Hotels) => self
                .checks
                .iter()
                .any(|check| check.reason == VerifyReason::NotSubscribed),
        }
    }

    fn add(&mut self, api: Api, probe: Probe) {
        self.billed += probe.billed_requests;
        let reason = match probe.verdict {
            Ok(reason) => reason,
            Err(incomplete) => {
                self.failed = Some(upstream_failed(&incomplete));
                self.plan_headers = probe.plan_headers;
                return;
            }
        };
        if !self.is_valid() {
            self.plan_headers = probe.plan_headers;
        }
        self.usage.set(api, usage(probe.plan));
        self.checks.push(VerifyCheck::new(
            api,
            format!("{}, empty body", probe_endpoint(api)),
            reason,
        ));
    }

    /// Charges the probes to the lanes of the key's caller.
    pub(super) fn charge(&self, app: &AppState, caller: &ApiKey) {
        for spent in &self.spent {
            app.charge(&caller.key, *spent);
        }
    }

    /// Why an API could not be probed.
    pub(super) fn take_failure(&mut self) -> Option<ApiError> {
        self.failed.take()
    }

    /// The marketplace's verdict on the key.
    pub(super) fn verdict(&self) -> KeyVerdict {
        match &self.failed {
            _ if self.is_valid() => KeyVerdict::Accepted,
            Some(_) => KeyVerdict::Unknown,
            None => KeyVerdict::Refused,
        }
    }

    fn is_valid(&self) -> bool {
        self.checks.iter().any(|check| check.ok)
    }

    /// A key that is valid for one API is valid, whatever the result of the other probe.
    fn into_response(self, key_source: &str) -> Response {
        let valid = self.is_valid();
        let mut headers = HeaderMap::new();
        forward(&mut headers, &self.plan_headers);
        headers.insert("x-upstream-requests", self.billed.into());
        if let (Some(error), false) = (self.failed, valid) {
            return (headers, error).into_response();
        }
        let status = if valid {
            StatusCode::OK
        } else {
            StatusCode::UNAUTHORIZED
        };
        let body = VerifyResponse {
            valid,
            checks: self.checks,
            api_usage: self.usage,
            key_source: key_source.to_owned(),
        };
        (status, headers, Json(body)).into_response()
    }
}

fn usage(plan: PlanQuota) -> PlanUsage {
    PlanUsage {
        plan_requests_limit: plan.limit,
        plan_requests_remaining: plan.remaining,
        plan_seconds_until_reset: plan.reset_seconds,
    }
}
