//! Deletes a monitor.

use crate::db;
use crate::ids::{GrantId, MonitorId};
use crate::monitors::{MonitorError, store};
use crate::scans::RequestContext;
use crate::tenants;
use crate::webhooks::{LockFor, endpoint};

/// Deletes a monitor with its slots and its key. Its scans and their results stay. A running scan
/// continues; its caller may cancel it.
///
/// # Errors
/// `NotFound`, also for a deleted monitor; `Database`.
pub async fn delete(context: RequestContext<'_>, id: MonitorId) -> Result<(), MonitorError> {
    let mut tx = db::begin(context.pool).await?;
    let found =
        tenants::store::find_and_lock(&mut tx, context.ring, context.key, context.now).await?;
    let tenant = found.ok_or(MonitorError::NotFound)?;
    let (mut lock, monitor) = store::lock(&mut tx, tenant, id, LockFor::Deletion)
        .await?
        .ok_or(MonitorError::NotFound)?;
    // Destroys the secrets. The deliveries are deleted with the monitor.
    endpoint::close(&mut lock, context.now).await?;
    store::delete(lock.conn(), tenant, id, GrantId::from(monitor.grant_id)).await?;
    tx.commit().await?;
    Ok(())
}
