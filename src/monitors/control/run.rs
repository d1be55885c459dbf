//! Running a monitor now.

use jiff::{SignedDuration, Timestamp};
use serde_json::Map;

use crate::config::PaceConfig;
use crate::contract::monitors::{SlotKind, SlotOutcome};
use crate::contract::scans::Scan;
use crate::db;
use crate::ids::MonitorId;
use crate::monitors::schedule::Schedule;
use crate::monitors::start::{NotStarted, Start, start};
use crate::monitors::store::Decision;
use crate::monitors::{MonitorError, store};
use crate::scans::{Answered, Desk, IdempotencyKey, Post, ScanError};
use crate::tenants;
use crate::webhooks::LockFor;

/// Makes the scan of a monitor now, with the key of this request. It is on record as a slot of its own kind at this time; relative dates
/// count from today in the schedule's zone, and what it may spend counts in this month. The schedule goes on as it is.
///
/// # Errors
/// `NotFound`; `InvalidState` while a run of it has not ended, over the month's ceiling, or where its scan cannot be made any more;
/// `TooMuch` at a limit of the caller's; `IdempotencyMismatch`; `Database`. Nothing is stored then.
pub async fn run(
    desk: Desk<'_>,
    pace: &PaceConfig,
    id: MonitorId,
    key: Option<&IdempotencyKey>,
) -> Result<Answered<Scan>, MonitorError> {
    let post = Post::new(format!("/v1/monitors/{id}/run"), &Map::new(), key);
    if let Some(answer) = post.repeated(desk).await? {
        return Ok(Answered {
            answer,
            replayed: true,
        });
    }
    let mut tx = db::begin(desk.pool).await?;
    let found = tenants::store::find_and_hold(&mut tx, desk.ring, desk.key, desk.now).await?;
    let tenant = found.ok_or(MonitorError::NotFound)?;
    let (mut lock, monitor) = store::lock(&mut tx, tenant, id, LockFor::Change)
        .await?
        .ok_or(MonitorError::NotFound)?;
    if let Some(answer) = post.take(lock.conn(), tenant, desk.now).await? {
        return Ok(Answered {
            answer,
            replayed: true,
        });
    }
    if let Some(run) = store::live_runs(lock.conn(), tenant, id).await?.first() {
        return Err(invalid(format!(
            "{}; wait for it, resume it if it is paused, or cancel it",
            run.in_the_way()
        )));
    }
    let zone_gone = || {
        invalid(format!(
            "the time zone {} is not known to this service any more",
            monitor.timezone
        ))
    };
    let schedule = Schedule::read(&monitor.cron, &monitor.timezone).ok_or_else(zone_gone)?;
    let slot = manual_slot(desk.now, store::last_manual(lock.conn(), tenant, id).await?);
    let run = Start {
        tenant,
        id,
        monitor: &monitor,
        schedule: &schedule,
        slot,
    };
    let answer = start(lock.conn(), desk, pace, &run)
        .await
        .map_err(|not| match not {
            NotStarted::CannotBe(faults) => {
                invalid(format!("its scan cannot be made any more: {faults}"))
            }
            NotStarted::Ceiling(message) => invalid(message),
            NotStarted::TooMuch(error) => MonitorError::Order(error),
            NotStarted::Database(error) => error.into(),
        })?;
    let ran = Decision {
        slot,
        kind: SlotKind::Manual,
        outcome: SlotOutcome::Ran,
        reason: None,
        scan: Some(answer.id),
    };
    store::record(lock.conn(), tenant, id, &[ran], desk.now).await?;
    post.keep(lock.conn(), tenant, &answer).await?;
    tx.commit().await?;
    Ok(Answered {
        answer,
        replayed: false,
    })
}

/// A manual run is on record at a whole second; at the next one where that second has a run.
fn manual_slot(now: Timestamp, last: Option<Timestamp>) -> Timestamp {
    let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
    last.map_or(second, |last| {
        second.max(last + SignedDuration::from_secs(1))
    })
}

fn invalid(message: String) -> MonitorError {
    MonitorError::Order(ScanError::InvalidState(message))
}
