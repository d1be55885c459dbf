//! Writes completed calls, many together while many are in flight: to the database; to the spool while
//! the database is unavailable; and if the spool fails too, they wait in memory and no new call
//! begins.
//!
//! While the database is unavailable every call in flight ends in the spool, and none begins,
//! because beginning a call needs the database.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::circuit::HealthReporter;
use super::claimed_item::CallPermits;
use super::completed_call::CompletedCall;
use super::database_retry::{RetryError, RetryUntil, TRANSACTION_TIMEOUT, retry};
use super::pending_write::PendingWrite;
use super::record::{
    BatchReport, MAX_BATCH_SIZE, MAX_LATE_CALLERS, expand_scans, settle_shared_searches,
    split_by_item, store_batch, update_lanes,
};
use super::spool::{Spool, SpoolChunk, entry};
use super::store::UnrecordedCall;
use crate::contract::Api;
use crate::db;
use crate::ids::{AttemptId, ItemId, TenantId};
use crate::metrics;

/// How long the first call of a batch waits until a quarter of the open calls has ended too. A batch
/// of 10 costs the database twice as much for each call as one of 50; one call alone is stored at
/// once. The next calls do not wait for it: an answered call has given its call permit back.
const BATCH_WINDOW: Duration = Duration::from_millis(20);
/// How long a write is retried before it goes to the spool: most restarts take less.
const SPOOL_AFTER: Duration = Duration::from_secs(2);
/// How often draining is retried while the database is unavailable.
const DRAIN_INTERVAL: Duration = Duration::from_secs(1);
/// How often the files of dead processes are adopted.
const ADOPT_INTERVAL: Duration = Duration::from_secs(10);

/// How long a batch of several callers waits for one lock. After that each caller's calls are stored
/// alone, so that a lock delays only its own caller.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// Payloads whose writes timed out, by caller: the caller's next write would wait for the same
/// lock.
type LateAnswers = HashMap<Uuid, Vec<(&'static str, Vec<u8>)>>;

/// Whether the database is available but the write timed out: a lock or statement timeout.
fn is_timeout(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == io::ErrorKind::TimedOut,
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| matches!(&*code, "55P03" | "57014")),
        _ => false,
    }
}

/// Whether the answers of new calls can be spooled.
#[derive(Debug)]
pub(super) struct SpoolCapacity {
    is_available: AtomicBool,
    /// The answers of earlier processes are stored; after a failover their items may be pending
    /// again.
    is_drained: AtomicBool,
}

impl SpoolCapacity {
    fn new(is_drained: bool) -> Self {
        Self {
            is_available: AtomicBool::new(true),
            is_drained: AtomicBool::new(is_drained),
        }
    }

    pub(super) fn allows_claims(&self) -> bool {
        self.is_available.load(Ordering::Relaxed) && self.is_drained.load(Ordering::Relaxed)
    }

    /// Returns whether this is the first call.
    fn mark_drained(&self) -> bool {
        !self.is_drained.swap(true, Ordering::Relaxed)
    }

    fn set_available(&self, is_available: bool) {
        if self.is_available.swap(is_available, Ordering::Relaxed) != is_available {
            if is_available {
                tracing::info!("spool has capacity again; claims resume");
            } else {
                tracing::error!("spool full; claims pause until answers can be stored");
            }
        }
    }
}

/// Writes the calls that are received, until the writer's `stop`.
pub(super) async fn run(mut writer: ResultWriter, mut pending: mpsc::Receiver<PendingWrite>) {
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            count = pending.recv_many(&mut batch, MAX_BATCH_SIZE) => if count == 0 { return },
            () = writer.drain_due() => {
                writer.drain().await;
                continue;
            }
            () = writer.health.flush_due() => {
                writer.health.flush(&writer.pool).await;
                continue;
            }
            () = writer.stop.cancelled() => return,
        }
        let enough = (writer.permits.open_count() / 4).clamp(1, MAX_BATCH_SIZE);
        collect(&mut pending, &mut batch, enough).await;
        for batch in split_by_item(std::mem::take(&mut batch), |pending| {
            pending.completed.record.item_id
        }) {
            writer.store(batch).await;
        }
    }
}

