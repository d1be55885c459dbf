//! The phases of a scan with a strategy: what is searched next, and when it ends.
//!
//! All items are stored at submit. Those that wait for a decision are `deferred`, which counts as
//! not ended, so the scan cannot end in between. Whenever all others have ended, the sweeper makes
//! the next decision in one transaction under the locks of the lane, the items and the scan, so
//! exactly once (docs/decisions/0004 and 0042). The transaction stores the decision with what it was
//! made from; its searches can begin only after that. Not here: which items are searched
//! (`planner`), what a decision sees (`view`), searching (`queue`).

mod rates;
pub(super) mod store;
mod view;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sqlx::PgPool;

use self::store::StoredStrategy;
use self::view::{DecidedItem, Knowledge};
use super::reuse;
use super::store::lock::LockedScan;
use crate::contract::scans::{DecisionReason, ScanStatus};
use crate::db;
use crate::ids::{ScanId, TenantId};
use crate::planner::{Candidate, ChangeRates, ExplainedDecision, PlannerDecision};

pub(super) use self::view::{Asked, Earlier, Question, candidates};

/// The most scans of one query.
const BATCH_SIZE: i64 = 100;

/// Where the next turn goes on: scans that failed, or more decisions than one turn has time for, do
/// not delay those behind them.
#[derive(Debug, Default)]
pub struct DecisionTurn {
    last: Option<(TenantId, ScanId)>,
}

/// Makes decisions that are due, at least one and as many as begin within `max_time`. Returns their
/// number. After the last one that is due, the next turn begins again.
///
/// # Errors
/// When the database does not answer; a later turn makes the rest.
pub async fn decide_due(
    pool: &PgPool,
    turn: &mut DecisionTurn,
    max_time: Duration,
    now: Timestamp,
) -> sqlx::Result<usize> {
    let began = Instant::now();
    let mut decided = 0;
    loop {
        let due = store::find_due(pool, turn.last, BATCH_SIZE).await?;
        for scan in &due {
            turn.last = Some((scan.tenant, scan.scan));
            match decide(pool, scan, now).await {
                Ok(()) => decided += 1,
                Err(error) if db::is_disconnected(&error) => return Err(error),
                Err(error) => {
                    tracing::warn!(scan = %scan.scan, %error, "failed to decide the next phase of a scan; a later turn retries");
                }
            }
            if began.elapsed() >= max_time {
                return Ok(decided);
            }
        }
        if due.is_empty() {
            turn.last = None;
            return Ok(decided);
        }
    }
}

async fn decide(pool: &PgPool, due: &store::DueScan, now: Timestamp) -> sqlx::Result<()> {
    let mut tx = db::begin(pool).await?;
    db::set_brief_lock_timeout(&mut tx).await?;
    let Some(mut lock) = LockedScan::lock(&mut tx, due.tenant, due.scan).await? else {
        return Ok(());
    };
    if let Some(strategy) = store::find_if_due(&mut lock).await? {
        let items = store::items(&mut lock).await?;
        if lock.row.status == ScanStatus::Cancelled || !strategy.is_undecided(&items) {
            store::settle(&mut lock).await?;
        } else {
            decide_locked(&mut lock, &strategy, &items, now).await?;
        }
    }
    tx.commit().await
}

/// Makes, stores and begins the next decision.
async fn decide_locked(
    lock: &mut LockedScan<'_>,
    strategy: &StoredStrategy,
    items: &[DecidedItem],
    now: Timestamp,
) -> sqlx::Result<()> {
    let mut knowledge = Knowledge::of(&store::learned(lock).await?);
    let is_first = strategy.decisions == 0;
    let (mut earlier, mut rates) = (Earlier::default(), strategy.rates.clone());
    if is_first && let Some(question) = &strategy.question {
        (earlier, rates) = store::earlier(lock, question.is_watch(), now).await?;
    }
    let learned = knowledge.learn(earlier, items, strategy.currency());
    let candidates = knowledge.candidates(items, now);
    let searched = candidates
        .iter()
        .filter(|candidate| !candidate.is_unsearched())
        .count();
    let asked = Asked {
        may_search: may_search(lock, searched),
        now,
    };
    let explained = decision(lock, strategy, &rates, &candidates, asked);
    let decision = store::NewDecision {
        number: strategy.decisions + 1,
        explained: &explained,
        candidates: &candidates,
        searched,
        may_search: asked.may_search,
        learned: &learned,
        now,
    };
    store::insert_decision(lock, &decision).await?;
    begin(lock, strategy, items, &explained, now).await
}

/// The next decision. A scan that has ended searches nothing more: its risk is estimated anew after
/// a retry.
fn decision(
    lock: &LockedScan<'_>,
    strategy: &StoredStrategy,
    rates: &ChangeRates,
    candidates: &[Candidate],
    asked: Asked,
) -> ExplainedDecision {
    let Some(question) = &strategy.question else {
        return view::explain(&strategy.phases, candidates);
    };
    if !lock.row.finished {
        return question.explain(strategy.phases, rates, candidates, asked);
    }
    let asked = Asked {
        may_search: Some(0),
        ..asked
    };
    let explained = question.explain(strategy.phases, rates, candidates, asked);
    match explained.reason {
        DecisionReason::LimitReached => ExplainedDecision {
            reason: DecisionReason::Retried,
            ..explained
        },
        _ => explained,
    }
}

/// How many searches `max_requests` allows for the whole scan, if each of those to come takes one
/// request.
fn may_search(lock: &LockedScan<'_>, searched: usize) -> Option<usize> {
    let left = lock.row.max_requests? - lock.row.requests_spent;
    Some(searched + usize::try_from(left).unwrap_or_default())
}

/// Makes the items of a decision claimable, and leaves out the rest where it is the last one.
async fn begin(
    lock: &mut LockedScan<'_>,
    strategy: &StoredStrategy,
    items: &[DecidedItem],
    explained: &ExplainedDecision,
    now: Timestamp,
) -> sqlx::Result<()> {
    let (mut selected, is_last) = match &explained.decision {
        // The second phase is the last decision of two phases.
        PlannerDecision::Search(positions) => (positions.clone(), strategy.question.is_none()),
        PlannerDecision::Stop(_) => (Vec::new(), true),
    };
    // A planner may name only what waits for it.
    selected.retain(|position| {
        items
            .get(*position)
            .is_some_and(|item| item.state.is_deferred())
    });
    let ids: Vec<_> = selected
        .iter()
        .map(|position| items[*position].item_id)
        .collect();
    store::search(lock, &ids).await?;
    if is_last {
        let selected: BTreeSet<_> = selected.into_iter().collect();
        let rest: Vec<_> = items
            .iter()
            .enumerate()
            .filter(|(position, item)| item.state.is_deferred() && !selected.contains(position))
            .map(|(_, item)| item.item_id)
            .collect();
        store::skip(lock, &rest, !ids.is_empty(), explained, now).await?;
    }
    if !ids.is_empty() {
        let (tenant, scan) = (lock.tenant(), lock.id());
        reuse::reuse_answers(lock.conn(), tenant, scan, &ids, now).await?;
    }
    Ok(())
}
