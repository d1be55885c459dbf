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

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sqlx::PgPool;
use uuid::Uuid;

use self::store::StoredQuestion;
use self::view::{DecidedItem, Knowledge};
use super::reuse;
use super::store::implausible::implausible_items;
use super::store::lock::LockedScan;
use crate::contract::scans::{DecisionReason, ScanStatus};
use crate::db;
use crate::ids::{ScanId, TenantId};
use crate::planner::{Known, Misses, SearchDecision, SearchView, SettingChoice};
use crate::scans::plan::{QuestionEnd, QuestionPlan};

pub use self::replays::count_replays;
pub(super) use self::replays::insert_due_replay;
pub(super) use self::view::{Earlier, bound_search, candidates_before};

/// The most scans of one query.
const BATCH_SIZE: i64 = 100;

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

impl DueScan {
    fn ids(&self) -> (Uuid, Uuid) {
        (self.tenant.uuid(), self.scan.uuid())
    }
}

/// Makes decisions that are due, at least one and as many as begin within `max_time`. Returns their
/// number. After the last one that is due, the next turn begins again.
///
/// # Errors
/// When the database does not answer; a later turn makes the rest.
pub async fn decide_due(
    pool: &PgPool,
    turn: &mut Turn,
    max_time: Duration,
    now: Timestamp,
) -> sqlx::Result<usize> {
    let began = Instant::now();
    let mut decided = 0;
    loop {
        let due = store::find_due(pool, turn.last, BATCH_SIZE).await?;
        for scan in &due {
            turn.last = scan.ids();
            match decide(pool, scan, now).await {
                Ok(()) => decided += 1,
                Err(error) if db::is_disconnected(&error) => return Err(error),
                Err(error) => {
                    tracing::warn!(scan = %scan.scan, %error, "failed to decide what a scan searches next; a later turn retries");
                }
            }
            if began.elapsed() >= max_time {
                return Ok(decided);
            }
        }
        if due.is_empty() {
            *turn = Turn::default();
            return Ok(decided);
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
            let items = store::items(&mut lock).await?;
            decide_locked(&mut lock, question, &items, now).await?;
        }
    }
    tx.commit().await
}

/// Makes, stores and begins the next decision.
async fn decide_locked(
    lock: &mut LockedScan<'_>,
    mut question: StoredQuestion,
    items: &[DecidedItem],
    now: Timestamp,
) -> sqlx::Result<()> {
    let mut knowledge = Knowledge::of(&store::learned(lock).await?);
    let is_first = question.decisions == 0;
    let earlier = if is_first {
        store::earlier(lock, question.plan.is_watch(), now).await?
    } else {
        Earlier::default()
    };
    let mut learned = knowledge.learn(earlier, items, &question.plan.currency);
    learned.implausible = mark_implausible(lock, &mut knowledge, items).await?;
    let candidates = knowledge.candidates(items, question.lines, now);
    let view = SearchView {
        candidates: &candidates,
    };
    if is_first {
        question.choice = choose(lock, &question.plan, &view).await?;
        store::set_choice(lock, question.choice).await?;
    }
    let searched = candidates.len() - view.unsearched().count();
    let may_search = may_search(lock, searched);
    let decision = decision(lock, &question, &view, may_search);
    let new = store::NewDecision {
        number: question.decisions + 1,
        decision: &decision,
        candidates: &candidates,
        searched,
        may_search,
        learned: &learned,
        now,
    };
    store::insert_decision(lock, &new).await?;
    begin(lock, items, &decision, now).await
}

/// Marks the found prices that are implausible (history.md, rule 43), the lowest first: those above
/// the first plausible one decide nothing. What was found since may show that prices move together.
async fn mark_implausible(
    lock: &mut LockedScan<'_>,
    knowledge: &mut Knowledge,
    items: &[DecidedItem],
) -> sqlx::Result<BTreeSet<usize>> {
    knowledge.implausible().clear();
    while let Some((position, _)) = knowledge.lowest() {
        let (tenant, item) = (lock.tenant(), items[position].item_id);
        let implausible = implausible_items(lock.conn(), tenant, &[item]).await?;
        if implausible.is_empty() {
            break;
        }
        knowledge.implausible().insert(position);
    }
    Ok(knowledge.implausible().clone())
}

/// The setting of a question, by what was counted of such questions.
async fn choose(
    lock: &mut LockedScan<'_>,
    plan: &QuestionPlan,
    view: &SearchView<'_>,
) -> sqlx::Result<SettingChoice> {
    let (tenant, scan) = (lock.tenant(), lock.id());
    let misses = store::misses_of_scan(lock.conn(), tenant, scan).await?;
    Ok(plan.choose(&misses, view))
}

impl QuestionPlan {
    /// Whether it goes by what is known of earlier runs beside the latest answers.
    pub(super) fn is_watch(&self) -> bool {
        matches!(self.ends, QuestionEnd::Spent { .. })
    }

    /// The setting with the fewest searches whose counted misses are few enough; the usual one of a
    /// watch, which ends by none.
    pub(super) fn choose(&self, misses: &Misses, view: &SearchView<'_>) -> SettingChoice {
        match self.ends {
            QuestionEnd::Answered { max_risk } => misses.choose(Known::of(view), max_risk),
            QuestionEnd::Spent { .. } => SettingChoice::OF_WATCH,
        }
    }
}

/// The next decision. A scan that has ended searches nothing more: its risk is stated anew after a
/// retry.
fn decision(
    lock: &LockedScan<'_>,
    question: &StoredQuestion,
    view: &SearchView<'_>,
    may_search: Option<usize>,
) -> SearchDecision {
    let most = if lock.row.finished {
        Some(0)
    } else {
        may_search
    };
    let items = view.candidates.len();
    let mut decision = bound_search(&question.plan, question.choice, items, most).explain(view);
    if lock.row.finished && decision.reason == DecisionReason::LimitReached {
        decision.reason = DecisionReason::Retried;
    }
    decision
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