/// Adds pending writes to a batch until it has `enough` of them, one of them may stop its lane, or
/// the window ends.
async fn collect(
    pending: &mut mpsc::Receiver<PendingWrite>,
    batch: &mut Vec<PendingWrite>,
    enough: usize,
) {
    let full_at = Instant::now() + BATCH_WINDOW;
    while batch.len() < enough
        && !batch
            .iter()
            .any(|pending| pending.completed.record.locks_lane())
    {
        let free = MAX_BATCH_SIZE - batch.len();
        tokio::select! {
            count = pending.recv_many(batch, free) => if count == 0 { return },
            () = sleep_until(full_at) => return,
        }
    }
}

/// The items of the calls that may share their answers, by lane.
fn sharing(batch: &[PendingWrite]) -> BTreeMap<(TenantId, Api), Vec<ItemId>> {
    let mut lanes = BTreeMap::<_, Vec<_>>::new();
    for row in batch.iter().map(|pending| &pending.claimed_item.row) {
        if row.shares {
            let lane = (row.claim.tenant, row.lane);
            lanes.entry(lane).or_default().push(row.claim.item);
        }
    }
    lanes
}

/// Splits calls by caller, in their order.
fn by_caller(batch: Vec<PendingWrite>) -> Vec<Vec<PendingWrite>> {
    let mut callers = Vec::<Vec<PendingWrite>>::new();
    for pending in batch {
        match callers
            .iter_mut()
            .find(|calls| calls[0].caller() == pending.caller())
        {
            Some(calls) => calls.push(pending),
            None => callers.push(vec![pending]),
        }
    }
    callers
}

/// Writes the completed calls of one process.
pub(super) struct ResultWriter {
    pool: PgPool,
    permits: CallPermits,
    wake: Arc<Notify>,
    pub(super) spool_capacity: Arc<SpoolCapacity>,
    health: HealthReporter,
    stop: CancellationToken,
    /// `None`: answers wait in memory while the database is unavailable.
    spool: Option<Arc<Mutex<Spool>>>,
    /// The last write failed: calls go to the spool at once.
    is_database_down: bool,
    /// Callers with an answer that waits for a lock: their next answers wait with it.
    late_callers: HashSet<Uuid>,
    next_drain: Instant,
    next_adoption: Instant,
}

impl ResultWriter {
    pub(super) fn new(
        pool: PgPool,
        permits: CallPermits,
        wake: Arc<Notify>,
        spool: Option<Spool>,
        stop: CancellationToken,
    ) -> Self {
        let (health, spool, now) = (
            HealthReporter::default(),
            spool.map(|spool| Arc::new(Mutex::new(spool))),
            Instant::now(),
        );
        let spool_capacity = Arc::new(SpoolCapacity::new(spool.is_none()));
        Self {
            pool,
            permits,
            wake,
            spool_capacity,
            health,
            stop,
            spool,
            is_database_down: false,
            late_callers: HashSet::new(),
            next_drain: now,
            next_adoption: now,
        }
    }

