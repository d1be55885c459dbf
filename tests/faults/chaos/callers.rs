//! Callers that send random commands on their scans.

use std::sync::Arc;
use std::time::Duration;

use farescan::commands::{CommandError, RequestContext};
use farescan::config::PaceConfig;
use farescan::ids::ScanId;
use farescan::scans::control::{delete, pause, resume};
use farescan::scans::{cancel, retry, submit};
use farescan::search::CallerKey;
use farescan::tenants::Keyring;
use futures::future::join_all;
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Map, Value, json};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::faults::ledger::DeletedCall;
use crate::support::airport_code;
use crate::worker::fixture::{WorkerFixture, fares};

use super::ActionCounts;

/// Callers, and scans of each at a time.
const CALLERS: u64 = 4;
const SCANS: usize = 3;

/// A caller with its scans and its own random choices.
struct RandomCaller {
    key: CallerKey,
    rng: StdRng,
    scans: Vec<ScanId>,
    done: ActionCounts,
    deleted: Vec<DeletedCall>,
}

pub struct RandomCallers(Vec<RandomCaller>);

fn context<'a>(fixture: &'a WorkerFixture, key: &'a CallerKey) -> RequestContext<'a> {
    RequestContext {
        pool: fixture.pool(),
        ring: &fixture.ring,
        key,
        now: Timestamp::now(),
    }
}

/// The body of a scan of this many items.
fn scan_body(items: i64, attempts: u8) -> Value {
    let mut body = fares(items);
    body["retry"] = json!({"max_attempts": attempts, "delay_seconds": 1});
    body
}

async fn submit(
    context: RequestContext<'_>,
    pace: &PaceConfig,
    body: &Value,
) -> Result<ScanId, CommandError> {
    Ok(
        submit::submit(context, pace, body.as_object().unwrap(), None)
            .await?
            .response
            .id,
    )
}

impl RandomCallers {
    pub fn new(seed: u64) -> Self {
        let caller = |number| RandomCaller {
            key: CallerKey::new(format!("life-caller-{number:04}")),
            rng: StdRng::seed_from_u64(seed.wrapping_add(number)),
            scans: Vec::new(),
            done: ActionCounts::new(),
            deleted: Vec::new(),
        };
        Self((0..CALLERS).map(caller).collect())
    }

    /// Completes one search of each caller, so that the marketplace has accepted its key.
    pub async fn warm_up(&mut self, fixture: &WorkerFixture) {
        for caller in &mut self.0 {
            caller.scans.push(
                submit(
                    context(fixture, &caller.key),
                    &fixture.pace,
                    &scan_body(1, 1),
                )
                .await
                .unwrap(),
            );
        }
        for _ in 0..6_000 {
            if fixture
                .count("select count(*) from scans where finished_at is null")
                .await
                == 0
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the first searches do not end");
    }

    /// Runs this many actions of each caller, all callers concurrently.
    pub async fn act(&mut self, fixture: &WorkerFixture, actions: usize) {
        join_all(self.0.iter_mut().map(|caller| caller.act(fixture, actions))).await;
    }

    /// The counts of their actions and the calls of deleted scans since the last report.
    pub fn report(&mut self) -> (ActionCounts, Vec<DeletedCall>) {
        let (mut done, mut deleted) = (ActionCounts::new(), Vec::new());
        for caller in &mut self.0 {
            for (what, times) in std::mem::take(&mut caller.done) {
                *done.entry(what).or_default() += times;
            }
            deleted.append(&mut caller.deleted);
        }
        (done, deleted)
    }

    /// Resumes every scan.
    pub async fn resume_all(&self, fixture: &WorkerFixture) {
        for caller in &self.0 {
            for scan in &caller.scans {
                // An ended scan cannot be resumed.
                resume::resume(context(fixture, &caller.key), *scan, &Map::new(), None)
                    .await
                    .ok();
            }
        }
    }
}

impl RandomCaller {
    async fn act(&mut self, fixture: &WorkerFixture, actions: usize) {
        for _ in 0..actions {
            tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..80))).await;
            // `None`: the command was refused, or a lock timed out.
            let Some(what) = self.step(fixture).await else {
                continue;
            };
            *self.done.entry(what).or_default() += 1;
        }
    }

    async fn step(&mut self, fixture: &WorkerFixture) -> Option<&'static str> {
        let rng = &mut self.rng;
        if self.scans.len() < SCANS && rng.random_bool(0.5) {
            let mut body = scan_body(rng.random_range(5..80), rng.random_range(1..3));
            // All scans of a caller have dates in common.
            if rng.random_bool(0.4) {
                body["max_age_seconds"] = json!(rng.random_range(1..4));
            }
            if rng.random_bool(0.3) {
                body["strategy"] = json!({"find": "cheapest"});
            }
            self.scans.push(
                submit(context(fixture, &self.key), &fixture.pace, &body)
                    .await
                    .ok()?,
            );
            return Some("submitted");
        }
        let scan = *self.scans.choose(rng)?;
        let context = || context(fixture, &self.key);
        match rng.random_range(0..100) {
            0..55 => {
                pause::pause(context(), scan).await.ok()?;
                tokio::time::sleep(Duration::from_millis(rng.random_range(0..20))).await;
                resume::resume(context(), scan, &Map::new(), None)
                    .await
                    .ok()?;
                Some("paused and resumed")
            }
            55..65 => pause::pause(context(), scan).await.ok().map(|_| "paused"),
            65..80 => resume::resume(context(), scan, &Map::new(), None)
                .await
                .ok()
                .map(|_| "resumed"),
            80..85 => cancel::cancel(context(), scan)
                .await
                .ok()
                .map(|_| "cancelled"),
            85..93 => {
                let again = json!({"search_status": ["degraded", "failed"]});
                retry::retry(context(), scan, again.as_object()?, None)
                    .await
                    .ok()
                    .map(|_| "retried")
            }
            _ => {
                let calls = DeletedCall::of(fixture.pool(), scan).await?;
                delete::delete(context(), scan, rng.random_bool(0.5))
                    .await
                    .ok()?;
                self.deleted.extend(calls);
                self.scans.retain(|other| *other != scan);
                Some("deleted")
            }
        }
    }
}

/// A caller that repeatedly submits and cancels 10,000 items.
pub struct CancellingCaller {
    pool: PgPool,
    ring: Arc<Keyring>,
    pace: PaceConfig,
    key: CallerKey,
    rng: StdRng,
}

impl CancellingCaller {
    pub fn new(fixture: &WorkerFixture, seed: u64) -> Self {
        Self {
            pool: fixture.pool().clone(),
            ring: Arc::clone(&fixture.ring),
            pace: fixture.pace.clone(),
            key: CallerKey::new("life-neighbour-0001"),
            rng: StdRng::seed_from_u64(seed),
        }
    }

    /// Runs until stopped; returns the number of cancelled scans.
    pub async fn act(mut self, stop: CancellationToken) -> usize {
        let mut body = fares(250);
        body["request"]
            .as_object_mut()
            .unwrap()
            .remove("to_airport");
        body["sweep"]["to_airport"] = (0..40).map(airport_code).collect();
        let mut done = 0;
        while !stop.is_cancelled() {
            let now = || RequestContext {
                pool: &self.pool,
                ring: &self.ring,
                key: &self.key,
                now: Timestamp::now(),
            };
            if let Ok(scan) = submit(now(), &self.pace, &body).await {
                tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..300))).await;
                // Another transaction may lock the rows.
                while cancel::cancel(now(), scan).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                done += 1;
            }
            tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..1_000))).await;
        }
        done
    }
}
