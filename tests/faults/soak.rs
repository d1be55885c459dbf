//! The long run: services and workers under load while random faults happen, for
//! `FARESCAN_SOAK_MINUTES` (30). Only with `FARESCAN_SOAK=1`;
//! `FARESCAN_SEED` repeats the random choices.

use std::collections::BTreeMap;
use std::time::Duration;

use farescan::ids::ScanId;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::ledger::LedgerCheck;
use super::process::{FarescanProcess, LEASE_SECONDS};
use super::spool_files;
use crate::support::db::PrivatePg;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::fixture::{WorkerFixture, fares};

/// Processes that run at a time.
const PROCESSES: usize = 3;
/// Scans underway at a time.
const SCANS: usize = 4;
const CONCURRENCY: u16 = 8;

struct Soak {
    server: PrivatePg,
    fixture: WorkerFixture,
    rng: StdRng,
    processes: Vec<FarescanProcess>,
    scans: Vec<ScanId>,
    submitted: usize,
    done: BTreeMap<&'static str, usize>,
}

impl Soak {
    async fn begin(seed: u64) -> Self {
        let server = PrivatePg::start().await;
        let fixture = WorkerFixture::on(&server.url()).await;
        let mut delays = StdRng::seed_from_u64(seed.wrapping_add(1));
        fixture.upstream.answer(move |call| {
            let reply = match delays.random_range(0..100) {
                0..3 => Reply::status(502),
                3..5 => Reply::reset(),
                5..7 => Reply::search_incomplete("blocked_page"),
                _ => Reply::json(json!([fare(120, &call.body)])),
            };
            reply.delay(Duration::from_millis(delays.random_range(20..900)))
        });
        let mut soak = Self {
            server,
            fixture,
            rng: StdRng::seed_from_u64(seed),
            processes: Vec::new(),
            scans: Vec::new(),
            submitted: 0,
            done: BTreeMap::new(),
        };
        soak.start_missing();
        soak
    }

    /// Starts processes until there are [`PROCESSES`].
    fn start_missing(&mut self) {
        while self.processes.len() < PROCESSES {
            let service = self.rng.random_bool(0.5);
            self.processes.push(if service {
                FarescanProcess::start(&self.fixture, CONCURRENCY)
            } else {
                FarescanProcess::start_worker(&self.fixture, CONCURRENCY, &[])
            });
        }
    }

    /// Submits scans until [`SCANS`] are underway.
    async fn submit_scans(&mut self) {
        let mut live = Vec::new();
        for scan in std::mem::take(&mut self.scans) {
            if self.fixture.scan(scan).await.finished_at.is_none() {
                live.push(scan);
            }
        }
        // Only one scan until the marketplace has accepted the key.
        let most = if self.submitted == 0 { 1 } else { SCANS };
        while live.len() < most && (self.submitted != 1 || live.is_empty()) {
            let attempts = self.rng.random_range(1..3);
            let retry = json!({"retry": {"max_attempts": attempts, "delay_seconds": 1}});
            let mut sweep = fares(self.rng.random_range(40..200))["sweep"].clone();
            sweep["to_airport"] = json!(["LHR", "CDG"]);
            let mut body = retry;
            body["sweep"] = sweep;
            body["request"] = json!({"from_airport": "TLV", "currency": "USD"});
            if self.rng.random_bool(0.4) {
                body["max_age_seconds"] = json!(self.rng.random_range(1..60));
            }
            if self.rng.random_bool(0.3) {
                body["strategy"] = json!({"find": "cheapest"});
            }
            live.push(self.fixture.submit(40, &body).await);
            self.submitted += 1;
        }
        self.scans = live;
    }

    fn count(&mut self, what: &'static str) {
        *self.done.entry(what).or_default() += 1;
    }

    async fn inject_fault(&mut self) {
        let victim = self.rng.random_range(0..self.processes.len());
        match self.rng.random_range(0..100) {
            0..30 => {
                self.count("kill -9");
                self.processes.swap_remove(victim).kill();
            }
            30..45 => {
                self.count("SIGSTOP and SIGCONT");
                self.processes[victim].signal(Signal::STOP);
                sleep(Duration::from_millis(
                    self.rng.random_range(100..1_500 * LEASE_SECONDS),
                ))
                .await;
                self.processes[victim].signal(Signal::CONT);
            }
            45..60 => {
                self.count("SIGTERM");
                let ending = self.processes.swap_remove(victim);
                ending.signal(Signal::TERM);
                let status = ending.wait_for_exit().await;
                assert!(status.success(), "{status}");
            }
            60..85 => {
                self.count("connections cut");
                let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                           where datname = current_database() and pid <> pg_backend_pid() and random() < 0.5";
                execute!(self.fixture.pool(), cut);
            }
            85..95 => self.outage(false).await,
            _ => {
                self.count("killed while the database is unavailable");
                self.outage(true).await;
            }
        }
    }

    /// Stops the database for a while, fast or immediately.
    async fn outage(&mut self, with_kill: bool) {
        if self.rng.random_bool(0.5) {
            self.count("database restarted, fast");
            self.server.stop_fast().await;
        } else {
            self.count("database restarted, immediate");
            self.server.stop_immediate().await;
        }
        sleep(Duration::from_millis(self.rng.random_range(0..5_000))).await;
        if with_kill {
            let victim = self.rng.random_range(0..self.processes.len());
            self.processes.swap_remove(victim).kill();
        }
        self.server.restart().await;
    }

    /// Waits until all scans have ended, then compares.
    async fn finish(mut self) -> (LedgerCheck, String) {
        let deadline = Instant::now() + Duration::from_secs(300);
        for scan in std::mem::take(&mut self.scans) {
            let left = deadline.saturating_duration_since(Instant::now());
            self.fixture.wait_until_ended_within(scan, left).await;
        }
        // Late answers of killed processes.
        spool_files::wait_for(&self.fixture, 0).await;
        for process in std::mem::take(&mut self.processes) {
            process.signal(Signal::TERM);
            assert!(process.wait_for_exit().await.success());
        }
        let done: Vec<_> = self
            .done
            .iter()
            .map(|(what, times)| format!("{times} × {what}"))
            .collect();
        let lost = "select count(*) from scan_items i join scans s using (tenant_id, scan_id)
                    where s.status = 'completed' and (i.state not in ('done', 'skipped') or i.search_status not in ('ok', 'empty'))";
        assert_eq!(self.fixture.count(lost).await, 0);
        (
            LedgerCheck::run(&self.fixture).await,
            format!("{} scans; {}", self.submitted, done.join(", ")),
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_faults_for_half_an_hour_lose_and_repeat_no_call() {
    if !super::is_soak() {
        return println!("set FARESCAN_SOAK=1 for the long run");
    }
    let minutes = std::env::var("FARESCAN_SOAK_MINUTES")
        .ok()
        .map_or(30, |minutes| minutes.parse().unwrap());
    let mut soak = Soak::begin(super::seed()).await;
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    while Instant::now() < end {
        soak.start_missing();
        soak.submit_scans().await;
        sleep(Duration::from_millis(soak.rng.random_range(500..4_000))).await;
        soak.inject_fault().await;
    }
    soak.start_missing();
    let (ledger, done) = soak.finish().await;
    println!("{minutes} minutes: {done}\n{ledger}");
}
