//! Deletes a monitor.

use crate::commands::{CommandError, RequestContext};
use crate::ids::{GrantId, Kind, MonitorId};
use crate::monitors::store;
use crate::webhooks::{LockFor, endpoint};

/// Deletes a monitor with its slots and its key. Its scans and their results stay. A running scan
/// continues; its caller may cancel it.
///
/// # Errors
/// `NotFound`, also for a deleted monitor.
pub async fn delete(context: RequestContext<'_>, id: MonitorId) -> Result<(), CommandError> {
    let (mut tx, tenant) = context.begin_locked(Kind::Monitor).await?;
    let (mut lock, monitor) = store::lock(&mut tx, tenant, id, LockFor::Deletion).await?;
    // Destroys the secrets. The deliveries are deleted with the monitor.
    endpoint::close_for_deletion(&mut lock, context.now).await?;
    store::delete(lock.conn(), tenant, id, GrantId::from(monitor.grant_id)).await?;
    tx.commit().await?;
    Ok(())
}
