//! Storing the rest of a scan whose caller was not accepted yet at submit (docs/decisions/0029).
//!
//! Such a scan has its full `total` from the start, but only its first item is stored. The first
//! answer that proves acceptance stores the rest: it is planned again from the scan's own row, as
//! of the day of the submit, in one transaction under the scan's lock, so exactly once. An answer
//! that says nothing about the key (a server error) stores the next item only. The result writer
//! starts the expansion; the sweeper repeats it after a process has died.

mod store;

use std::ops::Range;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sqlx::PgPool;

use self::store::UnexpandedScan;
pub(super) use self::store::insert;
use super::plan::{MIN_WATCH_REQUESTS, ScanPlan, plan, plan_blocking};
use super::question;
use super::store::{self as scans_store, lock::LockedScan};
use crate::commands::CommandError;
use crate::db;
use crate::ids::TenantId;

/// The most scans of one pass.
const BATCH_SIZE: i64 = 100;

/// Stores the items that are due of unexpanded scans, of these callers or of all. Returns the
/// number of scans.
///
/// # Errors
/// When the database does not answer; the next pass does the rest.
pub async fn expand_due_scans(
    pool: &PgPool,
    of: Option<&[TenantId]>,
    now: Timestamp,
) -> sqlx::Result<usize> {
    let due = store::find_due(pool, of, BATCH_SIZE).await?;
    for scan in &due {
        let plan = match plan_blocking(plan, scan_body(scan), scan.created_at).await {
            Ok(plan) => Some(plan).filter(|plan| plan.items.len() == scan.total),
            Err(CommandError::ValidationErrors(_)) => None,
            Err(CommandError::Database(error)) => return Err(error),
            // Only a request that can no longer be planned ends a scan; this error is temporary.
            Err(error) => {
                tracing::debug!(scan = %scan.id, %error, "failed to plan an unexpanded scan; retrying in the next pass");
                continue;
            }
        };
        match expand(pool, scan, plan.as_ref(), now).await {
            Ok(()) => {}
            Err(error) if db::is_disconnected(&error) => return Err(error),
            // Another process expands it, or records a call of its lane: it must not delay the others.
            Err(error) if db::is_locked(&error) => {
                tracing::debug!(scan = %scan.id, "another transaction has locked a scan to be expanded; the next pass looks again");
            }
            Err(error) => {
                tracing::warn!(scan = %scan.id, %error, "failed to expand a scan; retrying in the next pass");
            }
        }
    }
    Ok(due.len())
}

/// The fields of the scan's request that decide its items.
fn scan_body(scan: &UnexpandedScan) -> Map<String, Value> {
    let mut body = Map::from_iter([
        ("endpoint".to_owned(), json!(scan.endpoint)),
        ("request".to_owned(), scan.request.clone()),
        ("sweep".to_owned(), scan.sweep.clone()),
    ]);
    body.extend(
        scan.strategy
            .clone()
            .map(|strategy| ("strategy".to_owned(), strategy)),
    );
    // A watch cannot be planned without it; its items do not depend on how much it is.
    let is_watch = scan
        .strategy
        .as_ref()
        .is_some_and(|strategy| strategy.get("watch").is_some());
    body.extend(
        scan.max_requests
            .filter(|_| is_watch)
            .map(|max| {
                u32::try_from(max)
                    .unwrap_or_default()
                    .max(MIN_WATCH_REQUESTS)
            })
            .map(|max| ("max_requests".to_owned(), json!(max))),
    );
    body.extend(
        scan.max_age_seconds
            .map(|age| ("max_age_seconds".to_owned(), json!(age))),
    );
    body
}

async fn expand(
    pool: &PgPool,
    scan: &UnexpandedScan,
    plan: Option<&ScanPlan>,
    now: Timestamp,
) -> sqlx::Result<()> {
    let mut tx = db::begin(pool).await?;
    db::set_brief_lock_timeout(&mut tx).await?;
    let Some(mut lock) = LockedScan::lock(&mut tx, scan.tenant, scan.id).await? else {
        return Ok(());
    };
    let Some(ready) = store::find_if_due(&mut lock).await? else {
        return Ok(());
    };
    match plan {
        Some(plan) => {
            let next = next_positions(plan, ready.stored, ready.accepted);
            let sequence = lock.sequence();
            let items = scans_store::NewItems {
                positions: next.clone(),
                accepted: ready.accepted,
            };
            let deferred = scans_store::insert_items(
                lock.conn(),
                scan.tenant,
                scan.id,
                plan,
                items,
                &sequence,
                now,
            )
            .await?;
            question::store::set_deferred(&mut lock, next.len() - deferred).await?;
            store::set_stored(&mut lock, next.end, scan.total).await?;
        }
        // Another version of this program planned it: the remaining items are unknown.
        None => {
            tracing::error!(scan = %scan.id, "an unexpanded scan can no longer be planned; cancelling it");
            scans_store::cancel_scan(&mut lock, now).await?;
        }
    }
    tx.commit().await
}

/// The positions to store next: all, or the next one alone.
fn next_positions(plan: &ScanPlan, stored: usize, accepted: bool) -> Range<usize> {
    let all = plan.items.len();
    stored..if accepted { all } else { all.min(stored + 1) }
}
