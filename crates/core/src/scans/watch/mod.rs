//! Watching a scan: a stream of its events, and waiting for its end, without a query per client.
//!
//! ```text
//!  the tables' triggers ─NOTIFY─► db::listen ─► readers: one for each watched scan, at most one read a second
//!                                             │ feed: the current scan, and its last events as text
//!                                             ├──► wait    returns when the scan has ended or the time is up
//!                                             └──► follow  each client at its own position; slow clients read the database
//! ```
//!
//! The process has one LISTEN connection. It needs a session of its own, so a pooler in transaction
//! mode cannot carry it. Readers also poll, more often while that connection is down: a lost
//! notification costs seconds, never an event. What an event is and why none is lost:
//! docs/decisions/0006. Not here: the wire format (`contract::scans`), HTTP.

mod cursor;
mod event_batch;
mod feed;
mod follow;
mod readers;

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use self::feed::Feed;
use self::readers::ScanReaders;
use super::read;
use crate::contract::scans::{EventId, Scan};
use crate::db::{ListenEvent, listen};
use crate::ids::{ScanId, TenantId};
use crate::tenants::store::acceptance;

pub use self::follow::Follower;

/// Postgres notifies it when a scan changes in a way that its caller can see; the payload is the scan's id.
const CHANNEL: &str = "farescan_scan";

/// The longest wait (scans.md, rule 62).
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// Bounds and intervals. A service uses the defaults; tests shorten them.
#[derive(Debug, Clone, Copy)]
pub struct WatchSettings {
    /// The shortest time between two reads of one scan.
    pub min_read_interval: Duration,
    /// The longest time between two reads while notifications arrive.
    pub poll_interval: Duration,
    /// The longest time between two reads while the LISTEN connection is down.
    pub fallback_poll_interval: Duration,
    /// How long events stay in memory for clients that are slow or reconnect.
    pub event_retention: Duration,
    /// How long a stream is silent before it is sent a comment (scans.md, rule 65).
    pub keep_alive_interval: Duration,
    /// The most clients of this process that watch at once.
    pub max_clients: usize,
    /// The most clients of one caller. A caller gets at most a quarter of the places that the
    /// others leave, but always `max_clients_before_acceptance`.
    pub max_clients_per_tenant: usize,
    /// The most clients of a caller whose key no marketplace has accepted yet; all such callers
    /// together get a quarter of `max_clients`.
    pub max_clients_before_acceptance: usize,
    /// How long a stream of such a caller lasts while its scan is paused.
    pub max_paused_stream: Duration,
}

impl Default for WatchSettings {
    fn default() -> Self {
        Self {
            min_read_interval: Duration::from_secs(1),
            poll_interval: Duration::from_secs(10),
            fallback_poll_interval: Duration::from_secs(2),
            event_retention: Duration::from_secs(10),
            keep_alive_interval: Duration::from_secs(15),
            max_clients: 4_000,
            max_clients_per_tenant: 1_000,
            max_clients_before_acceptance: 5,
            max_paused_stream: Duration::from_secs(60),
        }
    }
}

/// Why a scan cannot be watched.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WatchError {
    /// There is no such scan, or it is another caller's.
    #[error("there is no such scan")]
    NotFound,
    /// The caller has reached its limit; how many of its requests watch scans.
    #[error("{0} requests of this caller watch scans, which is the limit; end one of them")]
    TooMany(usize),
    /// The process has reached its limit.
    #[error("too many clients watch scans; try again later, or poll the scan")]
    Full,
    /// The process is shutting down.
    #[error("this process is shutting down; send the request again")]
    Stopping,
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] Arc<sqlx::Error>),
}

/// Watches scans for the clients of this process. Cheap to clone; dropping the last clone closes
/// the LISTEN connection and ends the readers.
#[derive(Debug, Clone)]
pub struct ScanWatch {
    pool: PgPool,
    readers: Arc<ScanReaders>,
    settings: WatchSettings,
    listening: TaskTracker,
    _stop_on_drop: Arc<DropGuard>,
}