    /// Writes calls of different items. Returns when they are stored, spooled or rejected, or when
    /// the process stops.
    async fn store(&mut self, mut batch: Vec<PendingWrite>) {
        if self.is_database_down && self.move_to_spool(&mut batch).await {
            return;
        }
        let (late, mut batch): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .partition(|pending| self.late_callers.contains(&pending.caller()));
        self.store_later(late).await;
        while !batch.is_empty() {
            let until = RetryUntil::Deadline(Instant::now() + SPOOL_AFTER);
            let calls: Vec<_> = batch.iter().map(|pending| &pending.completed).collect();
            let pool = &self.pool;
            let write = || async {
                match store_batch(pool, &calls, LOCK_WAIT).await {
                    Err(error) if db::is_locked(&error) => Ok(None),
                    stored => stored.map(Some),
                }
            };
            let begun_at = Instant::now();
            match retry("record", &until, write).await {
                Ok(Some(report)) => {
                    metrics::batch_finished("record", calls.len(), begun_at.elapsed());
                    return self.finish_stored(batch, report).await;
                }
                Ok(None) => return self.store_by_caller(batch).await,
                // One call that the database rejects must not fail the others.
                Err(RetryError::Permanent(_)) if batch.len() > 1 => {
                    for pending in batch {
                        Box::pin(self.store(vec![pending])).await;
                    }
                    return;
                }
                Err(RetryError::Permanent(error)) => {
                    for pending in batch {
                        self.drop_refused(
                            &pending.completed,
                            entry::write(&pending.completed, &pending.claimed_item.row),
                            &error,
                        )
                        .await;
                    }
                    return;
                }
                Err(RetryError::Stopped)
                    if self.move_to_spool(&mut batch).await || self.stop.is_cancelled() =>
                {
                    return;
                }
                Err(RetryError::Stopped) if self.spool.is_none() => {
                    return batch
                        .into_iter()
                        .for_each(|pending| self.store_in_background(pending));
                }
                Err(RetryError::Stopped) => {}
            }
        }
    }

    /// Does what follows the commit of a batch.
    async fn finish_stored(&mut self, batch: Vec<PendingWrite>, report: BatchReport) {
        let calls: Vec<_> = batch.iter().map(|pending| &pending.completed).collect();
        expand_scans(&self.pool, report.accepted, &self.wake);
        settle_shared_searches(&self.pool, sharing(&batch), &self.wake);
        for completed in &calls {
            metrics::items_ended(completed.end(), 1);
        }
        update_lanes(&self.pool, &calls, &self.wake).await;
        let healths = calls
            .iter()
            .filter_map(|call| Some((call.lane, call.record.item_id, call.health?)));
        self.health.record(&self.pool, healths).await;
        for call in report.unknown {
            if let Some(pending) = batch
                .iter()
                .find(|pending| pending.completed.record.item_id == call.item)
            {
                self.drop_unknown(call, &pending.completed, || {
                    entry::write(&pending.completed, &pending.claimed_item.row)
                })
                .await;
            }
        }
        batch.into_iter().for_each(PendingWrite::mark_stored);
    }

    /// Stores each caller's calls in a transaction of their own, because one of the batch waits for
    /// a lock. Those that are still locked are stored later; if they are of too many callers, the
    /// database counts as unavailable.
    async fn store_by_caller(&mut self, batch: Vec<PendingWrite>) {
        let (mut late, mut late_callers) = (Vec::new(), 0);
        let mut callers = by_caller(batch).into_iter();
        for batch in callers.by_ref() {
            let calls: Vec<_> = batch.iter().map(|pending| &pending.completed).collect();
            let storing = store_batch(&self.pool, &calls, db::BRIEF_LOCK_WAIT);
            match timeout(TRANSACTION_TIMEOUT, storing).await {
                Ok(Ok(report)) => self.finish_stored(batch, report).await,
                Ok(Err(error)) if db::is_locked(&error) => {
                    late.extend(batch);
                    late_callers += 1;
                    if late_callers > MAX_LATE_CALLERS {
                        break;
                    }
                }
                Ok(Err(_)) | Err(_) => Box::pin(self.store(batch)).await,
            }
        }
        let mut rest: Vec<_> = callers.flatten().collect();
        if late_callers > MAX_LATE_CALLERS {
            rest.splice(..0, late.drain(..));
            self.move_to_spool(&mut rest).await;
            return rest
                .into_iter()
                .for_each(|pending| self.store_in_background(pending));
        }
        self.store_later(late).await;
    }

