//! The marketplace misbehaves, or is down.

use std::time::Duration;

use farescan::contract::scans::{ItemState, ScanStatus};
use serde_json::json;
use tokio::time::Instant;

use super::books::Books;
use super::process::Serve;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::stage::Stage;

/// What one call may hold (engine.md).
const MEMORY_OF_A_CALL: u64 = 16 * 1024 * 1024;
const CALLS: u16 = 4;

/// A body of 100 MB of good JSON.
fn endless() -> Vec<u8> {
    format!("[{{\"filler\": \"{}\"}}]", "x".repeat(100_000_000)).into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_it_sends_a_call_ends_in_its_time_frees_its_place_and_holds_little() {
    let stage = Stage::new().await;

    let good = Reply::json(json!([fare(120, &json!({}))]));
    let bomb = Reply::text(zstd::encode_all(endless().as_slice(), 1).unwrap())
        .header("content-encoding", "zstd");
    let seconds = if super::is_soak() { "180" } else { "3" };
    let slow = vec![
        (Reply::hang(), "upstream_timeout"),
        (
            good.clone().drip(Duration::from_millis(500)),
            "upstream_timeout",
        ),
        (good.clone().stalled_body(), "upstream_timeout"),
    ];
    // What ends by what is sent has all the time there is: a hundred megabytes take theirs on a machine that has much else to do.
    let wrong = vec![
        (Reply::reset(), "upstream_connection"),
        (good.half_body(), "upstream_connection"),
        (Reply::noise(), "upstream_connection"),
        (Reply::text("this is no JSON"), "unreadable_response"),
        (Reply::garbled(), "unreadable_response"),
        (Reply::text(endless()), "unreadable_response"),
        (bomb, "unreadable_response"),
    ];
    let mut told = endured(&stage, seconds, slow).await;
    told.extend(endured(&stage, "180", wrong).await);
    println!(
        "{}; {}",
        told.join(", "),
        Books::compare(&stage).await.complete()
    );
}

/// One service at each of these answers, whose searches have so many seconds: each ends as it should, and the service holds little.
async fn endured(stage: &Stage, seconds: &str, manners: Vec<(Reply, &str)>) -> Vec<String> {
    stage
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(120, &call.body)])));
    let service = Serve::with(
        stage,
        CALLS,
        &[("FARESCAN_SEARCH_TIMEOUT_SECONDS", seconds)],
    );
    let warm = stage.submit(CALLS.into(), &json!({})).await;
    stage.ended(warm).await;
    let before = service.peak_memory();
    let mut reasons = Vec::new();
    for (reply, reason) in manners {
        stage.upstream.on_any().reply(reply);
        let scan = stage.submit(CALLS.into(), &json!({})).await;
        let begun = Instant::now();
        let seen = stage.ended(scan).await;
        assert_eq!(seen.items.degraded, u32::from(CALLS), "{reason}: {seen:#?}");
        let items = stage.items(scan).await;
        assert!(
            items.iter().all(|item| item.state == ItemState::Done && item.reason.as_deref() == Some(reason)),
            "{reason}: {items:#?}"
        );
        reasons.push(format!("{reason} {:.1} s", begun.elapsed().as_secs_f64()));
        // Each kind by itself: forty failures in a row would open the circuit.
        sqlx::query("update circuits set tally = default, opened_at = null, probe_at = null")
            .execute(stage.pool())
            .await
            .unwrap();
    }
    let held = service.peak_memory() - before;
    assert!(
        held <= u64::from(CALLS) * MEMORY_OF_A_CALL,
        "{CALLS} calls held {} MiB",
        held / 1024 / 1024
    );
    reasons.push(format!(
        "at most {} MiB for {CALLS} calls",
        held / 1024 / 1024
    ));
    service.kill();
    reasons
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_server_errors_opens_the_circuit_and_the_scan_goes_on_by_itself() {
    let stage = Stage::new().await;
    sqlx::query("update circuits set probe_every = '1 s'")
        .execute(stage.pool())
        .await
        .unwrap();
    let concurrency = 5;
    let services = [
        Serve::start(&stage, concurrency),
        Serve::start(&stage, concurrency),
    ];
    let warm = stage.submit(1, &json!({})).await;
    stage.ended(warm).await;
    stage.upstream.on_any().reply(Reply::status(502));
    let scan = stage.submit(200, &json!({})).await;
    let seen = stage
        .scan_when(scan, "it is paused", |scan| {
            scan.status == ScanStatus::Paused
        })
        .await;
    assert_eq!(
        seen.status_reason
            .map(|reason| reason.to_string())
            .as_deref(),
        Some("upstream_down")
    );
    let opened = stage
        .scan_when(scan, "what was in flight has ended", |scan| {
            scan.items.running == 0
        })
        .await;
    let most = 20 + 2 * u32::from(concurrency);
    // The first probe may have begun on a slow machine.
    assert!(
        (20..=most + 2).contains(&opened.items.degraded),
        "{} calls failed before it opened",
        opened.items.degraded
    );
    assert!(
        opened.requests.spent <= 1 + 2 * (most + 2),
        "one retry each: {}",
        opened.requests.spent
    );

    // Probes go on, one by one, and none is tried a second time.
    let count = stage.upstream.count();
    stage
        .upstream
        .wait_for("two probes are sent", |calls| calls.len() >= count + 2)
        .await;
    let probes: Vec<_> = stage.upstream.calls()[count..]
        .iter()
        .map(|call| call.header("x-request-id").to_owned())
        .collect();
    assert_ne!(probes[0], probes[1], "a probe has no second try");
    assert_eq!(stage.scan(scan).await.status, ScanStatus::Paused);

    stage
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(120, &call.body)])));
    let seen = stage.ended(scan).await;
    assert_eq!(
        (seen.items.pending, seen.items.ok + seen.items.degraded),
        (0, 200)
    );
    println!(
        "{} calls failed, {} were not asked until it was up; {}",
        seen.items.degraded,
        seen.items.ok,
        Books::compare(&stage).await.complete()
    );
    drop(services);
}
