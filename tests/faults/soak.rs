//! The long run: services and workers under load while everything that can happen to them happens, at random, for as long as
//! `FARESCAN_SOAK_MINUTES` says (30). Only with `FARESCAN_SOAK=1`; `FARESCAN_SEED` repeats what it does.

use std::collections::BTreeMap;
use std::time::Duration;

use farescan::ids::ScanId;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::books::Books;
use super::process::{LEASE_SECONDS, Serve};
use super::spooled;
use crate::support::db::PrivatePg;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::stage::{Stage, fares};

/// Processes that run at a time.
const FLEET: usize = 3;
/// Scans underway at a time.
const SCANS: usize = 4;
const CONCURRENCY: u16 = 8;

struct Soak {
    server: PrivatePg,
    stage: Stage,
    dice: StdRng,
    fleet: Vec<Serve>,
    scans: Vec<ScanId>,
    submitted: usize,
    done: BTreeMap<&'static str, usize>,
}

impl Soak {
    async fn begin(seed: u64) -> Self {
        let server = PrivatePg::start().await;
        let stage = Stage::on(&server.url()).await;
        let mut delays = StdRng::seed_from_u64(seed.wrapping_add(1));
        stage.upstream.on_any().answer(move |call| {
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
            stage,
            dice: StdRng::seed_from_u64(seed),
            fleet: Vec::new(),
            scans: Vec::new(),
            submitted: 0,
            done: BTreeMap::new(),
        };
        soak.man();
        soak
    }

    /// Starts what is missing of the fleet.
    fn man(&mut self) {
        while self.fleet.len() < FLEET {
            let service = self.dice.random_bool(0.5);
            self.fleet.push(if service {
                Serve::start(&self.stage, CONCURRENCY)
            } else {
                Serve::worker(&self.stage, CONCURRENCY, &[])
            });
        }
    }

    /// Keeps the fleet busy.
    async fn load(&mut self) {
        let mut live = Vec::new();
        for scan in std::mem::take(&mut self.scans) {
            if self.stage.scan(scan).await.finished_at.is_none() {
                live.push(scan);
            }
        }
        // The first scan alone, until the marketplace has accepted the key.
        let most = if self.submitted == 0 { 1 } else { SCANS };
        while live.len() < most && (self.submitted != 1 || live.is_empty()) {
            let attempts = self.dice.random_range(1..3);
            let order = json!({"retry": {"max_attempts": attempts, "delay_seconds": 1}});
            let mut sweep = fares(self.dice.random_range(40..200))["sweep"].clone();
            sweep["to_airport"] = json!(["LHR", "CDG"]);
            let mut body = order;
            body["sweep"] = sweep;
            body["request"] = json!({"from_airport": "TLV", "currency": "USD"});
            live.push(self.stage.submit(40, &body).await);
            self.submitted += 1;
        }
        self.scans = live;
    }

    fn note(&mut self, what: &'static str) {
        *self.done.entry(what).or_default() += 1;
    }

    async fn strike(&mut self) {
        let victim = self.dice.random_range(0..self.fleet.len());
        match self.dice.random_range(0..100) {
            0..30 => {
                self.note("kill -9");
                self.fleet.swap_remove(victim).kill();
            }
            30..45 => {
                self.note("stop and go on");
                self.fleet[victim].signal(Signal::STOP);
                sleep(Duration::from_millis(
                    self.dice.random_range(100..1_500 * LEASE_SECONDS),
                ))
                .await;
                self.fleet[victim].signal(Signal::CONT);
            }
            45..60 => {
                self.note("told to end");
                let told = self.fleet.swap_remove(victim);
                told.signal(Signal::TERM);
                let status = told.ended().await;
                assert!(status.success(), "{status}");
            }
            60..85 => {
                self.note("connections cut");
                let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                           where datname = current_database() and pid <> pg_backend_pid() and random() < 0.5";
                sqlx::query(cut).execute(self.stage.pool()).await.unwrap();
            }
            85..95 => self.outage(false).await,
            _ => {
                self.note("killed while the database is away");
                self.outage(true).await;
            }
        }
    }

    /// The database goes away for a while, with or without a last word.
    async fn outage(&mut self, with_kill: bool) {
        if self.dice.random_bool(0.5) {
            self.note("database restarted, fast");
            self.server.stop_fast().await;
        } else {
            self.note("database restarted, immediate");
            self.server.stop_immediate().await;
        }
        sleep(Duration::from_millis(self.dice.random_range(0..5_000))).await;
        if with_kill {
            let victim = self.dice.random_range(0..self.fleet.len());
            self.fleet.swap_remove(victim).kill();
        }
        self.server.restart().await;
    }

    /// Lets everything end, and takes stock.
    async fn settle(mut self) -> (Books, String) {
        let deadline = Instant::now() + Duration::from_secs(300);
        for scan in std::mem::take(&mut self.scans) {
            let left = deadline.saturating_duration_since(Instant::now());
            self.stage.ended_within(scan, left).await;
        }
        // Late answers of processes that were killed.
        spooled::wait_for(&self.stage, 0).await;
        for process in std::mem::take(&mut self.fleet) {
            process.signal(Signal::TERM);
            assert!(process.ended().await.success());
        }
        let done: Vec<_> = self
            .done
            .iter()
            .map(|(what, times)| format!("{times} × {what}"))
            .collect();
        let lost = "select count(*) from scan_items i join scans s using (tenant_id, scan_id)
                    where s.status = 'completed' and (i.state <> 'done' or i.search_status not in ('ok', 'empty'))";
        assert_eq!(self.stage.count(lost).await, 0);
        (
            Books::compare(&self.stage).await,
            format!("{} scans; {}", self.submitted, done.join(", ")),
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn for_half_an_hour_of_everything_at_random_nothing_is_lost_and_nothing_asked_twice() {
    if !super::is_soak() {
        return println!("set FARESCAN_SOAK=1 for the long run");
    }
    let minutes = std::env::var("FARESCAN_SOAK_MINUTES")
        .ok()
        .map_or(30, |minutes| minutes.parse().unwrap());
    let mut soak = Soak::begin(super::seed()).await;
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    while Instant::now() < end {
        soak.man();
        soak.load().await;
        sleep(Duration::from_millis(soak.dice.random_range(500..4_000))).await;
        soak.strike().await;
    }
    soak.man();
    let (books, done) = soak.settle().await;
    println!("{minutes} minutes: {done}\n{books}");
}
