//! The readers of this process, one for each watched scan, and the clients' subscriptions to them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use super::cursor::StreamCursor;
use super::feed::Feed;
use super::{WatchError, WatchSettings};
use crate::contract::scans::Scan;
use crate::ids::{ScanId, TenantId};
use crate::scans::read::{self, Changes};

/// How long after a read with news a change may come without a notification: the triggers notify
/// once per half of this; the rest is for transactions that take a while to commit.
const NOTIFY_WINDOW: Duration = Duration::from_secs(1);
/// The most callers that are remembered as accepted.
const MAX_REMEMBERED: usize = 100_000;
/// One caller may have this fraction of the free subscriptions; callers not accepted yet together
/// may have this fraction of all.
const SHARE_DIVISOR: usize = 4;
/// Watching must not take the pool's connections from the rest of the service.
const MAX_CONCURRENT_READS: usize = 4;

#[derive(Debug)]
pub(super) struct ScanReaders {
    pool: PgPool,
    settings: WatchSettings,
    stop: CancellationToken,
    is_listening: AtomicBool,
    read_permits: Semaphore,
    /// A caller's lock is chosen by its id.
    acceptance_locks: [tokio::sync::Mutex<()>; 64],
    table: Mutex<ReaderTable>,
}

#[derive(Debug, Default)]
struct ReaderTable {
    /// A scan belongs to one tenant; another tenant's reader of it finds nothing.
    readers: BTreeMap<(ScanId, TenantId), ScanReader>,
    subscribers: usize,
    subscribers_by_tenant: HashMap<TenantId, usize>,
    /// Those of `subscribers` whose callers are not accepted yet.
    unaccepted_subscribers: usize,
    /// Callers that are known to be accepted.
    accepted: HashSet<TenantId>,
}

#[derive(Debug)]
struct ScanReader {
    feed: watch::Receiver<Feed>,
    wake: Arc<Notify>,
    subscribers: usize,
    _stops: DropGuard,
}

impl ScanReaders {
    pub(super) fn new(pool: PgPool, settings: WatchSettings, stop: CancellationToken) -> Self {
        Self {
            pool,
            settings,
            stop,
            is_listening: AtomicBool::new(false),
            read_permits: Semaphore::new(MAX_CONCURRENT_READS),
            acceptance_locks: std::array::from_fn(|_| tokio::sync::Mutex::default()),
            table: Mutex::default(),
        }
    }

    /// Notifications come from now on. Earlier ones were missed, so every reader reads.
    pub(super) fn listening_started(&self) {
        self.is_listening.store(true, Ordering::Relaxed);
        self.table()
            .readers
            .values()
            .for_each(|reader| reader.wake.notify_one());
    }

    /// No notifications come for now: readers poll at the fallback interval.
    pub(super) fn listening_stopped(&self) {
        if self.is_listening.swap(false, Ordering::Relaxed) {
            self.table()
                .readers
                .values()
                .for_each(|reader| reader.wake.notify_one());
        }
    }

    /// Wakes the readers of a scan that changed.
    pub(super) fn notify(&self, id: ScanId) {
        let table = self.table();
        let from_here = table.readers.range((id, TenantId::from(Uuid::nil()))..);
        from_here
            .take_while(|((scan, _), _)| *scan == id)
            .for_each(|(_, reader)| reader.wake.notify_one());
    }

    /// Subscribes a client to a scan's reader. The first client starts the reader at the client's
    /// position, so that one read serves all clients that reconnect after a restart.
    ///
    /// # Errors
    /// `TooMany`, `Full`.
    pub(super) fn subscribe(
        self: &Arc<Self>,
        tenant: TenantId,
        id: ScanId,
        after: Option<u64>,
        is_accepted: bool,
    ) -> Result<Subscription, WatchError> {
        let mut table = self.table();
        table.admit(tenant, is_accepted, &self.settings)?;
        let taken = table
            .subscribers_by_tenant
            .get(&tenant)
            .copied()
            .unwrap_or_default();
        table.subscribers += 1;
        table.unaccepted_subscribers += usize::from(!is_accepted);
        table.subscribers_by_tenant.insert(tenant, taken + 1);
        let key = (id, tenant);
        let (mut reader, is_first) = match table.readers.remove(&key) {
            Some(reader) if reader.feed.has_changed().is_ok() => (reader, false),
            // None, or one that ended because its scan was deleted.
            old => (
                ScanReader {
                    subscribers: old.map_or(0, |old| old.subscribers),
                    ..self.start_reader(tenant, id, after)
                },
                true,
            ),
        };
        reader.subscribers += 1;
        let (feed, wake) = (reader.feed.clone(), Arc::clone(&reader.wake));
        table.readers.insert(key, reader);
        Ok(Subscription {
            readers: Arc::clone(self),
            key,
            feed,
            wake,
            is_first,
            is_accepted,
        })
    }

