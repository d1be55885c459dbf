//! Cancels, stops, and what is left of them.

use farescan::contract::scans::ScanStatus;
use serde_json::json;

use super::stage::Stage;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;

fn held(gate: &Gate) -> Reply {
    Reply::json(json!([fare(120, &json!({}))])).held_by(gate)
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_cancel_no_call_starts_and_answers_in_flight_are_kept() {
    let mut stage = Stage::new().await;
    stage.pace.max_in_flight = 5;
    let worker = stage.worker();
    let gate = Gate::closed();
    stage.upstream.on_any().reply(held(&gate));
    let scan = stage.submit(30, &json!({})).await;
    stage.upstream.wait_for_in_flight(5).await;
    stage.cancel(scan).await;
    let begun = stage.upstream.count();
    gate.open();
    let seen = stage.ended(scan).await;
    // Another scan goes through, so the worker had every chance to go on with the first.
    let other = stage.submit(3, &json!({})).await;
    stage.ended(other).await;
    worker.stop().await;
    assert_eq!((begun, stage.upstream.count()), (5, 8));
    assert_eq!(
        (seen.status, seen.items.ok, seen.items.cancelled),
        (ScanStatus::Cancelled, 5, 25)
    );
    assert_eq!(stage.count("select count(*) from answers").await, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn told_to_stop_it_records_what_is_in_flight_and_repeats_nothing() {
    let mut stage = Stage::new().await;
    stage.pace.max_in_flight = 6;
    let first = stage.worker();
    let gate = Gate::closed();
    stage.upstream.on_any().reply(held(&gate));
    let scan = stage.submit(20, &json!({})).await;
    stage.upstream.wait_for_in_flight(6).await;
    first.tell_to_stop();
    gate.open();
    first.ended().await;
    let seen = stage.scan(scan).await;
    assert_eq!(
        (seen.items.ok as usize, seen.items.running),
        (stage.upstream.count(), 0),
        "what was begun is recorded"
    );
    assert!(stage.upstream.count() < 20, "it stopped before the end");
    assert_eq!(stage.count("select count(*) from workers").await, 0);

    let second = stage.worker();
    let seen = stage.ended(scan).await;
    second.stop().await;
    assert_eq!(
        (seen.status, stage.upstream.count()),
        (ScanStatus::Completed, 20)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_share_a_scan_and_ask_nothing_twice() {
    let stage = Stage::new().await;
    let workers = [stage.worker(), stage.worker()];
    let scan = stage.submit(200, &json!({})).await;
    let seen = stage.ended(scan).await;
    for worker in workers {
        worker.stop().await;
    }
    assert_eq!((seen.items.ok, stage.upstream.count()), (200, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_whose_key_has_expired_pauses_and_sends_nothing() {
    let stage = Stage::new().await;
    let scan = stage.submit(5, &json!({})).await;
    sqlx::query("update key_grants set expires_at = now() - interval '1 s'")
        .execute(stage.pool())
        .await
        .unwrap();
    let worker = stage.worker();
    let seen = stage
        .scan_when(scan, "it is paused", |scan| {
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
    assert_eq!(stage.upstream.count(), 0);
    assert_eq!(
        stage
            .count("select count(*) from scan_items where state = 'held'")
            .await,
        5
    );
}
