//! The sweeper: abandons the claims of dead workers, releases due retries, decides what
//! scans search next, counts what their questions would have missed, expands the scans of accepted callers, and deletes what has expired. One process at a
//! time.
//!
//! Steps and lanes are independent: one that fails or is locked is retried by the next sweep, and
//! the others go on. Every sweep is bounded.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::expired;
use crate::db;
use crate::db::clock::DatabaseTime;
use crate::queue::Lease;
use crate::queue::abandon::abandon_with_lock_timeout;
use crate::queue::store::{self, LockedLanes};
use crate::scans::after_acceptance;
use crate::scans::question::{self, DueWork, Turn};
use crate::scans::reuse;

/// The time between two sweeps.
const INTERVAL: Duration = Duration::from_secs(1);
/// Checks for dead workers in the length of a lease.
const CHECKS_PER_LEASE: u32 = 6;
/// How often grown tables are analyzed: without statistics the first large scan of a new database
/// has plans for empty tables.
const ANALYZE_INTERVAL: Duration = Duration::from_secs(2);
/// How often expired rows are deleted; at once again if some are left.
const DELETION_INTERVAL: Duration = Duration::from_secs(60);
/// How long a sweep makes decisions of strategies, and counts replays, while dead workers and retries wait.
const MAX_DECIDING: Duration = Duration::from_secs(1);
/// The most items of one round, and the most rounds of one step.
const MAX_ITEMS: i32 = 1000;
const MAX_ROUNDS: usize = 10;

/// Sweeps until `stop`.
pub(super) async fn run(pool: PgPool, lease: Arc<Lease>, stop: CancellationToken) {
    let sweeping = async {
        let mut sweeper = Sweeper::new(pool, lease.length());
        loop {
            if let Err(error) = sweeper.run_once(lease.is_stable()).await {
                tracing::warn!(%error, "sweep failed; the next sweep retries");
            }
            sleep(INTERVAL).await;
        }
    };
    stop.run_until_cancelled(sweeping).await;
}

/// The sweeper of one process.
#[derive(Debug)]
pub struct Sweeper {
    pool: PgPool,
    lease: Duration,
    last_analyze: Option<Instant>,
    last_worker_check: Option<Instant>,
    last_deletion: Option<Instant>,
    decisions: Turn,
    replays: Turn,
}

impl Sweeper {
    /// The sweeper of a process with leases of this length.
    pub fn new(pool: PgPool, lease: Duration) -> Self {
        Self {
            pool,
            lease,
            last_analyze: None,
            last_worker_check: None,
            last_deletion: None,
            decisions: Turn::default(),
            replays: Turn::default(),
        }
    }

    /// Sweeps once. Checks for dead workers if `is_stable`: this process has held its own lease
    /// long enough that others could have renewed theirs. Logs a step that fails and goes on.
    pub async fn run_once(&mut self, is_stable: bool) -> sqlx::Result<()> {
        // An idle transaction holds the lock, so that it ends with this process. If the process is
        // suspended, the database ends the transaction after the length of a lease.
        let mut guard = db::begin(&self.pool).await?;
        let idle = format!("{}ms", self.lease.as_millis());
        sqlx::query_scalar!(
            "select set_config('idle_in_transaction_session_timeout', $1, true)",
            idle
        )
        .fetch_one(&mut *guard)
        .await?;
        let acquired = sqlx::query_scalar!(
            r#"select pg_try_advisory_xact_lock(hashtextextended('farescan.sweep', 0)) as "mine!""#
        );
        if !acquired.fetch_one(&mut *guard).await? {
            return Ok(());
        }
        let time = DatabaseTime::read(&mut *guard).await?;
        let now = time.now();
        if is_stable && is_due(self.last_worker_check, self.lease / CHECKS_PER_LEASE) {
            log_error("dead workers", self.expire_workers().await);
            self.last_worker_check = Some(Instant::now());
        }
        log_error("waiting searches", self.settle_forgotten_waits(time).await);
        log_error("retries", self.release_retries(now).await);
        log_error(
            "decisions",
            question::do_due(
                &self.pool,
                DueWork::Decisions,
                &mut self.decisions,
                MAX_DECIDING,
                now,
            )
            .await
            .map(drop),
        );
        log_error(
            "replays",
            question::do_due(
                &self.pool,
                DueWork::Replays,
                &mut self.replays,
                MAX_DECIDING,
                now,
            )
            .await
            .map(drop),
        );
        log_error(
            "scans of accepted callers",
            after_acceptance::expand_due_scans(&self.pool, None, now)
                .await
                .map(drop),
        );
        if is_due(self.last_analyze, ANALYZE_INTERVAL) {
            log_error("statistics", self.analyze_grown_tables().await);
            self.last_analyze = Some(Instant::now());
        }
        if is_due(self.last_deletion, DELETION_INTERVAL) {
            let is_complete = expired::delete(&self.pool, now).await;
            self.last_deletion = is_complete.then(Instant::now);
        }
        if let Err(error) = guard.rollback().await {
            tracing::debug!(%error, "sweep took longer than a lease; another process may have started one");
        }
        Ok(())
    }

