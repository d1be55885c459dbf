//! Holding a scan by its caller's word.

use super::{live, store};
use crate::contract::scans::{PauseReason, Scan};
use crate::db;
use crate::ids::ScanId;
use crate::scans::{Desk, ScanError, store as scans_store, submit};
use crate::tenants;

/// Pauses a scan until its caller resumes it. When this returns, no call of it is put on record any more, second tries included; what
/// is on record already runs on, is paid for and kept. A scan that is paused for another reason is the caller's pause from now on.
///
/// # Errors
/// `NotFound`; `InvalidState` when the scan has ended; `Database`.
pub async fn pause(desk: Desk<'_>, id: ScanId) -> Result<Scan, ScanError> {
    let mut tx = db::begin(desk.pool).await?;
    let tenant = tenants::store::find(&mut tx, desk.ring, desk.key, desk.now)
        .await?
        .ok_or(ScanError::NotFound)?;
    let api = scans_store::api_of(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    scans_store::arm_lane(&mut tx, tenant, &api).await?;
    scans_store::lock_open_items(&mut tx, tenant, id).await?;
    let scan = scans_store::lock_scan(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    live(&scan, "paused")?;
    if scan.status_reason.as_deref() != Some(PauseReason::ByCaller.as_str()) {
        store::pause(&mut tx, tenant, id).await?;
    }
    let answer = submit::stored(&mut tx, tenant, id).await?;
    tx.commit().await?;
    Ok(answer)
}
