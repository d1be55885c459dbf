//! Holding a monitor by its caller's word.

use jiff_sqlx::Timestamp as SqlTimestamp;

use crate::contract::monitors::{Monitor, SlotKind, SlotOutcome};
use crate::ids::{GrantId, MonitorId};
use crate::monitors::store::Decision;
use crate::monitors::{MonitorError, read, store};
use crate::scans::Desk;
use crate::tenants;

/// Pauses a monitor until its caller resumes it, and destroys its key: a resume brings one. A run that is underway goes on. When this
/// returns no slot of it makes a scan any more. One that is paused is given as it is.
///
/// # Errors
/// `NotFound`; `Database`.
pub async fn pause(desk: Desk<'_>, id: MonitorId) -> Result<Monitor, MonitorError> {
    let mut tx = desk.pool.begin().await?;
    let found = tenants::store::find_and_hold(&mut tx, desk.ring, desk.key, desk.now).await?;
    let tenant = found.ok_or(MonitorError::NotFound)?;
    let monitor = store::lock(&mut tx, tenant, id).await?.ok_or(MonitorError::NotFound)?;
    if !monitor.paused {
        // A slot that came just now and that nobody has decided is on record all the same.
        if let Some(slot) = monitor.next_slot.map(SqlTimestamp::to_jiff).filter(|slot| *slot <= desk.now) {
            let reason = Some("the monitor was paused before it was decided".to_owned());
            let missed = Decision { slot, kind: SlotKind::Schedule, outcome: SlotOutcome::Missed, reason, scan: None };
            store::record(&mut tx, tenant, id, &[missed], desk.now).await?;
        }
        store::set_paused(&mut tx, tenant, id, true, None, desk.now).await?;
        tenants::store::wipe(&mut tx, tenant, GrantId::from(monitor.grant_id), desk.now).await?;
    }
    let answer = read::stored(&mut tx, tenant, id, desk.now).await?;
    tx.commit().await?;
    Ok(answer)
}
