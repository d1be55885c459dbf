//! The readers of this process: one for each scan that somebody watches, and the clients' seats before them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use super::cursor::Cursor;
use super::feed::Feed;
use super::{WatchError, WatchSettings};
use crate::contract::scans::Scan;
use crate::ids::{ScanId, TenantId};
use crate::scans::read::{self, Changes};

/// How long after a look that brought something there may be changes that were not told: twice the time in which the tables tell once, for
/// transactions that take a while to commit.
const UNTOLD: Duration = Duration::from_secs(1);
/// The most callers that are remembered as accepted.
const REMEMBERED: usize = 100_000;
/// Which part of the free seats one caller may have, and which part of all those that are not accepted yet.
const SHARE: usize = 4;
/// Looks at the same time: watching must not take the pool's connections from the rest of the service.
const LOOKS_AT_ONCE: usize = 4;

#[derive(Debug)]
pub(super) struct Readers {
    pool: PgPool,
    settings: WatchSettings,
    stop: CancellationToken,
    hears: AtomicBool,
    looks: Semaphore,
    /// One for each group of callers, told by their ids.
    turns_to_ask: [tokio::sync::Mutex<()>; 64],
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// A scan's id is one tenant's; another's reader of it finds nothing.
    readers: BTreeMap<(ScanId, TenantId), Reader>,
    seats: usize,
    seats_of: HashMap<TenantId, usize>,
    /// Of the seats those of callers that are not accepted yet.
    seats_before_acceptance: usize,
    /// Callers that are known as accepted.
    accepted: HashSet<TenantId>,
}

#[derive(Debug)]
struct Reader {
    feed: watch::Receiver<Feed>,
    nudge: Arc<Notify>,
    seats: usize,
    _stops: DropGuard,
}

impl Readers {
    pub(super) fn new(pool: PgPool, settings: WatchSettings, stop: CancellationToken) -> Self {
        let (hears, looks) = (AtomicBool::new(false), Semaphore::new(LOOKS_AT_ONCE));
        let turns_to_ask = std::array::from_fn(|_| tokio::sync::Mutex::default());
        Self {
            pool,
            settings,
            stop,
            hears,
            looks,
            turns_to_ask,
            open: Mutex::default(),
        }
    }

    /// Notifications come from now on; what was said before was missed.
    pub(super) fn hears(&self) {
        self.hears.store(true, Ordering::Relaxed);
        self.open()
            .readers
            .values()
            .for_each(|reader| reader.nudge.notify_one());
    }

    /// No notifications come for now: readers look by themselves, more often.
    pub(super) fn deaf(&self) {
        if self.hears.swap(false, Ordering::Relaxed) {
            self.open()
                .readers
                .values()
                .for_each(|reader| reader.nudge.notify_one());
        }
    }

    /// Something changed in this scan.
    pub(super) fn said(&self, id: ScanId) {
        let open = self.open();
        let from_here = open.readers.range((id, TenantId::from(Uuid::nil()))..);
        from_here
            .take_while(|((scan, _), _)| *scan == id)
            .for_each(|(_, reader)| reader.nudge.notify_one());
    }

    /// A seat before a scan's reader, which begins with its first client; after the place of that client, so that many who come back at
    /// once after a restart are served by one look.
    ///
    /// # Errors
    /// `TooMany`, `Full`.
    pub(super) fn sit(
        self: &Arc<Self>,
        tenant: TenantId,
        id: ScanId,
        after: Option<u64>,
        is_accepted: bool,
    ) -> Result<Seat, WatchError> {
        let mut open = self.open();
        open.admit(tenant, is_accepted, &self.settings)?;
        let taken = open.seats_of.get(&tenant).copied().unwrap_or_default();
        open.seats += 1;
        open.seats_before_acceptance += usize::from(!is_accepted);
        open.seats_of.insert(tenant, taken + 1);
        let key = (id, tenant);
        let (mut reader, is_first) = match open.readers.remove(&key) {
            Some(reader) if reader.feed.has_changed().is_ok() => (reader, false),
            // None, or one that has ended because its scan was gone.
            old => (
                Reader {
                    seats: old.map_or(0, |old| old.seats),
                    ..self.begin(tenant, id, after)
                },
                true,
            ),
        };
        reader.seats += 1;
        let (feed, nudge) = (reader.feed.clone(), Arc::clone(&reader.nudge));
        open.readers.insert(key, reader);
        Ok(Seat {
            readers: Arc::clone(self),
            key,
            feed,
            nudge,
            is_first,
            is_accepted,
        })
    }

