//! What becomes of a run's alert rules.
//!
//! SEAM(alerts): a run is judged once, after its scan has ended, and the runs of a monitor in their order: `tick` sees to that. The rules
//! themselves are not evaluated yet.

use jiff::Timestamp;
use sqlx::PgConnection;

use super::store::{self, Run};

/// Judges a run under its monitor's lock, in a transaction of its own.
pub(super) async fn judge(conn: &mut PgConnection, run: &Run, now: Timestamp) -> sqlx::Result<()> {
    tracing::debug!(monitor = %run.monitor, slot = %run.slot, scan = %run.scan, "a run has ended");
    store::mark_judged(conn, run, now).await
}
