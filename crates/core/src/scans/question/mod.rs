//! The question of a scan: what is searched next, and when it ends.
//!
//! All items are stored at submit. Those that wait for a decision are `deferred`, which counts as
//! not ended, so the scan cannot end in between. Whenever all others have ended, the sweeper makes
//! the next decision in one transaction under the locks of the lane, the items and the scan, so
//! exactly once (docs/decisions/0004 and 0042). The transaction stores the decision with what it was
//! made from; its searches can begin only after that. Not here: which items are searched
//! (`planner`), what a decision sees (`view`), counting how often answers were wrong (`replays`),
//! searching (`queue`).

mod replays;
pub(super) mod store;
mod view;

use std::time::{Duration, Instant};

use jiff::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use self::store::{DecidedFrom, StoredQuestion};
use self::view::{DecidedItem, learn};
use super::reuse;
use super::store::implausible::implausible_items;
use super::store::lock::LockedScan;
use crate::contract::scans::{DecisionReason, ScanStatus};
use crate::db;
use crate::ids::{ScanId, TenantId};
use crate::planner::{
    BoundSearch, Candidate, Ends, Known, SearchDecision, SearchPlanner as _, best_found, unsearched,
};
use crate::scans::plan::{QuestionEnd, QuestionPlan};

pub(super) use self::replays::insert_due_replay;
pub(super) use self::view::{Learned, candidates};

/// The most scans of one query.
const BATCH_SIZE: i64 = 100;

/// What is due for scans with a question, and for those that were one.
#[derive(Debug, Clone, Copy)]
pub enum DueWork {
    /// What is searched next.
    Decisions,
    /// Counting how often a question would have been missed.
    Replays,
}

/// Where the next turn goes on: scans that failed, or more than one turn has time for, do not delay
/// those behind them.
#[derive(Debug, Default)]
pub struct Turn {
    /// Tenant and scan; nil at the beginning.
    last: (Uuid, Uuid),
}

/// A scan that something is due for.
pub(super) struct DueScan {
    pub(super) tenant: TenantId,
    pub(super) scan: ScanId,
}

/// Does what is due, at least for one scan and for as many as begin within `max_time`. Returns their
/// number. After the last one that is due, the next turn begins again.
///
/// # Errors
/// When the database does not answer; a later turn does the rest.
pub async fn do_due(
    pool: &PgPool,
    work: DueWork,
    turn: &mut Turn,
    max_time: Duration,
    now: Timestamp,
) -> sqlx::Result<usize> {
    let began = Instant::now();
    let mut done = 0;
    loop {
        let due = match work {
            DueWork::Decisions => store::find_due(pool, turn.last, BATCH_SIZE).await?,
            DueWork::Replays => store::find_due_replays(pool, turn.last, BATCH_SIZE).await?,
        };
        for scan in &due {
            turn.last = (scan.tenant.uuid(), scan.scan.uuid());
            let result = match work {
                DueWork::Decisions => decide(pool, scan, now).await,
                DueWork::Replays => replays::count_replay(pool, scan).await,
            };
            match result {
                Ok(()) => done += 1,
                Err(error) if db::is_disconnected(&error) => return Err(error),
                Err(error) => {
                    tracing::warn!(scan = %scan.scan, ?work, %error, "failed to do what is due for a scan; a later turn retries");
                }
            }
            if began.elapsed() >= max_time {
                return Ok(done);
            }
        }
        if due.is_empty() {
            *turn = Turn::default();
            return Ok(done);
        }
    }
}

async fn decide(pool: &PgPool, due: &DueScan, now: Timestamp) -> sqlx::Result<()> {
    let mut tx = db::begin(pool).await?;
    db::set_brief_lock_timeout(&mut tx).await?;
    let Some(mut lock) = LockedScan::lock(&mut tx, due.tenant, due.scan).await? else {
        return Ok(());
    };
    if let Some(question) = store::find_if_due(&mut lock).await? {
        if lock.row.status == ScanStatus::Cancelled {
            store::settle(&mut lock).await?;
        } else {
            decide_locked(&mut lock, &question, now).await?;
        }
    }
    tx.commit().await
}

