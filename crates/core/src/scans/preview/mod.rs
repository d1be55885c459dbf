//! The items and cost of a submit, from the same planning code, without storing anything.
//!
//! Not here: planning (`plan`), the marketplace's plans and prices (`contract::plans`), the
//! warnings (`warnings`).

mod cost;
mod forecast;
mod store;
mod warnings;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value};
use sqlx::PgConnection;

use self::forecast::{QuestionForecast, StoredPrices, forecast, stored_prices};
use super::default_age::with_default_age;
use super::plan::{ScanPlan, earliest_today, plan_blocking, plan_new, with_permit};
use super::reuse;
use super::store as scans_store;
use super::submit::{exceeded_limit, request_bytes};
use super::{per_minute, seconds_at};
use crate::commands::{CommandError, RequestContext};
use crate::config::PaceConfig;
use crate::contract::scans::{
    MaxAgeSeconds, MaxAttempts, PauseReason, PlanCost, RequestRange, RetryPolicy, ScanPreview,
};
use crate::contract::{Api, Request};
use crate::db;
use crate::ids::TenantId;
use crate::tenants;

/// The state of the caller's lane.
struct LaneState {
    seconds_per_search: f64,
    /// Why the lane is paused now.
    paused: Option<PauseReason>,
    plan_limit: Option<u64>,
    plan_remaining: Option<u64>,
}

impl LaneState {
    /// A lane as a submit would create it.
    fn new(api: Api, pace: &PaceConfig) -> Self {
        let seconds_per_search = 60.0 / f64::from(per_minute(pace, api));
        Self {
            seconds_per_search,
            paused: None,
            plan_limit: None,
            plan_remaining: None,
        }
    }
}

/// Previews a scan. Stores nothing, seals no key and calls no upstream.
///
/// # Errors
/// `ValidationErrors` with every fault of the body, the same as a submit's.
pub async fn preview(
    context: RequestContext<'_>,
    pace: &PaceConfig,
    body: &Map<String, Value>,
) -> Result<ScanPreview, CommandError> {
    let (mut conn, tenant) =
        tenants::store::find_with_connection(context.pool, context.ring, context.key, context.now)
            .await?;
    let body = with_default_age(&mut conn, tenant, body)
        .await?
        .into_owned();
    drop(conn);
    let plan = plan_blocking(plan_new, body, context.now).await?;
    let api = plan.scan_request.endpoint.get().api();
    // Rolled back: finding a caller may update its fingerprint, and a preview stores nothing.
    let mut tx = db::begin(context.pool).await?;
    let mut lane = LaneState::new(api, pace);
    let (mut refusal, mut reused, mut stored) = (None, None, StoredPrices::default());
    if let Some(tenant) = context.find_tenant(&mut tx).await? {
        lane = store::lane(&mut tx, tenant, api, context.now)
            .await?
            .unwrap_or(lane);
        let load = scans_store::load(&mut tx, tenant).await?;
        reused = reuse::reusable_positions(&mut tx, tenant, &plan, context.now).await?;
        stored = stored_prices(&mut tx, tenant, &plan, context.now).await?;
        refusal = exceeded_limit(&load, plan.items.len());
        if refusal.is_none() && !load.accepted {
            let probation = scans_store::probation(&mut tx, Some(tenant), api, context.now).await?;
            refusal = probation
                .check(request_bytes(&plan), context.now)
                .err()
                .map(|refused| refused.to_string());
        }
    }
    tx.rollback().await?;
    // A caller without a history has no answers.
    let reused = reused.or(plan.scan_request.max_age_seconds.map(|_| BTreeSet::new()));
    let free = reused.as_ref().map_or(0, BTreeSet::len);
    let free = u32::try_from(free).unwrap_or(u32::MAX);
    let (plan, forecast) = forecast_blocking(plan, stored, reused.as_ref(), context.now).await?;
    let requests = match forecast {
        None => requests_without(&plan, free),
        Some(QuestionForecast { least, expected }) => RequestRange {
            least,
            expected,
            ..requests_without(&plan, free)
        },
    };
    let cost = ScanCost {
        requests,
        free,
        may_reuse: reused.is_some(),
        refusal,
    };
    Ok(build_preview(&plan, &lane, cost, context.now))
}

