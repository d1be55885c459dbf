//! The database's time, and how far this process's clock is from it.
//!
//! What one process decides for all (partitions, expiry, slots of monitors, upkeep) goes by the database's clock alone. What a process
//! notes of its own work (when a call began and ended) goes by its own clock; while that clock is wrong, the process does no such work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use sqlx::{PgExecutor, PgPool};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::measure;

/// The largest difference at which a process works.
pub const MOST_APART: SignedDuration = SignedDuration::from_secs(5);
/// How often the clocks are compared.
const COMPARED_EVERY: Duration = Duration::from_secs(2);

/// The database's time, read once and carried on by this machine's monotonic clock: never ahead of the database's clock.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseTime {
    read: Timestamp,
    answered_at: Instant,
}

impl DatabaseTime {
    /// Asks the database.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn read(database: impl PgExecutor<'_>) -> sqlx::Result<Self> {
        let read: jiff_sqlx::Timestamp = sqlx::query_scalar("select clock_timestamp()")
            .fetch_one(database)
            .await?;
        Ok(Self {
            read: read.to_jiff(),
            answered_at: Instant::now(),
        })
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.read
            .saturating_add(self.answered_at.elapsed())
            .unwrap_or(self.read)
    }
}

/// This process's clock, which is compared with the database's.
#[derive(Debug, Clone)]
pub struct Clock {
    source: fn() -> Timestamp,
    /// How far it is ahead of the database's (behind: negative), as of the last comparison.
    ahead: Arc<watch::Sender<SignedDuration>>,
}

/// This process's clock and the database's differ too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the clock of this process is {} s {} the database's; allowed: {} s. Set the clock of the machine",
    .0.abs().as_secs(), if .0.is_negative() { "behind" } else { "ahead of" }, MOST_APART.as_secs()
)]
pub struct Apart(pub SignedDuration);

impl Default for Clock {
    fn default() -> Self {
        Self::new(Timestamp::now)
    }
}

impl Clock {
    /// A clock that tells the time of `source`. It counts as right until it is compared.
    #[must_use]
    pub fn new(source: fn() -> Timestamp) -> Self {
        Self {
            source,
            ahead: Arc::new(watch::Sender::new(SignedDuration::ZERO)),
        }
    }

    /// The time that it tells.
    ///
    /// # Errors
    /// While it is too far from the database's clock.
    pub fn now(&self) -> Result<Timestamp, Apart> {
        self.check().map(|()| (self.source)())
    }

    /// Whether it was right when it was last compared.
    ///
    /// # Errors
    /// When it was too far from the database's clock.
    pub fn check(&self) -> Result<(), Apart> {
        let ahead = *self.ahead.borrow();
        if is_right(ahead) {
            Ok(())
        } else {
            Err(Apart(ahead))
        }
    }

    /// Compares it with the database's clock. Time on the way counts as no difference.
    ///
    /// # Errors
    /// When the database does not answer: what was known last holds.
    pub async fn compare(&self, pool: &PgPool) -> sqlx::Result<()> {
        let mut conn = pool.acquire().await?;
        let before = (self.source)();
        let theirs = DatabaseTime::read(&mut *conn).await?.read;
        let after = (self.source)();
        // The answer was given between the two: what lies between them is no difference.
        let ahead = before.duration_since(theirs).max(SignedDuration::ZERO)
            + after.duration_since(theirs).min(SignedDuration::ZERO);
        let was_right = self.check().is_ok();
        self.ahead.send_replace(ahead);
        measure::clock_ahead(ahead.as_secs_f64());
        match self.check() {
            Err(apart) if was_right => {
                tracing::error!(%apart, "no calls, no upkeep, no monitors and no job API until the clock is right");
            }
            Ok(()) if !was_right => tracing::info!("the clock is right again"),
            Ok(()) | Err(_) => {}
        }
        Ok(())
    }

    /// Compares again and again until `stop`.
    pub async fn keep_compared(&self, pool: &PgPool, stop: &CancellationToken) {
        let comparing = async {
            loop {
                tokio::time::sleep(COMPARED_EVERY).await;
                if let Err(error) = self.compare(pool).await {
                    tracing::debug!(%error, "the clock cannot be compared with the database's");
                }
            }
        };
        stop.run_until_cancelled(comparing).await;
    }

    /// Waits until a comparison says that it is right, or that it is wrong.
    pub async fn until(&self, right: bool) {
        // It ends early only when the sender is gone, which `self` holds.
        drop(
            self.ahead
                .subscribe()
                .wait_for(|ahead| is_right(*ahead) == right)
                .await,
        );
    }
}

fn is_right(ahead: SignedDuration) -> bool {
    ahead.abs() <= MOST_APART
}
