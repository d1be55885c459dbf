//! Synchronous calls, counted against their caller's lane after the fact, so that scans yield to them (engine, "Learning the pace").
//!
//! The gateway answers as if this were not here: a call is noted without waiting, in a line of bounded length, and told to the database by
//! a task of its own. What finds the line full or the database away is dropped: the plan's headers say the same a little later. The
//! caller's key is turned into fingerprints at once and goes no further. A caller without a lane is charged nothing.
//!
//! That the marketplace accepted the key is recorded in the same way (docs/decisions/0029).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::lanes::{self, LaneNews};
use super::retry::MOVE_TIMEOUT;
use crate::contract::Api;
use crate::db::clock::DatabaseTime;
use crate::ids::TenantId;
use crate::search::fate::{self, LanePause};
use crate::search::{CallerKey, Outcome, PlanQuota, Search};
use crate::tenants::acceptance::shows_acceptance;
use crate::tenants::store::acceptance;
use crate::tenants::{self, Fingerprint, Keyring};
use crate::upstream::Probe;

/// The most calls that wait to be told; one is under 200 bytes.
const LONGEST_LINE: usize = 1_000;
/// How long the first call of a batch waits for others.
const COLLECT: Duration = Duration::from_millis(50);

/// What a synchronous call used up.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    api: Api,
    billed: u16,
    plan: PlanQuota,
    limited: Option<Duration>,
    /// It showed that the marketplace knows the key.
    accepted: bool,
}

impl Spent {
    /// By a search.
    #[must_use]
    pub fn by_search(search: &Search, outcome: &Outcome) -> Self {
        let limited = match fate::of(search, outcome).lane {
            Some(LanePause::RateLimited(time)) => Some(time),
            _ => None,
        };
        let accepted = outcome.http_status.is_some_and(shows_acceptance);
        Self {
            api: search.endpoint().api(),
            billed: outcome.billed_requests,
            plan: outcome.plan,
            limited,
            accepted,
        }
    }

    /// By a check of the key.
    #[must_use]
    pub fn by_probe(api: Api, probe: &Probe) -> Self {
        let accepted = probe.verdict.as_ref().is_ok_and(|reason| reason.is_ok());
        Self {
            api,
            billed: probe.billed_requests,
            plan: probe.plan,
            limited: None,
            accepted,
        }
    }
}

/// A call that waits to be told.
#[derive(Debug)]
struct Noted {
    prints: Vec<Fingerprint>,
    spent: Spent,
}

/// Where synchronous calls are noted. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Charges {
    ring: Arc<Keyring>,
    line: mpsc::Sender<Noted>,
}

impl Charges {
    /// Tells `pool` until `stop`.
    #[must_use]
    pub fn start(pool: PgPool, ring: Arc<Keyring>, stop: &CancellationToken) -> Self {
        let (line, noted) = mpsc::channel(LONGEST_LINE);
        let stop = stop.clone();
        tokio::spawn(async move { stop.run_until_cancelled(serve(pool, noted)).await });
        Self { ring, line }
    }

    /// Notes a call of this caller; never waits and never fails.
    pub fn note(&self, key: &CallerKey, spent: Spent) {
        if spent.billed == 0 && spent.plan == PlanQuota::default() && !spent.accepted {
            return;
        }
        // The place first: in a full line nothing is worked out.
        if let Ok(place) = self.line.try_reserve() {
            place.send(Noted {
                prints: Fingerprint::all(&self.ring, key),
                spent,
            });
        }
    }
}

async fn serve(pool: PgPool, mut noted: mpsc::Receiver<Noted>) {
    let mut batch = Vec::new();
    while let Some(first) = noted.recv().await {
        sleep(COLLECT).await;
        batch.push(first);
        while batch.len() < LONGEST_LINE
            && let Ok(next) = noted.try_recv()
        {
            batch.push(next);
        }
        match timeout(MOVE_TIMEOUT, tell(&pool, &batch)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "lanes were not told of synchronous calls"),
            Err(_) => tracing::debug!("lanes were not told of synchronous calls in time"),
        }
        batch.clear();
    }
}

/// Records whose keys the marketplace accepted. A caller who never ordered anything becomes a tenant by it: what it orders next is not held
/// back.
async fn record_accepted(
    pool: &PgPool,
    batch: &[Noted],
    tenants: &HashMap<Fingerprint, TenantId>,
) -> sqlx::Result<()> {
    if !batch.iter().any(|noted| noted.spent.accepted) {
        return Ok(());
    }
    let now = DatabaseTime::read(pool).await?.now();
    let mut known = BTreeSet::new();
    for noted in batch.iter().filter(|noted| noted.spent.accepted) {
        match noted.prints.iter().find_map(|print| tenants.get(print)) {
            Some(tenant) => _ = known.insert(*tenant),
            None => acceptance::record_prints(pool, &noted.prints, now).await?,
        }
    }
    let known: Vec<_> = known.into_iter().collect();
    acceptance::record_accepted(&mut *pool.acquire().await?, &known, now).await?;
    Ok(())
}

async fn tell(pool: &PgPool, batch: &[Noted]) -> sqlx::Result<()> {
    let prints: Vec<_> = batch.iter().flat_map(|noted| &noted.prints).collect();
    let tenants = tenants::store::find_all(pool, &prints).await?;
    record_accepted(pool, batch, &tenants).await?;
    let news = batch.iter().filter_map(|noted| {
        let tenant = noted.prints.iter().find_map(|print| tenants.get(print))?;
        let Spent {
            api,
            billed,
            plan,
            limited,
            ..
        } = noted.spent;
        Some(LaneNews {
            tenant: *tenant,
            api,
            answered: 0,
            charged: billed.into(),
            limited,
            plan,
        })
    });
    let news = lanes::by_lane(news);
    if !news.is_empty() {
        lanes::tell(pool, &news).await?;
    }
    Ok(())
}
