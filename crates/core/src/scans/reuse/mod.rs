//! Items that take an answer for which their caller has already paid, instead of being searched
//! (scans.md, rules 74 to 79).
//!
//! Here: the items of a submit and of a second phase, the preview's count, and the equal searches
//! that wait for a recorded call. Not here: what an item does when it is about to be called
//! (`share_answers` in `migrations/functions/reuse.sql`, as part of its begin).

mod store;

use std::collections::BTreeSet;

use jiff::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::plan::ScanPlan;
use super::searches::Searches;
use crate::contract::Request;
use crate::db;
use crate::ids::{ItemId, ScanId, TenantId};

pub(super) use self::store::{reuse_answers, reused_within_hour};

/// Notes what new items search for, if their scan has a `max_age_seconds`: only then can they take
/// an answer or give theirs to an equal search.
pub(super) async fn insert_searches<'a>(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    items: impl Iterator<Item = (Uuid, &'a Request)>,
) -> sqlx::Result<()> {
    let (ids, searches) = Searches::of(items);
    store::insert_searches(conn, tenant, scan, &ids, &searches).await
}

/// The positions of a plan that would take an answer at `now`, if they were searched; `None` if they
/// may not.
pub(super) async fn reusable_positions(
    conn: &mut PgConnection,
    tenant: TenantId,
    plan: &ScanPlan,
    now: Timestamp,
) -> sqlx::Result<Option<BTreeSet<usize>>> {
    let Some(max_age) = plan.scan_request.max_age_seconds else {
        return Ok(None);
    };
    let (positions, searches) = Searches::of(plan.items.iter().enumerate());
    let found = store::find_reusable(conn, tenant, plan, max_age, &searches, now).await?;
    let position = |nth: i64| positions.get(usize::try_from(nth - 1).ok()?).copied();
    Ok(Some(found.into_iter().filter_map(position).collect()))
}

/// Gives the answers of recorded calls to the equal searches that have not begun.
///
/// If it fails, or the process dies before, the sweeper does it.
///
/// # Errors
/// When the database does not answer, or another transaction locks the lane or an item.
pub async fn settle_shared_searches(
    pool: &PgPool,
    tenant: TenantId,
    api: &str,
    items: &[ItemId],
    now: Timestamp,
) -> sqlx::Result<i64> {
    let mut tx = db::begin(pool).await?;
    db::set_brief_lock_timeout(&mut tx).await?;
    let settled = store::settle_shared_searches(&mut tx, tenant, api, items, now).await?;
    tx.commit().await?;
    Ok(settled)
}
