//! Cancelling a scan.

use jiff::Timestamp;
use sqlx::PgConnection;

use super::store::{self, lock::LockedScan};
use super::submit;
use crate::commands::{CommandError, RequestContext};
use crate::contract::scans::{PauseReason, Scan, ScanStatus};
use crate::ids::{Kind, ScanId, TenantId};

/// Cancels a scan. No call of it begins after this returns. Calls in flight are billed, so their
/// answers are stored; the key is destroyed with the last of them. A cancelled scan is returned
/// unchanged.
///
/// # Errors
/// `NotFound`; `InvalidState` when the scan has ended by itself.
pub async fn cancel(context: RequestContext<'_>, id: ScanId) -> Result<Scan, CommandError> {
    let (mut tx, tenant) = context.begin(Kind::Scan).await?;
    let mut scan = LockedScan::lock(&mut tx, tenant, id)
        .await?
        .ok_or(Kind::Scan)?;
    match scan.row.status {
        ScanStatus::Cancelled => {}
        ended if ended.is_ended() => {
            return Err(CommandError::InvalidState(format!(
                "the scan is {ended}: a scan that has ended cannot be cancelled"
            )));
        }
        _ => store::cancel_scan(&mut scan, context.now).await?,
    }
    let response = submit::reload(&mut tx, tenant, id).await?;
    tx.commit().await?;
    Ok(response)
}

/// Cancels a scan that has not ended, as its key is refused.
pub async fn cancel_refused(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
    now: Timestamp,
) -> sqlx::Result<()> {
    if let Some(mut scan) = LockedScan::lock(conn, tenant, id).await?
        && !scan.row.status.is_ended()
    {
        store::cancel_scan(&mut scan, now).await?;
    }
    Ok(())
}

/// Cancels a scan that only its caller could resume, because its budget is spent or its key has
/// expired; in the transaction that starts its successor. A scan that runs again is left unchanged.
pub async fn cancel_if_stuck(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
    now: Timestamp,
) -> sqlx::Result<()> {
    // A submission follows in this transaction, and its lock comes before the lane's.
    store::lock_submissions(conn, tenant).await?;
    if let Some(mut scan) = LockedScan::lock(conn, tenant, id).await?
        && matches!(
            scan.row.status_reason,
            Some(PauseReason::BudgetSpent | PauseReason::KeyExpired)
        )
    {
        store::cancel_scan(&mut scan, now).await?;
    }
    Ok(())
}
