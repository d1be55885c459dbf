//! Records completed calls: one transaction for a batch.
//!
//! One commit for each answer would be a fifth as fast and cost far more disk writes
//! (storage.md, rule 10). Not here: the task that collects the batches, and what happens while the
//! database is unavailable (`result_writer`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::{PgConnection, PgPool};
use tokio::sync::Notify;
use tokio::time::timeout;
use uuid::Uuid;

use super::completed_call::CompletedCall;
use super::database_retry::TRANSACTION_TIMEOUT;
use super::lanes::{self, LaneUpdate};
use super::store::{self, StoredAnswer, StoredOutcome, UnrecordedCall};
use crate::contract::Api;
use crate::db;
use crate::db::partitions::create_partition_for;
use crate::history::{self, Observation};
use crate::ids::{ItemId, TenantId};
use crate::scans::{after_acceptance, reuse};
use crate::tenants::acceptance;
use crate::tenants::store::acceptance as directory;

/// The most calls in one transaction.
pub(super) const MAX_BATCH_SIZE: usize = 100;
/// The most callers whose locks may be waited for before the database counts as unavailable.
pub(super) const MAX_LATE_CALLERS: usize = 4;

/// Splits calls into batches without two calls of one item: a late call and the next attempt are
/// stored one after the other.
pub(super) fn split_by_item<T>(calls: Vec<T>, item: impl Fn(&T) -> Uuid) -> Vec<Vec<T>> {
    let mut batches = Vec::<Vec<T>>::new();
    for call in calls {
        match batches
            .iter_mut()
            .find(|batch| batch.iter().all(|other| item(other) != item(&call)))
        {
            Some(batch) => batch.push(call),
            None => batches.push(vec![call]),
        }
    }
    batches
}

/// What a batch's transaction found out.
#[derive(Debug, Default)]
pub(super) struct BatchReport {
    /// Calls that are not recorded as begun.
    pub(super) unknown: Vec<UnrecordedCall>,
    /// Callers that the marketplace accepted for the first time.
    pub(super) accepted: Vec<TenantId>,
}

/// Stores calls of different items in one transaction, which waits at most `lock_wait` for each
/// lock. Idempotent. A month without a partition gets one: an answer may have waited in a spool for
/// months.
pub(super) async fn store_batch(
    pool: &PgPool,
    calls: &[&CompletedCall],
    lock_wait: Duration,
) -> sqlx::Result<BatchReport> {
    match store_once(pool, calls, lock_wait).await {
        Err(error) if lacks_partition(&error) => {
            for completed in calls {
                create_partition_for(pool, completed.record.ended_at).await?;
            }
            store_once(pool, calls, lock_wait).await
        }
        stored => stored,
    }
}

/// Whether a row has no partition: a check violation without a constraint name.
fn lacks_partition(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    error.is_some_and(|error| {
        error.code().is_some_and(|code| code == "23514") && error.constraint().is_none()
    })
}

async fn store_once(
    pool: &PgPool,
    calls: &[&CompletedCall],
    lock_wait: Duration,
) -> sqlx::Result<BatchReport> {
    let mut tx = db::begin_with_lock_timeout(pool, lock_wait).await?;
    let report = store_on(&mut tx, calls).await?;
    tx.commit().await?;
    Ok(report)
}

/// [`store_batch`] within a transaction.
pub(super) async fn store_on(
    conn: &mut PgConnection,
    calls: &[&CompletedCall],
) -> sqlx::Result<BatchReport> {
    store_plans_near_end(conn, calls).await?;
    let rows: Vec<_> = calls.iter().map(|completed| &completed.record).collect();
    let open = store::open_calls(conn, &rows).await?;
    let number = |completed: &CompletedCall| open.numbers.get(&completed.record.item_id).copied();
    let recorded_calls: Vec<_> = calls
        .iter()
        .filter_map(|completed| Some((completed, number(completed)?)))
        .collect();
    let answers: Vec<_> = recorded_calls
        .iter()
        .filter_map(|(completed, number)| {
            let call = &completed.record;
            Some(StoredAnswer {
                tenant: TenantId::from(call.tenant_id),
                item: ItemId::from(call.item_id),
                number: *number,
                observed_at: call.ended_at,
                body: completed.answer.as_deref()?,
            })
        })
        .collect();
    if !answers.is_empty() {
        store::insert_answers(conn, &answers).await?;
    }
    let outcomes: Vec<_> = recorded_calls
        .iter()
        .filter_map(|(completed, number)| {
            let (call, outcome) = (&completed.record, completed.stored_outcome.as_deref()?);
            Some(StoredOutcome {
                tenant: call.tenant_id.into(),
                item: call.item_id.into(),
                number: *number,
                outcome,
            })
        })
        .collect();
    if !outcomes.is_empty() {
        store::insert_outcomes(conn, &outcomes).await?;
    }
    let observation = |(completed, number): &(&&CompletedCall, i32)| {
        Some(Observation {
            number: *number,
            ..completed.observation.clone()?
        })
    };
    let observations: Vec<_> = recorded_calls.iter().filter_map(observation).collect();
    history::insert(conn, &observations).await?;
    let with_offers: Vec<_> = calls
        .iter()
        .map(|completed| (&completed.record, completed.best.as_ref()))
        .collect();
    store::record_calls(conn, &with_offers, &open, Timestamp::now()).await?;
    let accepted = record_acceptance(conn, calls).await?;
    Ok(BatchReport {
        unknown: open.unknown,
        accepted,
    })
}

