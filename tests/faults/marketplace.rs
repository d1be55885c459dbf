//! The marketplace misbehaves or is down.

use std::time::Duration;

use farescan::contract::scans::{ItemState, ScanStatus};
use serde_json::json;
use tokio::time::Instant;

use super::ledger::LedgerCheck;
use super::process::FarescanProcess;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::fixture::WorkerFixture;

/// The memory that one call may use (engine.md, rule 35).
const MEMORY_OF_A_CALL: u64 = 16 * 1024 * 1024;
const CALLS: u16 = 4;

/// A body of 100 MB of valid JSON.
fn body_of_100_mb() -> Vec<u8> {
    format!("[{{\"filler\": \"{}\"}}]", "x".repeat(100_000_000)).into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_it_sends_a_call_ends_in_time_and_little_memory() {
    let fixture = WorkerFixture::new().await;

    let good = Reply::json(json!([fare(120, &json!({}))]));
    let bomb = Reply::text(zstd::encode_all(body_of_100_mb().as_slice(), 1).unwrap())
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
    // These replies end the call, so the time limit is long: a busy machine needs time to read 100
    // MB.
    let wrong = vec![
        (Reply::reset(), "upstream_connection"),
        (good.half_body(), "upstream_connection"),
        (Reply::garbage(), "upstream_connection"),
        (Reply::text("this is no JSON"), "unreadable_response"),
        (Reply::not_gzip(), "unreadable_response"),
        (Reply::text(body_of_100_mb()), "unreadable_response"),
        (bomb, "unreadable_response"),
    ];
    let mut figures = run_replies(&fixture, seconds, slow).await;
    figures.extend(run_replies(&fixture, "180", wrong).await);
    println!(
        "{}; {}",
        figures.join(", "),
        LedgerCheck::run(&fixture).await.without_losses()
    );
}

/// Runs a service with this time limit against each reply. Each call must end with its reason, and
/// the memory must stay small.
async fn run_replies(
    fixture: &WorkerFixture,
    seconds: &str,
    replies: Vec<(Reply, &str)>,
) -> Vec<String> {
    fixture.upstream.answer_fares(120);
    let service = FarescanProcess::start_with(
        fixture,
        CALLS,
        &[("FARESCAN_SEARCH_TIMEOUT_SECONDS", seconds)],
    );
    let first = fixture.submit(CALLS.into(), &json!({})).await;
    fixture.wait_until_ended(first).await;
    let before = service.peak_memory();
    let mut reasons = Vec::new();
    for (reply, reason) in replies {
        fixture.upstream.reply(reply);
        let scan = fixture.submit(CALLS.into(), &json!({})).await;
        let begun = Instant::now();
        let seen = fixture.wait_until_ended(scan).await;
        assert_eq!(seen.items.degraded, u32::from(CALLS), "{reason}: {seen:#?}");
        let items = fixture.items(scan).await;
        assert!(
            items.iter().all(|item| item.state == ItemState::Done && item.reason.as_deref() == Some(reason)),
            "{reason}: {items:#?}"
        );
        reasons.push(format!("{reason} {:.1} s", begun.elapsed().as_secs_f64()));
        // Closes the circuit for the next reply: forty failures in a row would open it.
        execute!(
            fixture.pool(),
            "update circuits set tally = default, opened_at = null, probe_at = null"
        );
    }
    let used = service.peak_memory() - before;
    assert!(
        used <= u64::from(CALLS) * MEMORY_OF_A_CALL,
        "{CALLS} calls used {} MiB",
        used / 1024 / 1024
    );
    reasons.push(format!(
        "at most {} MiB for {CALLS} calls",
        used / 1024 / 1024
    ));
    service.kill();
    reasons
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_server_errors_opens_the_circuit_until_it_ends() {
    let fixture = WorkerFixture::new().await;
    execute!(fixture.pool(), "update circuits set probe_every = '1 s'");
    let concurrency = 5;
    let services = [
        FarescanProcess::start(&fixture, concurrency),
        FarescanProcess::start(&fixture, concurrency),
    ];
    let first = fixture.submit(1, &json!({})).await;
    fixture.wait_until_ended(first).await;
    fixture.upstream.reply(Reply::status(502));
    let scan = fixture.submit(200, &json!({})).await;
    let seen = fixture
        .wait_for_scan(scan, "it is paused", |scan| {
            scan.status == ScanStatus::Paused
        })
        .await;
    assert_eq!(
        seen.status_reason
            .map(|reason| reason.to_string())
            .as_deref(),
        Some("upstream_down")
    );
    let opened = fixture
        .wait_for_scan(scan, "what was in flight has ended", |scan| {
            scan.items.running == 0
        })
        .await;
    let most = 20 + 2 * u32::from(concurrency);
    // On a slow machine the first probes may have begun already.
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

    // Probes follow one by one, and none has a second try.
    let count = fixture.upstream.count();
    fixture
        .upstream
        .wait_for("two probes are sent", |calls| calls.len() >= count + 2)
        .await;
    let probes: Vec<_> = fixture.upstream.calls()[count..]
        .iter()
        .map(|call| call.header("x-request-id").to_owned())
        .collect();
    assert_ne!(probes[0], probes[1], "a probe has no second try");
    assert_eq!(fixture.scan(scan).await.status, ScanStatus::Paused);

    fixture.upstream.answer_fares(120);
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!(
        (seen.items.pending, seen.items.ok + seen.items.degraded),
        (0, 200)
    );
    println!(
        "{} calls failed, {} were not called until it had recovered; {}",
        seen.items.degraded,
        seen.items.ok,
        LedgerCheck::run(&fixture).await.without_losses()
    );
    drop(services);
}