    fn start_reader(
        self: &Arc<Self>,
        tenant: TenantId,
        id: ScanId,
        after: Option<u64>,
    ) -> ScanReader {
        let feed = watch::Sender::new(Feed::default());
        let wake = Arc::new(Notify::new());
        let stop = self.stop.child_token();
        let reader = ScanReader {
            feed: feed.subscribe(),
            wake: Arc::clone(&wake),
            subscribers: 0,
            _stops: stop.clone().drop_guard(),
        };
        let readers = Arc::clone(self);
        tokio::spawn(async move {
            stop.run_until_cancelled(readers.run_reader(tenant, id, after, feed, wake))
                .await
        });
        reader
    }

    /// Reads a scan for all its clients: on a notification, but at most once per
    /// `min_read_interval`; again after news, because a later change may come without a
    /// notification; and at the poll interval in any case.
    async fn run_reader(
        &self,
        tenant: TenantId,
        id: ScanId,
        after: Option<u64>,
        feed: watch::Sender<Feed>,
        wake: Arc<Notify>,
    ) {
        let mut position = after;
        let mut recheck_until = Instant::now();
        loop {
            let began = Instant::now();
            let mut again = true;
            match self.read_changes(tenant, id, position).await {
                Ok(None) => return feed.send_modify(Feed::set_gone),
                Ok(Some(changes)) => {
                    feed.send_modify(|feed| {
                        again = feed.apply(changes, position, began, self.settings.event_retention);
                    });
                    if again {
                        recheck_until = began + NOTIFY_WINDOW;
                    }
                    let feed = feed.borrow();
                    position = Some(feed.up_to());
                    if feed.is_behind() {
                        continue;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, scan = %id, "failed to read a watched scan; retrying");
                    feed.send_modify(|feed| feed.failed(error));
                }
            }
            sleep_until(began + self.settings.min_read_interval).await;
            if !again {
                let interval = if self.is_listening.load(Ordering::Relaxed) {
                    self.settings.poll_interval
                } else {
                    self.settings.fallback_poll_interval
                };
                let latest = if began < recheck_until {
                    recheck_until
                } else {
                    began + interval
                };
                // A notification and a timeout have the same effect: the next read.
                let _ = timeout_at(latest, wake.notified()).await;
            }
        }
    }

    async fn read_changes(
        &self,
        tenant: TenantId,
        id: ScanId,
        after: Option<u64>,
    ) -> sqlx::Result<Option<Changes>> {
        let _permit = self
            .read_permits
            .acquire()
            .await
            .map_err(|_| sqlx::Error::PoolClosed)?;
        read::changes(&self.pool, tenant, id, after).await
    }

    fn unsubscribe(&self, key: (ScanId, TenantId), is_accepted: bool) {
        let mut table = self.table();
        table.subscribers -= 1;
        table.unaccepted_subscribers -= usize::from(!is_accepted);
        if let Some(reader) = table.readers.get_mut(&key) {
            reader.subscribers -= 1;
            if reader.subscribers == 0 {
                table.readers.remove(&key);
            }
        }
        if let Some(subscribers) = table.subscribers_by_tenant.get_mut(&key.1) {
            *subscribers -= 1;
            if *subscribers == 0 {
                table.subscribers_by_tenant.remove(&key.1);
            }
        }
    }

    /// To be held during the query whether a caller is accepted.
    pub(super) async fn acceptance_lock(
        &self,
        tenant: TenantId,
    ) -> tokio::sync::MutexGuard<'_, ()> {
        let locks = self.acceptance_locks.len() as u128;
        let index = usize::try_from(tenant.uuid().as_u128() % locks).unwrap_or_default();
        self.acceptance_locks[index].lock().await
    }

    pub(super) fn is_known_accepted(&self, tenant: TenantId) -> bool {
        self.table().accepted.contains(&tenant)
    }

    pub(super) fn remember_accepted(&self, tenant: TenantId) {
        let mut table = self.table();
        if table.accepted.len() >= MAX_REMEMBERED {
            table.accepted.clear();
        }
        table.accepted.insert(tenant);
    }

    fn table(&self) -> MutexGuard<'_, ReaderTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReaderTable {
    /// Checks that one more client of this caller may watch.
    fn admit(
        &self,
        tenant: TenantId,
        is_accepted: bool,
        settings: &WatchSettings,
    ) -> Result<(), WatchError> {
        if self.subscribers >= settings.max_clients {
            return Err(WatchError::Full);
        }
        let taken = self
            .subscribers_by_tenant
            .get(&tenant)
            .copied()
            .unwrap_or_default();
        let share = settings
            .max_clients
            .saturating_sub(self.subscribers - taken)
            / SHARE_DIVISOR;
        let own = if is_accepted {
            share.max(settings.max_clients_before_acceptance)
        } else {
            settings.max_clients_before_acceptance
        };
        if taken >= settings.max_clients_per_tenant.min(own) {
            return Err(WatchError::TooMany(taken));
        }
        let max_unaccepted = (settings.max_clients / SHARE_DIVISOR).max(1);
        if !is_accepted && self.unaccepted_subscribers >= max_unaccepted {
            return Err(WatchError::Full);
        }
        Ok(())
    }
}

