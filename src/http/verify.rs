//! `GET /v1/verify`: is the key good, and what is left of its plans (specification 4.5, contract 20)?

use axum::Json;
use axum::extract::State;
use axum::http::{Extensions, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::AppState;
use super::auth::{Caller, Uncounted};
use super::docs::VerifyErrors;
use super::error::ApiError;
use super::extract::Pairs;
use super::gateway::{forward, upstream_failed};
use super::guesses::Verdict;
use super::layers::request_id;
use crate::contract::account::{
    ApiUsage, PlanUsage, VerifyCheck, VerifyReason, VerifyResponse, VerifyScope,
};
use crate::contract::{Api, Fault};
use crate::queue::charge::Spent;
use crate::search::PlanQuota;
use crate::upstream::{Probe, lightest};

/// Verify the caller's key
///
/// One cheap call per checked API. Without `api`: flights, and hotels only if flights is not subscribed.
#[utoipa::path(
    get, path = "/v1/verify", operation_id = "verify_key", tag = "Account",
    params(("api" = Option<VerifyScope>, Query, description = "Which APIs to check")),
    responses((status = 200, description = "The key is good for at least one checked API", body = VerifyResponse), VerifyErrors)
)]
pub(super) async fn verify(
    State(app): State<AppState>,
    Uncounted(caller): Uncounted,
    pairs: Pairs,
    extensions: Extensions,
) -> Result<Response, ApiError> {
    let scope = scope(&pairs)?;
    let pass = app.admit_search(&caller.key).await?;
    let checked = check(&app, &caller, scope, request_id(&extensions)).await;
    pass.learn(checked.verdict());
    checked.charge(&app, &caller);
    Ok(checked.answer(caller.key_source))
}

/// Asks the APIs of a scope, as far as they are due.
pub(super) async fn check(
    app: &AppState,
    caller: &Caller,
    scope: Option<VerifyScope>,
    request_id: &str,
) -> Checked {
    let mut checked = Checked::default();
    for api in [Api::Flights, Api::Hotels] {
        if checked.is_due(api, scope) {
            let probe = app.upstream.probe(api, &caller.key, request_id).await;
            checked.spent.push(Spent::by_probe(api, &probe));
            checked.add(api, probe);
        }
    }
    checked
}

/// Other fields are not looked at: somebody may add a field so that no cache answers.
fn scope(pairs: &Pairs) -> Result<Option<VerifyScope>, ApiError> {
    let mut given = pairs
        .iter()
        .filter_map(|(name, word)| (name == "api").then_some(word));
    let Some(word) = given.next() else {
        return Ok(None);
    };
    let allowed = match given.next() {
        Some(_) => "one value; it is given more than once",
        None => match VerifyScope::parse(word) {
            Some(scope) => return Ok(Some(scope)),
            None => "one of `flights`, `hotels`, `both`",
        },
    };
    Err(Fault::new("api", &word.into(), allowed).into())
}

/// What was asked so far.
#[derive(Default)]
pub(super) struct Checked {
    checks: Vec<VerifyCheck>,
    usage: ApiUsage,
    /// The quota headers of the first API that is subscribed, else of the last one asked.
    plan_headers: Vec<(String, String)>,
    billed: u16,
    failed: Option<ApiError>,
    spent: Vec<Spent>,
}

impl Checked {
    /// Hotels after flights only when asked for, or when the key is known and not subscribed to flights. A key that the marketplace
    /// does not know is not worth a second call.
    fn is_due(&self, api: Api, scope: Option<VerifyScope>) -> bool {
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
            format!("{}, empty body", lightest(api)),
            reason,
        ));
    }

    /// Counts what was asked against the lanes of the key's caller.
    pub(super) fn charge(&self, app: &AppState, caller: &Caller) {
        for spent in &self.spent {
            app.charge(&caller.key, *spent);
        }
    }

    /// Why an API could not be asked.
    pub(super) fn take_failure(&mut self) -> Option<ApiError> {
        self.failed.take()
    }

    /// What the marketplace said of the key.
    pub(super) fn verdict(&self) -> Verdict {
        match &self.failed {
            _ if self.is_valid() => Verdict::Accepted,
            Some(_) => Verdict::Unknown,
            None => Verdict::Refused,
        }
    }

    fn is_valid(&self) -> bool {
        self.checks.iter().any(|check| check.ok)
    }

    /// A key that is good for one API is good, whatever became of the other's check.
    fn answer(self, key_source: &str) -> Response {
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