    /// Moves calls that wait for a lock to the spool, so that only they wait; those that do not fit
    /// are stored in the background. The database does not count as unavailable.
    async fn store_later(&mut self, mut late: Vec<PendingWrite>) {
        if late.is_empty() {
            return;
        }
        tracing::warn!(
            answers = late.len(),
            "answers wait for a locked row; the others are stored"
        );
        let callers: Vec<_> = late.iter().map(PendingWrite::caller).collect();
        let count = self.append_to_spool(&mut late).await;
        if count > 0 {
            self.late_callers.extend(callers.into_iter().take(count));
            self.next_drain = self.next_drain.min(Instant::now() + DRAIN_INTERVAL);
        }
        for pending in late {
            self.store_in_background(pending);
        }
    }

    /// Retries a write in its own task; the storing permits bound the number of tasks. It waits only
    /// briefly for a lock, because it holds a connection meanwhile.
    fn store_in_background(&self, pending: PendingWrite) {
        let (pool, wake, until) = (
            self.pool.clone(),
            self.wake.clone(),
            RetryUntil::Stop(self.stop.clone()),
        );
        tokio::spawn(async move {
            let call = [&pending.completed];
            match retry("record", &until, || {
                store_batch(&pool, &call, db::BRIEF_LOCK_WAIT)
            })
            .await
            {
                Ok(_) => {
                    metrics::items_ended(pending.completed.end(), 1);
                    update_lanes(&pool, &call, &wake).await;
                    pending.mark_stored();
                }
                Err(error) => {
                    tracing::error!(?error, "storing a call failed; it ends as worker_lost");
                }
            }
        });
    }

    /// Moves calls to the spool and frees their permits, because the database is unavailable;
    /// `false`: some calls did not fit.
    async fn move_to_spool(&mut self, batch: &mut Vec<PendingWrite>) -> bool {
        let count = self.append_to_spool(batch).await;
        if count > 0 && !self.is_database_down {
            tracing::warn!("database unavailable; answers go to the spool");
            (self.is_database_down, self.next_drain) = (true, Instant::now() + DRAIN_INTERVAL);
        }
        self.spool.is_some() && batch.is_empty()
    }

    /// Appends calls to the spool and frees their permits; returns how many. Those that do not fit
    /// stay in the batch.
    async fn append_to_spool(&mut self, batch: &mut Vec<PendingWrite>) -> usize {
        if self.spool.is_none() {
            return 0;
        }
        let payloads: Result<Vec<_>, _> = batch
            .iter()
            .map(|pending| entry::write(&pending.completed, &pending.claimed_item.row))
            .collect();
        let appended = match payloads {
            Ok(payloads) => {
                self.with_spool(move |spool| {
                    Ok((spool.append_as_many_as_fit(&payloads), spool.has_capacity()))
                })
                .await
            }
            Err(error) => Err(error.into()),
        };
        let ((count, result), has_capacity) =
            appended.unwrap_or_else(|error| ((0, Err(error)), false));
        batch.drain(..count).for_each(PendingWrite::mark_spooled);
        self.spool_capacity
            .set_available(has_capacity && result.is_ok());
        if let Err(error) = result {
            tracing::error!(%error, calls = batch.len(), "spool write failed; answers wait in memory");
        }
        count
    }

    /// Returns when it is time for [`drain`](Self::drain).
    async fn drain_due(&self) {
        match self.spool {
            Some(_) => sleep_until(self.next_drain).await,
            None => std::future::pending().await,
        }
    }

    /// Stores a chunk of the spool, and adopts spool files of dead processes.
    async fn drain(&mut self) {
        let drained = self.drain_chunk().await;
        self.next_drain = Instant::now()
            + drained.unwrap_or_else(|error| {
                tracing::error!(%error, "spool read failed");
                self.allow_claims();
                ADOPT_INTERVAL
            });
    }

    /// Called when the answers of earlier processes are stored, or when the spool cannot be read.
    fn allow_claims(&self) {
        if self.spool_capacity.mark_drained() {
            self.wake.notify_one();
        }
    }

