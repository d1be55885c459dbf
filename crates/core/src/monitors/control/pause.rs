//! Pauses a monitor.

use jiff::Timestamp;
use jiff_sqlx::Timestamp as SqlTimestamp;

use crate::commands::{CommandError, RequestContext};
use crate::contract::monitors::{Monitor, SlotKind, SlotOutcome};
use crate::ids::{GrantId, Kind, MonitorId};
use crate::monitors::schedule::Schedule;
use crate::monitors::store::{Decision, LockedMonitor};
use crate::monitors::{read, store};
use crate::tenants;
use crate::webhooks::LockFor;

/// Pauses a monitor until its caller resumes it, and destroys its key. A running scan continues. No
/// slot starts a scan after this returns. A paused monitor is returned unchanged.
///
/// # Errors
/// `NotFound`.
pub async fn pause(context: RequestContext<'_>, id: MonitorId) -> Result<Monitor, CommandError> {
    let (mut tx, tenant) = context.begin_locked(Kind::Monitor).await?;
    let (mut lock, monitor) = store::lock(&mut tx, tenant, id, LockFor::Change).await?;
    if !monitor.paused {
        let undecided = undecided(
            &monitor,
            store::last_decided(lock.conn(), tenant, id).await?,
            context.now,
        );
        store::record_decisions(lock.conn(), tenant, id, &undecided, context.now).await?;
        store::set_paused(lock.conn(), tenant, id, true, None, context.now).await?;
        tenants::store::wipe(
            lock.conn(),
            tenant,
            GrantId::from(monitor.grant_id),
            context.now,
        )
        .await?;
    }
    let response = read::read_back(lock.conn(), context.ring, tenant, id, context.now).await?;
    tx.commit().await?;
    Ok(response)
}

/// Records the due slots that are not decided yet as missed.
fn undecided(monitor: &LockedMonitor, last: Option<Timestamp>, now: Timestamp) -> Vec<Decision> {
    let Some(first) = monitor
        .next_slot
        .map(SqlTimestamp::to_jiff)
        .filter(|slot| *slot <= now)
    else {
        return Vec::new();
    };
    let slots = match Schedule::parse(&monitor.cron, &monitor.timezone) {
        Some(schedule) => schedule.due_slots(first, now).collect(),
        None => vec![first],
    };
    let missed = |slot| {
        let reason = Some("the monitor was paused before the slot was decided".to_owned());
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
