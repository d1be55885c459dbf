//! The charges of synchronous calls: the caller's bill (scans.md, rule 71), and its lane, so that
//! scans yield to them (engine.md, rule 48).
//!
//! The gateway does not wait for this. A call is added to sums in memory, and a task of its own writes
//! them every 50 ms. While the database is unavailable the bill waits, within a bound; what the calls
//! said of the lane is dropped, because later plan headers carry the same. The key is reduced to
//! fingerprints at once. A caller without a lane is not charged there; a check of its key that reports
//! the plan creates the lane.
//!
//! The same task records that the marketplace accepted a key (docs/decisions/0029).

mod store;
mod usage;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::PaceConfig;
use crate::db::clock::DatabaseTime;
use crate::ids::TenantId;
use crate::metrics;
use crate::queue::TRANSACTION_TIMEOUT;
use crate::queue::lanes::{self, LaneUpdate};
use crate::search::{CallerKey, PlanQuota};
use crate::tenants::store::acceptance;
use crate::tenants::{self, Fingerprint, Keyring};

pub use self::usage::CallUsage;
use self::usage::{PendingCharge, WaitingSums};

/// How long the first call of a batch waits for others: what a process that is killed loses of the
/// bill of single searches.
const BATCH_WINDOW: Duration = Duration::from_millis(50);
/// The wait before a batch that could not be written is tried again.
const RETRY_WAIT: Duration = Duration::from_secs(1);

/// Adds up the charges of synchronous calls. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ChargeRecorder {
    ring: Arc<Keyring>,
    waiting: Arc<Waiting>,
    closing: CancellationToken,
    task: TaskTracker,
}

/// What is not written yet, and what wakes its writer.
#[derive(Debug, Default)]
struct Waiting {
    sums: Mutex<WaitingSums>,
    wake: Notify,
}

impl Waiting {
    fn sums(&self) -> MutexGuard<'_, WaitingSums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChargeRecorder {
    /// Starts the task that writes charges, until [`Self::finish`].
    pub fn start(pool: PgPool, ring: Arc<Keyring>, pace: PaceConfig) -> Self {
        let (closing, task) = (CancellationToken::new(), TaskTracker::new());
        let waiting = Arc::<Waiting>::default();
        let writer = ChargeWriter {
            pool,
            pace,
            waiting: Arc::clone(&waiting),
            in_doubt: None,
        };
        task.spawn(writer.run(closing.clone()));
        Self {
            ring,
            waiting,
            closing,
            task,
        }
    }

    /// Adds a call; never waits and never fails.
    pub fn record(&self, key: &CallerKey, usage: CallUsage) {
        if usage.says_nothing() {
            return;
        }
        let fingerprints = Fingerprint::all(&self.ring, key);
        self.waiting.sums().add(PendingCharge {
            fingerprints,
            usage,
        });
        self.waiting.wake.notify_one();
    }

    /// Writes what waits, or tries once. No call may be added any more.
    pub async fn finish(&self) {
        self.closing.cancel();
        self.task.close();
        self.task.wait().await;
    }
}

/// Writes what waits.
struct ChargeWriter {
    pool: PgPool,
    pace: PaceConfig,
    waiting: Arc<Waiting>,
    /// A batch and its transaction, of which nobody knows whether it was committed.
    in_doubt: Option<(String, Vec<PendingCharge>)>,
}

impl ChargeWriter {
    async fn run(mut self, closing: CancellationToken) {
        let mut last = false;
        while !last {
            if self.in_doubt.is_none() {
                closing
                    .run_until_cancelled(self.waiting.wake.notified())
                    .await;
            }
            closing.run_until_cancelled(sleep(BATCH_WINDOW)).await;
            // What is added after this is written in the next turn.
            last = closing.is_cancelled();
            if let Err(error) = self.write_waiting().await {
                tracing::debug!(%error, "charges of synchronous calls wait for the database");
                self.waiting.wake.notify_one();
                closing.run_until_cancelled(sleep(RETRY_WAIT)).await;
            }
        }
        let unwritten = self.waiting.sums().take().len();
        if unwritten > 0 || self.in_doubt.is_some() {
            tracing::warn!("usage of single searches could not be stored before the end");
        }
    }

    async fn write_waiting(&mut self) -> sqlx::Result<()> {
        self.settle_doubt().await?;
        let batch = self.waiting.sums().take();
        if batch.is_empty() {
            return Ok(());
        }
        let mut committing = None;
        let billing = bill(&self.pool, &batch, &mut committing);
        let billed = timeout(TRANSACTION_TIMEOUT, billing)
            .await
            .unwrap_or(Err(sqlx::Error::PoolTimedOut));
        let owners = match (billed, committing) {
            (Ok(owners), _) => owners,
            (Err(error), Some(transaction)) => {
                self.in_doubt = Some((transaction, batch));
                return Err(error);
            }
            (Err(error), None) => {
                self.waiting.sums().put_back(batch);
                return Err(error);
            }
        };
        let lost = self.waiting.sums().take_lost();
        if lost > 0 {
            metrics::usage_lost(lost);
            tracing::warn!(
                requests = lost,
                "the usage of single searches was not counted: too many callers searched while the database was unavailable"
            );
        }
        let updating = update_lanes(&self.pool, &self.pace, &batch, &owners);
        match timeout(TRANSACTION_TIMEOUT, updating).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "failed to charge synchronous calls"),
            Err(_) => tracing::debug!("charging synchronous calls timed out"),
        }
        Ok(())
    }

    /// Asks what became of a transaction whose end was not heard of: the same usage must not be added
    /// twice.
    async fn settle_doubt(&mut self) -> sqlx::Result<()> {
        let Some((transaction, batch)) = self.in_doubt.take() else {
            return Ok(());
        };
        let asking = store::was_committed(&self.pool, &transaction);
        match timeout(TRANSACTION_TIMEOUT, asking).await {
            Ok(Ok(Some(true))) => Ok(()),
            Ok(Ok(Some(false))) => {
                self.waiting.sums().put_back(batch);
                Ok(())
            }
            unknown => {
                self.in_doubt = Some((transaction, batch));
                match unknown {
                    Ok(Err(error)) => Err(error),
                    _ => Err(sqlx::Error::PoolTimedOut),
                }
            }
        }
    }
}

