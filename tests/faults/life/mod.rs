//! A random life of the queue: callers order, pause, resume, cancel, retry and delete while worker processes are killed, a neighbour orders
//! and cancels 10,000 items, and somebody else holds locks on rows. After each round the marketplace's ledger is compared with the database.
//!
//! A short round is part of every run. `FARESCAN_SOAK=1`: rounds for `FARESCAN_SOAK_MINUTES` (10). `FARESCAN_SEED` repeats the choices.

mod callers;
mod locks;

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use self::callers::{Callers, Neighbour};
use super::books::{Books, Deleted};
use super::process::Serve;
use super::spooled;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::stage::Stage;

/// Worker processes at a time, and calls of each.
const FLEET: usize = 2;
const CONCURRENCY: u16 = 64;
/// Moves of each caller in a round.
const MOVES: usize = 30;
const MOVES_OF_A_LONG_ROUND: usize = 300;
/// How often the end of a round looks whether there was progress, and how often there may be none.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS_WITHOUT_PROGRESS: u32 = 900;

/// How often each thing was done.
pub(super) type Tally = BTreeMap<&'static str, usize>;

struct Life {
    stage: Stage,
    dice: StdRng,
    fleet: Vec<Serve>,
    callers: Callers,
    done: Tally,
    deleted: Vec<Deleted>,
}

impl Life {
    async fn begin(seed: u64) -> Self {
        let stage = Stage::new().await;
        let mut manners = StdRng::seed_from_u64(seed.wrapping_add(1));
        stage.upstream.on_any().answer(move |call| {
            let reply = match manners.random_range(0..200) {
                0..4 => Reply::status(502),
                4..7 => Reply::reset(),
                7..10 => Reply::search_incomplete("blocked_page"),
                _ => Reply::json(json!([fare(120, &call.body)])),
            };
            reply.delay(Duration::from_millis(manners.random_range(5..150)))
        });
        let mut life = Self {
            callers: Callers::new(seed),
            stage,
            dice: StdRng::seed_from_u64(seed),
            fleet: Vec::new(),
            done: Tally::new(),
            deleted: Vec::new(),
        };
        start_missing(&life.stage, &mut life.fleet);
        life.callers.warm_up(&life.stage).await;
        life
    }

    /// A round of moves beside a neighbour and foreign locks, and what the comparison says of it.
    async fn round(&mut self, moves: usize) -> Books {
        let stop = CancellationToken::new();
        let neighbour =
            tokio::spawn(Neighbour::new(&self.stage, self.dice.random()).live(stop.clone()));
        let locks = tokio::spawn(locks::hold(
            self.stage.pool().clone(),
            self.dice.random(),
            stop.clone(),
        ));
        {
            let Self {
                stage,
                dice,
                fleet,
                callers,
                done,
                ..
            } = self;
            tokio::select! {
                () = callers.live(stage, moves) => {}
                () = kill(stage, dice, fleet, done) => {}
            }
        }
        let (done, deleted) = self.callers.report();
        for (what, times) in done {
            *self.done.entry(what).or_default() += times;
        }
        self.deleted.extend(deleted);
        stop.cancel();
        *self
            .done
            .entry("10,000 items ordered and cancelled")
            .or_default() += neighbour.await.unwrap();
        *self.done.entry("rows locked by somebody else").or_default() += locks.await.unwrap();
        self.settle().await;
        Books::of_life(&self.stage, &self.deleted).await
    }

    /// Lets everything end. Bounded in looks without progress, so that a slow machine may take its time.
    async fn settle(&mut self) {
        let (mut seen, mut idle) = (0, 0);
        loop {
            self.callers.resume_all(&self.stage).await;
            let open =
                self.stage.count("select count(*) from scan_items where state not in ('done', 'failed', 'cancelled')").await;
            let live = self
                .stage
                .count("select count(*) from scans where finished_at is null")
                .await;
            if open + live == 0 {
                break;
            }
            let progress = self
                .stage
                .count("select count(*) from attempts where ended_at is not null")
                .await;
            idle = if progress == seen { idle + 1 } else { 0 };
            seen = progress;
            assert!(
                idle < LOOKS_WITHOUT_PROGRESS,
                "{open} items do not end: {:?}",
                self.done
            );
            sleep(LOOK).await;
        }
        for process in std::mem::take(&mut self.fleet) {
            process.signal(rustix::process::Signal::TERM);
            assert!(process.ended().await.success());
        }
        // What a killed process had in its spool is taken over by the next.
        start_missing(&self.stage, &mut self.fleet);
        spooled::wait_for(&self.stage, 0).await;
    }

    fn report(&self) -> String {
        let done: Vec<_> = self
            .done
            .iter()
            .map(|(what, times)| format!("{times} × {what}"))
            .collect();
        done.join(", ")
    }
}

fn start_missing(stage: &Stage, fleet: &mut Vec<Serve>) {
    while fleet.len() < FLEET {
        fleet.push(Serve::worker(stage, CONCURRENCY, &[]));
    }
}

/// Kills a process now and then, and starts another.
async fn kill(stage: &Stage, dice: &mut StdRng, fleet: &mut Vec<Serve>, done: &mut Tally) {
    loop {
        sleep(Duration::from_millis(dice.random_range(500..5_000))).await;
        let victim = dice.random_range(0..fleet.len());
        fleet.swap_remove(victim).kill();
        *done.entry("kill -9").or_default() += 1;
        start_missing(stage, fleet);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_random_life_agrees_with_the_ledger() {
    let seed = super::seed();
    let mut life = Life::begin(seed).await;
    if !super::is_soak() {
        let books = life.round(MOVES).await;
        return println!("seed {seed}: {}\n{books}", life.report());
    }
    let minutes = std::env::var("FARESCAN_SOAK_MINUTES")
        .ok()
        .map_or(10, |minutes| minutes.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    for round in 1.. {
        let books = life.round(MOVES_OF_A_LONG_ROUND).await;
        println!("round {round}, seed {seed}: {}\n{books}", life.report());
        if Instant::now() >= end {
            break;
        }
    }
}
