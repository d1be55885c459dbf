//! Runs a monitor now.

use jiff::{SignedDuration, Timestamp};
use serde_json::Map;
use sqlx::PgConnection;

use crate::commands::{
    CommandError, IdempotencyKey, IdempotentRequest, Replayable, RequestContext,
};
use crate::config::PaceConfig;
use crate::contract::monitors::{SlotKind, SlotOutcome};
use crate::contract::scans::Scan;
use crate::ids::{Kind, MonitorId, TenantId};
use crate::monitors::schedule::Schedule;
use crate::monitors::start_run::{RunContext, StartRunError, start_run};
use crate::monitors::store::{self, Decision, LockedMonitor};
use crate::webhooks::{LockFor, MonitorLock};

/// Starts a run of a monitor now, with the key of this request, and records it as a manual slot.
/// Relative dates count from today in the schedule's zone, and its requests count in this month.
/// The schedule is unchanged.
///
/// # Errors
/// `NotFound`; `InvalidState` while another run has not ended, at the monthly limit, or when the
/// stored scan is no longer valid; `LimitExceeded` at a limit of the tenant;
/// `IdempotencyMismatch`.
pub async fn run(
    context: RequestContext<'_>,
    pace: &PaceConfig,
    id: MonitorId,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<Scan>, CommandError> {
    let idempotent = IdempotentRequest::new(format!("/v1/monitors/{id}/run"), &Map::new(), key);
    let work = async |conn: &mut PgConnection, tenant: TenantId| {
        let (mut lock, monitor) = store::lock(conn, tenant, id, LockFor::Change).await?;
        run_locked(&mut lock, &monitor, context, pace).await
    };
    idempotent.carry_out(context, Kind::Monitor, work).await
}

async fn run_locked(
    lock: &mut MonitorLock<'_>,
    monitor: &LockedMonitor,
    context: RequestContext<'_>,
    pace: &PaceConfig,
) -> Result<Scan, CommandError> {
    let (tenant, id) = (lock.tenant(), lock.monitor());
    if let Some(run) = store::active_runs(lock.conn(), tenant, id).await?.first() {
        return Err(CommandError::InvalidState(format!(
            "{}; wait for it to end, resume it if it is paused, or cancel it",
            run.description()
        )));
    }
    let zone_gone = || {
        CommandError::InvalidState(format!(
            "this service no longer knows the time zone {}",
            monitor.timezone
        ))
    };
    let schedule = Schedule::parse(&monitor.cron, &monitor.timezone).ok_or_else(zone_gone)?;
    let slot = manual_slot(
        context.now,
        store::last_manual_slot(lock.conn(), tenant, id).await?,
    );
    let run = RunContext {
        tenant,
        id,
        monitor,
        schedule: &schedule,
        slot,
    };
    let response = start_run(lock.conn(), context, pace, &run)
        .await
        .map_err(|not| match not {
            StartRunError::InvalidScan(errors) => CommandError::InvalidState(format!(
                "the monitor's scan is no longer valid: {errors}"
            )),
            StartRunError::MonthlyLimit(message) => CommandError::InvalidState(message),
            StartRunError::TenantLimit(error) => error,
            StartRunError::Database(error) => error.into(),
        })?;
    let ran = Decision {
        slot,
        kind: SlotKind::Manual,
        outcome: SlotOutcome::Ran,
        reason: None,
        scan: Some(response.id),
    };
    store::record_decisions(lock.conn(), tenant, id, &[ran], context.now).await?;
    Ok(response)
}

/// The slot of a manual run: a whole second, or the next one if that second has a run.
fn manual_slot(now: Timestamp, last: Option<Timestamp>) -> Timestamp {
    let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
    last.map_or(second, |last| {
        second.max(last + SignedDuration::from_secs(1))
    })
}