    /// Returns the wait before the next drain.
    async fn drain_chunk(&mut self) -> io::Result<Duration> {
        if Instant::now() >= self.next_adoption {
            self.next_adoption = Instant::now() + ADOPT_INTERVAL;
            self.with_spool(Spool::adopt).await?;
        }
        let Some(chunk) = self.with_spool(Spool::read).await? else {
            self.allow_claims();
            return Ok(ADOPT_INTERVAL);
        };
        let mut calls = Vec::new();
        for payload in chunk.payloads() {
            match entry::read(payload) {
                Ok(completed) => calls.push((completed.aged(Timestamp::now()), payload.clone())),
                Err(error) => self.quarantine(payload.clone(), &error).await,
            }
        }
        let is_whole = calls.len() == chunk.payloads().len();
        let callers: Vec<_> = calls
            .iter()
            .map(|(completed, _)| completed.record.tenant_id)
            .collect();
        let mut ends: Vec<_> = calls.iter().map(|(completed, _)| completed.end()).collect();
        let mut late = LateAnswers::new();
        for calls in split_by_item(calls, |(completed, _)| completed.record.item_id) {
            if let Err(error) = self.store_or_collect_late(calls, &mut late).await {
                tracing::debug!(%error, "spool drain failed; retrying");
                self.is_database_down = true;
                return Ok(DRAIN_INTERVAL);
            }
        }
        for caller in callers {
            if late.contains_key(&caller) {
                self.late_callers.insert(caller);
            } else {
                self.late_callers.remove(&caller);
            }
        }
        self.is_database_down = false;
        if !late.is_empty() {
            // Claims must not wait for the locks that these answers wait for.
            self.allow_claims();
            let (waiting, late): (Vec<_>, Vec<_>) = late.into_values().flatten().unzip();
            for end in waiting {
                if let Some(at) = ends.iter().position(|stored| *stored == end) {
                    ends.swap_remove(at);
                }
            }
            // Nothing waits behind them: they stay where they are.
            if ends.is_empty() && is_whole && chunk.is_last {
                return Ok(DRAIN_INTERVAL);
            }
            tracing::warn!(
                answers = late.len(),
                "spooled answers timed out; moved to the end of the spool"
            );
            self.with_spool(move |spool| spool.append(&late)).await?;
        }
        self.remove_from_spool(chunk).await?;
        let count = ends.len();
        if count == 0 {
            return Ok(DRAIN_INTERVAL);
        }
        for end in ends {
            metrics::items_ended(end, 1);
        }
        tracing::info!(answers = count, "spooled answers stored");
        self.wake.notify_one();
        Ok(Duration::ZERO)
    }

    /// Removes a chunk that is stored.
    async fn remove_from_spool(&self, chunk: SpoolChunk) -> io::Result<()> {
        let (is_own_empty, has_capacity) = self
            .with_spool(move |spool| Ok((spool.remove_chunk(&chunk)?, spool.has_capacity())))
            .await?;
        if is_own_empty {
            self.permits.clear_spooled();
        }
        self.spool_capacity.set_available(has_capacity);
        Ok(())
    }

    /// Stores calls of different items. If the batch times out, because one call waits for a lock,
    /// it stores them one by one and adds those that time out again to `late`. An error means that
    /// the database is unavailable.
    async fn store_or_collect_late(
        &self,
        calls: Vec<(CompletedCall, Vec<u8>)>,
        late: &mut LateAnswers,
    ) -> sqlx::Result<()> {
        let payloads: Vec<_> = calls
            .iter()
            .map(|(completed, payload)| {
                let answer = (completed.end(), payload.clone());
                (completed.record.tenant_id, answer)
            })
            .collect();
        match self.store_spooled(calls).await {
            Err(error) if is_timeout(&error) => {}
            stored => return stored,
        }
        for (tenant, answer) in payloads {
            if let Some(answers) = late.get_mut(&tenant) {
                answers.push(answer);
                continue;
            }
            // The caller has read this payload before.
            let Ok(completed) = entry::read(&answer.1) else {
                continue;
            };
            match self
                .store_spooled(vec![(completed.aged(Timestamp::now()), answer.1.clone())])
                .await
            {
                Err(error) if is_timeout(&error) && late.len() < MAX_LATE_CALLERS => {
                    late.entry(tenant).or_default().push(answer);
                }
                stored => stored?,
            }
        }
        Ok(())
    }

