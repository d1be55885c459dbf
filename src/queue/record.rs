//! The one writer of a process: what finished within a few milliseconds is stored in one transaction.
//!
//! One commit for each answer would be a fifth as fast, and would keep the disk busy for nothing (store.md, "Figures to hold"). Not here:
//! what is done while the database is away (`keep`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::{PgConnection, PgPool};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;

use super::Ticket;
use super::finished::Finished;
use super::keep::Keeper;
use super::lanes::{self, LaneNews};
use super::retain;
use super::store::{self, StoredAnswer, StoredOffer, StoredOutcome, UnknownCall};
use crate::db;
use crate::history::{self, Observation};
use crate::ids::{ItemId, TenantId};
use crate::measure;
use crate::scans::expand;
use crate::tenants::acceptance;
use crate::tenants::store::acceptance as directory;

/// The most calls in one transaction.
const LARGEST_BATCH: usize = 100;
/// How long the first call of a batch waits for others.
const COLLECT: Duration = Duration::from_millis(5);

/// Where finished calls are handed in. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Writer(mpsc::Sender<Handed>);

/// A finished call, its place, and who waits until it is kept.
#[derive(Debug)]
pub(super) struct Handed {
    pub(super) finished: Finished,
    pub(super) ticket: Ticket,
    kept: oneshot::Sender<()>,
}

impl Handed {
    /// It is in the database.
    pub(super) fn stored(self) {
        self.ticket.settle();
        // Whoever handed it in may be gone.
        let _ = self.kept.send(());
    }

    /// It is in the spool.
    pub(super) fn parked(self) {
        self.ticket.park();
        let _ = self.kept.send(());
    }
}

impl Writer {
    /// And what is handed in, for [`serve`].
    pub(super) fn new() -> (Self, mpsc::Receiver<Handed>) {
        let (hand, handed) = mpsc::channel(LARGEST_BATCH);
        (Self(hand), handed)
    }

    /// Returns when the call is kept. Until then the ticket keeps its place, or one among what is to be stored, so what waits here is
    /// bounded. If it can never be kept, the dropped ticket ends the claim as lost.
    pub(super) async fn record(&self, finished: Finished, ticket: Ticket) {
        let (kept, done) = oneshot::channel();
        let _waiting = measure::answer_waiting();
        if self
            .0
            .send(Handed {
                finished,
                ticket,
                kept,
            })
            .await
            .is_ok()
        {
            // An error says that it was dropped.
            let _ = done.await;
        }
    }
}

/// Keeps what is handed in, until the keeper's `stop`.
pub(super) async fn serve(mut keeper: Keeper, mut handed: mpsc::Receiver<Handed>) {
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            count = handed.recv_many(&mut batch, LARGEST_BATCH) => if count == 0 { return },
            () = keeper.drain_due() => {
                keeper.drain().await;
                continue;
            }
            () = keeper.health.due() => {
                keeper.health.tell(&keeper.pool).await;
                continue;
            }
            () = keeper.stop.cancelled() => return,
        }
        collect(&mut handed, &mut batch).await;
        for batch in one_of_each_item(std::mem::take(&mut batch), |handed| {
            handed.finished.call.item_id
        }) {
            keeper.keep(batch).await;
        }
    }
}

async fn collect(handed: &mut mpsc::Receiver<Handed>, batch: &mut Vec<Handed>) {
    let full_at = Instant::now() + COLLECT;
    while batch.len() < LARGEST_BATCH {
        let room = LARGEST_BATCH - batch.len();
        tokio::select! {
            count = handed.recv_many(batch, room) => if count == 0 { return },
            () = sleep_until(full_at) => return,
        }
    }
}

/// Two calls of one item, a late one and its successor, are stored one after the other.
pub(super) fn one_of_each_item<T>(calls: Vec<T>, item: impl Fn(&T) -> Uuid) -> Vec<Vec<T>> {
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

/// What a transaction found beside what it stored.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// Calls of which nothing is on record.
    pub(super) unknown: Vec<UnknownCall>,
    /// Callers that a marketplace accepted for the first time.
    pub(super) accepted: Vec<TenantId>,
}

/// Stores calls of different items in one transaction. Stored again, what is on record is left as it is. A month without a partition
/// gets one: an answer may have waited in a spool for longer than anybody thought of.
pub(super) async fn transact(pool: &PgPool, calls: &[&Finished]) -> sqlx::Result<Recorded> {
    match store_all(pool, calls).await {
        Err(error) if lacks_partition(&error) => {
            for finished in calls {
                retain::make_for(pool, finished.call.ended_at).await?;
            }
            store_all(pool, calls).await
        }
        stored => stored,
    }
}

/// Whether a row found no partition to be in: a check that has no name.
fn lacks_partition(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    error.is_some_and(|error| {
        error.code().is_some_and(|code| code == "23514") && error.constraint().is_none()
    })
}