    /// Declares workers dead and abandons their claims, each lane in its own transaction.
    async fn expire_workers(&self) -> sqlx::Result<()> {
        sqlx::query!(
            "select from expire_workers(make_interval(secs => $1))",
            self.lease.as_secs_f64()
        )
        .execute(&self.pool)
        .await?;
        let mut busy = LockedLanes::default();
        for _ in 0..MAX_ROUNDS {
            let lanes = store::orphaned_claims(&self.pool, MAX_ITEMS, &busy).await?;
            if lanes.is_empty() {
                break;
            }
            for lane in lanes {
                match abandon_with_lock_timeout(&self.pool, &lane).await {
                    Ok(lost) => tracing::warn!(
                        claims = lane.items.len(),
                        lost,
                        "abandoned claims of dead workers"
                    ),
                    Err(error) => {
                        skip_lane("dead workers", error)?;
                        busy.add(lane.tenant, &lane.api);
                    }
                }
            }
        }
        Ok(())
    }

    /// Settles searches that wait for one that has ended: the process that made it settles them at
    /// once, unless it has died or a row was locked.
    async fn settle_forgotten_waits(&self, time: DatabaseTime) -> sqlx::Result<()> {
        let mut busy = LockedLanes::default();
        for _ in 0..MAX_ROUNDS {
            let lanes = store::forgotten_waits(&self.pool, MAX_ITEMS, &busy).await?;
            if lanes.is_empty() {
                break;
            }
            for (tenant, api, items) in lanes {
                // The age of an answer counts from here: an earlier lane may have been waited for.
                let now = time.now();
                let settled =
                    reuse::settle_shared_searches(&self.pool, tenant, &api, &items, now).await;
                if let Err(error) = settled {
                    skip_lane("waiting searches", error)?;
                    busy.add(tenant, &api);
                }
            }
        }
        Ok(())
    }

    async fn release_retries(&self, now: Timestamp) -> sqlx::Result<()> {
        let mut busy = LockedLanes::default();
        for _ in 0..MAX_ROUNDS {
            let lanes = store::lanes_with_due_retries(&self.pool, MAX_ITEMS, &busy).await?;
            if lanes.is_empty() {
                break;
            }
            for (tenant, api) in lanes {
                let releasing = async {
                    let mut tx = db::begin(&self.pool).await?;
                    db::set_brief_lock_timeout(&mut tx).await?;
                    store::release_due_retries(&mut *tx, tenant, &api, MAX_ITEMS, now).await?;
                    tx.commit().await
                };
                if let Err(error) = releasing.await {
                    skip_lane("retries", error)?;
                    busy.add(tenant, &api);
                }
            }
        }
        Ok(())
    }

    async fn analyze_grown_tables(&self) -> sqlx::Result<()> {
        sqlx::query!("select from analyze_grown_tables()")
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}

/// Skips one lane until the next sweep. Returns an error if the database is unavailable.
fn skip_lane(step: &'static str, error: sqlx::Error) -> sqlx::Result<()> {
    if db::is_disconnected(&error)
        || matches!(error, sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed)
    {
        return Err(error);
    }
    tracing::warn!(step, %error, "lane skipped; the next sweep retries");
    Ok(())
}

/// Logs the error of a step, so that the others go on.
fn log_error(step: &'static str, done: sqlx::Result<()>) {
    if let Err(error) = done {
        tracing::warn!(step, %error, "sweep step failed; the next sweep retries");
    }
}

fn is_due(last: Option<Instant>, interval: Duration) -> bool {
    last.is_none_or(|last| last.elapsed() >= interval)
}
