//! Keeping what finished: in the database; while that is away, in the spool; and if the disk will not have it either, in memory, with
//! no new calls until it goes.
//!
//! A call's place is free again at the latest when its answer is stored or spooled, so while the database is away every call in flight
//! ends in the spool, and none begins, because beginning needs the database.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::circuit::Reporter;
use super::finished::Finished;
use super::record::{Handed, Recorded, expand_scans, one_of_each_item, tell_lanes, transact};
use super::retry::{Failed, MOVE_TIMEOUT, Until, retry};
use super::spool::{Chunk, Spool, entry};
use super::store::UnknownCall;
use super::ticket::Slots;
use crate::db;
use crate::ids::{AttemptId, ItemId};
use crate::measure;

/// How long the database may fail before an answer goes to the spool: a restart is over by then, mostly.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the database is tried while answers wait in the spool.
const RETRY: Duration = Duration::from_secs(1);
/// How often the files of dead processes are looked for.
const LOOK: Duration = Duration::from_secs(10);

/// The most callers whose answers may take too long before the database counts as away.
const MOST_LATE: usize = 4;

/// Answers that the database did not take in time, by caller: the next of his would wait for the same lock.
type Late = HashMap<Uuid, Vec<Vec<u8>>>;

/// Whether the database is there and did not do it in time: a lock that is not given, a limit met.
fn takes_long(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == io::ErrorKind::TimedOut,
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| matches!(&*code, "55P03" | "57014")),
        _ => false,
    }
}

/// Whether there is room for the answers of new calls.
#[derive(Debug)]
pub(super) struct Room {
    is_there: AtomicBool,
    /// What the spool held when the process started is stored: after a failover, its items may be offered again.
    is_drained: AtomicBool,
}

impl Room {
    fn new(is_drained: bool) -> Self {
        Self {
            is_there: AtomicBool::new(true),
            is_drained: AtomicBool::new(is_drained),
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Relaxed) && self.is_drained.load(Ordering::Relaxed)
    }

    /// Gives whether it was not before.
    fn drained(&self) -> bool {
        !self.is_drained.swap(true, Ordering::Relaxed)
    }

    fn set(&self, is_there: bool) {
        if self.is_there.swap(is_there, Ordering::Relaxed) != is_there {
            if is_there {
                tracing::info!("the spool has room again: calls go on");
            } else {
                tracing::error!(
                    "the spool has no room left: no new call begins until answers can be stored"
                );
            }
        }
    }
}

/// Keeps the finished calls of one process.
pub(super) struct Keeper {
    pub(super) pool: PgPool,
    pub(super) slots: Slots,
    pub(super) wake: Arc<Notify>,
    pub(super) room: Arc<Room>,
    pub(super) health: Reporter,
    pub(super) stop: CancellationToken,
    /// None: what the database cannot take waits in memory.
    spool: Option<Arc<Mutex<Spool>>>,
    /// The database failed last: what finishes goes to the spool at once.
    away: bool,
    /// When the spool is looked at next, and when for files of dead processes.
    next_drain: Instant,
    next_look: Instant,
}

impl Keeper {
    pub(super) fn new(
        pool: PgPool,
        slots: Slots,
        wake: Arc<Notify>,
        spool: Option<Spool>,
        stop: CancellationToken,
    ) -> Self {
        let (health, spool, now) = (
            Reporter::default(),
            spool.map(|spool| Arc::new(Mutex::new(spool))),
            Instant::now(),
        );
        let room = Arc::new(Room::new(spool.is_none()));
        Self {
            pool,
            slots,
            wake,
            room,
            health,
            stop,
            spool,
            away: false,
            next_drain: now,
            next_look: now,
        }
    }

    /// Keeps calls of different items. Returns when they are stored or spooled, or refused for good, or when the process ends.
    pub(super) async fn keep(&mut self, mut batch: Vec<Handed>) {
        if self.away && self.park(&mut batch).await {
            return;
        }
        loop {
            let until = Until::Deadline(Instant::now() + PATIENCE);
            let begun_at = Instant::now();
            let calls: Vec<_> = batch.iter().map(|handed| &handed.finished).collect();
            match retry("record", &until, || transact(&self.pool, &calls)).await {
                Ok(Recorded { unknown, accepted }) => {
                    expand_scans(&self.pool, accepted, &self.wake);
                    measure::batch("record", calls.len(), begun_at.elapsed());
                    for finished in &calls {
                        measure::items_ended(finished.end(), 1);
                    }
                    tell_lanes(&self.pool, &calls, &self.wake).await;
                    self.health.saw(&self.pool, &calls).await;
                    for call in unknown {
                        if let Some(handed) = batch
                            .iter()
                            .find(|handed| handed.finished.call.item_id == call.item)
                        {
                            self.unknown(call, &handed.finished, || {
                                entry::write(&handed.finished, &handed.ticket.claimed)
                            })
                            .await;
                        }
                    }
                    return batch.into_iter().for_each(Handed::stored);
                }
                // One call that the database refuses must not take the others with it.
                Err(Failed::Refused(_)) if batch.len() > 1 => {
                    for handed in batch {
                        Box::pin(self.keep(vec![handed])).await;
                    }
                    return;
                }
                Err(Failed::Refused(error)) => {
                    for handed in batch {
                        self.refused(
                            &handed.finished,
                            entry::write(&handed.finished, &handed.ticket.claimed),
                            &error,
                        )
                        .await;
                    }
                    return;
                }
                Err(Failed::Stopped) if self.park(&mut batch).await || self.stop.is_cancelled() => {
                    return;
                }
                // What one of them waits for must not keep the others.
                Err(Failed::Stopped) if self.spool.is_none() => {
                    return batch
                        .into_iter()
                        .for_each(|handed| self.store_by_itself(handed));
                }
                Err(Failed::Stopped) => {}
            }
        }
    }

