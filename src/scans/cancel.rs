//! Ending a scan by its caller's word.

use jiff::Timestamp;
use sqlx::PgConnection;

use super::{Desk, ScanError, store, submit};
use crate::contract::scans::{PauseReason, Scan, ScanStatus};
use crate::db;
use crate::ids::{ScanId, TenantId};
use crate::tenants;

/// Cancels a scan. When this returns, no call of it begins any more; calls in flight are paid for, so their answers are kept, and the
/// key is destroyed with the last of them. A scan that was cancelled before is given as it is.
///
/// # Errors
/// `NotFound`; `InvalidState` when the scan has ended by itself; `Database`.
pub async fn cancel(desk: Desk<'_>, id: ScanId) -> Result<Scan, ScanError> {
    let mut tx = db::begin(desk.pool).await?;
    let tenant = tenants::store::find(&mut tx, desk.ring, desk.key, desk.now)
        .await?
        .ok_or(ScanError::NotFound)?;
    let api = store::api_of(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    store::arm_lane(&mut tx, tenant, &api).await?;
    store::lock_open_items(&mut tx, tenant, id).await?;
    let scan = store::lock_scan(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    match ScanStatus::parse(&scan.status) {
        Some(ScanStatus::Cancelled) => {}
        Some(ended) if ended.is_ended() => {
            return Err(ScanError::InvalidState(format!(
                "the scan is {ended}: what has ended cannot be cancelled"
            )));
        }
        _ => store::cancel_scan(&mut tx, tenant, id, desk.now).await?,
    }
    let answer = submit::stored(&mut tx, tenant, id).await?;
    tx.commit().await?;
    Ok(answer)
}

/// Cancels a scan that would never go on without its caller, because its budget is spent or its key was held for its longest time; in the
/// transaction of whoever takes its place. One that goes on after all is left alone.
pub(crate) async fn cancel_stuck(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
    now: Timestamp,
) -> sqlx::Result<()> {
    // As for an order, which comes next: orders before lanes.
    store::lock_orders(conn, tenant).await?;
    let Some(api) = store::api_of(conn, tenant, id).await? else {
        return Ok(());
    };
    store::arm_lane(conn, tenant, &api).await?;
    store::lock_open_items(conn, tenant, id).await?;
    let Some(scan) = store::lock_scan(conn, tenant, id).await? else {
        return Ok(());
    };
    let reason = scan.status_reason.as_deref().and_then(PauseReason::parse);
    if matches!(
        reason,
        Some(PauseReason::BudgetSpent | PauseReason::KeyExpired)
    ) {
        store::cancel_scan(conn, tenant, id, now).await?;
    }
    Ok(())
}
