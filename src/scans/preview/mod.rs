//! What a submit would make and cost: the same plan, by the same code, and then nothing is done with it.
//!
//! Here: what is known of the caller's lane, put together. Not here: planning (`plan`), the plans' prices (`contract::plans`), what is
//! worth a warning (`warn`).

mod cost;
mod store;
mod warn;

use jiff::Timestamp;
use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::plan::{Plan, earliest_today};
use super::store as scans_store;
use super::submit::{order_bytes, planned, too_much};
use super::{Desk, ScanError, per_minute, seconds_at};
use crate::config::PaceConfig;
use crate::contract::scans::{
    MaxAttempts, PauseReason, PlanCost, RequestRange, RetryPolicy, ScanPreview,
};
use crate::contract::{Api, Request};
use crate::db;
use crate::ids::TenantId;
use crate::tenants;

/// What is known of the caller's lane.
struct Lane {
    seconds_per_search: f64,
    /// It is stopped now.
    paused: Option<PauseReason>,
    plan_limit: Option<u64>,
    plan_remaining: Option<u64>,
}

impl Lane {
    /// A lane as a submit would make it.
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

/// Previews a scan of a caller who may have a lane. Nothing is stored, no key sealed and nobody asked.
///
/// # Errors
/// `Faults` with every fault of the body, the same as a submit's; `Database`.
pub async fn preview(
    desk: Desk<'_>,
    pace: &PaceConfig,
    body: &Map<String, Value>,
) -> Result<ScanPreview, ScanError> {
    let plan = planned(body.clone(), desk.now).await?;
    let api = plan.order.endpoint.get().api();
    // Never committed: looking a caller up may renew its fingerprint, and a preview stores nothing.
    let mut tx = db::begin(desk.pool).await?;
    let mut lane = Lane::new(api, pace);
    let mut refusal = None;
    if let Some(tenant) = tenants::store::find(&mut tx, desk.ring, desk.key, desk.now).await? {
        lane = store::lane(&mut tx, tenant, api, desk.now)
            .await?
            .unwrap_or(lane);
        let load = scans_store::load(&mut tx, tenant).await?;
        refusal = too_much(&load, plan.items.len());
        if refusal.is_none() && !load.accepted {
            let probation = scans_store::probation(&mut tx, Some(tenant), api, desk.now).await?;
            refusal = probation
                .check(order_bytes(&plan), desk.now)
                .err()
                .map(|refused| refused.to_string());
        }
    }
    tx.rollback().await?;
    Ok(shown(&plan, &lane, refusal, desk.now))
}

/// Pure.
fn shown(plan: &Plan, lane: &Lane, refusal: Option<String>, now: Timestamp) -> ScanPreview {
    let endpoint = plan.order.endpoint.get();
    let items = u32::try_from(plan.items.len()).unwrap_or(u32::MAX);
    let uncapped = most_requests(plan);
    let requests = requests(plan);
    let seconds = seconds_at(
        u32::try_from(*plan.searches().end()).unwrap_or(u32::MAX),
        lane.seconds_per_search,
    );
    let body = |item: Option<&Request>| item.map(Request::to_body).unwrap_or_default();
    ScanPreview {
        endpoint,
        items,
        requests,
        first: body(plan.items.first()),
        last: body(plan.items.last()),
        searches_per_minute: (6_000.0 / lane.seconds_per_search).round() / 100.0,
        seconds,
        plan_requests_remaining: lane.plan_remaining,
        plans: cost::on_each_plan(endpoint.api(), requests, lane),
        warnings: warn::warnings(
            plan,
            &warn::Facts {
                lane,
                requests,
                uncapped,
                seconds,
                refusal,
                today: earliest_today(now),
            },
        ),
    }
}

/// The billed requests of a plan.
pub(crate) fn requests(plan: &Plan) -> RequestRange {
    let ceiling = plan
        .order
        .max_requests
        .map_or(u64::MAX, |max| max.get().into());
    // In two phases fewer are searched than there are.
    let least = u64::try_from(*plan.searches().start()).unwrap_or(u64::MAX);
    RequestRange {
        least,
        most: most_requests(plan).min(ceiling),
    }
}

/// What so many requests in a month cost a caller on each plan: a whole month of each, whatever is left of this one.
pub(crate) async fn monthly_costs(
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
    let lane = Lane {
        seconds_per_search: 1.0,
        paused: None,
        plan_limit: known.and_then(|lane| lane.plan_limit),
        plan_remaining: None,
    };
    Ok(cost::on_each_plan(api, requests, &lane))
}

/// At most all attempts of every search, each with the second try of a server error (contract 17).
fn most_requests(plan: &Plan) -> u64 {
    let attempts = plan
        .order
        .retry
        .as_ref()
        .map_or(MaxAttempts::ONE, RetryPolicy::max_attempts_or_default);
    u64::try_from(*plan.searches().end())
        .unwrap_or(u64::MAX)
        .saturating_mul(u64::from(attempts.get()))
        .saturating_mul(2)
}
