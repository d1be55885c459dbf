//! A caller's word over a scan that is there: pause, resume, delete. (`cancel` and `retry` are rooms of their own.)
//!
//! ```text
//!  queued, running ──pause──► paused by_caller ──resume──► queued, running      a pause by the caller outranks every other
//!  paused (budget_spent, key_expired, …) ──resume──► queued, running            with a budget that has room, and the key anew
//!  completed, incomplete, cancelled, the last call recorded ──delete──► gone
//! ```
//!
//! Not here: pauses that the queue makes (`hold_scan`), and what a lane's pause does to its scans (the view `shown_scans`).

pub mod delete;
pub mod pause;
pub mod resume;
mod store;

pub(crate) use store::resume_lane;

use super::ScanError;
use super::store::LockedScan;
use crate::contract::scans::ScanStatus;

/// The status of a scan that has not ended.
fn live(scan: &LockedScan, done: &str) -> Result<ScanStatus, ScanError> {
    let status = ScanStatus::parse(&scan.status).unwrap_or(ScanStatus::Running);
    if status.is_ended() {
        return Err(ScanError::InvalidState(format!(
            "the scan is {status}: what has ended cannot be {done}"
        )));
    }
    Ok(status)
}