/// Stores what the calls' headers say about plans near their end.
async fn store_plans_near_end(
    conn: &mut PgConnection,
    calls: &[&CompletedCall],
) -> sqlx::Result<()> {
    let updates = updates_by_lane(calls);
    let has_news = updates.iter().any(|update| update.plan.remaining.is_some());
    if !has_news {
        return Ok(());
    }
    lanes::store_plans_near_end(conn, &updates, |update| {
        calls.iter().any(|completed| {
            completed.lane == update.api
                && update.tenant == completed.record.tenant_id.into()
                && completed.record.locks_lane()
        })
    })
    .await
}

/// What the calls say about their lanes.
fn updates_by_lane(calls: &[&CompletedCall]) -> Vec<LaneUpdate> {
    lanes::merge_by_lane(calls.iter().map(|completed| {
        LaneUpdate::answered(
            TenantId::from(completed.record.tenant_id),
            completed.lane,
            completed.plan,
        )
    }))
}

/// Records whether the marketplace accepted the callers' keys. Returns the newly accepted callers.
async fn record_acceptance(
    conn: &mut PgConnection,
    calls: &[&CompletedCall],
) -> sqlx::Result<Vec<TenantId>> {
    let of = |shows: fn(u16) -> bool| {
        let shown = calls
            .iter()
            .filter(|completed| completed.record.http_status.is_some_and(shows));
        shown
            .map(|completed| TenantId::from(completed.record.tenant_id))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    };
    let (accepted, refused) = (
        of(acceptance::means_accepted),
        of(acceptance::means_refused),
    );
    let now = Timestamp::now();
    let accepted = if accepted.is_empty() {
        accepted
    } else {
        directory::record_accepted(conn, &accepted, now).await?
    };
    if !refused.is_empty() {
        directory::record_refused(conn, &refused, now).await?;
    }
    Ok(accepted)
}

/// Expands the scans of callers that are accepted now, in its own task, so that no answer waits for
/// it. The sweeper retries what fails.
pub(super) fn expand_scans(pool: &PgPool, accepted: Vec<TenantId>, wake: &Arc<Notify>) {
    if accepted.is_empty() {
        return;
    }
    let (pool, wake) = (pool.clone(), Arc::clone(wake));
    tokio::spawn(async move {
        match after_acceptance::expand_due_scans(&pool, Some(&accepted), Timestamp::now()).await {
            Ok(_) => wake.notify_one(),
            Err(error) => {
                tracing::debug!(%error, "expanding scans of accepted callers failed; the sweeper retries");
            }
        }
    });
}

/// Gives the answers of calls that may share them to the equal searches that wait, in its own task.
/// The sweeper retries what fails.
pub(super) fn settle_shared_searches(
    pool: &PgPool,
    sharing: BTreeMap<(TenantId, Api), Vec<ItemId>>,
    wake: &Arc<Notify>,
) {
    if sharing.is_empty() {
        return;
    }
    let (pool, wake) = (pool.clone(), Arc::clone(wake));
    tokio::spawn(async move {
        for ((tenant, api), items) in sharing {
            let now = Timestamp::now();
            match reuse::settle_shared_searches(&pool, tenant, api.as_str(), &items, now).await {
                Ok(0) => {}
                Ok(_) => wake.notify_one(),
                Err(error) => {
                    tracing::debug!(%error, "giving an answer to equal searches failed; the sweeper retries");
                }
            }
        }
    });
}

/// Updates the lanes in a transaction after the commit, because recording seldom takes a lane's
/// lock. If it fails, a full lane is polled within a second, and the next answer carries the quota
/// again. So it waits only briefly for a lane that is locked, and then updates the others alone.
pub(super) async fn update_lanes(pool: &PgPool, calls: &[&CompletedCall], wake: &Notify) {
    let updates = updates_by_lane(calls);
    let freed = match update_in_time(pool, &updates).await {
        Err(error) if db::is_locked(&error) && updates.len() > 1 => {
            update_each_lane(pool, &updates).await
        }
        updated => updated,
    };
    match freed {
        Ok(freed) if freed > 0 => wake.notify_one(),
        Ok(_) => {}
        Err(error) => tracing::debug!(%error, "failed to update lanes"),
    }
}

/// Updates lanes one by one; leaves those that are locked, at most [`MAX_LATE_CALLERS`].
async fn update_each_lane(pool: &PgPool, updates: &[LaneUpdate]) -> sqlx::Result<i64> {
    let (mut freed, mut locked) = (0, 0);
    for update in updates {
        match update_in_time(pool, std::slice::from_ref(update)).await {
            Ok(more) => freed += more,
            Err(error) if db::is_locked(&error) && locked < MAX_LATE_CALLERS => locked += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(freed)
}

async fn update_in_time(pool: &PgPool, updates: &[LaneUpdate]) -> sqlx::Result<i64> {
    timeout(TRANSACTION_TIMEOUT, lanes::update_briefly(pool, updates))
        .await
        .unwrap_or_else(|_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))
}