    fn begin(self: &Arc<Self>, tenant: TenantId, id: ScanId, after: Option<u64>) -> Reader {
        let (feed, nudge, stop) = (
            watch::Sender::new(Feed::default()),
            Arc::new(Notify::new()),
            self.stop.child_token(),
        );
        let reader = Reader {
            feed: feed.subscribe(),
            nudge: Arc::clone(&nudge),
            seats: 0,
            _stops: stop.clone().drop_guard(),
        };
        let readers = Arc::clone(self);
        tokio::spawn(async move {
            stop.run_until_cancelled(readers.read(tenant, id, after, feed, nudge))
                .await
        });
        reader
    }

    /// Looks at a scan for all its clients: at once when something is said, but at most once in a gap; again after what was new, because
    /// more may have changed and not been told; and seldom in any case.
    async fn read(
        &self,
        tenant: TenantId,
        id: ScanId,
        after: Option<u64>,
        feed: watch::Sender<Feed>,
        nudge: Arc<Notify>,
    ) {
        let mut place = after;
        let mut told_all_at = Instant::now();
        loop {
            let began = Instant::now();
            let mut again = true;
            match self.look(tenant, id, place).await {
                Ok(None) => return feed.send_modify(Feed::end),
                Ok(Some(changes)) => {
                    feed.send_modify(|feed| {
                        again = feed.take(changes, place, began, self.settings.kept)
                    });
                    if again {
                        told_all_at = began + UNTOLD;
                    }
                    let feed = feed.borrow();
                    place = Some(feed.upto());
                    if feed.is_behind() {
                        continue;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, scan = %id, "a scan that is watched could not be looked at");
                    feed.send_modify(|feed| feed.failed(error));
                }
            }
            sleep_until(began + self.settings.gap).await;
            if !again {
                let hears = self.hears.load(Ordering::Relaxed);
                let latest = began
                    + if hears {
                        self.settings.seldom
                    } else {
                        self.settings.often
                    };
                let latest = if began < told_all_at {
                    told_all_at
                } else {
                    latest
                };
                // Told, or the time is up: the same.
                let _ = timeout_at(latest, nudge.notified()).await;
            }
        }
    }

    async fn look(
        &self,
        tenant: TenantId,
        id: ScanId,
        after: Option<u64>,
    ) -> sqlx::Result<Option<Changes>> {
        let _turn = self
            .looks
            .acquire()
            .await
            .map_err(|_| sqlx::Error::PoolClosed)?;
        read::changes(&self.pool, tenant, id, after).await
    }

    fn leave(&self, key: (ScanId, TenantId), is_accepted: bool) {
        let mut open = self.open();
        open.seats -= 1;
        open.seats_before_acceptance -= usize::from(!is_accepted);
        if let Some(reader) = open.readers.get_mut(&key) {
            reader.seats -= 1;
            if reader.seats == 0 {
                open.readers.remove(&key);
            }
        }
        if let Some(seats) = open.seats_of.get_mut(&key.1) {
            *seats -= 1;
            if *seats == 0 {
                open.seats_of.remove(&key.1);
            }
        }
    }

    /// Held while it is asked whether a caller is accepted.
    pub(super) async fn turn_to_ask(&self, tenant: TenantId) -> tokio::sync::MutexGuard<'_, ()> {
        let turns = self.turns_to_ask.len() as u128;
        let turn = usize::try_from(tenant.uuid().as_u128() % turns).unwrap_or_default();
        self.turns_to_ask[turn].lock().await
    }

    pub(super) fn knows_accepted(&self, tenant: TenantId) -> bool {
        self.open().accepted.contains(&tenant)
    }

    pub(super) fn remember_accepted(&self, tenant: TenantId) {
        let mut open = self.open();
        if open.accepted.len() >= REMEMBERED {
            open.accepted.clear();
        }
        open.accepted.insert(tenant);
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Whether a further client of this caller may watch.
    fn admit(
        &self,
        tenant: TenantId,
        is_accepted: bool,
        settings: &WatchSettings,
    ) -> Result<(), WatchError> {
        if self.seats >= settings.clients {
            return Err(WatchError::Full);
        }
        let taken = self.seats_of.get(&tenant).copied().unwrap_or_default();
        let share = settings.clients.saturating_sub(self.seats - taken) / SHARE;
        let own = if is_accepted {
            share.max(settings.clients_before_acceptance)
        } else {
            settings.clients_before_acceptance
        };
        let most = settings.clients_of_one.min(own);
        if taken >= most {
            return Err(WatchError::TooMany(taken));
        }
        if !is_accepted && self.seats_before_acceptance >= (settings.clients / SHARE).max(1) {
            return Err(WatchError::Full);
        }
        Ok(())
    }
}

