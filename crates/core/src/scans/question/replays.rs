//! Counts how often a question would have been missed: scans that searched everything are played
//! again with what was stored before them (scans.md, rule 84).

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use jiff::civil::Date;
use rust_decimal::Decimal;
use serde_json::{Map, json};
use sqlx::{PgConnection, PgPool};

use super::store::{self, EndedScan};
use super::view::{batch, candidates_before};
use super::{DueScan, Turn};
use crate::commands::CommandError;
use crate::db;
use crate::ids::{ScanId, TenantId};
use crate::planner::replay;
use crate::scans::plan::{ScanPlan, plan_blocking, with_permit};
use crate::scans::searches::Searches;
use crate::scans::store::implausible::implausible_items;

/// The items of a scan that is worth counting. Fewer are no question, more take too long to play.
const ITEMS: RangeInclusive<usize> = 10..=200;
/// The most scans of one pass.
const BATCH_SIZE: i64 = 20;

/// Notes that a new scan is to be played again, if it can be.
pub(in crate::scans) async fn insert_due_replay(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    plan: &ScanPlan,
) -> sqlx::Result<()> {
    if ITEMS.contains(&plan.items.len()) && plan.has_distinct_items() {
        store::insert_due(conn, tenant, scan).await?;
    }
    Ok(())
}

/// Plays ended scans again, at most twenty, and adds what each counts, once. Returns their number.
///
/// # Errors
/// When the database does not answer; a later turn counts the rest.
pub async fn count_replays(pool: &PgPool, turn: &mut Turn) -> sqlx::Result<usize> {
    let due = store::find_due_replays(pool, turn.last, BATCH_SIZE).await?;
    let is_last = due.len() < usize::try_from(BATCH_SIZE).unwrap_or_default();
    for scan in &due {
        turn.last = scan.ids();
        match count_replay(pool, scan).await {
            Ok(()) => {}
            Err(error) if db::is_disconnected(&error) => return Err(error),
            Err(error) => {
                tracing::warn!(scan = %scan.scan, %error, "failed to play a scan again; a later turn retries");
            }
        }
    }
    if is_last {
        *turn = Turn::default();
    }
    Ok(due.len())
}

async fn count_replay(pool: &PgPool, due: &DueScan) -> sqlx::Result<()> {
    let mut tx = db::begin(pool).await?;
    db::set_brief_lock_timeout(&mut tx).await?;
    let Some(ended) = store::take_due(&mut tx, due).await? else {
        return Ok(());
    };
    match planned(&ended).await {
        Ok(Some(plan)) => play_again(&mut tx, due, &ended, plan).await?,
        // It was not searched as a whole, or another version of this program planned it.
        Ok(None) | Err(CommandError::ValidationErrors(_)) => {}
        Err(CommandError::Database(error)) => return Err(error),
        // Too much is planned now.
        Err(_) => return Ok(()),
    }
    tx.commit().await
}

/// The plan of a scan whose items were all searched, as of the day of its submit.
async fn planned(ended: &EndedScan) -> Result<Option<ScanPlan>, CommandError> {
    let body = Map::from_iter([
        ("endpoint".to_owned(), json!(ended.endpoint)),
        ("request".to_owned(), ended.request.clone()),
        ("sweep".to_owned(), ended.sweep.clone()),
    ]);
    let plan = plan_blocking(body, ended.created_at).await?;
    let is_whole = plan.items.len() == ended.found.len()
        && ended
            .found
            .iter()
            .map(|item| item.position)
            .eq(0..plan.items.len());
    Ok(Some(plan).filter(|_| is_whole))
}

async fn play_again(
    conn: &mut PgConnection,
    due: &DueScan,
    ended: &EndedScan,
    plan: ScanPlan,
) -> sqlx::Result<()> {
    let (positions, searches) = Searches::of(plan.items.iter().enumerate());
    let before = ended.created_at;
    let earlier = store::find_before(conn, due.tenant, &positions, &searches, before).await?;
    let dates = plan
        .items
        .iter()
        .map(|item| item.first_date().unwrap_or(Date::MAX));
    let candidates = candidates_before(dates, plan.lines, &earlier, before);
    let Some(found) = plausible_prices(conn, due.tenant, ended, searches.currencies).await? else {
        return Ok(());
    };
    let replayed = with_permit(move || replay(&candidates, &found, batch(candidates.len()))).await;
    match replayed {
        Ok(Some(replayed)) => {
            let api = ended.endpoint.api();
            store::add_counts(conn, due.tenant, api, &replayed).await
        }
        Ok(None) => Ok(()),
        Err(error) => Err(sqlx::Error::Protocol(error.to_string())),
    }
}

/// What each search has found, without the implausible prices below the lowest plausible one; `None`
/// if prices are in other currencies than those asked for, `currencies`, or these are several.
async fn plausible_prices(
    conn: &mut PgConnection,
    tenant: TenantId,
    ended: &EndedScan,
    mut currencies: BTreeSet<String>,
) -> sqlx::Result<Option<Vec<Option<Decimal>>>> {
    let answered = ended.found.iter();
    currencies.extend(answered.filter_map(|item| item.currency.clone()));
    if currencies.len() > 1 {
        return Ok(None);
    }
    let mut found: Vec<_> = ended.found.iter().map(|item| item.price).collect();
    loop {
        let prices = found.iter().enumerate();
        let lowest = prices.filter_map(|(at, price)| Some(((*price)?, at))).min();
        let Some((_, at)) = lowest else {
            return Ok(Some(found));
        };
        let implausible = implausible_items(conn, tenant, &[ended.found[at].item]).await?;
        if implausible.is_empty() {
            return Ok(Some(found));
        }
        found[at] = None;
    }
}
