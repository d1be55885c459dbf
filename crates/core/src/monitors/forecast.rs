//! Forecasts the requests and costs of the month that begins with the next slot. A seasonal
//! schedule thus shows a month in season. Not here: the monthly limit (`monthly_limit`), the plans'
//! prices (`scans::preview`).

use jiff::{Timestamp, ToSpan as _};
use sqlx::PgConnection;

use super::alerts::rule_scope;
use super::confirm::{MAX_OF_RULE, MAX_ROUNDS};
use super::monthly_limit;
use super::schedule::Schedule;
use super::validate::ValidatedMonitor;
use crate::contract::monitors::{MonitorForecast, Rule, RuleScope};
use crate::ids::TenantId;
use crate::scans::plan::ScanPlan;
use crate::scans::preview;

/// The number of slots in the month, the requests of the plan at each, and their cost.
pub(super) async fn forecast(
    conn: &mut PgConnection,
    tenant: Option<TenantId>,
    schedule: &Schedule,
    plan: &ScanPlan,
    rules: &[Rule],
    ceiling: Option<u32>,
    now: Timestamp,
) -> sqlx::Result<MonitorForecast> {
    let slots = slots_of_month(schedule, now);
    let again = most_confirmations(rules, plan);
    let requests_per_run = preview::requests_with(plan, again);
    let requests_per_month =
        monthly_limit::requests_per_month(plan, requests_per_run, slots, ceiling);
    let plans = preview::monthly_costs(
        conn,
        tenant,
        plan.scan_request.endpoint.get().api(),
        requests_per_month,
        now,
    )
    .await?;
    Ok(MonitorForecast {
        slots,
        requests_per_run,
        requests_per_month,
        plans,
    })
}

impl ValidatedMonitor {
    /// The forecast of a monitor that is about to be stored.
    pub(super) async fn forecast(
        &self,
        conn: &mut PgConnection,
        tenant: Option<TenantId>,
        now: Timestamp,
    ) -> sqlx::Result<MonitorForecast> {
        let Self {
            request,
            schedule,
            plan,
            ..
        } = self;
        let ceiling = request.max_requests_per_month.map(|max| max.get());
        forecast(conn, tenant, schedule, plan, request.rules(), ceiling, now).await
    }
}

/// How many searches of a run may be made once more.
pub(super) fn most_confirmations(rules: &[Rule], plan: &ScanPlan) -> u32 {
    let items = plan.items.len();
    let searches = rules
        .iter()
        .filter(|rule| rule.confirms())
        .map(|rule| match rule_scope(rule) {
            RuleScope::Scan => MAX_ROUNDS.min(items),
            RuleScope::Cell => MAX_OF_RULE.min(items),
        });
    u32::try_from(searches.sum::<usize>().min(items)).unwrap_or(u32::MAX)
}

fn slots_of_month(schedule: &Schedule, now: Timestamp) -> u32 {
    let Some(first) = schedule.after(now) else {
        return 0;
    };
    let end = first
        .to_zoned(schedule.zone().clone())
        .saturating_add(1.month())
        .timestamp();
    u32::try_from(
        schedule
            .slots_after(now)
            .take_while(|slot| *slot < end)
            .count(),
    )
    .unwrap_or(u32::MAX)
}
