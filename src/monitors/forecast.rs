//! What the month that begins with the next slot takes and costs: of a schedule for a season, a month in season. Not here: what a ceiling
//! lets begin (`ceiling`), the plans' prices (`scans::preview`).

use jiff::{Timestamp, ToSpan as _};
use sqlx::PgConnection;

use super::ceiling;
use super::schedule::Schedule;
use crate::contract::monitors::MonitorForecast;
use crate::ids::TenantId;
use crate::scans::plan::Plan;
use crate::scans::preview;

/// The slots of a month of the schedule, each with the requests of the plan, and what they cost the caller.
pub(super) async fn forecast(
    conn: &mut PgConnection,
    tenant: Option<TenantId>,
    schedule: &Schedule,
    plan: &Plan,
    ceiling: Option<u32>,
    now: Timestamp,
) -> sqlx::Result<MonitorForecast> {
    let slots = slots_of_month(schedule, now);
    let requests_per_run = preview::requests(plan);
    let requests_per_month = ceiling::monthly(plan, slots, ceiling);
    let plans = preview::monthly_costs(
        conn,
        tenant,
        plan.order.endpoint.get().api(),
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

fn slots_of_month(schedule: &Schedule, now: Timestamp) -> u32 {
    let Some(first) = schedule.after(now) else {
        return 0;
    };
    let end = first
        .to_zoned(schedule.zone().clone())
        .saturating_add(1.month())
        .timestamp();
    u32::try_from(schedule.slots(now).take_while(|slot| *slot < end).count()).unwrap_or(u32::MAX)
}
