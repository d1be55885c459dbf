//! A random life of the whole service: callers use all that shares, decides and watches while
//! processes are killed, stopped and ended, connections are cut and Postgres restarts. Each round
//! then compares the marketplace's ledger with the books.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::faults::ledger::{DeletedCall, LedgerCheck};
use crate::faults::process::{FarescanProcess, LEASE_SECONDS};
use crate::faults::spool_files;
use crate::support::db::PrivatePg;
use crate::support::reply::Reply;
use crate::support::upstream::{Call, fare};
use crate::worker::fixture::WorkerFixture;

use super::life_callers::{Addresses, LifeCaller, MARK};
use super::{ActionCounts, MAX_IDLE_POLLS, POLL_INTERVAL, books, soak_end};

const PROCESSES: usize = 2;
const CALLERS: u64 = 3;
const CONCURRENCY: u16 = 16;
const ACTIONS: usize = 60;
const ACTIONS_OF_A_LONG_ROUND: usize = 250;

struct Life {
    server: PrivatePg,
    fixture: Arc<WorkerFixture>,
    rng: StdRng,
    processes: Vec<FarescanProcess>,
    addresses: Addresses,
    callers: Vec<LifeCaller>,
    done: ActionCounts,
    longest_wait: Duration,
}

/// A price that changes with each search, signed with the caller's name.
fn sell(call: &Call, price: u64) -> Reply {
    let mut offer = fare(price, &call.body);
    offer["airline"] = json!(format!("Air {}", &call.key[..MARK]));
    Reply::json(json!([offer]))
}

impl Life {
    async fn begin(seed: u64) -> Self {
        let server = PrivatePg::start().await;
        let fixture = Arc::new(WorkerFixture::on(&server.url()).await);
        let mut replies = StdRng::seed_from_u64(seed.wrapping_add(1));
        fixture.upstream.answer(move |call| {
            let reply = match replies.random_range(0..200) {
                0..4 => Reply::status(502),
                4..6 => Reply::reset(),
                6..10 => Reply::search_incomplete("blocked_page"),
                10..13 => Reply::json(json!([])),
                _ => sell(call, replies.random_range(100..220)),
            };
            reply.delay(Duration::from_millis(replies.random_range(5..400)))
        });
        let addresses = Addresses::default();
        let mut life = Self {
            callers: (0..CALLERS)
                .map(|number| LifeCaller::new(seed, number, &addresses))
                .collect(),
            server,
            fixture,
            rng: StdRng::seed_from_u64(seed),
            processes: Vec::new(),
            addresses,
            done: ActionCounts::new(),
            longest_wait: Duration::ZERO,
        };
        life.start_missing().await;
        for caller in &mut life.callers {
            caller.begin().await;
        }
        life
    }

    async fn start_missing(&mut self) {
        while self.processes.len() < PROCESSES {
            let process = FarescanProcess::start(&self.fixture, CONCURRENCY);
            let address = process.url().await;
            self.addresses.lock().unwrap().push(address);
            self.processes.push(process);
        }
    }

    fn remove(&mut self, victim: usize) -> FarescanProcess {
        self.addresses.lock().unwrap().remove(victim);
        self.processes.remove(victim)
    }

    fn count(&mut self, what: &'static str) {
        *self.done.entry(what).or_default() += 1;
    }

    /// A random fault, or slots that become due.
    async fn disturb(&mut self) {
        let victim = self.rng.random_range(0..self.processes.len());
        match self.rng.random_range(0..100) {
            0..25 => {
                self.count("kill -9");
                self.remove(victim).kill();
            }
            25..40 => {
                self.count("SIGSTOP and SIGCONT");
                let longest = if crate::faults::is_soak() {
                    1_500 * LEASE_SECONDS
                } else {
                    2_000
                };
                self.processes[victim].signal(Signal::STOP);
                sleep(Duration::from_millis(self.rng.random_range(100..longest))).await;
                self.processes[victim].signal(Signal::CONT);
            }
            40..45 => {
                self.count("SIGTERM");
                let ending = self.remove(victim);
                ending.signal(Signal::TERM);
                assert!(ending.wait_for_exit().await.success());
            }
            45..60 => {
                self.count("connections cut");
                let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                           where datname = current_database() and pid <> pg_backend_pid() and random() < 0.5";
                // It may meet a connection that was cut before.
                sqlx::query(cut).execute(self.fixture.pool()).await.ok();
            }
            60..70 => {
                if self.rng.random_bool(0.5) {
                    self.count("Postgres restarted, fast");
                    self.server.stop_fast().await;
                } else {
                    self.count("Postgres restarted, immediate");
                    self.server.stop_immediate().await;
                }
                sleep(Duration::from_millis(self.rng.random_range(0..2_000))).await;
                self.server.restart().await;
            }
            _ => {
                self.count("slots due");
                let due = "update monitors m set next_slot = date_trunc('second', now())
                           where next_slot is not null and not exists (select from monitor_slots s
                               where (s.tenant_id, s.monitor_id) = (m.tenant_id, m.monitor_id) and s.slot = date_trunc('second', now()))";
                // A cut may hit this connection, too.
                sqlx::query(due).execute(self.fixture.pool()).await.ok();
            }
        }
        self.start_missing().await;
    }

