//! Deleting a scan that has ended.

use sqlx::PgPool;

use super::store;
use crate::commands::{CommandError, RequestContext};
use crate::db;
use crate::history::{self, ObservedItem};
use crate::ids::{Kind, ScanId, TenantId};
use crate::scans::store::lock::{DeletionLock, LockedScanRow};

/// Deletes a scan with its items, attempts, answers, key grant, and the stored responses of POSTs
/// on it. Its observations stay in the history unless `with_history`: then they are deleted too,
/// and latest prices that came from them fall back to the newest remaining price. Its usage stays,
/// because it was billed. The stored response of its submit stays too, so that a repetition cannot
/// spend twice.
///
/// # Errors
/// `NotFound`, also for a scan that was deleted before; `InvalidState` while the scan runs or calls
/// of it are in flight.
pub async fn delete(
    context: RequestContext<'_>,
    id: ScanId,
    with_history: bool,
) -> Result<(), CommandError> {
    let (mut tx, tenant) = context.begin(Kind::Scan).await?;
    let mut lock = lock_ended(&mut tx, tenant, id).await?;
    if with_history {
        delete_observations(&mut lock).await?;
    }
    store::delete(&mut lock).await?;
    tx.commit().await?;
    Ok(())
}

/// Deletes a scan that has ended and is older than the retention time of scans. Its observations
/// stay.
///
/// # Errors
/// `NotFound`; `InvalidState` when it runs again.
pub async fn delete_expired(
    pool: &PgPool,
    tenant: TenantId,
    id: ScanId,
) -> Result<(), CommandError> {
    let mut tx = db::begin(pool).await?;
    db::set_brief_lock_timeout(&mut tx).await?;
    store::delete(&mut lock_ended(&mut tx, tenant, id).await?).await?;
    tx.commit().await?;
    Ok(())
}

async fn lock_ended(
    conn: &mut sqlx::PgConnection,
    tenant: TenantId,
    id: ScanId,
) -> Result<DeletionLock<'_>, CommandError> {
    let lock = DeletionLock::lock(conn, tenant, id)
        .await?
        .ok_or(Kind::Scan)?;
    require_ended(&lock.row)?;
    Ok(lock)
}

fn require_ended(scan: &LockedScanRow) -> Result<(), CommandError> {
    let ended = scan.status.is_ended();
    match (ended, scan.finished) {
        (true, true) => Ok(()),
        (true, false) => Err(CommandError::InvalidState(format!(
            "the scan is {}, but some of its calls are in flight: delete it once `finished_at` is set",
            scan.status
        ))),
        (false, _) => Err(CommandError::InvalidState(format!(
            "the scan is {}: cancel it, or wait until it has ended",
            scan.status
        ))),
    }
}

async fn delete_observations(lock: &mut DeletionLock<'_>) -> sqlx::Result<()> {
    let observations: Vec<_> = lock
        .items
        .iter()
        .filter_map(|item| {
            ObservedItem::of(item.item_id.into(), &item.endpoint, item.body.as_object()?)
        })
        .collect();
    history::delete(lock.conn, lock.tenant, &observations).await
}
