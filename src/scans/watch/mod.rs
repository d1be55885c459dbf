//! Watching a scan: its events as they come, and waiting for its end, without asking the database for each client.
//!
//! ```text
//!  the tables' triggers ─NOTIFY─► listen ─► readers ─► one reader for each watched scan, one look a second at most
//!                                                        │ feed: the scan now, and its last events as text
//!                                                        ├──► wait    answers when the scan has ended or the time is up
//!                                                        └──► follow  each client at its own place; who falls behind reads for itself
//! ```
//!
//! One LISTEN connection for the whole process; it needs a session of its own, which a pooler in transaction mode cannot carry. While it
//! is away, and now and then in any case, readers look for themselves: a lost notification costs seconds, never an event. What an event
//! is and why nothing is lost: docs/decisions/0006. Not here: the form on the wire (`contract::scans`), HTTP.

mod cursor;
mod feed;
mod follow;
mod listen;
mod look;
mod readers;

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::feed::Feed;
use self::readers::Readers;
use super::read;
use crate::contract::scans::{EventId, Scan};
use crate::ids::{ScanId, TenantId};
use crate::tenants::store::acceptance;

pub use self::follow::Follower;

/// The longest wait (jobs-api, "Scans").
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// Bounds and clocks. The defaults are what a service has; tests take others so that they need not wait.
#[derive(Debug, Clone, Copy)]
pub struct WatchSettings {
    /// The shortest time between two looks at one scan.
    pub gap: Duration,
    /// The longest, while notifications come.
    pub seldom: Duration,
    /// The longest, while they do not.
    pub often: Duration,
    /// How long events are kept in memory for clients that are slow or come back.
    pub kept: Duration,
    /// How long a stream is silent before it is sent a comment (jobs-api, "Scans").
    pub comments: Duration,
    /// The most clients of this process that watch at once.
    pub clients: usize,
    /// The most of one caller; and never more than a quarter of what the others leave, beyond the few that everybody may have.
    pub clients_of_one: usize,
    /// The most of a caller whose key no marketplace has accepted yet; all such callers together have a quarter of all.
    pub clients_before_acceptance: usize,
    /// How long a stream of such a caller lasts while its scan is paused.
    pub paused_stream: Duration,
}

impl Default for WatchSettings {
    fn default() -> Self {
        Self {
            gap: Duration::from_secs(1),
            seldom: Duration::from_secs(10),
            often: Duration::from_secs(2),
            kept: Duration::from_secs(10),
            comments: Duration::from_secs(15),
            clients: 4_000,
            clients_of_one: 1_000,
            clients_before_acceptance: 5,
            paused_stream: Duration::from_secs(60),
        }
    }
}

/// Why a scan is not watched.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WatchError {
    /// There is no such scan, or it is another caller's.
    #[error("there is no such scan")]
    NotFound,
    /// The caller watches as much as one may.
    #[error(
        "{0} requests of this caller watch scans, and one may have no more: end one, or watch fewer scans"
    )]
    TooMany(usize),
    /// The process has as many watching clients as it takes.
    #[error("as many clients watch scans as this process takes; try again soon, or poll")]
    Full,
    /// The process is going down.
    #[error("this process is going down; another one answers")]
    Stopping,
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] Arc<sqlx::Error>),
}

/// The process's watch over scans. Cheap to clone; with the last one its connection is closed and its readers end.
#[derive(Debug, Clone)]
pub struct Watch {
    pool: PgPool,
    readers: Arc<Readers>,
    settings: WatchSettings,
    _closes: Arc<DropGuard>,
}

impl Watch {
    /// Listens on a connection of its own, and again whenever that breaks. `stop` ends every wait and every stream: the process is going
    /// down.
    #[must_use]
    pub fn start(
        pool: PgPool,
        options: PgConnectOptions,
        settings: WatchSettings,
        stop: &CancellationToken,
    ) -> Self {
        let stop = stop.child_token();
        let readers = Arc::new(Readers::new(pool.clone(), settings, stop.clone()));
        let heard = Arc::clone(&readers);
        let closes = Arc::new(stop.clone().drop_guard());
        tokio::spawn(async move {
            stop.run_until_cancelled(listen::listen(options, &heard))
                .await
        });
        Self {
            pool,
            readers,
            settings,
            _closes: closes,
        }
    }

    /// How long a stream may be silent.
    #[must_use]
    pub fn comments(&self) -> Duration {
        self.settings.comments
    }

    /// The scan once it has ended and its last call is recorded, or as it is when the time is up.
    ///
    /// The answer is never older than the request: who has just retried a scan does not hear that it has ended. So the look that it
    /// waits for may come up to a second after the time.
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
        let mut seat = self
            .readers
            .sit(tenant, id, None, self.is_accepted(tenant).await?)?;
        seat.knows(|feed| feed.is_fresh(since)).await?;
        let ended = seat.until(Feed::is_finished);
        match timeout_at(deadline, ended).await {
            // The time is up, or the process goes down: as it is.
            Ok(Ok(()) | Err(WatchError::Stopping)) | Err(_) => {}
            Ok(Err(error)) => return Err(error),
        }
        seat.scan()
    }

    /// Whether a marketplace has accepted the caller's key. It is never taken back, so who is accepted is asked for once.
    async fn is_accepted(&self, tenant: TenantId) -> Result<bool, WatchError> {
        if self.readers.knows_accepted(tenant) {
            return Ok(true);
        }
        // Many clients of one caller who come at once ask once.
        let _turn = self.readers.turn_to_ask(tenant).await;
        if self.readers.knows_accepted(tenant) {
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

    /// The events of a scan after one of them, or from now on: the stream begins with the scan as it is then. `None`: the scan has ended,
    /// and the client has seen its last event.
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
        let mut seat = self
            .readers
            .sit(tenant, id, after, self.is_accepted(tenant).await?)?;
        // What another process told may be ahead of what this one has seen, and an ended scan may have been retried.
        seat.knows(|feed| feed.is_fresh(since) || feed.runs_beyond(after))
            .await?;
        Ok(seat.cursor(after).map(|cursor| Follower::new(seat, cursor)))
    }
}
