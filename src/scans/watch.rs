//! Waiting for a scan to end, without asking all the time.
//!
//! One LISTEN connection for the whole process hears `farescan_scan`, whose payload is a scan's id, and wakes who waits for it. While
//! that connection is away, and now and then in any case, waiters look for themselves: a lost notification costs seconds, never an
//! answer. LISTEN needs a session of its own: a pooler in transaction mode cannot carry it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use super::read;
use crate::contract::scans::Scan;
use crate::ids::{ScanId, TenantId};

/// The longest wait (jobs-api, "Scans").
pub const MAX_WAIT: Duration = Duration::from_secs(60);
/// Said when a scan has ended or stopped.
const CHANNEL: &str = "farescan_scan";
/// How often a waiter looks for itself while notifications come.
const LOOK_SELDOM: Duration = Duration::from_secs(5);
/// How often while they do not.
const LOOK_OFTEN: Duration = Duration::from_secs(1);
/// Notifications that a slow waiter may be behind; beyond it, the waiter looks for itself.
const BACKLOG: usize = 1024;

/// The process's ear for scans. Cheap to clone; the connection is closed with the last one.
#[derive(Debug, Clone)]
pub struct Watch {
    said: broadcast::Sender<Uuid>,
    hears: Arc<AtomicBool>,
    stop: CancellationToken,
    _closes: Arc<DropGuard>,
}

impl Watch {
    /// Listens on a connection of its own, and again whenever that breaks. `stop` ends every wait: the process is going down.
    #[must_use]
    pub fn start(options: PgConnectOptions, stop: &CancellationToken) -> Self {
        let stop = stop.child_token();
        let watch = Self {
            said: broadcast::Sender::new(BACKLOG),
            hears: Arc::new(AtomicBool::new(false)),
            _closes: Arc::new(stop.clone().drop_guard()),
            stop: stop.clone(),
        };
        let (said, hears) = (watch.said.clone(), Arc::clone(&watch.hears));
        tokio::spawn(async move { stop.run_until_cancelled(listen(options, &said, &hears)).await });
        watch
    }

    /// The scan once it has ended, or as it is when the time is up; `None`: there is no such scan.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn wait(&self, pool: &PgPool, tenant: TenantId, id: ScanId, wait: Duration) -> sqlx::Result<Option<Scan>> {
        let deadline = Instant::now() + wait.min(MAX_WAIT);
        // Before the first look, so that nothing said after it is missed.
        let mut said = self.said.subscribe();
        loop {
            let scan = read::scan(pool, tenant, id).await?;
            let waits = scan.as_ref().is_some_and(|scan| !scan.status.is_ended() || scan.finished_at.is_none());
            if !waits || Instant::now() >= deadline || self.stop.is_cancelled() {
                return Ok(scan);
            }
            let pause = if self.hears.load(Ordering::Relaxed) { LOOK_SELDOM } else { LOOK_OFTEN };
            let look = deadline.min(Instant::now() + pause);
            let heard = timeout_at(look, heard(&mut said, id));
            self.stop.run_until_cancelled(heard).await;
        }
    }
}

/// Returns when the scan was named, or when too much was said to know.
async fn heard(said: &mut broadcast::Receiver<Uuid>, id: ScanId) {
    loop {
        match said.recv().await {
            Ok(named) if named != id.uuid() => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            // The sender lives in every `Watch`; should it be gone, the timer decides.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

async fn listen(options: PgConnectOptions, said: &broadcast::Sender<Uuid>, hears: &AtomicBool) {
    let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
    loop {
        if let Err(error) = pass_on(&pool, said, hears).await {
            tracing::debug!(%error, "no notifications of scans for now");
        }
        hears.store(false, Ordering::Relaxed);
        sleep(LOOK_OFTEN).await;
    }
}

/// Passes notifications on until the connection breaks.
async fn pass_on(pool: &PgPool, said: &broadcast::Sender<Uuid>, hears: &AtomicBool) -> sqlx::Result<()> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    hears.store(true, Ordering::Relaxed);
    while let Some(notification) = listener.try_recv().await? {
        if let Ok(id) = notification.payload().parse() {
            // An error says that nobody waits.
            drop(said.send(id));
        }
    }
    Ok(())
}