/// Adds a batch to the bill of its callers, and returns them. A call of a key that no marketplace has
/// accepted is of nobody.
async fn bill(
    pool: &PgPool,
    batch: &[PendingCharge],
    committing: &mut Option<String>,
) -> sqlx::Result<Vec<Option<ChargeOwner>>> {
    let mut owners = owners(pool, batch).await?;
    record_accepted(pool, batch, &mut owners).await?;
    let usage: Vec<_> = batch
        .iter()
        .zip(&owners)
        .filter_map(|(charge, owner)| Some(((*owner)?.tenant, charge.usage)))
        .filter(|(_, usage)| usage.counts.attempts > 0 || usage.counts.reused > 0)
        .collect();
    if !usage.is_empty() {
        store::add_usage(pool, &usage, committing).await?;
    }
    Ok(owners)
}

/// Records whose keys the marketplace accepted. A new caller becomes a tenant, so that its first
/// scan is not limited to one item.
async fn record_accepted(
    pool: &PgPool,
    batch: &[PendingCharge],
    owners: &mut [Option<ChargeOwner>],
) -> sqlx::Result<()> {
    if !batch.iter().any(|charge| charge.usage.accepted) {
        return Ok(());
    }
    let now = DatabaseTime::read(pool).await?.now();
    let mut known = BTreeSet::new();
    for (charge, owner) in batch.iter().zip(owners) {
        match owner {
            _ if !charge.usage.accepted => {}
            Some(owner) => _ = known.insert(owner.tenant),
            None => {
                let fingerprints = &charge.fingerprints;
                let tenant =
                    acceptance::record_fingerprints_accepted(pool, fingerprints, now).await?;
                *owner = Some(ChargeOwner {
                    tenant,
                    is_rotated: false,
                });
            }
        }
    }
    let known: Vec<_> = known.into_iter().collect();
    acceptance::record_accepted(&mut *pool.acquire().await?, &known, now).await?;
    Ok(())
}

/// The caller of a charge.
#[derive(Debug, Clone, Copy)]
struct ChargeOwner {
    tenant: TenantId,
    /// Its key was rotated since the call began.
    is_rotated: bool,
}

/// The caller of each charge. If its key was rotated since the call began, it is the caller who had it
/// then, even if somebody has the key anew (security.md, rule 10).
async fn owners(pool: &PgPool, batch: &[PendingCharge]) -> sqlx::Result<Vec<Option<ChargeOwner>>> {
    let fingerprints: Vec<_> = batch
        .iter()
        .flat_map(|charge| &charge.fingerprints)
        .collect();
    let tenants = tenants::store::find_all(pool, &fingerprints).await?;
    // After the look-up: a rotation that it does not see yet is then seen here.
    let first = batch
        .iter()
        .filter_map(|charge| charge.usage.began_at)
        .min();
    let rotated = match first {
        Some(first) => tenants::rotate::all_rotated_since(pool, &fingerprints, first).await?,
        None => HashMap::new(),
    };
    let owners = batch.iter().map(|charge| {
        let mut fingerprints = charge.fingerprints.iter();
        let of_rotation = fingerprints.clone().find_map(|fingerprint| {
            let (tenant, rotated_at) = rotated.get(fingerprint)?;
            (charge.usage.began_at? <= *rotated_at).then_some(*tenant)
        });
        let tenant = of_rotation.or_else(|| fingerprints.find_map(|one| tenants.get(one).copied()));
        tenant.map(|tenant| ChargeOwner {
            tenant,
            is_rotated: of_rotation.is_some(),
        })
    });
    Ok(owners.collect())
}

async fn update_lanes(
    pool: &PgPool,
    pace: &PaceConfig,
    batch: &[PendingCharge],
    owners: &[Option<ChargeOwner>],
) -> sqlx::Result<()> {
    for (charge, owner) in batch.iter().zip(owners) {
        let usage = &charge.usage;
        let is_news = usage.is_check && usage.accepted && usage.plan.remaining.is_some();
        if let Some(owner) = owner.filter(|_| is_news) {
            let mut conn = pool.acquire().await?;
            lanes::ensure_lane(&mut conn, owner.tenant, usage.endpoint.api(), pace).await?;
        }
    }
    let updates = batch.iter().zip(owners).filter_map(|(charge, owner)| {
        let CallUsage {
            endpoint,
            charged,
            plan,
            limited,
            ..
        } = charge.usage;
        let owner = (*owner)?;
        // What the marketplace says of the old key's plan says nothing of the new one's.
        let (limited, plan) = if owner.is_rotated {
            (None, PlanQuota::default())
        } else {
            (limited, plan)
        };
        Some(LaneUpdate {
            tenant: owner.tenant,
            api: endpoint.api(),
            answered: 0,
            charged,
            limited,
            plan,
        })
    });
    let updates = lanes::merge_by_lane(updates);
    if !updates.is_empty() {
        lanes::update(pool, &updates).await?;
    }
    Ok(())
}