async fn store_all(pool: &PgPool, calls: &[&Finished]) -> sqlx::Result<Recorded> {
    let mut tx = db::begin(pool).await?;
    let rows: Vec<_> = calls.iter().map(|finished| &finished.call).collect();
    let recorded: HashMap<_, _> = store::record_calls(&mut tx, &rows, Timestamp::now())
        .await?
        .into_iter()
        .collect();
    let unknown = if recorded.len() < calls.len() {
        store::unknown_calls(&mut tx, &rows).await?
    } else {
        Vec::new()
    };
    let number = |finished: &Finished| recorded.get(&ItemId::from(finished.call.item_id)).copied();
    let fresh: Vec<_> = calls
        .iter()
        .filter_map(|finished| Some((finished, number(finished)?)))
        .collect();
    let answers: Vec<_> = fresh
        .iter()
        .filter_map(|(finished, number)| {
            let call = &finished.call;
            Some(StoredAnswer {
                tenant: TenantId::from(call.tenant_id),
                item: ItemId::from(call.item_id),
                number: *number,
                observed_at: call.ended_at,
                body: finished.answer.as_deref()?,
            })
        })
        .collect();
    if !answers.is_empty() {
        store::insert_answers(&mut tx, &answers).await?;
    }
    let outcomes: Vec<_> = fresh
        .iter()
        .filter_map(|(finished, number)| {
            let (call, outcome) = (&finished.call, finished.kept.as_deref()?);
            Some(StoredOutcome {
                tenant: call.tenant_id.into(),
                item: call.item_id.into(),
                number: *number,
                outcome,
            })
        })
        .collect();
    if !outcomes.is_empty() {
        store::insert_outcomes(&mut tx, &outcomes).await?;
    }
    let offers: Vec<_> = fresh
        .iter()
        .filter_map(|(finished, _)| {
            let call = &finished.call;
            let (tenant, item) = (TenantId::from(call.tenant_id), ItemId::from(call.item_id));
            Some(StoredOffer {
                tenant,
                item,
                ended_at: call.ended_at,
                offer: finished.best.as_ref()?,
            })
        })
        .collect();
    if !offers.is_empty() {
        store::insert_offers(&mut tx, &offers).await?;
    }
    let observation = |(finished, number): &(&&Finished, i32)| {
        Some(Observation {
            number: *number,
            ..finished.observation.clone()?
        })
    };
    let observations: Vec<_> = fresh.iter().filter_map(observation).collect();
    history::record(&mut tx, &observations).await?;
    let accepted = record_acceptance(&mut tx, calls).await?;
    tx.commit().await?;
    Ok(Recorded { unknown, accepted })
}

/// What the answers say of their callers' keys. Gives the callers that were not accepted before.
async fn record_acceptance(
    conn: &mut PgConnection,
    calls: &[&Finished],
) -> sqlx::Result<Vec<TenantId>> {
    let of = |shows: fn(u16) -> bool| {
        let shown = calls
            .iter()
            .filter(|finished| finished.call.http_status.is_some_and(shows));
        shown
            .map(|finished| TenantId::from(finished.call.tenant_id))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    };
    let (accepted, refused) = (
        of(acceptance::shows_acceptance),
        of(acceptance::shows_refusal),
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

/// Stores the rest of the scans of callers that are accepted now, in a task of its own: other answers do not wait for it. What it cannot
/// do the sweep does.
pub(super) fn expand_scans(pool: &PgPool, accepted: Vec<TenantId>, wake: &Arc<Notify>) {
    if accepted.is_empty() {
        return;
    }
    let (pool, wake) = (pool.clone(), Arc::clone(wake));
    tokio::spawn(async move {
        match expand::expand_due(&pool, Some(&accepted), Timestamp::now()).await {
            Ok(_) => wake.notify_one(),
            Err(error) => {
                tracing::debug!(%error, "scans of accepted callers were not expanded; the sweep does it")
            }
        }
    });
}

/// In a transaction of its own, after the commit: recording takes no lane's lock. If it is not told, a full lane looks by itself within a
/// second, and the next answer brings the quota again.
pub(super) async fn tell_lanes(pool: &PgPool, calls: &[&Finished], wake: &Notify) {
    let ended = calls.iter().map(|finished| {
        LaneNews::answered(
            TenantId::from(finished.call.tenant_id),
            finished.lane,
            finished.plan,
        )
    });
    match timeout(
        super::retry::MOVE_TIMEOUT,
        lanes::tell(pool, &lanes::by_lane(ended)),
    )
    .await
    {
        Ok(Ok(freed)) if freed > 0 => wake.notify_one(),
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "lanes were not told"),
        Err(_) => tracing::debug!("lanes were not told in time"),
    }
}