    /// Stores calls of different items. An error is transient.
    async fn store_spooled(&self, mut calls: Vec<(CompletedCall, Vec<u8>)>) -> sqlx::Result<()> {
        let completed: Vec<_> = calls.iter().map(|(completed, _)| completed).collect();
        let stored = timeout(
            TRANSACTION_TIMEOUT,
            store_batch(&self.pool, &completed, db::BRIEF_LOCK_WAIT),
        )
        .await;
        match stored.unwrap_or_else(|_| Err(sqlx::Error::Io(io::ErrorKind::TimedOut.into()))) {
            Err(error) if db::is_transient(&error) => Err(error),
            Err(_) if calls.len() > 1 => {
                for call in calls {
                    Box::pin(self.store_spooled(vec![call])).await?;
                }
                Ok(())
            }
            Err(error) => {
                if let Some((completed, payload)) = calls.pop() {
                    self.drop_refused(&completed, Ok(payload), &error).await;
                }
                Ok(())
            }
            // The sweeper expands the scans of the accepted callers.
            Ok(BatchReport {
                unknown,
                accepted: _,
            }) => {
                update_lanes(&self.pool, &completed, &self.wake).await;
                for call in unknown {
                    if let Some((completed, payload)) = calls
                        .iter()
                        .find(|(completed, _)| completed.record.item_id == call.item)
                    {
                        self.drop_unknown(call, completed, || Ok(payload.clone()))
                            .await;
                    }
                }
                Ok(())
            }
        }
    }

    /// Handles a call that is not recorded: its rows were lost with a primary, or its scan was
    /// deleted, and then its answer must be deleted too.
    async fn drop_unknown(
        &self,
        call: UnrecordedCall,
        completed: &CompletedCall,
        payload: impl FnOnce() -> serde_json::Result<Vec<u8>>,
    ) {
        let (item, billed) = (ItemId::from(call.item), completed.record.billed);
        let attempt = completed.record.attempt_id.map(AttemptId::from);
        if !call.has_item {
            return tracing::warn!(%item, ?attempt, billed, "answer dropped: its item was deleted, or lost in a failover");
        }
        tracing::error!(%item, ?attempt, billed, "answer not stored: its call is not recorded");
        if let Ok(payload) = payload() {
            self.quarantine(payload, &io::Error::other("the call is not recorded"))
                .await;
        }
    }

    /// Handles a call that the database rejects.
    async fn drop_refused(
        &self,
        completed: &CompletedCall,
        payload: serde_json::Result<Vec<u8>>,
        error: &sqlx::Error,
    ) {
        let item = ItemId::from(completed.record.item_id);
        tracing::error!(%item, %error, "storing a call failed; it ends as worker_lost");
        if let Ok(payload) = payload {
            self.quarantine(payload, error).await;
        }
    }

    async fn quarantine(&self, payload: Vec<u8>, reason: &(dyn std::error::Error + Sync)) {
        if self.spool.is_none() {
            return;
        }
        match self
            .with_spool(move |spool| spool.quarantine(&payload))
            .await
        {
            Ok(file) => {
                tracing::error!(error = %reason, file = %file.display(), "answer quarantined");
            }
            Err(error) => tracing::error!(%error, "quarantining an answer failed"),
        }
    }

    /// Runs blocking work with the spool's files.
    async fn with_spool<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Spool) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let Some(spool) = self.spool.clone() else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        // After a panic the offsets are still right: `SpoolFile` changes them only after its
        // writes.
        let worked = tokio::task::spawn_blocking(move || {
            work(&mut spool.lock().unwrap_or_else(PoisonError::into_inner))
        });
        worked
            .await
            .unwrap_or_else(|panic| Err(io::Error::other(panic)))
    }
}
