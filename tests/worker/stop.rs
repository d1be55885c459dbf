//! Cancelled scans, stopped workers and expired keys.

use farescan::contract::scans::ScanStatus;
use serde_json::json;

use super::fixture::WorkerFixture;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;

fn gated_answer(gate: &Gate) -> Reply {
    Reply::json(json!([fare(120, &json!({}))])).gated_by(gate)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_stops_new_calls_and_keeps_answers_in_flight() {
    let mut fixture = WorkerFixture::new().await;
    fixture.pace.max_in_flight = 5;
    let worker = fixture.start_worker();
    let gate = Gate::closed();
    fixture.upstream.reply(gated_answer(&gate));
    let scan = fixture.submit(30, &json!({})).await;
    fixture.upstream.wait_for_in_flight(5).await;
    fixture.cancel(scan).await;
    let begun = fixture.upstream.count();
    gate.open();
    let seen = fixture.wait_until_ended(scan).await;
    // Another scan completes, so the worker could have continued with the first.
    let other = fixture.submit(3, &json!({})).await;
    fixture.wait_until_ended(other).await;
    worker.stop().await;
    assert_eq!((begun, fixture.upstream.count()), (5, 8));
    assert_eq!(
        (seen.status, seen.items.ok, seen.items.cancelled),
        (ScanStatus::Cancelled, 5, 25)
    );
    assert_eq!(fixture.count("select count(*) from answers").await, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_worker_records_its_calls_in_flight() {
    let mut fixture = WorkerFixture::new().await;
    fixture.pace.max_in_flight = 6;
    let first = fixture.start_worker();
    let gate = Gate::closed();
    fixture.upstream.reply(gated_answer(&gate));
    let scan = fixture.submit(20, &json!({})).await;
    fixture.upstream.wait_for_in_flight(6).await;
    first.request_stop();
    gate.open();
    first.join().await;
    let seen = fixture.scan(scan).await;
    assert_eq!(
        (seen.items.ok as usize, seen.items.running),
        (fixture.upstream.count(), 0),
        "every begun call is recorded"
    );
    assert!(fixture.upstream.count() < 20, "it stopped before the end");
    assert_eq!(fixture.count("select count(*) from workers").await, 0);

    let second = fixture.start_worker();
    let seen = fixture.wait_until_ended(scan).await;
    second.stop().await;
    assert_eq!(
        (seen.status, fixture.upstream.count()),
        (ScanStatus::Completed, 20)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_share_a_scan_and_repeat_no_call() {
    let fixture = WorkerFixture::new().await;
    let workers = [fixture.start_worker(), fixture.start_worker()];
    let scan = fixture.submit(200, &json!({})).await;
    let seen = fixture.wait_until_ended(scan).await;
    for worker in workers {
        worker.stop().await;
    }
    assert_eq!((seen.items.ok, fixture.upstream.count()), (200, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_with_an_expired_key_pauses_and_sends_nothing() {
    let fixture = WorkerFixture::new().await;
    let scan = fixture.submit(5, &json!({})).await;
    execute!(
        fixture.pool(),
        "update key_grants set expires_at = now() - interval '1 s'"
    );
    let worker = fixture.start_worker();
    let seen = fixture
        .wait_for_scan(scan, "it is paused", |scan| {
            scan.status == ScanStatus::Paused
        })
        .await;
    worker.stop().await;
    assert_eq!(
        seen.status_reason
            .map(|reason| reason.to_string())
            .as_deref(),
        Some("key_expired")
    );
    assert_eq!(fixture.upstream.count(), 0);
    assert_eq!(
        fixture
            .count("select count(*) from scan_items where state = 'held'")
            .await,
        5
    );
}
