//! Deleting a scan that has ended.

use sqlx::PgPool;

use super::store;
use crate::contract::scans::ScanStatus;
use crate::db;
use crate::history::{self, SeenBy};
use crate::ids::{GrantId, ScanId, TenantId};
use crate::scans::store::{self as scans_store, LockedScan};
use crate::scans::{Desk, ScanError};
use crate::tenants;

/// Deletes a scan with its items, attempts, answers, its sealed key's row, and the answers kept for repeated POSTs on it. What it saw
/// stays in the history unless `with_history`: then its observations go too, and latest prices that came from them fall back to the
/// newest price that is left. What it had cost stays in the usage: it was billed. A repetition of the POST that ordered it is still answered as before, so that it cannot spend twice.
///
/// # Errors
/// `NotFound`, also for a scan that was deleted before; `InvalidState` while the scan runs or calls of it are in flight; `Database`.
pub async fn delete(desk: Desk<'_>, id: ScanId, with_history: bool) -> Result<(), ScanError> {
    let mut tx = db::begin(desk.pool).await?;
    let tenant = tenants::store::find(&mut tx, desk.ring, desk.key, desk.now)
        .await?
        .ok_or(ScanError::NotFound)?;
    // No lane's lock: nothing becomes pending here.
    let items = store::lock_items(&mut tx, tenant, id).await?;
    let scan = scans_store::lock_scan(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    refuse_live(&scan)?;
    if with_history {
        forget(&mut tx, tenant, &items).await?;
    }
    take_out(&mut tx, tenant, id, &items, &scan).await?;
    tx.commit().await?;
    Ok(())
}

/// Deletes a scan that has ended, because it is older than the operator keeps scans. Its observations stay.
///
/// # Errors
/// `NotFound`, `InvalidState` when it runs again; `Database`.
pub async fn ended(pool: &PgPool, tenant: TenantId, id: ScanId) -> Result<(), ScanError> {
    let mut tx = db::begin(pool).await?;
    db::wait_briefly(&mut tx).await?;
    let items = store::lock_items(&mut tx, tenant, id).await?;
    let scan = scans_store::lock_scan(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    refuse_live(&scan)?;
    take_out(&mut tx, tenant, id, &items, &scan).await?;
    tx.commit().await?;
    Ok(())
}

async fn take_out(
    conn: &mut sqlx::PgConnection,
    tenant: TenantId,
    id: ScanId,
    items: &[store::LockedItem],
    scan: &LockedScan,
) -> Result<(), ScanError> {
    let ids: Vec<_> = items.iter().map(|item| item.item_id).collect();
    store::keep_usage(conn, tenant, id, &ids).await?;
    store::delete(conn, tenant, id, &ids, scan.grant_id.map(GrantId::from)).await?;
    Ok(())
}

fn refuse_live(scan: &LockedScan) -> Result<(), ScanError> {
    let ended = ScanStatus::parse(&scan.status).is_some_and(ScanStatus::is_ended);
    match (ended, scan.finished) {
        (true, true) => Ok(()),
        (true, false) => Err(ScanError::InvalidState(format!(
            "the scan is {}, but calls of it are in flight: delete it once `finished_at` is set",
            scan.status
        ))),
        (false, _) => Err(ScanError::InvalidState(format!(
            "the scan is {}: cancel it, or wait until it has ended",
            scan.status
        ))),
    }
}

async fn forget(
    conn: &mut sqlx::PgConnection,
    tenant: TenantId,
    items: &[store::LockedItem],
) -> Result<(), ScanError> {
    let seen = items
        .iter()
        .filter_map(|item| SeenBy::of(item.item_id.into(), &item.endpoint, item.body.as_object()?));
    Ok(history::forget(conn, tenant, &seen.collect::<Vec<_>>()).await?)
}
