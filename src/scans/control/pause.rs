//! Pausing a scan.

use super::{require_live, store};
use crate::contract::scans::{PauseReason, Scan};
use crate::db;
use crate::ids::ScanId;
use crate::scans::{RequestContext, ScanError, store as scans_store, submit};
use crate::tenants;

/// Pauses a scan until its caller resumes it. No call of it begins after this returns, second
/// attempts included; calls that are on record continue, are billed, and their answers are stored.
/// A scan paused for another reason is paused by its caller from now on.
///
/// # Errors
/// `NotFound`; `InvalidState` when the scan has ended; `Database`.
pub async fn pause(context: RequestContext<'_>, id: ScanId) -> Result<Scan, ScanError> {
    let mut tx = db::begin(context.pool).await?;
    let tenant = tenants::store::find(&mut tx, context.ring, context.key, context.now)
        .await?
        .ok_or(ScanError::NotFound)?;
    let api = scans_store::api_of(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    scans_store::wake_lane(&mut tx, tenant, api).await?;
    scans_store::lock_open_items(&mut tx, tenant, id).await?;
    let scan = scans_store::lock_scan(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    require_live(&scan, "paused")?;
    if scan.status_reason != Some(PauseReason::ByCaller) {
        store::pause(&mut tx, tenant, id).await?;
    }
    let response = submit::reload(&mut tx, tenant, id).await?;
    tx.commit().await?;
    Ok(response)
}
