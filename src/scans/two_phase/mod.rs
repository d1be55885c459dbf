//! A scan in two phases: first every n-th date of its range, then the dates next to the cheapest.
//!
//! All items are stored at submit; those outside the first phase are `deferred`, which counts as
//! not ended, so the scan cannot end in between. The sweeper starts the second phase
//! (docs/decisions/0004) in one transaction under the locks of the lane, the items and the scan, so
//! exactly once. Not here: which items belong to which phase (`planner`), searching (`queue`).

pub(super) mod store;

use sqlx::PgPool;

use super::reuse;
use super::store::lock::LockedScan;
use crate::db;

/// The most scans of one query, and the most queries of one pass.
const BATCH_SIZE: i64 = 100;
const MAX_BATCHES: usize = 10;

/// Starts the second phase of scans whose first phase has ended. Returns their number.
///
/// # Errors
/// When the database does not answer; the next pass starts the rest.
pub async fn start_due_second_phases(pool: &PgPool, now: jiff::Timestamp) -> sqlx::Result<usize> {
    let mut started = 0;
    let mut last = None;
    for _ in 0..MAX_BATCHES {
        let due = store::find_due(pool, last, BATCH_SIZE).await?;
        for scan in &due {
            match start_second_phase(pool, scan, now).await {
                Ok(()) => started += 1,
                Err(error) if db::is_disconnected(&error) => return Err(error),
                Err(error) => {
                    tracing::warn!(scan = %scan.scan, %error, "failed to start a second phase; retrying in the next pass");
                }
            }
        }
        // Scans that failed do not block the next batch.
        last = due.last().map(|scan| (scan.tenant, scan.scan));
        if last.is_none() {
            break;
        }
    }
    Ok(started)
}

async fn start_second_phase(
    pool: &PgPool,
    scan: &store::DueTwoPhaseScan,
    now: jiff::Timestamp,
) -> sqlx::Result<()> {
    let mut tx = db::begin(pool).await?;
    db::set_brief_lock_timeout(&mut tx).await?;
    let Some(mut lock) = LockedScan::lock(&mut tx, scan.tenant, scan.scan).await? else {
        return Ok(());
    };
    let deferred = store::deferred_items(&mut lock).await?;
    match store::find_if_due(&mut lock).await? {
        None => {}
        Some(_) if deferred.is_empty() => store::clear_deferred(&mut lock).await?,
        Some(phases) => {
            let positions: Vec<_> = deferred.iter().map(|(_, position)| *position).collect();
            let selected = phases.second_phase(&store::prices(&mut lock).await?, &positions);
            let (selected, skipped): (Vec<_>, Vec<_>) = deferred
                .into_iter()
                .partition(|(_, position)| selected.contains(position));
            store::start_second_phase(&mut lock, &selected, &skipped, now).await?;
            let ids: Vec<_> = selected.iter().map(|(id, _)| *id).collect();
            reuse::reuse_answers(lock.conn(), scan.tenant, scan.scan, &ids, now).await?;
        }
    }
    tx.commit().await
}
