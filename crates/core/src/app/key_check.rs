//! Whether the marketplace accepts a key, and the remaining quota of its plans (gateway.md, rule
//! 20): for `GET /v1/verify`, the rotation of a key and the dashboard's sign-in.

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::AppState;
use super::auth::ApiKey;
use super::error::ApiError;
use super::key_guessing::KeyVerdict;
use super::request_id::current_request_id;
use super::upstream_response::{forward, upstream_failed};
use crate::charges::CallUsage;
use crate::contract::Api;
use crate::contract::verify::{
    ApiUsage, PlanUsage, VerifyCheck, VerifyReason, VerifyResponse, VerifyScope,
};
use crate::search::{CallerKey, PlanQuota};
use crate::upstream::{Probe, probe_endpoint};

impl AppState {
    /// Asks the marketplace whether it accepts `key`, as `GET /v1/verify` does, unless the database
    /// knows it as accepted.
    ///
    /// # Errors
    /// 401 for a key that the marketplace does not know or that has no subscription; 502, 503 or
    /// 504 when it cannot be asked; 429 while too many unknown keys are tried.
    pub async fn check_key(&self, key: &CallerKey) -> Result<(), ApiError> {
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
pub async fn probe_apis(
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

/// The results of the probes so far.
#[derive(Default)]
pub struct KeyVerification {
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
    pub fn charge(&self, app: &AppState, caller: &ApiKey) {
        for spent in &self.spent {
            app.charge(&caller.key, *spent);
        }
    }

    /// Why an API could not be probed.
    pub fn take_failure(&mut self) -> Option<ApiError> {
        self.failed.take()
    }

    /// The marketplace's verdict on the key.
    pub fn verdict(&self) -> KeyVerdict {
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
    pub fn into_response(self, key_source: &str) -> Response {
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
