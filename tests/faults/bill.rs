//! Days of work with kills and a database that goes away: the usage of scans equals their attempts and
//! the marketplace's ledger to the request, and single searches lose no more than a kill may cost.

use std::time::Duration;

use jiff::Timestamp;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::ledger::LedgerCheck;
use super::process::FarescanProcess;
use crate::support::db::PrivatePg;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::wait_until;
use crate::worker::fixture::WorkerFixture;

/// Single searches of one batch.
const SINGLES: usize = 4;
const DATES: usize = 30;

struct Days {
    server: PrivatePg,
    fixture: WorkerFixture,
    /// Single searches that were sent, and those of them that a kill may have lost.
    singles: usize,
    may_be_lost: usize,
}

impl Days {
    async fn search(&mut self, service: &FarescanProcess) {
        for day in 1..=SINGLES {
            let body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": format!("2030-03-0{day}")});
            let answer = service.post("/v1/flights/oneway", &body).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
        self.singles += SINGLES;
    }

    /// The billed requests by source: of scans and of single searches.
    async fn billed(&self) -> (i64, i64) {
        let sums = "select coalesce(sum(billed) filter (where not single), 0)::bigint,
                           coalesce(sum(billed) filter (where single), 0)::bigint from daily_usage";
        row!(self.fixture.pool(), sums)
    }

    async fn wait_until_singles_are_counted(&self) {
        let counted = i64::try_from(self.singles - self.may_be_lost).unwrap();
        wait_until("the single searches are counted", async || {
            self.billed().await.1 >= counted
        })
        .await;
    }

    /// Stops the database, searches without it, and starts it again.
    async fn outage(&mut self, service: &FarescanProcess) {
        self.server.stop_fast().await;
        self.search(service).await;
        self.server.restart().await;
        self.wait_until_singles_are_counted().await;
    }

    /// What happened today was yesterday.
    async fn next_day(&self) {
        for sql in [
            // In two steps, because two days have a row of the same source.
            "update daily_usage set day = day - 10000",
            "update daily_usage set day = day + 9999",
            "update attempts set started_at = started_at - interval '1 day'",
        ] {
            execute!(self.fixture.pool(), sql);
        }
    }

    /// A scan and single searches, with what goes wrong on this day.
    async fn day(&mut self, number: usize) {
        let service = FarescanProcess::start(&self.fixture, 8);
        service.url().await;
        let scan = self
            .fixture
            .submit(i64::try_from(DATES).unwrap(), &json!({}))
            .await;
        self.search(&service).await;
        if number % 3 == 1 {
            self.outage(&service).await;
        }
        self.wait_until_singles_are_counted().await;
        let service = if number % 3 == 2 {
            self.search(&service).await;
            self.may_be_lost += SINGLES;
            service.kill();
            FarescanProcess::start(&self.fixture, 8)
        } else {
            service
        };
        self.fixture.wait_until_ended(scan).await;
        if number.is_multiple_of(2) {
            // It stops in order, and counts what it has answered.
            self.search(&service).await;
        }
        service.signal(Signal::TERM);
        assert!(service.wait_for_exit().await.success());
        let counted = i64::try_from(self.singles - self.may_be_lost).unwrap();
        assert!(self.billed().await.1 >= counted, "day {number}");
        self.next_day().await;
    }
}

/// Two of five searches are answered 502 first, and billed twice.
fn answer(number: usize, body: &Value) -> Reply {
    match number % 7 {
        0 | 3 => Reply::status(502),
        _ => Reply::json(json!([fare(120, body)])).delay(Duration::from_millis(20)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bill_of_days_with_kills_and_outages_is_right() {
    let server = PrivatePg::start().await;
    let fixture = WorkerFixture::on(&server.url()).await;
    let mut calls = 0;
    fixture.upstream.answer(move |call| {
        // A single search costs one request here: what is lost of them is counted in searches.
        if !call.header("x-request-id").starts_with("att_") {
            return Reply::json(json!([fare(110, &call.body)]));
        }
        calls += 1;
        answer(calls, &call.body)
    });
    let mut days = Days {
        server,
        fixture,
        singles: 0,
        may_be_lost: 0,
    };
    let all = if super::is_soak() { 30 } else { 4 };
    for number in 0..all {
        days.day(number).await;
    }
    let ledger = LedgerCheck::run(&days.fixture).await;
    let (scans, singles) = days.billed().await;
    let attempts: i64 = value!(
        days.fixture.pool(),
        "select sum(requests_spent)::bigint from attempts"
    );
    assert_eq!(scans, attempts);
    let singles = usize::try_from(singles).unwrap();
    assert!(
        (days.singles - days.may_be_lost..=days.singles).contains(&singles),
        "{singles} of {} single searches are counted, {} may be lost",
        days.singles,
        days.may_be_lost
    );
    println!(
        "{all} days until {}: {scans} requests of scans, {singles} of {} single searches, {} may be lost; {ledger}",
        Timestamp::now(),
        days.singles,
        days.may_be_lost
    );
}
