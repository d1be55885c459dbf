//! The process's lease: one row per process start, renewed on a connection of its own.
//!
//! Losing it never aborts a call: the call's late answer completes its item. It only means that others may have given up what was claimed
//! under it, so nothing claimed under it is begun any more, and the process takes a new one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::{ConnectOptions as _, PgConnection, PgPool};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::WorkerId;
use super::give_up::give_up;
use super::retry::MOVE_TIMEOUT;
use super::store;
use super::ticket::Slots;
use crate::upstream::Marketplace;
use crate::{db, measure};

/// Renewals in the time of a lease.
const RENEWALS: u32 = 6;
/// A claim is answered, or given up as unanswered, well within this.
const STRAY_GRACE: Duration = MOVE_TIMEOUT.saturating_mul(2);

/// What this process knows of its lease. Times are of the monotonic clock; the lease itself goes by the database's.
#[derive(Debug)]
pub(super) struct Lease {
    length: Duration,
    marketplace: Marketplace,
    state: Mutex<Option<Held>>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    worker: WorkerId,
    /// Without a gap since then.
    since: Instant,
    /// When the last renewal was asked for.
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

    /// The worker, while its lease is certainly good.
    pub(super) fn worker(&self) -> Option<WorkerId> {
        self.held()
            .filter(|held| held.renewed_at.elapsed() < self.length / 2)
            .map(|held| held.worker)
    }

    /// Until when a claim that was asked for at `asked_at` may be begun.
    pub(super) fn begin_until(&self, asked_at: Instant) -> Instant {
        asked_at + self.length / 2
    }

    /// How long a lease is.
    pub(super) fn length(&self) -> Duration {
        self.length
    }

    /// The lease was held for longer than a lease without a gap: so was, seen from here, the database up.
    pub(super) fn is_settled(&self) -> bool {
        self.held().is_some_and(|held| {
            held.renewed_at.elapsed() < self.length / 2 && held.since.elapsed() > self.length
        })
    }

    /// The database says that this worker is dead.
    pub(super) fn lost(&self, worker: WorkerId) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_some_and(|held| held.worker == worker) {
            *state = None;
        }
    }

    fn held(&self) -> Option<Held> {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renewed(&self, worker: WorkerId, asked_at: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let unbroken = state.filter(|held| {
            held.worker == worker && asked_at.duration_since(held.renewed_at) < self.length
        });
        measure::lease_renewed();
        *state = Some(Held {
            worker,
            since: unbroken.map_or(asked_at, |held| held.since),
            renewed_at: asked_at,
        });
    }
}

/// Keeps the lease until `stop`, and gives back claims that stand under it but never arrived. Cancels `failed` if the database belongs to
/// another marketplace meanwhile: no lease is given to this process again.
pub(super) async fn keep(
    pool: PgPool,
    lease: Arc<Lease>,
    slots: Slots,
    failed: CancellationToken,
    stop: CancellationToken,
) {
    let keeping = async {
        loop {
            match keep_on_one_connection(&pool, &lease, &slots).await {
                Err(error) if db::has_code(&error, "23503") => {
                    tracing::error!(marketplace = %lease.marketplace, "the database was moved to another marketplace than this process asks");
                    return failed.cancel();
                }
                Err(error) => tracing::warn!(%error, "the lease cannot be renewed"),
                Ok(()) => {}
            }
            sleep((lease.length / RENEWALS / 10).min(Duration::from_millis(500))).await;
        }
    };
    stop.run_until_cancelled(keeping).await;
}

async fn keep_on_one_connection(pool: &PgPool, lease: &Lease, slots: &Slots) -> sqlx::Result<()> {
    let mut connection = in_time(pool.connect_options().connect()).await?;
    loop {
        let asked_at = Instant::now();
        let worker = match lease.held() {
            Some(held) if in_time(renew(&mut connection, held.worker, lease.length)).await? => {
                held.worker
            }
            Some(_) | None => in_time(register(&mut connection, lease)).await?,
        };
        lease.renewed(worker, asked_at);
        give_back_strays(pool, &mut connection, worker, slots).await?;
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
    tracing::info!(worker = id, "a lease was taken");
    Ok(WorkerId(id))
}

/// `false`: the worker was declared dead. A lease that has run out and was not looked at is as good as any.
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

/// The answer to a claim may be lost after its commit: then items stand under this worker that it does not know of.
async fn give_back_strays(
    pool: &PgPool,
    connection: &mut PgConnection,
    worker: WorkerId,
    slots: &Slots,
) -> sqlx::Result<()> {
    let held = slots.held_claims();
    for lane in in_time(store::strays(
        connection,
        worker,
        &held,
        STRAY_GRACE.as_secs_f64(),
    ))
    .await?
    {
        tracing::warn!(
            items = lane.items.len(),
            "claims whose answer was lost are given back"
        );
        in_time(give_up(pool, &lane)).await?;
    }
    Ok(())
}

/// At the end of the process: what stood under the lease is free at once.
pub(super) async fn give_back(pool: &PgPool, lease: &Lease) {
    let Some(held) = lease.held() else { return };
    let gone =
        sqlx::query!("delete from workers where worker_id = $1", held.worker.0).execute(pool);
    if let Err(error) = in_time(gone).await {
        tracing::warn!(%error, "the lease could not be given back; it runs out by itself");
    }
}

async fn in_time<T>(step: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    timeout(MOVE_TIMEOUT, step)
        .await
        .unwrap_or_else(|_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))
}