/// A client's subscription to a scan's reader; dropping it unsubscribes.
#[derive(Debug)]
pub(super) struct Subscription {
    readers: Arc<ScanReaders>,
    key: (ScanId, TenantId),
    feed: watch::Receiver<Feed>,
    wake: Arc<Notify>,
    /// It started the reader.
    is_first: bool,
    /// Whether a marketplace had accepted the caller's key when the subscription began.
    is_accepted: bool,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.readers.unsubscribe(self.key, self.is_accepted);
    }
}

impl Subscription {
    /// Wakes the reader and waits until the feed satisfies `is_enough`.
    ///
    /// # Errors
    /// `NotFound`; `Database` when the reader's read failed; `Stopping`.
    pub(super) async fn refresh(
        &mut self,
        is_enough: impl Fn(&Feed) -> bool + Send + Sync,
    ) -> Result<(), WatchError> {
        if !self.is_first && !is_enough(&self.feed.borrow()) {
            self.wake.notify_one();
        }
        self.wait_for(|feed| is_enough(feed) || feed.failure().is_some())
            .await?;
        let feed = self.feed.borrow();
        if is_enough(&feed) {
            Ok(())
        } else {
            feed.failure()
                .map_or(Ok(()), |error| Err(Arc::clone(error).into()))
        }
    }

    /// Waits until the feed satisfies the condition.
    ///
    /// # Errors
    /// `NotFound`; `Stopping`.
    pub(super) async fn wait_for(
        &mut self,
        condition: impl Fn(&Feed) -> bool + Send,
    ) -> Result<(), WatchError> {
        loop {
            {
                let feed = self.feed.borrow_and_update();
                if feed.is_gone() {
                    return Err(WatchError::NotFound);
                }
                if condition(&feed) {
                    return Ok(());
                }
            }
            self.changed().await.ok_or(WatchError::Stopping)?;
        }
    }

    /// Returns when the feed has changed since it was last borrowed; `None`: the process shuts
    /// down.
    pub(super) async fn changed(&mut self) -> Option<()> {
        self.readers
            .stop
            .run_until_cancelled(self.feed.changed())
            .await?
            .ok()
    }

    /// Borrows the feed and marks it as seen.
    pub(super) fn feed(&mut self) -> watch::Ref<'_, Feed> {
        self.feed.borrow_and_update()
    }

    /// The scan as last read.
    ///
    /// # Errors
    /// `Database` when the last read failed; `NotFound` when the scan was deleted.
    pub(super) fn scan(&self) -> Result<Scan, WatchError> {
        let feed = self.feed.borrow();
        match (feed.failure(), feed.snapshot()) {
            (Some(error), _) => Err(Arc::clone(error).into()),
            (None, Some(snapshot)) if !feed.is_gone() => Ok(snapshot.scan.clone()),
            (None, _) => Err(WatchError::NotFound),
        }
    }

    /// The cursor of a new client.
    pub(super) fn cursor(&self, after: Option<u64>) -> Option<StreamCursor> {
        StreamCursor::begin(&self.feed.borrow(), after)
    }

    /// Reads for this client alone.
    pub(super) async fn read_changes(&self, after: Option<u64>) -> sqlx::Result<Option<Changes>> {
        self.readers
            .read_changes(self.key.1, self.key.0, after)
            .await
    }

    pub(super) fn stop(&self) -> CancellationToken {
        self.readers.stop.clone()
    }

    /// How long a stream lasts while its scan is paused; `None`: unlimited.
    pub(super) fn max_paused_stream(&self) -> Option<Duration> {
        (!self.is_accepted).then_some(self.readers.settings.max_paused_stream)
    }

    pub(super) fn min_read_interval(&self) -> Duration {
        self.readers.settings.min_read_interval
    }
}
