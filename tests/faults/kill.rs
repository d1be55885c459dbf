//! Processes that die or stand still in the middle of calls.

use std::time::Duration;

use farescan::contract::scans::ScanStatus;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use serde_json::json;

use super::books::Books;
use super::process::Serve;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::worker::stage::Stage;

/// The newest process, and how many calls of it are on record and not ended.
async fn in_flight(stage: &Stage) -> (i64, i64) {
    let newest = "select coalesce(max(w.worker_id), 0), count(a.item_id)
                  from (select max(worker_id) as worker_id from workers) w
                  left join attempts a on a.worker_id = w.worker_id and a.ended_at is null";
    sqlx::query_as(newest)
        .fetch_one(stage.pool())
        .await
        .unwrap()
}

/// Waits until a process that is newer than `previous` makes so many calls; gives the process.
async fn newest_with_calls(stage: &Stage, previous: i64, calls: i64) -> i64 {
    for _ in 0..10_000 {
        let (worker, in_flight) = in_flight(stage).await;
        if worker > previous && in_flight >= calls {
            return worker;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!(
        "the new process makes no calls: {:?}",
        in_flight(stage).await
    );
}

/// `FARESCAN_SOAK=1`: the long form.
#[tokio::test(flavor = "multi_thread")]
async fn killed_again_and_again_in_the_middle_of_calls_it_loses_nothing_and_repeats_nothing() {
    let seed = super::seed();
    let kills = if super::is_soak() { 20 } else { 5 };
    let mut dice = StdRng::seed_from_u64(seed);
    let concurrency = 12;
    let stage = Stage::new().await;
    let mut delays = StdRng::seed_from_u64(seed.wrapping_add(1));
    stage.upstream.on_any().answer(move |call| {
        Reply::json(json!([fare(120, &call.body)]))
            .delay(Duration::from_millis(delays.random_range(50..600)))
    });
    let mut sweep = crate::worker::stage::fares(300)["sweep"].clone();
    sweep["to_airport"] = json!(["LHR", "CDG", "JFK"]);
    let request = json!({"from_airport": "TLV", "currency": "USD"});
    let scan = stage
        .submit(300, &json!({"request": request, "sweep": sweep}))
        .await;

    let mut previous = 0;
    for kill in 1..=kills {
        let service = Serve::start(&stage, concurrency);
        tokio::time::sleep(Duration::from_millis(dice.random_range(0..900))).await;
        let worker = newest_with_calls(&stage, previous, 9).await;
        service.kill();
        let in_flight = in_flight(&stage).await.1;
        assert!(
            in_flight >= 5,
            "kill {kill}: {in_flight} calls were in flight"
        );
        previous = worker;
    }
    let service = Serve::start(&stage, 64);
    let seen = stage.ended_within(scan, Duration::from_secs(120)).await;
    service.kill();

    assert_eq!(
        (seen.status, seen.items.ok + seen.items.degraded),
        (ScanStatus::Incomplete, 900)
    );
    let lost: Vec<i64> = sqlx::query_scalar(
        "select count(*) from attempts where reason = 'worker_lost' group by worker_id",
    )
    .fetch_all(stage.pool())
    .await
    .unwrap();
    assert_eq!(
        (lost.len(), lost.iter().sum::<i64>()),
        (kills, i64::from(seen.items.degraded))
    );
    // Those that ask, and those whose answers were not stored yet.
    assert!(
        lost.iter().all(|lost| *lost <= 2 * i64::from(concurrency)),
        "no more is lost than was in flight: {lost:?}"
    );
    assert_eq!(
        stage.count("select count(*) from scan_items where search_status = 'degraded' and reason <> 'worker_lost'").await,
        0
    );
    let gaps = "select count(*) from observations where reason = 'worker_lost' and price is null";
    assert_eq!(
        stage.count(gaps).await,
        i64::from(seen.items.degraded),
        "a lost call is a gap in the history"
    );
    println!("{kills} kills; {}", Books::compare(&stage).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_while_another_is_alive_its_calls_are_not_made_again_and_its_late_answers_count() {
    let stage = Stage::new().await;
    let gate = Gate::closed();
    stage
        .upstream
        .on_any()
        .reply(Reply::json(json!([fare(120, &json!({}))])).held_by(&gate));
    let scan = stage.submit(8, &json!({})).await;
    let stopped = Serve::start(&stage, 8);
    stage.upstream.wait_for_in_flight(8).await;
    stopped.signal(Signal::STOP);
    if super::is_soak() {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let alive = Serve::start(&stage, 8);
    let seen = stage.ended(scan).await;
    assert_eq!(
        (seen.status, seen.items.degraded),
        (ScanStatus::Incomplete, 8),
        "given up by the other process"
    );
    gate.open();
    stopped.signal(Signal::CONT);
    let seen = stage
        .scan_when(scan, "the late answers are in", |scan| scan.items.ok == 8)
        .await;
    assert_eq!(
        (seen.status, seen.requests.spent, stage.upstream.count()),
        (ScanStatus::Completed, 8, 8)
    );
    assert_eq!(
        stage
            .count("select count(*) from observations where reason = 'worker_lost'")
            .await,
        0,
        "it was no gap after all"
    );
    // Both go on: the one that was stopped has taken a new lease.
    let other = stage.submit(40, &json!({})).await;
    assert_eq!(stage.ended(other).await.items.ok, 40);
    println!("{}", Books::compare(&stage).await.complete());
    alive.kill();
    stopped.kill();
}
