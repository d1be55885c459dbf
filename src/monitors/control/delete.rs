//! Deleting a monitor.

use crate::db;
use crate::ids::{GrantId, MonitorId};
use crate::monitors::{MonitorError, store};
use crate::scans::Desk;
use crate::tenants;
use crate::webhooks::{LockFor, endpoint};

/// Deletes a monitor with its slots and its key. What its runs have searched stays, and a run that is underway goes on: it is a scan, and
/// its caller may cancel it.
///
/// # Errors
/// `NotFound`, also for one that was deleted before; `Database`.
pub async fn delete(desk: Desk<'_>, id: MonitorId) -> Result<(), MonitorError> {
    let mut tx = db::begin(desk.pool).await?;
    let found = tenants::store::find_and_hold(&mut tx, desk.ring, desk.key, desk.now).await?;
    let tenant = found.ok_or(MonitorError::NotFound)?;
    let (mut lock, monitor) = store::lock(&mut tx, tenant, id, LockFor::Deletion)
        .await?
        .ok_or(MonitorError::NotFound)?;
    // Its secrets are destroyed; what was delivered goes with the monitor.
    endpoint::close(&mut lock, desk.now).await?;
    store::delete(lock.conn(), tenant, id, GrantId::from(monitor.grant_id)).await?;
    tx.commit().await?;
    Ok(())
}
