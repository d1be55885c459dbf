//! The tick: decides due slots and, concurrently, evaluates the alert rules of ended runs and sends
//! held alerts. Any number of processes may tick at once.
//!
//! Here: the loop of passes and its wake-ups. A pass takes a clock; `run` gives it the database's
//! clock, so a machine whose clock is ahead decides no slot early. Every pass is bounded; the rest
//! waits for the next pass. Not here: the decision of a slot (`decide`), the selection of runs
//! (`evaluate`), held alerts (`notify`).

mod decide;
mod evaluate;
mod notify;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::TryFutureExt as _;
use jiff::Timestamp;
use sqlx::PgPool;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub use decide::SlotPass;
pub use evaluate::EvaluationPass;
pub use notify::NotifyPass;

use crate::config::PaceConfig;
use crate::db;
use crate::db::clock::DatabaseTime;
use crate::ids::MonitorId;
use crate::passes;
use crate::tenants::Keyring;

/// The most monitors, or the most runs, of one pass.
const MAX_PER_PASS: i64 = 200;
/// The longest sleep: a missed notification delays work by no more than this.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// The shortest sleep: another process may hold the lock of a due monitor.
const SHORTEST_SLEEP: Duration = Duration::from_millis(20);
/// The pause after a failure.
const ERROR_PAUSE: Duration = Duration::from_secs(1);

/// The dependencies of a tick.
#[derive(Debug, Clone)]
pub struct Ticker {
    /// A migrated database.
    pub pool: PgPool,
    /// Opens the monitors' keys, and seals them for their scans.
    pub ring: Arc<Keyring>,
    /// The initial pace of new lanes.
    pub pace: PaceConfig,
    /// The time limit for the rules of one run.
    pub evaluation_timeout: Duration,
    /// The root of the dashboard's pages, for the links of messages.
    pub public_url: Option<String>,
}

/// Ticks until `stop`, and finishes a pass that has begun. Evaluation runs concurrently with the
/// decisions, so slow rules of one tenant do not delay another tenant's slot.
pub async fn run(ticker: Ticker, stop: CancellationToken) {
    let wake = Wake::default();
    let deciding = run_passes(&stop, &wake.slots, || async {
        let time = DatabaseTime::read(&ticker.pool).await?;
        let pass = ticker.decide_due_slots(|| time.now()).await?;
        Ok(pass.sleep(time.now()))
    });
    let evaluating = run_passes(&stop, &wake.runs, || async {
        let time = DatabaseTime::read(&ticker.pool).await?;
        Ok(ticker.evaluate_ended_runs(|| time.now()).await?.sleep())
    });
    let notifying = run_passes(&stop, &wake.held, || async {
        let time = DatabaseTime::read(&ticker.pool).await?;
        let pass = ticker.send_held_alerts(|| time.now()).await?;
        Ok(pass.sleep(time.now()))
    });
    // While the connection is down, the passes poll.
    let options = (*ticker.pool.connect_options()).clone();
    let listening = db::listen(options, "farescan_monitor", &stop, |_| wake.notify_all());
    tokio::join!(deciding, evaluating, notifying, listening);
}

/// Repeats `pass`, which returns how long to sleep after it, until `stop`.
async fn run_passes<P: Future<Output = sqlx::Result<Duration>>>(
    stop: &CancellationToken,
    wake: &Notify,
    mut pass: impl FnMut() -> P,
) {
    let pass = || {
        pass().unwrap_or_else(|error| {
            tracing::warn!(%error, "tick pass failed");
            ERROR_PAUSE
        })
    };
    passes::run(stop, Some(wake), pass).await;
}

/// The sleep until a time, within the bounds of all sleeps.
fn sleep_until(next: Option<Timestamp>, now: Timestamp) -> Duration {
    let until = next.map(|next| Duration::try_from(next.duration_since(now)).unwrap_or_default());
    until
        .unwrap_or(LONGEST_SLEEP)
        .clamp(SHORTEST_SLEEP, LONGEST_SLEEP)
}

/// Ends all sleeps: a notification does not say which pass has work.
#[derive(Debug, Default)]
struct Wake {
    slots: Notify,
    runs: Notify,
    held: Notify,
}

impl Wake {
    fn notify_all(&self) {
        self.slots.notify_one();
        self.runs.notify_one();
        self.held.notify_one();
    }
}

/// Counts of a pass, in monitors or runs.
#[derive(Debug, Default)]
struct PassTally {
    done: AtomicUsize,
    skipped: AtomicUsize,
    failed: AtomicUsize,
}

impl PassTally {
    /// Counts one result. A failure does not stop the pass.
    fn count(&self, done: sqlx::Result<bool>, monitor: MonitorId) {
        let one = match done {
            Ok(true) => &self.done,
            Ok(false) => &self.skipped,
            Err(error) => {
                tracing::warn!(%monitor, %error, "monitor tick failed; the next pass retries");
                &self.failed
            }
        };
        one.fetch_add(1, Ordering::Relaxed);
    }
}
