//! The tick: slots that are due are decided, and beside that runs that have ended are judged. Any number of processes do it at once.
//!
//! Here: the passes again and again, and what wakes them. Slots and runs are calendar times: a pass is given a clock, and `run`
//! gives it the database's, so that no slot is decided before its time because one machine's clock is ahead. Every pass is bounded;
//! what is left waits for the next. Not here: what becomes of a slot (`decide`), which runs are judged when (`judge`).

mod decide;
mod judge;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub use decide::Decided;
pub use judge::Judged;

use crate::config::PaceConfig;
use crate::db::clock::DatabaseTime;
use crate::ids::MonitorId;
use crate::tenants::Keyring;

/// The most monitors, and the most runs to judge, of one pass.
const PASS: i64 = 200;
/// The longest sleep: what nobody told of is found after it.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// The shortest: a monitor that is due may be locked by another process just now.
const SHORTEST_SLEEP: Duration = Duration::from_millis(20);
/// After a failure.
const AWAY_PAUSE: Duration = Duration::from_secs(1);

/// What a tick works with.
#[derive(Debug, Clone)]
pub struct Ticker {
    /// A migrated database.
    pub pool: PgPool,
    /// Opens the monitors' keys, and seals them for their scans.
    pub ring: Arc<Keyring>,
    /// The pace of new lanes.
    pub pace: PaceConfig,
    /// How long the rules of one run may take.
    pub judging: Duration,
}

/// Ticks until `stop`; a pass that has begun is finished first, so that no transaction is broken off. Runs are judged beside the slots:
/// however long the rules of one caller take, another's slot comes in time.
pub async fn run(ticker: Ticker, stop: CancellationToken) {
    let wake = Wake::default();
    let deciding = again_and_again(&stop, &wake.slots, || {
        async {
            let time = DatabaseTime::read(&ticker.pool).await?;
            Ok(ticker.decide_due(|| time.now()).await?.sleep(time.now()))
        }
        .boxed()
    });
    let judging = again_and_again(&stop, &wake.runs, || {
        async {
            let time = DatabaseTime::read(&ticker.pool).await?;
            Ok(ticker.judge_ended(|| time.now()).await?.sleep())
        }
        .boxed()
    });
    tokio::select! {
        ((), ()) = async { tokio::join!(deciding, judging) } => {}
        () = listen(&ticker.pool, &wake) => {}
    }
}

/// Passes until `stop`, each followed by the sleep that it gives, which `wake` ends.
async fn again_and_again<'a>(
    stop: &CancellationToken,
    wake: &Notify,
    pass: impl Fn() -> BoxFuture<'a, sqlx::Result<Duration>>,
) {
    while !stop.is_cancelled() {
        let sleep = pass().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "monitors are not looked at");
            AWAY_PAUSE
        });
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(sleep) => {}
            () = wake.notified() => {}
        }
    }
}

/// Ends the sleeps: who is told does not know which pass has something to do.
#[derive(Debug, Default)]
struct Wake {
    slots: Notify,
    runs: Notify,
}

impl Wake {
    fn notify_all(&self) {
        self.slots.notify_one();
        self.runs.notify_one();
    }
}

/// What became of the monitors of a pass.
#[derive(Debug, Default)]
struct Tally {
    done: AtomicUsize,
    passed_over: AtomicUsize,
    failed: AtomicUsize,
}

impl Tally {
    /// One monitor that cannot be looked at is not in the way of the others.
    fn count(&self, done: sqlx::Result<bool>, monitor: MonitorId) {
        let one = match done {
            Ok(true) => &self.done,
            Ok(false) => &self.passed_over,
            Err(error) => {
                tracing::warn!(%monitor, %error, "a monitor was not looked at; the next pass goes on");
                &self.failed
            }
        };
        one.fetch_add(1, Ordering::Relaxed);
    }
}

/// Wakes the tick when a slot comes sooner than it knew, or a run has ended. While it cannot listen, the tick's own sleep must do.
async fn listen(pool: &PgPool, wake: &Wake) {
    let own = PgPoolOptions::new()
        .max_connections(1)
        .connect_lazy_with((*pool.connect_options()).clone());
    loop {
        if let Err(error) = listen_once(&own, wake).await {
            tracing::debug!(%error, "not listening for monitors");
        }
        tokio::time::sleep(AWAY_PAUSE).await;
    }
}

async fn listen_once(pool: &PgPool, wake: &Wake) -> sqlx::Result<()> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen("farescan_monitor").await?;
    wake.notify_all();
    // None: the connection was lost, so something may have been missed.
    while listener.try_recv().await?.is_some() {
        wake.notify_all();
    }
    Ok(())
}
