//! Commands on a stored scan: pause, resume, delete. (`cancel` and `retry` are modules of their
//! own.)
//!
//! ```text
//!  queued, running ──pause──► paused by_caller ──resume──► queued, running      replaces any other pause reason
//!  paused (budget_spent, key_expired, …) ──resume──► queued, running            needs a sufficient budget; seals the key again
//!  completed, incomplete, cancelled, the last call recorded ──delete──► deleted
//! ```
//!
//! Not here: pauses by the queue (`pause_scan`), and how a lane's pause shows in its scans (the
//! view `shown_scans`).

pub mod delete;
pub mod pause;
pub mod resume;
mod store;

pub use store::resume_lane;

use super::store::lock::LockedScanRow;
use crate::commands::CommandError;
use crate::contract::scans::ScanStatus;

/// The status of a scan, which must not have ended.
fn require_live(scan: &LockedScanRow, done: &str) -> Result<ScanStatus, CommandError> {
    let status = scan.status;
    if status.is_ended() {
        return Err(CommandError::InvalidState(format!(
            "the scan is {status}: a scan that has ended cannot be {done}"
        )));
    }
    Ok(status)
}