    /// Stores a call whenever the database takes it, in a task of its own; there are no more of them than calls that may wait.
    fn store_by_itself(&self, handed: Handed) {
        let (pool, wake, until) = (
            self.pool.clone(),
            self.wake.clone(),
            Until::Stop(self.stop.clone()),
        );
        tokio::spawn(async move {
            let call = [&handed.finished];
            match retry("record", &until, || transact(&pool, &call)).await {
                Ok(_) => {
                    measure::items_ended(handed.finished.end(), 1);
                    tell_lanes(&pool, &call, &wake).await;
                    handed.stored();
                }
                Err(error) => tracing::error!(
                    ?error,
                    "a finished call cannot be stored: it will read worker_lost"
                ),
            }
        });
    }

    /// Puts calls into the spool and frees their places; `false`: some are left, which it would not have.
    async fn park(&mut self, batch: &mut Vec<Handed>) -> bool {
        if self.spool.is_none() {
            return false;
        }
        let payloads: Result<Vec<_>, _> = batch
            .iter()
            .map(|handed| entry::write(&handed.finished, &handed.ticket.claimed))
            .collect();
        let parked = match payloads {
            Ok(payloads) => {
                self.on_disk(move |spool| Ok((spool.append_most(&payloads), spool.has_room())))
                    .await
            }
            Err(error) => Err(error.into()),
        };
        let ((count, ended), has_room) = parked.unwrap_or_else(|error| ((0, Err(error)), false));
        batch.drain(..count).for_each(Handed::parked);
        if count > 0 && !self.away {
            tracing::warn!("the database is away: answers are kept in the spool");
            (self.away, self.next_drain) = (true, Instant::now() + RETRY);
        }
        self.room.set(has_room && ended.is_ok());
        if let Err(error) = ended {
            tracing::error!(%error, calls = batch.len(), "answers cannot be spooled: they wait in memory");
        }
        batch.is_empty()
    }

    /// Returns when it is time for [`drain`](Self::drain).
    pub(super) async fn drain_due(&self) {
        match self.spool {
            Some(_) => sleep_until(self.next_drain).await,
            None => std::future::pending().await,
        }
    }

    /// Stores some of what is in the spool, and looks for spools of dead processes.
    pub(super) async fn drain(&mut self) {
        let drained = self.drain_some().await;
        self.next_drain = Instant::now()
            + drained.unwrap_or_else(|error| {
                tracing::error!(%error, "the spool cannot be read");
                self.may_claim();
                LOOK
            });
    }

    /// What the spool held at the start is stored, or nobody can tell.
    fn may_claim(&self) {
        if self.room.drained() {
            self.wake.notify_one();
        }
    }

    /// Gives how long the next look at the spool is of no use.
    async fn drain_some(&mut self) -> io::Result<Duration> {
        if Instant::now() >= self.next_look {
            self.next_look = Instant::now() + LOOK;
            self.on_disk(Spool::adopt).await?;
        }
        let Some(chunk) = self.on_disk(Spool::read).await? else {
            self.may_claim();
            return Ok(LOOK);
        };
        let mut calls = Vec::new();
        for payload in chunk.payloads() {
            match entry::read(payload) {
                Ok(finished) => calls.push((finished.aged(Timestamp::now()), payload.clone())),
                Err(error) => self.set_aside(payload.clone(), &error).await,
            }
        }
        let count = calls.len();
        let ends: Vec<_> = calls.iter().map(|(finished, _)| finished.end()).collect();
        let mut late = Late::new();
        for calls in one_of_each_item(calls, |(finished, _)| finished.call.item_id) {
            if let Err(error) = self.store_in_turn(calls, &mut late).await {
                tracing::debug!(%error, "the spool is not drained yet");
                self.away = true;
                return Ok(RETRY);
            }
        }
        if !late.is_empty() {
            // They would wait for somebody's lock for ever.
            self.may_claim();
            let late: Vec<_> = late.into_values().flatten().collect();
            tracing::warn!(
                answers = late.len(),
                "answers cannot be stored in time: they wait behind the others in the spool"
            );
            self.on_disk(move |spool| spool.append(&late)).await?;
        }
        self.away = false;
        self.took(chunk).await?;
        for end in ends {
            measure::items_ended(end, 1);
        }
        tracing::info!(answers = count, "stored from the spool");
        self.wake.notify_one();
        Ok(Duration::ZERO)
    }

