//! The process's lease: one row per process start, renewed on a connection of its own.
//!
//! Losing it never aborts a call: the call's late answer completes its item. But other processes
//! may have abandoned the claims under it, so the process begins none of them and takes a new
//! lease.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::{ConnectOptions as _, PgConnection, PgPool};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::WorkerId;
use super::abandon::abandon;
use super::claimed_item::CallPermits;
use super::database_retry::TRANSACTION_TIMEOUT;
use super::store;
use crate::upstream::Marketplace;
use crate::{db, metrics};

/// Renewals in the length of a lease.
const RENEWALS: u32 = 6;
/// A claim transaction ends, or times out, well within this.
const LEAK_GRACE: Duration = TRANSACTION_TIMEOUT.saturating_mul(2);

/// The lease as this process knows it, by the monotonic clock. The lease itself goes by the
/// database's clock.
#[derive(Debug)]
pub struct Lease {
    length: Duration,
    marketplace: Marketplace,
    state: Mutex<Option<HeldLease>>,
}

#[derive(Debug, Clone, Copy)]
struct HeldLease {
    worker: WorkerId,
    /// Start of the lease; every renewal since then was in time.
    since: Instant,
    /// When the last renewal was requested.
    renewed_at: Instant,
}

impl Lease {
    pub(super) fn new(length: Duration, marketplace: Marketplace) -> Self {
        Self {
            length,
            marketplace,
            state: Mutex::default(),
        }
    }

    /// The worker id, while the lease is certainly valid.
    pub(super) fn worker(&self) -> Option<WorkerId> {
        self.current()
            .filter(|lease| lease.renewed_at.elapsed() < self.length / 2)
            .map(|lease| lease.worker)
    }

    /// Until when a claim that was requested at `requested_at` may begin.
    pub(super) fn begin_until(&self, requested_at: Instant) -> Instant {
        requested_at + self.length / 2
    }

    /// The length of a lease.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// Whether the lease was held without a gap for longer than its length: then the database was
    /// reachable, and other processes could renew theirs.
    pub fn is_stable(&self) -> bool {
        self.current().is_some_and(|lease| {
            lease.renewed_at.elapsed() < self.length / 2 && lease.since.elapsed() > self.length
        })
    }

    /// Called when the database has declared this worker dead.
    pub(super) fn mark_lost(&self, worker: WorkerId) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_some_and(|lease| lease.worker == worker) {
            *state = None;
        }
    }

    fn current(&self) -> Option<HeldLease> {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark_renewed(&self, worker: WorkerId, requested_at: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let continuous = state.filter(|lease| {
            lease.worker == worker && requested_at.duration_since(lease.renewed_at) < self.length
        });
        metrics::lease_renewed();
        *state = Some(HeldLease {
            worker,
            since: continuous.map_or(requested_at, |lease| lease.since),
            renewed_at: requested_at,
        });
    }
}

/// Renews the lease until `stop`, and abandons leaked claims under it. Cancels `failed` if the
/// database was moved to another marketplace: then this process gets no lease again.
pub(super) async fn run(
    pool: PgPool,
    lease: Arc<Lease>,
    permits: CallPermits,
    failed: CancellationToken,
    stop: CancellationToken,
) {
    let renewing = async {
        loop {
            match renew_on_connection(&pool, &lease, &permits).await {
                Err(error) if db::has_sqlstate(&error, "23503") => {
                    tracing::error!(marketplace = %lease.marketplace, "lease refused: the database now belongs to another marketplace");
                    return failed.cancel();
                }
                Err(error) => tracing::warn!(%error, "lease renewal failed; retrying"),
                Ok(()) => {}
            }
            sleep((lease.length / RENEWALS / 10).min(Duration::from_millis(500))).await;
        }
    };
    stop.run_until_cancelled(renewing).await;
}

async fn renew_on_connection(
    pool: &PgPool,
    lease: &Lease,
    permits: &CallPermits,
) -> sqlx::Result<()> {
    let mut connection = with_timeout(pool.connect_options().connect()).await?;
    loop {
        let requested_at = Instant::now();
        let worker = match lease.current() {
            Some(current)
                if with_timeout(renew(&mut connection, current.worker, lease.length)).await? =>
            {
                current.worker
            }
            Some(_) | None => with_timeout(register(&mut connection, lease)).await?,
        };
        lease.mark_renewed(worker, requested_at);
        release_leaked_claims(pool, &mut connection, worker, permits).await?;
        sleep(lease.length / RENEWALS).await;
    }
}

async fn register(connection: &mut PgConnection, lease: &Lease) -> sqlx::Result<WorkerId> {
    let id = sqlx::query_scalar!(
        "insert into workers (lease_until, marketplace) values (clock_timestamp() + make_interval(secs => $1), $2) returning worker_id",
        lease.length.as_secs_f64(),
        lease.marketplace.as_str()
    )
    .fetch_one(connection)
    .await?;
    tracing::info!(worker = id, "lease acquired");
    Ok(WorkerId(id))
}

/// `false`: the worker was declared dead. An expired lease that no process has expired is renewed.
async fn renew(
    connection: &mut PgConnection,
    worker: WorkerId,
    length: Duration,
) -> sqlx::Result<bool> {
    let renewed = sqlx::query!(
        "update workers set lease_until = clock_timestamp() + make_interval(secs => $2) where worker_id = $1 and not dead",
        worker.0,
        length.as_secs_f64()
    )
    .execute(connection)
    .await?;
    Ok(renewed.rows_affected() == 1)
}

/// Abandons claims that this process does not know: the response of a claim was lost after its
/// commit.
async fn release_leaked_claims(
    pool: &PgPool,
    connection: &mut PgConnection,
    worker: WorkerId,
    permits: &CallPermits,
) -> sqlx::Result<()> {
    let open = permits.open_claims();
    for lane in with_timeout(store::leaked_claims(
        connection,
        worker,
        &open,
        LEAK_GRACE.as_secs_f64(),
    ))
    .await?
    {
        tracing::warn!(
            items = lane.items.len(),
            "abandoning claims whose response was lost"
        );
        with_timeout(abandon(pool, &lane)).await?;
    }
    Ok(())
}

/// Deletes the lease when the process ends, so that its claims are free at once.
pub(super) async fn release(pool: &PgPool, lease: &Lease) {
    let Some(current) = lease.current() else {
        return;
    };
    let deletion =
        sqlx::query!("delete from workers where worker_id = $1", current.worker.0).execute(pool);
    if let Err(error) = with_timeout(deletion).await {
        tracing::warn!(%error, "lease release failed; the lease expires by itself");
    }
}

async fn with_timeout<T>(query: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    timeout(TRANSACTION_TIMEOUT, query)
        .await
        .unwrap_or_else(|_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))
}