/// The forecast of a question, on a blocking thread: it makes dozens of decisions.
async fn forecast_blocking(
    plan: ScanPlan,
    stored: StoredPrices,
    reused: Option<&BTreeSet<usize>>,
    now: Timestamp,
) -> Result<(ScanPlan, Option<QuestionForecast>), CommandError> {
    if plan.question.is_none() {
        return Ok((plan, None));
    }
    let free = reused.cloned().unwrap_or_default();
    let forecasting = move || {
        let forecast = forecast(&plan, &stored, &free, now);
        (plan, forecast)
    };
    with_permit(forecasting).await
}

/// What a scan costs.
struct ScanCost {
    requests: RequestRange,
    /// The searches that would take an answer.
    free: u32,
    /// Whether searches may take one.
    may_reuse: bool,
    /// Why a submit would be refused now.
    refusal: Option<String>,
}

fn build_preview(plan: &ScanPlan, lane: &LaneState, cost: ScanCost, now: Timestamp) -> ScanPreview {
    let endpoint = plan.scan_request.endpoint.get();
    let items = u32::try_from(plan.items.len()).unwrap_or(u32::MAX);
    let ScanCost { requests, free, .. } = cost;
    let uncapped = most_requests(plan, free);
    let seconds = seconds_at(
        u32::try_from(*plan.searches().end())
            .unwrap_or(u32::MAX)
            .saturating_sub(free),
        lane.seconds_per_search,
    );
    let body = |item: Option<&Request>| item.map(Request::to_body).unwrap_or_default();
    ScanPreview {
        endpoint,
        items,
        requests,
        max_age_seconds: plan.scan_request.max_age_seconds.map(MaxAgeSeconds::get),
        reused: cost.may_reuse.then_some(free),
        first: body(plan.items.first()),
        last: body(plan.items.last()),
        searches_per_minute: (6_000.0 / lane.seconds_per_search).round() / 100.0,
        seconds,
        plan_requests_remaining: lane.plan_remaining,
        plans: cost::on_each_plan(endpoint.api(), requests, lane),
        warnings: warnings::warnings(
            plan,
            &warnings::WarningInputs {
                lane,
                requests,
                uncapped,
                seconds,
                refusal: cost.refusal,
                today: earliest_today(now),
            },
        ),
    }
}

/// The billed requests of a plan of which up to `again` searches may be made once more.
pub fn requests_with(plan: &ScanPlan, again: u32) -> RequestRange {
    let RequestRange { least, .. } = requests_without(plan, 0);
    let most =
        most_requests(plan, 0).saturating_add(most_of_one(plan).saturating_mul(again.into()));
    RequestRange {
        least,
        expected: None,
        most: most.min(ceiling(plan)),
    }
}

/// The billed requests of a plan of which `free` searches cost none.
fn requests_without(plan: &ScanPlan, free: u32) -> RequestRange {
    // A question may search fewer items than there are.
    let least = u64::try_from(*plan.searches().start()).unwrap_or(u64::MAX);
    RequestRange {
        least: least.saturating_sub(free.into()),
        expected: None,
        most: most_requests(plan, free).min(ceiling(plan)),
    }
}

fn ceiling(plan: &ScanPlan) -> u64 {
    let max = plan.scan_request.max_requests;
    max.map_or(u64::MAX, |max| max.get().into())
}

/// The cost of `requests` in a full month on each plan, regardless of the requests left this month.
pub async fn monthly_costs(
    conn: &mut PgConnection,
    tenant: Option<TenantId>,
    api: Api,
    requests: RequestRange,
    now: Timestamp,
) -> sqlx::Result<Vec<PlanCost>> {
    let known = match tenant {
        Some(tenant) => store::lane(conn, tenant, api, now).await?,
        None => None,
    };
    let lane = LaneState {
        seconds_per_search: 1.0,
        paused: None,
        plan_limit: known.and_then(|lane| lane.plan_limit),
        plan_remaining: None,
    };
    Ok(cost::on_each_plan(api, requests, &lane))
}

/// At most all attempts of every search that is not free, each with the second try of a server error (gateway.md,
/// rule 17).
fn most_requests(plan: &ScanPlan, free: u32) -> u64 {
    u64::try_from(*plan.searches().end())
        .unwrap_or(u64::MAX)
        .saturating_sub(free.into())
        .saturating_mul(most_of_one(plan))
}

/// The most requests of one search: each attempt with a second try.
fn most_of_one(plan: &ScanPlan) -> u64 {
    let retry = plan.scan_request.retry.as_ref();
    let attempts = retry.map_or(MaxAttempts::ONE, RetryPolicy::max_attempts_or_default);
    2 * u64::from(attempts.get())
}