    /// The answers of a chunk are stored.
    async fn took(&self, chunk: Chunk) -> io::Result<()> {
        let (is_own_empty, has_room) = self
            .on_disk(move |spool| Ok((spool.take(&chunk)?, spool.has_room())))
            .await?;
        if is_own_empty {
            self.slots.unpark_all();
        }
        self.room.set(has_room);
        Ok(())
    }

    /// Stores calls of different items. Where all of them take too long, because one waits for a row that somebody else has, it stores one
    /// after the other, and puts into `late` those that still take too long. An error says that the database is away.
    async fn store_in_turn(
        &self,
        calls: Vec<(Finished, Vec<u8>)>,
        late: &mut Late,
    ) -> sqlx::Result<()> {
        let payloads: Vec<_> = calls
            .iter()
            .map(|(finished, payload)| (finished.call.tenant_id, payload.clone()))
            .collect();
        match self.store_spooled(calls).await {
            Err(error) if takes_long(&error) => {}
            stored => return stored,
        }
        for (tenant, payload) in payloads {
            if let Some(behind) = late.get_mut(&tenant) {
                behind.push(payload);
                continue;
            }
            // It was read once already.
            let Ok(finished) = entry::read(&payload) else {
                continue;
            };
            match self
                .store_spooled(vec![(finished.aged(Timestamp::now()), payload.clone())])
                .await
            {
                Err(error) if takes_long(&error) && late.len() < MOST_LATE => {
                    late.entry(tenant).or_default().push(payload)
                }
                stored => stored?,
            }
        }
        Ok(())
    }

    /// Stores calls of different items. An error says that it may succeed later.
    async fn store_spooled(&self, mut calls: Vec<(Finished, Vec<u8>)>) -> sqlx::Result<()> {
        let finished: Vec<_> = calls.iter().map(|(finished, _)| finished).collect();
        let stored = timeout(MOVE_TIMEOUT, transact(&self.pool, &finished)).await;
        match stored.unwrap_or_else(|_| Err(sqlx::Error::Io(io::ErrorKind::TimedOut.into()))) {
            Err(error) if db::may_pass(&error) => Err(error),
            Err(_) if calls.len() > 1 => {
                for call in calls {
                    Box::pin(self.store_spooled(vec![call])).await?;
                }
                Ok(())
            }
            Err(error) => {
                if let Some((finished, payload)) = calls.pop() {
                    self.refused(&finished, Ok(payload), &error).await;
                }
                Ok(())
            }
            // The sweep expands the scans of who is accepted now.
            Ok(Recorded {
                unknown,
                accepted: _,
            }) => {
                tell_lanes(&self.pool, &finished, &self.wake).await;
                for call in unknown {
                    if let Some((finished, payload)) = calls
                        .iter()
                        .find(|(finished, _)| finished.call.item_id == call.item)
                    {
                        self.unknown(call, finished, || Ok(payload.clone())).await;
                    }
                }
                Ok(())
            }
        }
    }

    /// Nothing is known of it: its rows were lost with a primary, or its scan was deleted, and then its answer must be gone as well.
    async fn unknown(
        &self,
        call: UnknownCall,
        finished: &Finished,
        payload: impl FnOnce() -> serde_json::Result<Vec<u8>>,
    ) {
        let (item, billed) = (ItemId::from(call.item), finished.call.billed);
        let attempt = finished.call.attempt_id.map(AttemptId::from);
        if !call.has_item {
            return tracing::warn!(%item, ?attempt, billed, "the answer of a call is dropped: its item was deleted, or lost with a primary");
        }
        tracing::error!(%item, ?attempt, billed, "a call is not on record: its answer cannot be stored");
        if let Ok(payload) = payload() {
            self.set_aside(payload, &io::Error::other("the call is not on record"))
                .await;
        }
    }

    /// The database will never take it.
    async fn refused(
        &self,
        finished: &Finished,
        payload: serde_json::Result<Vec<u8>>,
        error: &sqlx::Error,
    ) {
        let item = ItemId::from(finished.call.item_id);
        tracing::error!(%item, %error, "a finished call cannot be stored: it will read worker_lost");
        if let Ok(payload) = payload {
            self.set_aside(payload, error).await;
        }
    }

    async fn set_aside(&self, payload: Vec<u8>, why: &(dyn std::error::Error + Sync)) {
        if self.spool.is_none() {
            return;
        }
        match self.on_disk(move |spool| spool.set_aside(&payload)).await {
            Ok(file) => {
                tracing::error!(error = %why, file = %file.display(), "an answer was set aside")
            }
            Err(error) => tracing::error!(%error, "an answer could not be set aside"),
        }
    }

    /// Work with the spool's files, which may block.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Spool) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let Some(spool) = self.spool.clone() else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        // A panic halfway leaves files whose ends are known: `Log` moves them on only after its writes.
        let worked = tokio::task::spawn_blocking(move || {
            work(&mut spool.lock().unwrap_or_else(PoisonError::into_inner))
        });
        worked
            .await
            .unwrap_or_else(|panic| Err(io::Error::other(panic)))
    }
}
