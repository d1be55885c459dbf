//! What callers do to their scans, at random.

use std::sync::Arc;
use std::time::Duration;

use farescan::config::PaceConfig;
use farescan::ids::ScanId;
use farescan::scans::control::{delete, pause, resume};
use farescan::scans::{Desk, ScanError, cancel, retry, submit};
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

use crate::faults::books::Deleted;
use crate::worker::stage::{Stage, fares};

use super::Tally;

/// Callers, and scans of each at a time.
const CALLERS: u64 = 4;
const SCANS: usize = 3;

/// One caller: a key.
struct Caller {
    key: CallerKey,
    dice: StdRng,
    scans: Vec<ScanId>,
    done: Tally,
    deleted: Vec<Deleted>,
}

pub struct Callers(Vec<Caller>);

fn desk<'a>(stage: &'a Stage, key: &'a CallerKey) -> Desk<'a> {
    Desk {
        pool: stage.pool(),
        ring: &stage.ring,
        key,
        now: Timestamp::now(),
    }
}

/// An order of so many items.
fn order(items: i64, attempts: u8) -> Value {
    let mut order = fares(items);
    order["retry"] = json!({"max_attempts": attempts, "delay_seconds": 1});
    order
}

async fn submit(desk: Desk<'_>, pace: &PaceConfig, order: &Value) -> Result<ScanId, ScanError> {
    Ok(submit::submit(desk, pace, order.as_object().unwrap(), None)
        .await?
        .answer
        .id)
}

impl Callers {
    pub fn new(seed: u64) -> Self {
        let caller = |number| Caller {
            key: CallerKey::new(format!("life-caller-{number:04}")),
            dice: StdRng::seed_from_u64(seed.wrapping_add(number)),
            scans: Vec::new(),
            done: Tally::new(),
            deleted: Vec::new(),
        };
        Self((0..CALLERS).map(caller).collect())
    }

    /// One search of each caller, so that the marketplace has accepted his key.
    pub async fn warm_up(&mut self, stage: &Stage) {
        for caller in &mut self.0 {
            caller.scans.push(
                submit(desk(stage, &caller.key), &stage.pace, &order(1, 1))
                    .await
                    .unwrap(),
            );
        }
        for _ in 0..6_000 {
            if stage
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

    /// All of them at the same time, each so many moves.
    pub async fn live(&mut self, stage: &Stage, moves: usize) {
        join_all(self.0.iter_mut().map(|caller| caller.live(stage, moves))).await;
    }

    /// What they have done, how often, and the calls of scans that they have deleted since this was asked last.
    pub fn report(&mut self) -> (Tally, Vec<Deleted>) {
        let (mut done, mut deleted) = (Tally::new(), Vec::new());
        for caller in &mut self.0 {
            for (what, times) in std::mem::take(&mut caller.done) {
                *done.entry(what).or_default() += times;
            }
            deleted.append(&mut caller.deleted);
        }
        (done, deleted)
    }

    /// No scan stays paused.
    pub async fn resume_all(&self, stage: &Stage) {
        for caller in &self.0 {
            for scan in &caller.scans {
                // One that has ended is refused.
                resume::resume(desk(stage, &caller.key), *scan, &Map::new(), None)
                    .await
                    .ok();
            }
        }
    }
}

impl Caller {
    async fn live(&mut self, stage: &Stage, moves: usize) {
        for _ in 0..moves {
            tokio::time::sleep(Duration::from_millis(self.dice.random_range(0..80))).await;
            // Refused, or the database was too busy with somebody's locks.
            let Some(what) = self.step(stage).await else {
                continue;
            };
            *self.done.entry(what).or_default() += 1;
        }
    }

    async fn step(&mut self, stage: &Stage) -> Option<&'static str> {
        let dice = &mut self.dice;
        if self.scans.len() < SCANS && dice.random_bool(0.5) {
            let order = order(dice.random_range(5..80), dice.random_range(1..3));
            self.scans.push(
                submit(desk(stage, &self.key), &stage.pace, &order)
                    .await
                    .ok()?,
            );
            return Some("ordered");
        }
        let scan = *self.scans.choose(dice)?;
        let desk = || desk(stage, &self.key);
        match dice.random_range(0..100) {
            0..55 => {
                pause::pause(desk(), scan).await.ok()?;
                tokio::time::sleep(Duration::from_millis(dice.random_range(0..20))).await;
                resume::resume(desk(), scan, &Map::new(), None).await.ok()?;
                Some("paused and resumed")
            }
            55..65 => pause::pause(desk(), scan).await.ok().map(|_| "paused"),
            65..80 => resume::resume(desk(), scan, &Map::new(), None)
                .await
                .ok()
                .map(|_| "resumed"),
            80..85 => cancel::cancel(desk(), scan).await.ok().map(|_| "cancelled"),
            85..93 => {
                let again = json!({"search_status": ["degraded", "failed"]});
                retry::retry(desk(), scan, again.as_object()?, None)
                    .await
                    .ok()
                    .map(|_| "retried")
            }
            _ => {
                let calls = Deleted::of(stage.pool(), scan).await?;
                delete::delete(desk(), scan, dice.random_bool(0.5))
                    .await
                    .ok()?;
                self.deleted.extend(calls);
                self.scans.retain(|other| *other != scan);
                Some("deleted")
            }
        }
    }
}

/// A caller who orders 10,000 items and takes them back, again and again.
pub struct Neighbour {
    pool: PgPool,
    ring: Arc<Keyring>,
    pace: PaceConfig,
    key: CallerKey,
    dice: StdRng,
}

impl Neighbour {
    pub fn new(stage: &Stage, seed: u64) -> Self {
        Self {
            pool: stage.pool().clone(),
            ring: Arc::clone(&stage.ring),
            pace: stage.pace.clone(),
            key: CallerKey::new("life-neighbour-0001"),
            dice: StdRng::seed_from_u64(seed),
        }
    }

    /// Gives how often he did.
    pub async fn live(mut self, stop: CancellationToken) -> usize {
        let mut order = fares(250);
        order["request"]
            .as_object_mut()
            .unwrap()
            .remove("to_airport");
        let airport = |at: u8| {
            format!(
                "A{}{}",
                char::from(b'A' + at / 26),
                char::from(b'A' + at % 26)
            )
        };
        order["sweep"]["to_airport"] = json!((0..40).map(airport).collect::<Vec<_>>());
        let mut done = 0;
        while !stop.is_cancelled() {
            let now = || Desk {
                pool: &self.pool,
                ring: &self.ring,
                key: &self.key,
                now: Timestamp::now(),
            };
            if let Ok(scan) = submit(now(), &self.pace, &order).await {
                tokio::time::sleep(Duration::from_millis(self.dice.random_range(0..300))).await;
                // Somebody's locks may be in the way.
                while cancel::cancel(now(), scan).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                done += 1;
            }
            tokio::time::sleep(Duration::from_millis(self.dice.random_range(0..1_000))).await;
        }
        done
    }
}
