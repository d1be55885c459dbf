//! Faults while scans share searches and questions decide: nothing is bought twice, nobody waits for
//! ever, and what a scan says that it saved agrees with its items and with the marketplace's ledger.

use std::collections::BTreeMap;
use std::time::Duration;

use farescan::ids::ScanId;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::failover::{delete_calls, promote};
use super::kill::newest_with_calls;
use super::ledger::LedgerCheck;
use super::process::FarescanProcess;
use crate::support::assert_counts_add_up;
use crate::support::db::PrivatePg;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::{Call, fare};
use crate::worker::fixture::WorkerFixture;

/// Dates of each scan.
const DATES: i64 = 40;
/// The destinations of the scans that share searches, and of the question.
const SHARED: &str = "LHR";
const ASKED: &str = "CDG";

/// Two equal scans that share their searches, and a question with stored prices.
struct Workload {
    sharing: [ScanId; 2],
    question: ScanId,
}

/// A fare of the date: a ladder, so that a question needs several decisions.
fn fare_of(call: &Call) -> Reply {
    let date: jiff::civil::Date = call.body["departure_date"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let step = u64::from(date.day().unsigned_abs()) / 3;
    Reply::json(json!([fare(100 + 9 * step, &call.body)]))
}

fn to(airport: &str, more: &Value) -> Value {
    let mut body = json!({
        "request": {"from_airport": "TLV", "to_airport": airport, "currency": "USD"},
    });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

/// Stores prices of all dates of the question, seen a week ago.
async fn store_calendar(fixture: &WorkerFixture) {
    fixture.upstream.answer(fare_of);
    let worker = fixture.start_worker();
    let calendar = fixture.submit(DATES, &to(ASKED, &json!({}))).await;
    fixture.wait_until_ended(calendar).await;
    worker.stop().await;
    execute!(
        fixture.pool(),
        "update latest_prices set sampled_at = now() - interval '7 days', observed_at = now() - interval '7 days'"
    );
}

impl Workload {
    async fn submit(fixture: &WorkerFixture) -> Self {
        let sharing = to(SHARED, &json!({"max_age_seconds": 3600}));
        let question = json!({"max_age_seconds": 3600, "strategy": {"find": "cheapest"}});
        Self {
            sharing: [
                fixture.submit(DATES, &sharing).await,
                fixture.submit(DATES, &sharing).await,
            ],
            question: fixture.submit(DATES, &to(ASKED, &question)).await,
        }
    }

    /// Waits until all have ended, and checks what they say; returns what the two equal scans spent
    /// together.
    async fn check(&self, fixture: &WorkerFixture) -> u32 {
        let mut spent = 0;
        for scan in self.sharing {
            fixture.wait_until_ended(scan).await;
            spent += check_savings(fixture, scan).await;
        }
        fixture.wait_until_ended(self.question).await;
        let undecided = "select count(*) from scan_strategies where not settled";
        fixture.wait_for_count(undecided, 0).await;
        check_savings(fixture, self.question).await;
        let left =
            "select count(*) from shared_searches r join scan_items i using (tenant_id, item_id)
                    where r.waits or i.state = 'skipped'";
        fixture.wait_for_count(left, 0).await;
        spent
    }
}

/// Checks that asked = billed + avoided + unsearched, by the scan and by its items; returns its
/// requests.
async fn check_savings(fixture: &WorkerFixture, id: ScanId) -> u32 {
    let scan = fixture.scan(id).await;
    let shown = serde_json::to_value(&scan).unwrap();
    assert_counts_add_up(&shown);
    let items = fixture.items(id).await;
    let reused = items.iter().filter(|item| item.reused_from.is_some());
    // One that was searched in vain may have taken an answer since.
    let searched = items
        .iter()
        .filter(|item| item.attempts > 0 && item.reused_from.is_none());
    let asked = usize::try_from(DATES).unwrap();
    let (reused, searched) = (reused.count(), searched.count());
    let avoided = &shown["requests"]["avoided"];
    let count = |name: &str| usize::try_from(avoided[name].as_u64().unwrap()).unwrap();
    assert_eq!(reused, count("reused") + count("joined"), "{shown:#}");
    assert_eq!(searched + reused + count("not_needed"), asked, "{shown:#}");
    scan.requests.spent
}

/// The marketplace's calls of each date to an airport.
fn calls_by_date(fixture: &WorkerFixture, airport: &str) -> BTreeMap<String, i64> {
    let mut calls = BTreeMap::new();
    for call in fixture.upstream.calls() {
        if call.body["to_airport"] == airport {
            let date = call.body["departure_date"].as_str().unwrap().to_owned();
            *calls.entry(date).or_default() += 1;
        }
    }
    calls
}

/// Asserts that a date was called again only after a call of it was lost.
async fn assert_bought_once(fixture: &WorkerFixture, airport: &str, already: i64) {
    let lost =
        "select i.body ->> 'departure_date', count(*) filter (where a.reason = 'worker_lost')
                from attempts a join scan_items i using (tenant_id, item_id)
                where i.body ->> 'to_airport' = $1 group by 1";
    let lost: Vec<(String, i64)> = rows!(fixture.pool(), lost, airport);
    let lost: BTreeMap<_, _> = lost.into_iter().collect();
    for (date, calls) in calls_by_date(fixture, airport) {
        let allowed = already + 1 + lost[&date];
        assert!(
            calls <= allowed,
            "{airport} {date}: {calls} calls, {allowed} allowed"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_during_shared_searches_and_decisions() {
    let fixture = WorkerFixture::new().await;
    store_calendar(&fixture).await;
    let seed = super::seed();
    let (mut delays, mut pauses) = (
        StdRng::seed_from_u64(seed),
        StdRng::seed_from_u64(seed.wrapping_add(1)),
    );
    fixture.upstream.answer(move |call| {
        fare_of(call).delay(Duration::from_millis(delays.random_range(100..900)))
    });
    let workload = Workload::submit(&fixture).await;
    let mut previous = 0;
    for _ in 0..3 {
        let service = FarescanProcess::start_worker(&fixture, 6, &[]);
        previous = newest_with_calls(&fixture, previous, 2).await;
        tokio::time::sleep(Duration::from_millis(pauses.random_range(0..600))).await;
        service.kill();
    }
    let service = FarescanProcess::start_worker(&fixture, 6, &[]);
    workload.check(&fixture).await;
    service.kill();
    assert_bought_once(&fixture, SHARED, 0).await;
    assert_bought_once(&fixture, ASKED, 1).await;
    println!("3 kills; {}", LedgerCheck::run(&fixture).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_restarted_during_shared_searches_and_decisions() {
    let mut server = PrivatePg::start().await;
    let fixture = WorkerFixture::on(&server.url()).await;
    store_calendar(&fixture).await;
    fixture
        .upstream
        .answer(|call| fare_of(call).delay(Duration::from_millis(150)));
    let workload = Workload::submit(&fixture).await;
    let services = [
        FarescanProcess::start_worker(&fixture, 3, &[]),
        FarescanProcess::start_worker(&fixture, 3, &[]),
    ];
    let before = fixture.upstream.count();
    for (calls, is_fast) in [(8, false), (24, true), (36, false)] {
        fixture
            .upstream
            .wait_for("calls continue", |ledger| ledger.len() >= before + calls)
            .await;
        if is_fast {
            server.stop_fast().await;
        } else {
            server.stop_immediate().await;
        }
        server.restart().await;
    }
    let spent = workload.check(&fixture).await;
    drop(services);
    let shared = calls_by_date(&fixture, SHARED);
    assert_eq!((shared.len(), spent), (40, 40));
    assert!(shared.values().all(|calls| *calls == 1), "{shared:?}");
    assert_bought_once(&fixture, ASKED, 1).await;
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_during_shared_searches_and_decisions() {
    let fixture = WorkerFixture::new().await;
    store_calendar(&fixture).await;
    let gate = Gate::closed();
    let gate_of_calls = gate.clone();
    fixture
        .upstream
        .answer(move |call| fare_of(call).gated_by(&gate_of_calls));
    let workload = Workload::submit(&fixture).await;
    let service = FarescanProcess::start_worker(&fixture, 10, &[]);
    fixture.upstream.wait_for_in_flight(10).await;
    service.signal(Signal::TERM);
    service
        .wait_for_log("shutting down: no new call starts")
        .await;
    gate.open();
    let status = service.wait_for_exit().await;
    assert!(status.success(), "{status}");
    let next = FarescanProcess::start_worker(&fixture, 10, &[]);
    assert_eq!(workload.check(&fixture).await, 40);
    next.kill();
    let shared = calls_by_date(&fixture, SHARED);
    assert!(shared.values().all(|calls| *calls == 1), "{shared:?}");
    assert_bought_once(&fixture, ASKED, 1).await;
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}

/// What waited for a stopped process's calls is searched itself; the late answers count too.
#[tokio::test(flavor = "multi_thread")]
async fn stopped_during_shared_searches_and_decisions() {
    let fixture = WorkerFixture::new().await;
    store_calendar(&fixture).await;
    let gate = Gate::closed();
    let (mut calls, gate_of_calls) = (0, gate.clone());
    fixture.upstream.answer(move |call| {
        calls += 1;
        let reply = fare_of(call);
        if calls <= 10 {
            reply.gated_by(&gate_of_calls)
        } else {
            reply
        }
    });
    let workload = Workload::submit(&fixture).await;
    let stopped = FarescanProcess::start_worker(&fixture, 10, &[]);
    fixture.upstream.wait_for_in_flight(10).await;
    stopped.signal(Signal::STOP);
    let alive = FarescanProcess::start_worker(&fixture, 10, &[]);
    for scan in workload.sharing {
        fixture.wait_until_ended(scan).await;
    }
    fixture.wait_until_ended(workload.question).await;
    assert_bought_once(&fixture, SHARED, 0).await;
    assert_bought_once(&fixture, ASKED, 1).await;
    gate.open();
    stopped.signal(Signal::CONT);
    let lost = "select count(*) from attempts where ended_at is null or reason = 'worker_lost'";
    fixture.wait_for_count(lost, 0).await;
    workload.check(&fixture).await;
    stopped.kill();
    alive.kill();
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}

/// The standby had received neither the calls nor who waited for them.
#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_standby_shares_the_answers_of_calls_that_it_lacks() {
    let mut server = PrivatePg::start().await;
    let fixture = WorkerFixture::on(&server.url()).await;
    let gate = Gate::closed();
    let gate_of_calls = gate.clone();
    fixture
        .upstream
        .answer(move |call| fare_of(call).gated_by(&gate_of_calls));
    let service = FarescanProcess::start_worker(&fixture, 8, &[("FARESCAN_LEASE_SECONDS", "60")]);
    let body = to(SHARED, &json!({"max_age_seconds": 3600}));
    let first = fixture.submit(4, &body).await;
    fixture.upstream.wait_for_in_flight(4).await;
    let second = fixture.submit(4, &body).await;
    let waiting = "select count(*) from shared_searches where waits";
    fixture.wait_for_count(waiting, 4).await;
    promote(&mut server, &fixture).await;
    delete_calls(&fixture).await;
    execute!(fixture.pool(), "update shared_searches set waits = false");
    gate.open();
    let first = fixture.wait_until_ended(first).await;
    let second = fixture.wait_until_ended(second).await;
    assert_eq!(fixture.upstream.count(), 4, "none is called again");
    let avoided = second.requests.avoided.unwrap();
    assert_eq!(
        [
            first.requests.spent,
            second.requests.spent,
            avoided.reused + avoided.joined
        ],
        [4, 0, 4]
    );
    service.kill();
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}