/// A client's seat; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    readers: Arc<Readers>,
    key: (ScanId, TenantId),
    feed: watch::Receiver<Feed>,
    nudge: Arc<Notify>,
    /// Its reader began with it.
    is_first: bool,
    /// A marketplace had accepted its caller's key when it began.
    is_accepted: bool,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.readers.leave(self.key, self.is_accepted);
    }
}

impl Seat {
    /// Waits until the feed knows enough for a client that comes; the reader looks as soon as it may.
    ///
    /// # Errors
    /// `NotFound`; `Database` when the reader cannot look; `Stopping`.
    pub(super) async fn knows(
        &mut self,
        enough: impl Fn(&Feed) -> bool + Send + Sync,
    ) -> Result<(), WatchError> {
        if !self.is_first && !enough(&self.feed.borrow()) {
            self.nudge.notify_one();
        }
        self.until(|feed| enough(feed) || feed.failure().is_some())
            .await?;
        let feed = self.feed.borrow();
        if enough(&feed) {
            Ok(())
        } else {
            feed.failure()
                .map_or(Ok(()), |error| Err(Arc::clone(error).into()))
        }
    }

    /// Waits until the feed is so.
    ///
    /// # Errors
    /// `NotFound`; `Stopping`.
    pub(super) async fn until(
        &mut self,
        so: impl Fn(&Feed) -> bool + Send,
    ) -> Result<(), WatchError> {
        loop {
            {
                let feed = self.feed.borrow_and_update();
                if feed.is_gone() {
                    return Err(WatchError::NotFound);
                }
                if so(&feed) {
                    return Ok(());
                }
            }
            self.changed().await.ok_or(WatchError::Stopping)?;
        }
    }

    /// Returns when the feed has changed since it was last looked at; `None`: the process goes down.
    pub(super) async fn changed(&mut self) -> Option<()> {
        self.readers
            .stop
            .run_until_cancelled(self.feed.changed())
            .await?
            .ok()
    }

    /// The feed, marked as seen.
    pub(super) fn feed(&mut self) -> watch::Ref<'_, Feed> {
        self.feed.borrow_and_update()
    }

    /// The scan as it was last seen.
    ///
    /// # Errors
    /// `Database` when it could not be looked at; `NotFound` when it is gone.
    pub(super) fn scan(&self) -> Result<Scan, WatchError> {
        let feed = self.feed.borrow();
        match (feed.failure(), feed.now()) {
            (Some(error), _) => Err(Arc::clone(error).into()),
            (None, Some(now)) if !feed.is_gone() => Ok(now.scan.clone()),
            (None, _) => Err(WatchError::NotFound),
        }
    }

    /// Where a client that comes begins.
    pub(super) fn cursor(&self, after: Option<u64>) -> Option<Cursor> {
        Cursor::begin(&self.feed.borrow(), after)
    }

    /// A look for this client alone.
    pub(super) async fn look(&self, after: Option<u64>) -> sqlx::Result<Option<Changes>> {
        self.readers.look(self.key.1, self.key.0, after).await
    }

    pub(super) fn stop(&self) -> CancellationToken {
        self.readers.stop.clone()
    }

    /// How long a stream lasts while its scan is paused; `None`: as long as its client.
    pub(super) fn paused_stream(&self) -> Option<Duration> {
        (!self.is_accepted).then_some(self.readers.settings.paused_stream)
    }

    pub(super) fn gap(&self) -> Duration {
        self.readers.settings.gap
    }
}
