//! Runs a monitor now.

use jiff::{SignedDuration, Timestamp};
use serde_json::Map;

use crate::config::PaceConfig;
use crate::contract::monitors::{SlotKind, SlotOutcome};
use crate::contract::scans::Scan;
use crate::db;
use crate::ids::MonitorId;
use crate::monitors::schedule::Schedule;
use crate::monitors::start_run::{RunContext, StartRunError, start_run};
use crate::monitors::store::Decision;
use crate::monitors::{MonitorError, store};
use crate::scans::{IdempotencyKey, IdempotentRequest, Replayable, RequestContext, ScanError};
use crate::tenants;
use crate::webhooks::LockFor;

/// Starts a run of a monitor now, with the key of this request, and records it as a manual slot.
/// Relative dates count from today in the schedule's zone, and its requests count in this month.
/// The schedule is unchanged.
///
/// # Errors
/// `NotFound`; `InvalidState` while another run has not ended, at the monthly limit, or when the
/// stored scan is no longer valid; `LimitExceeded` at a limit of the tenant;
/// `IdempotencyMismatch`; `Database`. Nothing is stored then.
pub async fn run(
    context: RequestContext<'_>,
    pace: &PaceConfig,
    id: MonitorId,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<Scan>, MonitorError> {
    let idempotent = IdempotentRequest::new(format!("/v1/monitors/{id}/run"), &Map::new(), key);
    if let Some(response) = idempotent.find_response(context).await? {
        return Ok(Replayable {
            response,
            replayed: true,
        });
    }
    let mut tx = db::begin(context.pool).await?;
    let found =
        tenants::store::find_and_lock(&mut tx, context.ring, context.key, context.now).await?;
    let tenant = found.ok_or(MonitorError::NotFound)?;
    let (mut lock, monitor) = store::lock(&mut tx, tenant, id, LockFor::Change)
        .await?
        .ok_or(MonitorError::NotFound)?;
    if let Some(response) = idempotent.reserve(lock.conn(), tenant, context.now).await? {
        return Ok(Replayable {
            response,
            replayed: true,
        });
    }
    if let Some(run) = store::active_runs(lock.conn(), tenant, id).await?.first() {
        return Err(invalid(format!(
            "{}; wait for it to end, resume it if it is paused, or cancel it",
            run.description()
        )));
    }
    let zone_gone = || {
        invalid(format!(
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
        monitor: &monitor,
        schedule: &schedule,
        slot,
    };
    let response = start_run(lock.conn(), context, pace, &run)
        .await
        .map_err(|not| match not {
            StartRunError::InvalidScan(errors) => {
                invalid(format!("the monitor's scan is no longer valid: {errors}"))
            }
            StartRunError::MonthlyLimit(message) => invalid(message),
            StartRunError::TenantLimit(error) => MonitorError::Scan(error),
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
    idempotent
        .store_response(lock.conn(), tenant, &response)
        .await?;
    tx.commit().await?;
    Ok(Replayable {
        response,
        replayed: false,
    })
}

/// The slot of a manual run: a whole second, or the next one if that second has a run.
fn manual_slot(now: Timestamp, last: Option<Timestamp>) -> Timestamp {
    let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
    last.map_or(second, |last| {
        second.max(last + SignedDuration::from_secs(1))
    })
}

fn invalid(message: String) -> MonitorError {
    MonitorError::Scan(ScanError::InvalidState(message))
}
