//! The database's time, and the difference between this process's clock and the database's.
//!
//! Decisions for all processes (partitions, expiry, monitor slots, upkeep) use the database's clock
//! only. Timestamps of a process's own calls use its own clock. A process whose clock is wrong
//! makes no calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use sqlx::{PgExecutor, PgPool};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::metrics;

/// Maximum difference at which a process works.
pub const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(5);
/// Interval between comparisons.
const COMPARE_INTERVAL: Duration = Duration::from_secs(2);

/// The database's time, read once and advanced by the monotonic clock: never ahead of the database.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseTime {
    read: Timestamp,
    answered_at: Instant,
}

impl DatabaseTime {
    /// Reads the database's clock.
    pub async fn read(database: impl PgExecutor<'_>) -> sqlx::Result<Self> {
        let read: jiff_sqlx::Timestamp = sqlx::query_scalar("select clock_timestamp()")
            .fetch_one(database)
            .await?;
        Ok(Self {
            read: read.to_jiff(),
            answered_at: Instant::now(),
        })
    }

    pub fn now(&self) -> Timestamp {
        self.read
            .saturating_add(self.answered_at.elapsed())
            .unwrap_or(self.read)
    }
}

/// This process's clock, compared with the database's.
#[derive(Debug, Clone)]
pub struct Clock {
    source: fn() -> Timestamp,
    /// Difference at the last comparison; negative if this clock is behind.
    ahead: Arc<watch::Sender<SignedDuration>>,
}

/// This process's clock differs too much from the database's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this machine's clock is {} s {} the database's; allowed: {} s. Correct the machine's clock",
    .0.abs().as_secs(), if .0.is_negative() { "behind" } else { "ahead of" }, MAX_CLOCK_SKEW.as_secs()
)]
pub struct ClockSkew(pub SignedDuration);

impl Default for Clock {
    fn default() -> Self {
        Self::new(Timestamp::now)
    }
}

impl Clock {
    /// A clock that reads `source`. It counts as right until the first comparison.
    pub fn new(source: fn() -> Timestamp) -> Self {
        Self {
            source,
            ahead: Arc::new(watch::Sender::new(SignedDuration::ZERO)),
        }
    }

    /// The current time.
    ///
    /// # Errors
    /// The clock differs too much from the database's.
    pub fn now(&self) -> Result<Timestamp, ClockSkew> {
        self.check().map(|()| (self.source)())
    }

    /// Whether the clock was right at the last comparison.
    ///
    /// # Errors
    /// The clock differs too much from the database's.
    pub fn check(&self) -> Result<(), ClockSkew> {
        let ahead = *self.ahead.borrow();
        if is_right(ahead) {
            Ok(())
        } else {
            Err(ClockSkew(ahead))
        }
    }

    /// Compares the clock with the database's. The time of the query itself does not count.
    ///
    /// # Errors
    /// Database errors; the last result stays valid.
    pub async fn compare(&self, pool: &PgPool) -> sqlx::Result<()> {
        let mut conn = pool.acquire().await?;
        let before = (self.source)();
        let database = DatabaseTime::read(&mut *conn).await?.read;
        let after = (self.source)();
        // The database read its clock between the two times.
        let ahead = before.duration_since(database).max(SignedDuration::ZERO)
            + after.duration_since(database).min(SignedDuration::ZERO);
        let was_right = self.check().is_ok();
        self.ahead.send_replace(ahead);
        metrics::clock_ahead(ahead.as_secs_f64());
        match self.check() {
            Err(skew) if was_right => {
                tracing::error!(%skew, "clock is wrong: calls, upkeep, monitors and job API are suspended");
            }
            Ok(()) if !was_right => tracing::info!("clock is right again"),
            Ok(()) | Err(_) => {}
        }
        Ok(())
    }

    /// Compares the clocks periodically until `stop`.
    pub async fn compare_periodically(&self, pool: &PgPool, stop: &CancellationToken) {
        let comparing = async {
            loop {
                tokio::time::sleep(COMPARE_INTERVAL).await;
                if let Err(error) = self.compare(pool).await {
                    tracing::debug!(%error, "failed to compare the clock with the database's");
                }
            }
        };
        stop.run_until_cancelled(comparing).await;
    }

    /// Waits until the last comparison found the clock right (`true`) or wrong (`false`).
    pub async fn wait_until(&self, right: bool) {
        // Fails only if the sender is dropped, which `self` owns.
        drop(
            self.ahead
                .subscribe()
                .wait_for(|ahead| is_right(*ahead) == right)
                .await,
        );
    }
}

fn is_right(ahead: SignedDuration) -> bool {
    ahead.abs() <= MAX_CLOCK_SKEW
}