/// Makes, stores and begins the next decision.
async fn decide_locked(
    lock: &mut LockedScan<'_>,
    question: &StoredQuestion,
    now: Timestamp,
) -> sqlx::Result<()> {
    let (tenant, scan) = (lock.tenant(), lock.id());
    let items = store::items(lock.conn(), tenant, scan).await?;
    let mut decisions = store::learned(lock).await?;
    let earlier = if decisions.is_empty() {
        let (positions, searches) = store::searches(lock.conn(), tenant, scan).await?;
        let watches_at = question.plan.is_watch().then_some(now);
        let searches = (&positions[..], &searches);
        store::find_earlier(lock.conn(), tenant, searches, Some(scan), watches_at).await?
    } else {
        Learned::default()
    };
    decisions.push(earlier);
    let dates = items.iter().map(DecidedItem::date);
    let mut candidates = candidates(dates, question.lines, &decisions, now);
    learn(
        &mut candidates,
        &items,
        &question.plan.currency,
        &mut decisions,
    );
    let implausible = mark_implausible(lock.conn(), tenant, &items, &mut candidates).await?;
    let may_search = may_search(lock, candidates.len() - unsearched(&candidates).count());
    let search = BoundSearch {
        wanted: question.plan.wanted,
        ends: ends(lock, question, &candidates).await?,
        // A scan that has ended searches nothing more: its risk is stated anew after a retry.
        most: if lock.row.finished {
            0
        } else {
            may_search.unwrap_or(usize::MAX)
        },
    };
    let mut decision = search.decide(&candidates);
    if lock.row.finished && decision.reason == DecisionReason::LimitReached {
        decision.reason = DecisionReason::Retried;
    }
    let from = DecidedFrom {
        decisions: &decisions,
        now,
        implausible: &implausible,
        candidates: &candidates,
        may_search,
    };
    store::insert_decision(lock, &decision, &from).await?;
    begin(lock, &items, &decision, now).await
}

/// Marks the found prices that are implausible (history.md, rule 43), the lowest first: those above
/// the first plausible one decide nothing. What was found since may show that prices move together.
/// Returns their positions.
async fn mark_implausible(
    conn: &mut PgConnection,
    tenant: TenantId,
    items: &[DecidedItem],
    candidates: &mut [Candidate],
) -> sqlx::Result<Vec<i32>> {
    let mut implausible = Vec::new();
    while let Some((at, _)) = best_found(candidates) {
        let of_item = implausible_items(&mut *conn, tenant, &[items[at].item_id]).await?;
        if of_item.is_empty() {
            break;
        }
        (candidates[at].searched, candidates[at].unanswered) = (None, true);
        implausible.push(store::number(at));
    }
    Ok(implausible)
}

/// Where the question ends. The first decision chooses its setting by what was counted of such
/// questions.
async fn ends(
    lock: &mut LockedScan<'_>,
    question: &StoredQuestion,
    candidates: &[Candidate],
) -> sqlx::Result<Ends> {
    let tenant = lock.tenant();
    Ok(match (question.plan.ends, question.choice) {
        (QuestionEnd::Spent { budget }, _) => Ends::Spent { budget },
        (QuestionEnd::Answered { .. }, Some(choice)) => Ends::Answered(choice),
        (QuestionEnd::Answered { max_risk }, None) => {
            let misses = store::misses(lock.conn(), tenant, question.api).await?;
            let choice = misses.choose(Known::of(candidates), max_risk);
            store::set_choice(lock, choice).await?;
            Ends::Answered(choice)
        }
    })
}

impl QuestionPlan {
    /// Whether it goes by what is known of earlier runs beside the latest answers.
    pub(super) fn is_watch(&self) -> bool {
        matches!(self.ends, QuestionEnd::Spent { .. })
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
    items: &[DecidedItem],
    decision: &SearchDecision,
    now: Timestamp,
) -> sqlx::Result<()> {
    if decision.search.is_empty() {
        let waiting = items.iter().filter(|item| item.state.is_deferred());
        let rest: Vec<_> = waiting.map(|item| item.item_id).collect();
        return store::skip(lock, &rest, decision, now).await;
    }
    // A planner may name only what waits for it.
    let selected = decision
        .search
        .iter()
        .filter_map(|position| items.get(*position))
        .filter(|item| item.state.is_deferred());
    let ids: Vec<_> = selected.map(|item| item.item_id).collect();
    store::search(lock, &ids).await?;
    let (tenant, scan) = (lock.tenant(), lock.id());
    reuse::reuse_answers(lock.conn(), tenant, scan, &ids, now).await?;
    Ok(())
}
