//! Cancelling a scan.

use jiff::Timestamp;
use sqlx::PgConnection;

use super::{RequestContext, ScanError, store, submit};
use crate::contract::scans::{PauseReason, Scan, ScanStatus};
use crate::db;
use crate::ids::{ScanId, TenantId};
use crate::tenants;

/// Cancels a scan. No call of it begins after this returns. Calls in flight are billed, so their
/// answers are stored; the key is destroyed with the last of them. A cancelled scan is returned
/// unchanged.
///
/// # Errors
/// `NotFound`; `InvalidState` when the scan has ended by itself; `Database`.
pub async fn cancel(context: RequestContext<'_>, id: ScanId) -> Result<Scan, ScanError> {
    let mut tx = db::begin(context.pool).await?;
    let tenant = tenants::store::find(&mut tx, context.ring, context.key, context.now)
        .await?
        .ok_or(ScanError::NotFound)?;
    let api = store::api_of(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    store::wake_lane(&mut tx, tenant, api).await?;
    store::lock_open_items(&mut tx, tenant, id).await?;
    let scan = store::lock_scan(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    match scan.status {
        ScanStatus::Cancelled => {}
        ended if ended.is_ended() => {
            return Err(ScanError::InvalidState(format!(
                "the scan is {ended}: a scan that has ended cannot be cancelled"
            )));
        }
        _ => store::cancel_scan(&mut tx, tenant, id, context.now).await?,
    }
    let response = submit::reload(&mut tx, tenant, id).await?;
    tx.commit().await?;
    Ok(response)
}

/// Cancels a scan that only its caller could resume, because its budget is spent or its key has
/// expired; in the transaction that starts its successor. A scan that runs again is left unchanged.
pub(crate) async fn cancel_if_stuck(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
    now: Timestamp,
) -> sqlx::Result<()> {
    // A submission follows in this transaction, and its lock comes before the lane's.
    store::lock_submissions(conn, tenant).await?;
    let Some(api) = store::api_of(conn, tenant, id).await? else {
        return Ok(());
    };
    store::wake_lane(conn, tenant, api).await?;
    store::lock_open_items(conn, tenant, id).await?;
    let Some(scan) = store::lock_scan(conn, tenant, id).await? else {
        return Ok(());
    };
    if matches!(
        scan.status_reason,
        Some(PauseReason::BudgetSpent | PauseReason::KeyExpired)
    ) {
        store::cancel_scan(conn, tenant, id, now).await?;
    }
    Ok(())
}
