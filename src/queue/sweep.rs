//! What nobody else does: giving up what dead processes held, waking retries that are due, beginning second phases, storing the rest of
//! scans whose callers were accepted, and upkeep. Any process, one at a time.
//!
//! Each step stands by itself, and so does each lane: one that fails, or whose locks somebody holds, is left to the next sweep, and the
//! others go on. Every sweep is bounded; what is left waits for the next.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::give_up::give_up_briefly;
use super::lease::Lease;
use super::store::{self, BusyLanes};
use super::upkeep;
use crate::db;
use crate::db::clock::DatabaseTime;
use crate::scans::{expand, two_phase};

/// How often retries that are due are looked for.
const TICK: Duration = Duration::from_secs(1);
/// How often dead processes are looked for in the time of a lease.
const LOOKS: u32 = 6;
/// How often tables that have grown are looked for: until one is found, the first large scan of a fresh database goes by plans for none.
const COUNT: Duration = Duration::from_secs(2);
/// How often there is upkeep, unless the last one left something.
const UPKEEP: Duration = Duration::from_secs(60);
/// The most items of one round, and the most rounds of one step in a sweep.
const PASS: i32 = 1000;
const ROUNDS: usize = 10;
/// Sweeps until `stop`.
pub(super) async fn run(pool: PgPool, lease: Arc<Lease>, stop: CancellationToken) {
    let sweeping = async {
        let mut sweep = Sweep::new(pool, lease.length());
        loop {
            if let Err(error) = sweep.once(lease.is_settled()).await {
                tracing::warn!(%error, "nothing could be swept; the next sweep goes on");
            }
            sleep(TICK).await;
        }
    };
    stop.run_until_cancelled(sweeping).await;
}

/// The sweeps of one process.
#[derive(Debug)]
pub struct Sweep {
    pool: PgPool,
    lease: Duration,
    last_count: Option<Instant>,
    last_look: Option<Instant>,
    last_upkeep: Option<Instant>,
}

impl Sweep {
    /// The sweeps of a process whose leases are this long.
    #[must_use]
    pub fn new(pool: PgPool, lease: Duration) -> Self {
        Self {
            pool,
            lease,
            last_count: None,
            last_look: None,
            last_upkeep: None,
        }
    }

    /// One sweep. Dead processes are looked for if `is_settled`: this process's own lease was held for long enough to believe that others
    /// could have renewed theirs.
    ///
    /// # Errors
    /// When the database does not answer. What fails on the way is logged, and the rest is done all the same.
    pub async fn once(&mut self, is_settled: bool) -> sqlx::Result<()> {
        // Held by an idle transaction, so that it goes with this process whatever becomes of it; from one that is stopped the database
        // takes it back after the time of a lease.
        let mut guard = db::begin(&self.pool).await?;
        let idle = format!("{}ms", self.lease.as_millis());
        sqlx::query_scalar!(
            "select set_config('idle_in_transaction_session_timeout', $1, true)",
            idle
        )
        .fetch_one(&mut *guard)
        .await?;
        let mine = sqlx::query_scalar!(
            r#"select pg_try_advisory_xact_lock(hashtextextended('farescan.sweep', 0)) as "mine!""#
        );
        if !mine.fetch_one(&mut *guard).await? {
            return Ok(());
        }
        let now = DatabaseTime::read(&mut *guard).await?.now();
        if is_settled && is_due(self.last_look, self.lease / LOOKS) {
            said("dead workers", self.bury_the_dead().await);
            self.last_look = Some(Instant::now());
        }
        said("retries", self.release_retries(now).await);
        said(
            "second phases",
            two_phase::begin_due(&self.pool, now).await.map(drop),
        );
        said(
            "scans of accepted callers",
            expand::expand_due(&self.pool, None, now).await.map(drop),
        );
        if is_due(self.last_count, COUNT) {
            said("statistics", self.analyse_grown().await);
            self.last_count = Some(Instant::now());
        }
        if is_due(self.last_upkeep, UPKEEP) {
            let is_done = upkeep::pass(&self.pool, now).await;
            self.last_upkeep = is_done.then(Instant::now);
        }
        if let Err(error) = guard.rollback().await {
            tracing::debug!(%error, "the sweep took longer than a lease: another process may have begun one");
        }
        Ok(())
    }

    /// Lane by lane, each in a transaction of its own.
    async fn bury_the_dead(&self) -> sqlx::Result<()> {
        sqlx::query!(
            "select from bury_workers(make_interval(secs => $1))",
            self.lease.as_secs_f64()
        )
        .execute(&self.pool)
        .await?;
        let mut busy = BusyLanes::default();
        for _ in 0..ROUNDS {
            let lanes = store::orphans(&self.pool, PASS, &busy).await?;
            if lanes.is_empty() {
                break;
            }
            for lane in lanes {
                match give_up_briefly(&self.pool, &lane).await {
                    Ok(lost) => tracing::warn!(
                        claims = lane.items.len(),
                        lost,
                        "claims of dead processes were given up"
                    ),
                    Err(error) => {
                        left("claims of dead processes", error)?;
                        busy.add(lane.tenant, &lane.api);
                    }
                }
            }
        }
        Ok(())
    }

    async fn release_retries(&self, now: Timestamp) -> sqlx::Result<()> {
        let mut busy = BusyLanes::default();
        for _ in 0..ROUNDS {
            let lanes = store::lanes_with_due_retries(&self.pool, PASS, &busy).await?;
            if lanes.is_empty() {
                break;
            }
            for (tenant, api) in lanes {
                let releasing = async {
                    let mut tx = db::begin(&self.pool).await?;
                    db::wait_briefly(&mut tx).await?;
                    store::release_delayed(&mut *tx, tenant, &api, PASS, now).await?;
                    tx.commit().await
                };
                if let Err(error) = releasing.await {
                    left("retries", error)?;
                    busy.add(tenant, &api);
                }
            }
        }
        Ok(())
    }

    async fn analyse_grown(&self) -> sqlx::Result<()> {
        sqlx::query!("select from analyse_grown()")
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}

/// One lane is left to the next sweep. An error: it is not the lane's, the database is gone.
fn left(what: &'static str, error: sqlx::Error) -> sqlx::Result<()> {
    if db::is_cut(&error) || matches!(error, sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed) {
        return Err(error);
    }
    tracing::warn!(what, %error, "a lane is left to the next sweep");
    Ok(())
}

/// A step that fails is not in the way of the others.
fn said(step: &'static str, done: sqlx::Result<()>) {
    if let Err(error) = done {
        tracing::warn!(step, %error, "a step of the sweep failed; the next sweep goes on with it");
    }
}

fn is_due(last: Option<Instant>, interval: Duration) -> bool {
    last.is_none_or(|last| last.elapsed() >= interval)
}
