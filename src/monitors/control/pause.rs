//! Holding a monitor by its caller's word.

use jiff::Timestamp;
use jiff_sqlx::Timestamp as SqlTimestamp;

use crate::contract::monitors::{Monitor, SlotKind, SlotOutcome};
use crate::db;
use crate::ids::{GrantId, MonitorId};
use crate::monitors::schedule::Schedule;
use crate::monitors::store::{Decision, LockedMonitor};
use crate::monitors::{MonitorError, read, store};
use crate::scans::Desk;
use crate::tenants;
use crate::webhooks::LockFor;

/// Pauses a monitor until its caller resumes it, and destroys its key: a resume brings one. A run that is underway goes on. When this
/// returns no slot of it makes a scan any more. One that is paused is given as it is.
///
/// # Errors
/// `NotFound`; `Database`.
pub async fn pause(desk: Desk<'_>, id: MonitorId) -> Result<Monitor, MonitorError> {
    let mut tx = db::begin(desk.pool).await?;
    let found = tenants::store::find_and_hold(&mut tx, desk.ring, desk.key, desk.now).await?;
    let tenant = found.ok_or(MonitorError::NotFound)?;
    let (mut lock, monitor) = store::lock(&mut tx, tenant, id, LockFor::Change)
        .await?
        .ok_or(MonitorError::NotFound)?;
    if !monitor.paused {
        let undecided = undecided(
            &monitor,
            store::last_decided(lock.conn(), tenant, id).await?,
            desk.now,
        );
        store::record(lock.conn(), tenant, id, &undecided, desk.now).await?;
        store::set_paused(lock.conn(), tenant, id, true, None, desk.now).await?;
        tenants::store::wipe(
            lock.conn(),
            tenant,
            GrantId::from(monitor.grant_id),
            desk.now,
        )
        .await?;
    }
    let answer = read::stored(lock.conn(), tenant, id, desk.now).await?;
    tx.commit().await?;
    Ok(answer)
}

/// Slots that have come and that nobody has decided are on record all the same.
fn undecided(monitor: &LockedMonitor, last: Option<Timestamp>, now: Timestamp) -> Vec<Decision> {
    let Some(first) = monitor
        .next_slot
        .map(SqlTimestamp::to_jiff)
        .filter(|slot| *slot <= now)
    else {
        return Vec::new();
    };
    let slots = match Schedule::read(&monitor.cron, &monitor.timezone) {
        Some(schedule) => schedule.due(first, now).collect(),
        None => vec![first],
    };
    let missed = |slot| {
        let reason = Some("the monitor was paused before it was decided".to_owned());
        Decision {
            slot,
            kind: SlotKind::Schedule,
            outcome: SlotOutcome::Missed,
            reason,
            scan: None,
        }
    };
    slots
        .into_iter()
        .filter(|slot| last.is_none_or(|last| *slot > last))
        .map(missed)
        .collect()
}
