//! The rest of a scan whose caller was not accepted yet when it was ordered (docs/decisions/0029).
//!
//! Such a scan has its whole `total` from the start, but only its first item is stored. The first answer that shows an acceptance makes
//! the rest: planned again from the scan's own row, as of the day of the order, in one transaction under the scan's lock, so once. An
//! answer that shows nothing of the key (a server error) makes the next item instead, one at a time. The writer of answers begins it; the
//! sweep repeats what a process that died left.

mod store;

use std::ops::Range;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sqlx::PgPool;

use self::store::Due;
pub(super) use self::store::{forget, insert};
use super::plan::Plan;
use super::store::Turns;
use super::submit::{planned, stride};
use super::{ScanError, store as scans_store};
use crate::contract::scans::Priority;
use crate::db;
use crate::ids::TenantId;

/// The most scans of one pass.
const PASS: i64 = 100;

/// Stores what is due of unexpanded scans, of these callers or of all; gives how many scans it was.
///
/// # Errors
/// When the database does not answer; what is left is done by the next pass.
pub async fn expand_due(
    pool: &PgPool,
    of: Option<&[TenantId]>,
    now: Timestamp,
) -> sqlx::Result<usize> {
    let due = store::due(pool, of, PASS).await?;
    for scan in &due {
        let plan = match planned(order(scan), scan.created_at).await {
            Ok(plan) => Some(plan).filter(|plan| plan.items.len() == scan.total),
            Err(ScanError::Faults(_)) => None,
            Err(ScanError::Database(error)) => return Err(error),
            // Only a plan that cannot be made ends a scan.
            Err(error) => {
                tracing::debug!(scan = %scan.id, %error, "a scan was not expanded; the next pass goes on with it");
                continue;
            }
        };
        match expand(pool, scan, plan.as_ref(), now).await {
            Ok(()) => {}
            Err(error) if db::is_cut(&error) => return Err(error),
            // One caller's lane that somebody holds is in nobody else's way.
            Err(error) => {
                tracing::warn!(scan = %scan.id, %error, "a scan was not expanded; the next sweep goes on with it")
            }
        }
    }
    Ok(due.len())
}

/// What of the order decides its items.
fn order(scan: &Due) -> Map<String, Value> {
    let mut order = Map::from_iter([
        ("endpoint".to_owned(), json!(scan.endpoint)),
        ("request".to_owned(), scan.request.clone()),
        ("sweep".to_owned(), scan.sweep.clone()),
    ]);
    order.extend(
        scan.strategy
            .clone()
            .map(|strategy| ("strategy".to_owned(), strategy)),
    );
    order
}

async fn expand(
    pool: &PgPool,
    scan: &Due,
    plan: Option<&Plan>,
    now: Timestamp,
) -> sqlx::Result<()> {
    let mut tx = db::begin(pool).await?;
    db::wait_briefly(&mut tx).await?;
    let start = scans_store::arm_lane(&mut tx, scan.tenant, &scan.api).await?;
    scans_store::lock_open_items(&mut tx, scan.tenant, scan.id).await?;
    let Some(ready) = store::lock_ready(&mut tx, scan).await? else {
        return Ok(());
    };
    match plan {
        Some(plan) => {
            let next = next(plan, ready.stored, ready.accepted);
            let priority = Priority::parse(&ready.priority).unwrap_or(Priority::Interactive);
            let turns = Turns {
                start,
                stride: stride(priority),
            };
            scans_store::insert_items(&mut tx, scan.tenant, scan.id, plan, next.clone(), &turns)
                .await?;
            store::advance(&mut tx, scan, next.end, scan.total).await?;
        }
        // Another version of this program planned it: its items can no longer be known.
        None => {
            tracing::error!(scan = %scan.id, "an unexpanded scan cannot be planned again: it is cancelled");
            scans_store::cancel_scan(&mut tx, scan.tenant, scan.id, now).await?;
        }
    }
    tx.commit().await
}

/// The positions that are stored next: all, or up to the next one that is searched in the first phase.
fn next(plan: &Plan, stored: usize, accepted: bool) -> Range<usize> {
    let all = plan.items.len();
    let is_searched = |position: &usize| {
        plan.two_phase
            .is_none_or(|phases| phases.is_coarse(*position))
    };
    let end = if accepted {
        all
    } else {
        (stored..all)
            .find(is_searched)
            .map_or(all, |position| position + 1)
    };
    stored..end
}
