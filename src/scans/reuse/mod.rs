//! Items that take an answer for which their caller has already paid, instead of being searched
//! (scans.md, rules 74 to 79).
//!
//! Here: the items of a submit and of a second phase, the preview's count, and the equal searches
//! that wait for a recorded call. Not here: what an item does when it is about to be called
//! (`share_answers` in `migrations/functions/reuse.sql`, as part of its begin).

mod store;

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::plan::ScanPlan;
use crate::contract::{Api, Request};
use crate::db;
use crate::history::Subject;
use crate::ids::{ItemId, ScanId, TenantId};

pub(super) use self::store::{reuse_answers, reused_within_hour};

/// Where a search's answers stand in the history, and its body.
#[derive(Debug, Default)]
pub(super) struct Searches {
    pub(super) bodies: Vec<Value>,
    pub(super) series: Vec<Vec<u8>>,
    first_dates: Vec<Date>,
    /// The first date where there is no second.
    last_dates: Vec<Date>,
}

impl Searches {
    /// Those of `requests`, each with a value of its own; a request without a price has none.
    pub(super) fn of<'a, T>(requests: impl Iterator<Item = (T, &'a Request)>) -> (Vec<T>, Self) {
        let (mut of, mut searches) = (Vec::new(), Self::default());
        for (value, request) in requests {
            let Some(subject) = Subject::of(request) else {
                continue;
            };
            of.push(value);
            searches.bodies.push(Value::Object(request.to_body()));
            searches.series.push(subject.series.key.0.to_vec());
            searches.first_dates.push(subject.first_date);
            searches
                .last_dates
                .push(subject.last_date.unwrap_or(subject.first_date));
        }
        (of, searches)
    }
}

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

/// How many searches of a plan would take an answer at `now`; `None` if they may not.
pub(super) async fn count_reusable(
    conn: &mut PgConnection,
    tenant: TenantId,
    plan: &ScanPlan,
    now: Timestamp,
) -> sqlx::Result<Option<u32>> {
    let Some(max_age) = plan.scan_request.max_age_seconds else {
        return Ok(None);
    };
    // The second phase decides only later which of its items are searched.
    let searched = plan.items.iter().enumerate().filter(|(position, _)| {
        plan.two_phase
            .is_none_or(|phases| phases.is_coarse(*position))
    });
    let (_, searches) = Searches::of(searched);
    store::count_reusable(conn, tenant, plan, max_age, &searches, now)
        .await
        .map(Some)
}

/// Gives the answers of recorded calls to the equal searches that have not begun.
///
/// If the process dies before, those that wait are searched after a minute, and find the answer
/// then.
///
/// # Errors
/// When the database does not answer, or another transaction locks the lane or an item.
pub async fn settle_shared_searches(
    pool: &PgPool,
    tenant: TenantId,
    api: Api,
    items: &[ItemId],
    now: Timestamp,
) -> sqlx::Result<i64> {
    let mut tx = db::begin(pool).await?;
    db::set_brief_lock_timeout(&mut tx).await?;
    let settled = store::settle_shared_searches(&mut tx, tenant, api, items, now).await?;
    tx.commit().await?;
    Ok(settled)
}
