//! Counts how often a question would have been missed: scans that searched everything are played
//! again with what was stored before them (scans.md, rule 50).

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use jiff_sqlx::ToSqlx as _;
use sqlx::{PgConnection, PgPool};

use super::store::{self, DueReplay};
use super::view::{DecidedItem, Learned, candidates};
use super::{DueScan, mark_implausible};
use crate::db;
use crate::ids::{ScanId, TenantId};
use crate::planner::replay;
use crate::scans::plan::{ScanPlan, with_permit};

/// The items of a scan that is worth counting. Fewer are no question, more take too long to play.
const ITEMS: RangeInclusive<usize> = 10..=200;

/// Notes that a new scan is to be played again, if it can be.
pub(in crate::scans) async fn insert_due_replay(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    plan: &ScanPlan,
) -> sqlx::Result<()> {
    if ITEMS.contains(&plan.items.len()) && plan.has_distinct_items() {
        store::insert_due(conn, tenant, scan, plan.lines).await?;
    }
    Ok(())
}

/// Plays an ended scan again, and adds what it counts, once.
pub(super) async fn count_replay(pool: &PgPool, due: &DueScan) -> sqlx::Result<()> {
    let mut tx = db::begin(pool).await?;
    db::set_brief_lock_timeout(&mut tx).await?;
    if let Some(ended) = store::take_due(&mut tx, due).await? {
        let items = store::items(&mut tx, due.tenant, due.scan).await?;
        let is_own = |item: &DecidedItem| item.is_whole() && !item.is_reused;
        if ended.is_completed && items.iter().all(is_own) {
            play_again(&mut tx, due, &ended, &items).await?;
        }
    }
    tx.commit().await
}

async fn play_again(
    conn: &mut PgConnection,
    due: &DueScan,
    ended: &DueReplay,
    items: &[DecidedItem],
) -> sqlx::Result<()> {
    let (tenant, submitted) = (due.tenant, ended.created_at);
    let (positions, searches) = store::searches(conn, tenant, due.scan).await?;
    let found = items.iter().filter_map(|item| item.currency.as_ref());
    let currencies: BTreeSet<_> = searches.currencies.iter().chain(found).collect();
    if currencies.len() > 1 {
        return Ok(());
    }
    let times = vec![Some(submitted.to_sqlx()); positions.len()];
    let answers = store::find_before(conn, tenant, &searches, &times, submitted).await?;
    let mut learned = Learned::default();
    for (position, answer) in positions.into_iter().zip(answers) {
        if let Some((price, at)) = answer {
            learned.add_stored(position, price, at);
        }
    }
    let dates = items.iter().map(DecidedItem::date);
    let before = candidates(dates, ended.lines, &[learned], submitted);
    let mut after = before.clone();
    for (candidate, item) in after.iter_mut().zip(items) {
        candidate.searched = Some(item.best_price);
    }
    mark_implausible(conn, tenant, items, &mut after).await?;
    let found: Vec<_> = after.iter().map(|one| one.searched.flatten()).collect();
    match with_permit(move || replay(&before, &found)).await {
        Ok(Some(replayed)) => store::add_counts(conn, tenant, ended.api, &replayed).await,
        Ok(None) => Ok(()),
        Err(error) => Err(sqlx::Error::Protocol(error.to_string())),
    }
}
