//! Processes that are killed or stopped during calls.

use std::time::Duration;

use farescan::contract::scans::ScanStatus;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use serde_json::json;

use super::ledger::LedgerCheck;
use super::process::FarescanProcess;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::fixture::WorkerFixture;

/// The newest process, and its recorded calls that have not ended.
async fn in_flight(fixture: &WorkerFixture) -> (i64, i64) {
    let newest = "select coalesce(max(w.worker_id), 0), count(a.item_id)
                  from (select max(worker_id) as worker_id from workers) w
                  left join attempts a on a.worker_id = w.worker_id and a.ended_at is null";
    row!(fixture.pool(), newest)
}

/// Waits until a process newer than `previous` has this many calls in flight; returns its worker
/// id.
pub(super) async fn newest_with_calls(fixture: &WorkerFixture, previous: i64, calls: i64) -> i64 {
    for _ in 0..10_000 {
        let (worker, in_flight) = in_flight(fixture).await;
        if worker > previous && in_flight >= calls {
            return worker;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!(
        "the new process makes no calls: {:?}",
        in_flight(fixture).await
    );
}

/// `FARESCAN_SOAK=1`: the long form.
#[tokio::test(flavor = "multi_thread")]
async fn killed_repeatedly_during_calls_it_repeats_no_call() {
    let seed = super::seed();
    let kills = if super::is_soak() { 20 } else { 5 };
    let mut rng = StdRng::seed_from_u64(seed);
    let concurrency = 12;
    let fixture = WorkerFixture::new().await;
    let mut delays = StdRng::seed_from_u64(seed.wrapping_add(1));
    fixture.upstream.answer(move |call| {
        Reply::json(json!([fare(120, &call.body)]))
            .delay(Duration::from_millis(delays.random_range(50..600)))
    });
    let mut sweep = crate::worker::fixture::fares(300)["sweep"].clone();
    sweep["to_airport"] = json!(["LHR", "CDG", "JFK"]);
    let request = json!({"from_airport": "TLV", "currency": "USD"});
    let scan = fixture
        .submit(300, &json!({"request": request, "sweep": sweep}))
        .await;

    let mut previous = 0;
    for kill in 1..=kills {
        let service = FarescanProcess::start(&fixture, concurrency);
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..900))).await;
        let worker = newest_with_calls(&fixture, previous, 9).await;
        service.kill();
        let in_flight = in_flight(&fixture).await.1;
        assert!(
            in_flight >= 5,
            "kill {kill}: {in_flight} calls were in flight"
        );
        previous = worker;
    }
    let service = FarescanProcess::start(&fixture, 64);
    let seen = fixture
        .wait_until_ended_within(scan, Duration::from_secs(120))
        .await;
    service.kill();

    assert_eq!(
        (seen.status, seen.items.ok + seen.items.degraded),
        (ScanStatus::Incomplete, 900)
    );
    let lost: Vec<i64> = values!(
        fixture.pool(),
        "select count(*) from attempts where reason = 'worker_lost' group by worker_id"
    );
    assert_eq!(
        (lost.len(), lost.iter().sum::<i64>()),
        (kills, i64::from(seen.items.degraded))
    );
    // Calls in flight, and calls whose answers were not stored yet.
    assert!(
        lost.iter().all(|lost| *lost <= 2 * i64::from(concurrency)),
        "no more is lost than was in flight: {lost:?}"
    );
    assert_eq!(
        fixture.count("select count(*) from scan_items where search_status = 'degraded' and reason <> 'worker_lost'").await,
        0
    );
    let gaps = "select count(*) from observations where reason = 'worker_lost' and price is null";
    assert_eq!(
        fixture.count(gaps).await,
        i64::from(seen.items.degraded),
        "a lost call is a gap in the history"
    );
    println!("{kills} kills; {}", LedgerCheck::run(&fixture).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_beside_another_process_its_late_answers_count() {
    let fixture = WorkerFixture::new().await;
    let gate = fixture.upstream.answer_fares_after_gate();
    let scan = fixture.submit(8, &json!({})).await;
    let stopped = FarescanProcess::start(&fixture, 8);
    fixture.upstream.wait_for_in_flight(8).await;
    stopped.signal(Signal::STOP);
    if super::is_soak() {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let alive = FarescanProcess::start(&fixture, 8);
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!(
        (seen.status, seen.items.degraded),
        (ScanStatus::Incomplete, 8),
        "abandoned by the other process"
    );
    gate.open();
    stopped.signal(Signal::CONT);
    let seen = fixture
        .wait_for_scan(scan, "the late answers are in", |scan| scan.items.ok == 8)
        .await;
    assert_eq!(
        (seen.status, seen.requests.spent, fixture.upstream.count()),
        (ScanStatus::Completed, 8, 8)
    );
    assert_eq!(
        fixture
            .count("select count(*) from observations where reason = 'worker_lost'")
            .await,
        0,
        "the late answers removed the gaps"
    );
    // Both continue: the stopped process has acquired a new lease.
    let other = fixture.submit(40, &json!({})).await;
    assert_eq!(fixture.wait_until_ended(other).await.items.ok, 40);
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
    alive.kill();
    stopped.kill();
}
