//! Pausing a scan.

use super::{require_live, store};
use crate::commands::{CommandError, RequestContext};
use crate::contract::scans::{PauseReason, Scan};
use crate::ids::{Kind, ScanId};
use crate::scans::store::lock::LockedScan;
use crate::scans::submit;

/// Pauses a scan until its caller resumes it. No call of it begins after this returns, second
/// attempts included; calls that are on record continue, are billed, and their answers are stored.
/// A scan paused for another reason is paused by its caller from now on.
///
/// # Errors
/// `NotFound`; `InvalidState` when the scan has ended.
pub async fn pause(context: RequestContext<'_>, id: ScanId) -> Result<Scan, CommandError> {
    let (mut tx, tenant) = context.begin(Kind::Scan).await?;
    let mut scan = LockedScan::lock(&mut tx, tenant, id)
        .await?
        .ok_or(Kind::Scan)?;
    require_live(&scan.row, "paused")?;
    if scan.row.status_reason != Some(PauseReason::ByCaller) {
        store::pause(&mut scan).await?;
    }
    let response = submit::reload(&mut tx, tenant, id).await?;
    tx.commit().await?;
    Ok(response)
}