    async fn round(&mut self, actions: usize) -> LedgerCheck {
        let stop = CancellationToken::new();
        let waits = tokio::spawn(books::longest_wait(
            self.fixture.pool().clone(),
            stop.clone(),
        ));
        let mut callers = std::mem::take(&mut self.callers);
        let fixture = Arc::clone(&self.fixture);
        let acted = CancellationToken::new();
        let acting = async {
            join_all(
                callers
                    .iter_mut()
                    .map(|caller| caller.act(&fixture, actions)),
            )
            .await;
            acted.cancel();
        };
        let disturbing = async {
            while !acted.is_cancelled() {
                sleep(Duration::from_millis(self.rng.random_range(300..2_500))).await;
                self.disturb().await;
            }
        };
        tokio::join!(acting, disturbing);
        self.callers = callers;
        self.finish().await;
        stop.cancel();
        self.longest_wait = self.longest_wait.max(waits.await.unwrap());
        self.compare().await
    }

    /// Waits until everything has ended, also what the stored answers of killed processes change.
    async fn finish(&mut self) {
        self.wait_until_nothing_is_open().await;
        while !self.processes.is_empty() {
            let ending = self.remove(0);
            ending.signal(Signal::TERM);
            assert!(ending.wait_for_exit().await.success());
        }
        // The next process takes over the spool of a killed one.
        self.start_missing().await;
        spool_files::wait_for(&self.fixture, 0).await;
        self.wait_until_nothing_is_open().await;
    }

    /// The bound counts polls without progress, so a slow machine does not fail.
    async fn wait_until_nothing_is_open(&mut self) {
        const OPEN: &str = "select (select count(*) from scan_items where state not in ('done', 'failed', 'cancelled', 'skipped'))
            + (select count(*) from scans where finished_at is null)
            + (select count(*) from scan_strategies t join scans s using (tenant_id, scan_id) where s.finished_at is not null and not t.settled)
            + (select count(*) from monitors where next_slot is not null and greatest(next_slot, not_before) <= now())
            + (select count(*) from monitor_slots where evaluated_at is null and scan_id is not null)";
        let (mut seen, mut idle) = (0, 0);
        loop {
            for caller in &mut self.callers {
                caller.resume_all(&self.fixture).await;
            }
            let open = self.fixture.count(OPEN).await;
            if open == 0 {
                return;
            }
            let ended = "select count(*) from attempts where ended_at is not null";
            let progress = self.fixture.count(ended).await;
            idle = if progress == seen { idle + 1 } else { 0 };
            seen = progress;
            assert!(idle < MAX_IDLE_POLLS, "{open} do not end: {:?}", self.done);
            sleep(POLL_INTERVAL).await;
        }
    }

    async fn compare(&mut self) -> LedgerCheck {
        books::check(self.fixture.pool()).await;
        let mut deleted: Vec<DeletedCall> = Vec::new();
        let mut reported = 0;
        for caller in &mut self.callers {
            for (_, calls) in caller.deleted_calls(&self.fixture).await {
                deleted.extend(calls.iter().cloned());
            }
            caller.check_spending(&self.fixture).await;
            reported += caller.reported;
            for (what, times) in std::mem::take(&mut caller.done) {
                *self.done.entry(what).or_default() += times;
            }
        }
        let ledger = LedgerCheck::run_with_deleted(&self.fixture, &deleted).await;
        ledger.assert_synchronous_at_least(reported);
        ledger
    }

    fn report(&self, seed: u64, ledger: &LedgerCheck) {
        let done: Vec<_> = self
            .done
            .iter()
            .map(|(what, times)| format!("{times} × {what}"))
            .collect();
        println!(
            "seed {seed}: {}\n{ledger}\nthe longest wait for another's answer after it was there: {:.1} s",
            done.join(", "),
            self.longest_wait.as_secs_f64()
        );
        assert!(
            self.longest_wait <= books::LONGEST_WAIT,
            "{:?}",
            self.longest_wait
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_random_life_agrees_with_the_ledger_and_the_books() {
    let seed = crate::faults::seed();
    let mut life = Life::begin(seed).await;
    if !crate::faults::is_soak() {
        let ledger = life.round(ACTIONS).await;
        return life.report(seed, &ledger);
    }
    let end = soak_end();
    while Instant::now() < end {
        let ledger = life.round(ACTIONS_OF_A_LONG_ROUND).await;
        life.report(seed, &ledger);
    }
}
