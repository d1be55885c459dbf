//! Random commands and faults: callers submit, pause, resume, cancel, retry and delete scans while
//! worker processes are killed, another caller submits and cancels 10,000 items, and another
//! transaction locks rows. Each round then compares the marketplace's ledger with the database.
//! [`life`] does the same with the whole service, over HTTP.
//!
//! A short round is part of every run. `FARESCAN_SOAK=1`: rounds for `FARESCAN_SOAK_MINUTES` (10).
//! `FARESCAN_SEED` repeats the choices.

pub mod books;
mod callers;
mod life;
mod life_callers;
mod locks;

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use self::callers::{CancellingCaller, RandomCallers};
use super::ledger::{DeletedCall, LedgerCheck};
use super::process::FarescanProcess;
use super::spool_files;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::fixture::WorkerFixture;

/// Worker processes at a time, and calls in flight of each.
const PROCESSES: usize = 2;
const CONCURRENCY: u16 = 64;
/// Actions of each caller in a round.
const ACTIONS: usize = 30;
const ACTIONS_OF_A_LONG_ROUND: usize = 300;
/// How often the end of a round polls for progress, and how many polls may see none.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_IDLE_POLLS: u32 = 900;

/// How often each action was done.
pub(super) type ActionCounts = BTreeMap<&'static str, usize>;

struct ChaosRun {
    fixture: WorkerFixture,
    rng: StdRng,
    processes: Vec<FarescanProcess>,
    callers: RandomCallers,
    done: ActionCounts,
    deleted: Vec<DeletedCall>,
}

impl ChaosRun {
    async fn begin(seed: u64) -> Self {
        let fixture = WorkerFixture::new().await;
        let mut reply_rng = StdRng::seed_from_u64(seed.wrapping_add(1));
        fixture.upstream.answer(move |call| {
            let reply = match reply_rng.random_range(0..200) {
                0..4 => Reply::status(502),
                4..7 => Reply::reset(),
                7..10 => Reply::search_incomplete("blocked_page"),
                _ => Reply::json(json!([fare(120, &call.body)])),
            };
            reply.delay(Duration::from_millis(reply_rng.random_range(5..150)))
        });
        let mut run = Self {
            callers: RandomCallers::new(seed),
            fixture,
            rng: StdRng::seed_from_u64(seed),
            processes: Vec::new(),
            done: ActionCounts::new(),
            deleted: Vec::new(),
        };
        start_missing(&run.fixture, &mut run.processes);
        run.callers.warm_up(&run.fixture).await;
        run
    }

    /// Runs a round of actions beside a cancelling caller and foreign locks, then compares.
    async fn round(&mut self, actions: usize) -> LedgerCheck {
        let stop = CancellationToken::new();
        let cancelling_caller =
            tokio::spawn(CancellingCaller::new(&self.fixture, self.rng.random()).act(stop.clone()));
        let locks = tokio::spawn(locks::hold_random_rows(
            self.fixture.pool().clone(),
            self.rng.random(),
            stop.clone(),
        ));
        {
            let Self {
                fixture,
                rng,
                processes,
                callers,
                done,
                ..
            } = self;
            tokio::select! {
                () = callers.act(fixture, actions) => {}
                () = kill(fixture, rng, processes, done) => {}
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
            .entry("10,000 items submitted and cancelled")
            .or_default() += cancelling_caller.await.unwrap();
        *self
            .done
            .entry("rows locked by another transaction")
            .or_default() += locks.await.unwrap();
        self.finish().await;
        LedgerCheck::run_with_deleted(&self.fixture, &self.deleted).await
    }

    /// Waits until all scans have ended. The bound counts polls without progress, so a slow machine
    /// does not fail.
    async fn finish(&mut self) {
        let (mut seen, mut idle) = (0, 0);
        loop {
            self.callers.resume_all(&self.fixture).await;
            let open =
                self.fixture.count("select count(*) from scan_items where state not in ('done', 'failed', 'cancelled', 'skipped')").await;
            let live = self
                .fixture
                .count("select count(*) from scans where finished_at is null")
                .await;
            if open + live == 0 {
                break;
            }
            let progress = self
                .fixture
                .count("select count(*) from attempts where ended_at is not null")
                .await;
            idle = if progress == seen { idle + 1 } else { 0 };
            seen = progress;
            assert!(
                idle < MAX_IDLE_POLLS,
                "{open} items do not end: {:?}",
                self.done
            );
            sleep(POLL_INTERVAL).await;
        }
        for process in std::mem::take(&mut self.processes) {
            process.signal(rustix::process::Signal::TERM);
            assert!(process.wait_for_exit().await.success());
        }
        // The next process takes over the spool of a killed one.
        start_missing(&self.fixture, &mut self.processes);
        spool_files::wait_for(&self.fixture, 0).await;
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

/// When a long run ends.
fn soak_end() -> Instant {
    let minutes = std::env::var("FARESCAN_SOAK_MINUTES").ok();
    let minutes = minutes.map_or(10, |minutes| minutes.parse().unwrap());
    Instant::now() + Duration::from_secs(60 * minutes)
}

fn start_missing(fixture: &WorkerFixture, processes: &mut Vec<FarescanProcess>) {
    while processes.len() < PROCESSES {
        processes.push(FarescanProcess::start_worker(fixture, CONCURRENCY, &[]));
    }
}

/// Kills a random process from time to time and starts another.
async fn kill(
    fixture: &WorkerFixture,
    rng: &mut StdRng,
    processes: &mut Vec<FarescanProcess>,
    done: &mut ActionCounts,
) {
    loop {
        sleep(Duration::from_millis(rng.random_range(500..5_000))).await;
        let victim = rng.random_range(0..processes.len());
        processes.swap_remove(victim).kill();
        *done.entry("kill -9").or_default() += 1;
        start_missing(fixture, processes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_commands_and_kills_agree_with_the_ledger() {
    let seed = super::seed();
    let mut run = ChaosRun::begin(seed).await;
    if !super::is_soak() {
        let ledger = run.round(ACTIONS).await;
        return println!("seed {seed}: {}\n{ledger}", run.report());
    }
    let end = soak_end();
    for round in 1.. {
        let ledger = run.round(ACTIONS_OF_A_LONG_ROUND).await;
        println!("round {round}, seed {seed}: {}\n{ledger}", run.report());
        if Instant::now() >= end {
            break;
        }
    }
}
