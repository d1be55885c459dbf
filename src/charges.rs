//! Charges synchronous calls to their caller's lane after the fact, so that scans yield to them
//! (engine.md, rule 48).
//!
//! The gateway does not wait for this: it adds a charge to a bounded queue, and a task of its own
//! updates the lanes. A charge is dropped if the queue is full or the database is unavailable:
//! later plan headers carry the same. The key is reduced to fingerprints at once. A caller without
//! a lane is not charged; a check of its key that reports the plan creates the lane.
//!
//! The same task records that the marketplace accepted a key (docs/decisions/0029).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::PaceConfig;
use crate::contract::Api;
use crate::db::clock::DatabaseTime;
use crate::ids::TenantId;
use crate::queue::TRANSACTION_TIMEOUT;
use crate::queue::lanes::{self, LaneUpdate};
use crate::search::disposition::{self, LanePause};
use crate::search::{CallerKey, Outcome, PlanQuota, Search};
use crate::tenants::acceptance::means_accepted;
use crate::tenants::store::acceptance;
use crate::tenants::{self, Fingerprint, Keyring};
use crate::upstream::Probe;

/// The most charges that wait; one is under 200 bytes.
const QUEUE_CAPACITY: usize = 1_000;
/// How long the first charge of a batch waits for others.
const BATCH_WINDOW: Duration = Duration::from_millis(50);

/// The usage of a synchronous call.
#[derive(Debug, Clone, Copy)]
pub struct CallUsage {
    api: Api,
    billed: u16,
    plan: PlanQuota,
    limited: Option<Duration>,
    /// The marketplace accepted the key.
    accepted: bool,
    /// A key check, which stores what is left of the plan even if no scan has used the API yet.
    is_check: bool,
    /// When it began, if the clock was right: before a rotation of its key it is of the caller who
    /// had the key then.
    began_at: Option<Timestamp>,
}

impl CallUsage {
    /// The usage of a search.
    #[must_use]
    pub fn from_search(search: &Search, outcome: &Outcome, began_at: Option<Timestamp>) -> Self {
        let limited = match disposition::of(search, outcome).lane {
            Some(LanePause::RateLimited(time)) => Some(time),
            _ => None,
        };
        let accepted = outcome.http_status.is_some_and(means_accepted);
        Self {
            api: search.endpoint().api(),
            billed: outcome.billed_requests,
            plan: outcome.plan,
            limited,
            accepted,
            is_check: false,
            began_at,
        }
    }

    /// The usage of a key check.
    #[must_use]
    pub fn from_probe(api: Api, probe: &Probe, began_at: Option<Timestamp>) -> Self {
        let accepted = probe.verdict.as_ref().is_ok_and(|reason| reason.is_ok());
        Self {
            api,
            billed: probe.billed_requests,
            plan: probe.plan,
            limited: None,
            accepted,
            is_check: true,
            began_at,
        }
    }
}

/// A charge that is not written yet.
#[derive(Debug)]
struct PendingCharge {
    fingerprints: Vec<Fingerprint>,
    usage: CallUsage,
}

/// Queues the charges of synchronous calls. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ChargeRecorder {
    ring: Arc<Keyring>,
    queue: mpsc::Sender<PendingCharge>,
}

impl ChargeRecorder {
    /// Starts the task that writes charges, until `stop`.
    #[must_use]
    pub fn start(
        pool: PgPool,
        ring: Arc<Keyring>,
        pace: PaceConfig,
        stop: &CancellationToken,
    ) -> Self {
        let (queue, charges) = mpsc::channel(QUEUE_CAPACITY);
        let stop = stop.clone();
        tokio::spawn(async move { stop.run_until_cancelled(run(pool, pace, charges)).await });
        Self { ring, queue }
    }

    /// Queues the charge of a call; never waits and never fails.
    pub fn record(&self, key: &CallerKey, usage: CallUsage) {
        if usage.billed == 0 && usage.plan == PlanQuota::default() && !usage.accepted {
            return;
        }
        // Reserved first: a full queue costs no fingerprints.
        if let Ok(permit) = self.queue.try_reserve() {
            permit.send(PendingCharge {
                fingerprints: Fingerprint::all(&self.ring, key),
                usage,
            });
        }
    }
}

async fn run(pool: PgPool, pace: PaceConfig, mut charges: mpsc::Receiver<PendingCharge>) {
    let mut batch = Vec::new();
    while let Some(first) = charges.recv().await {
        sleep(BATCH_WINDOW).await;
        batch.push(first);
        while batch.len() < QUEUE_CAPACITY
            && let Ok(next) = charges.try_recv()
        {
            batch.push(next);
        }
        match timeout(TRANSACTION_TIMEOUT, update_lanes(&pool, &pace, &batch)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "failed to charge synchronous calls"),
            Err(_) => tracing::debug!("charging synchronous calls timed out"),
        }
        batch.clear();
    }
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
) -> sqlx::Result<()> {
    let mut owners = owners(pool, batch).await?;
    record_accepted(pool, batch, &mut owners).await?;
    for (charge, owner) in batch.iter().zip(&owners) {
        let usage = &charge.usage;
        let is_news = usage.is_check && usage.accepted && usage.plan.remaining.is_some();
        if let Some(owner) = owner.filter(|_| is_news) {
            let mut conn = pool.acquire().await?;
            lanes::ensure_lane(&mut conn, owner.tenant, usage.api, pace).await?;
        }
    }
    let updates = batch.iter().zip(&owners).filter_map(|(charge, owner)| {
        let CallUsage {
            api,
            billed,
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
            api,
            answered: 0,
            charged: billed.into(),
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
