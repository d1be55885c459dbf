//! Deleting a scan that has ended.

use sqlx::PgPool;

use super::store;
use crate::db;
use crate::history::{self, ObservedItem};
use crate::ids::{GrantId, ScanId, TenantId};
use crate::scans::store::{self as scans_store, LockedScan};
use crate::scans::{RequestContext, ScanError};
use crate::tenants;

/// Deletes a scan with its items, attempts, answers, key grant, and the stored responses of POSTs
/// on it. Its observations stay in the history unless `with_history`: then they are deleted too,
/// and latest prices that came from them fall back to the newest remaining price. Its usage stays,
/// because it was billed. The stored response of its submit stays too, so that a repetition cannot
/// spend twice.
///
/// # Errors
/// `NotFound`, also for a scan that was deleted before; `InvalidState` while the scan runs or calls
/// of it are in flight; `Database`.
pub async fn delete(
    context: RequestContext<'_>,
    id: ScanId,
    with_history: bool,
) -> Result<(), ScanError> {
    let mut tx = db::begin(context.pool).await?;
    let tenant = tenants::store::find(&mut tx, context.ring, context.key, context.now)
        .await?
        .ok_or(ScanError::NotFound)?;
    // Without the lane's lock: no item becomes pending here.
    let items = store::lock_items(&mut tx, tenant, id).await?;
    let scan = scans_store::lock_scan(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    require_ended(&scan)?;
    if with_history {
        delete_observations(&mut tx, tenant, &items).await?;
    }
    delete_locked(&mut tx, tenant, id, &items, &scan).await?;
    tx.commit().await?;
    Ok(())
}

/// Deletes a scan that has ended and is older than the retention time of scans. Its observations
/// stay.
///
/// # Errors
/// `NotFound`; `InvalidState` when it runs again; `Database`.
pub async fn delete_expired(pool: &PgPool, tenant: TenantId, id: ScanId) -> Result<(), ScanError> {
    let mut tx = db::begin(pool).await?;
    db::set_brief_lock_timeout(&mut tx).await?;
    let items = store::lock_items(&mut tx, tenant, id).await?;
    let scan = scans_store::lock_scan(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    require_ended(&scan)?;
    delete_locked(&mut tx, tenant, id, &items, &scan).await?;
    tx.commit().await?;
    Ok(())
}

async fn delete_locked(
    conn: &mut sqlx::PgConnection,
    tenant: TenantId,
    id: ScanId,
    items: &[store::LockedItem],
    scan: &LockedScan,
) -> Result<(), ScanError> {
    let ids: Vec<_> = items.iter().map(|item| item.item_id).collect();
    store::archive_usage(conn, tenant, id, &ids).await?;
    store::delete(conn, tenant, id, &ids, scan.grant_id.map(GrantId::from)).await?;
    Ok(())
}

fn require_ended(scan: &LockedScan) -> Result<(), ScanError> {
    let ended = scan.status.is_ended();
    match (ended, scan.finished) {
        (true, true) => Ok(()),
        (true, false) => Err(ScanError::InvalidState(format!(
            "the scan is {}, but some of its calls are in flight: delete it once `finished_at` is set",
            scan.status
        ))),
        (false, _) => Err(ScanError::InvalidState(format!(
            "the scan is {}: cancel it, or wait until it has ended",
            scan.status
        ))),
    }
}

async fn delete_observations(
    conn: &mut sqlx::PgConnection,
    tenant: TenantId,
    items: &[store::LockedItem],
) -> Result<(), ScanError> {
    let observations = items.iter().filter_map(|item| {
        ObservedItem::of(item.item_id.into(), &item.endpoint, item.body.as_object()?)
    });
    Ok(history::delete(conn, tenant, &observations.collect::<Vec<_>>()).await?)
}