impl ScanWatch {
    /// Listens on a connection of its own and reconnects when it breaks. `stop` ends every wait and
    /// every stream.
    pub fn start(
        pool: PgPool,
        options: PgConnectOptions,
        settings: WatchSettings,
        stop: &CancellationToken,
    ) -> Self {
        let stop = stop.child_token();
        let readers = Arc::new(ScanReaders::new(pool.clone(), settings, stop.clone()));
        let notified = Arc::clone(&readers);
        let stop_on_drop = Arc::new(stop.clone().drop_guard());
        let listening = TaskTracker::new();
        listening.spawn(async move {
            listen(options, CHANNEL, &stop, |event| match event {
                ListenEvent::Connected => notified.listening_started(),
                ListenEvent::Notified(id) => {
                    if let Ok(id) = id.parse::<Uuid>() {
                        notified.notify(ScanId::from(id));
                    }
                }
                ListenEvent::Disconnected => notified.listening_stopped(),
            })
            .await;
        });
        listening.close();
        Self {
            pool,
            readers,
            settings,
            listening,
            _stop_on_drop: stop_on_drop,
        }
    }

    /// Waits until `stop` has closed the LISTEN connection. It keeps no clone alive meanwhile.
    pub fn listening_ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let listening = self.listening.clone();
        async move { listening.wait().await }
    }

    /// How long a stream may be silent before it is sent a comment.
    pub fn keep_alive_interval(&self) -> Duration {
        self.settings.keep_alive_interval
    }

    /// Waits until the scan has ended and its last call is recorded, or until the time is up.
    ///
    /// The returned scan is never older than the request, so that a scan that was just retried is
    /// not returned as ended. It may therefore come up to a second after the time.
    ///
    /// # Errors
    /// `NotFound`; `TooMany`, `Full`; `Database`.
    pub async fn wait(
        &self,
        tenant: TenantId,
        id: ScanId,
        wait: Duration,
    ) -> Result<Scan, WatchError> {
        if wait.is_zero() {
            return read::scan(&self.pool, tenant, id)
                .await
                .map_err(Arc::new)?
                .ok_or(WatchError::NotFound);
        }
        let since = Instant::now();
        let deadline = since + wait.min(MAX_WAIT);
        let mut subscription =
            self.readers
                .subscribe(tenant, id, None, self.is_accepted(tenant).await?)?;
        subscription.refresh(|feed| feed.is_fresh(since)).await?;
        let ended = subscription.wait_for(Feed::is_finished);
        match timeout_at(deadline, ended).await {
            // The time is up, or the process shuts down: the scan as last read.
            Ok(Ok(()) | Err(WatchError::Stopping)) | Err(_) => {}
            Ok(Err(error)) => return Err(error),
        }
        subscription.scan()
    }

    /// Whether a marketplace has accepted the caller's key. Acceptance is permanent, so it is
    /// cached.
    async fn is_accepted(&self, tenant: TenantId) -> Result<bool, WatchError> {
        if self.readers.is_known_accepted(tenant) {
            return Ok(true);
        }
        // Concurrent clients of one caller query once.
        let _lock = self.readers.acceptance_lock(tenant).await;
        if self.readers.is_known_accepted(tenant) {
            return Ok(true);
        }
        let accepted = acceptance::is_accepted(&self.pool, tenant)
            .await
            .map_err(Arc::new)?;
        if accepted {
            self.readers.remember_accepted(tenant);
        }
        Ok(accepted)
    }

    /// Streams the events of a scan after one of them. Without `after` the stream begins with the
    /// current scan. `None`: the scan has ended, and the client has its last event.
    ///
    /// # Errors
    /// `NotFound`; `TooMany`, `Full`; `Stopping`; `Database`.
    pub async fn follow(
        &self,
        tenant: TenantId,
        id: ScanId,
        after: Option<EventId>,
    ) -> Result<Option<Follower>, WatchError> {
        let since = Instant::now();
        let after = after.map(EventId::get);
        let mut subscription =
            self.readers
                .subscribe(tenant, id, after, self.is_accepted(tenant).await?)?;
        // The client may have an event from another process that this one has not read yet, and an
        // ended scan may have been retried.
        subscription
            .refresh(|feed| feed.is_fresh(since) || feed.runs_beyond(after))
            .await?;
        Ok(subscription
            .cursor(after)
            .map(|cursor| Follower::new(subscription, cursor)))
    }
}
