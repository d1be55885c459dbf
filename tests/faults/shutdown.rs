//! SIGTERM: the process finishes its calls in flight, and a rolling restart repeats none.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use farescan::contract::scans::ScanStatus;
use rustix::process::Signal;
use serde_json::json;

use super::ledger::LedgerCheck;
use super::process::FarescanProcess;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::fixture::WorkerFixture;

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_records_the_calls_in_flight_then_exits() {
    let fixture = WorkerFixture::new().await;
    let gate = fixture.upstream.answer_fares_after_gate();
    let scan = fixture.submit(60, &json!({})).await;
    let service = FarescanProcess::start(&fixture, 10);
    fixture.upstream.wait_for_in_flight(10).await;
    service.signal(Signal::TERM);
    service
        .wait_for_log("shutting down: no new call starts")
        .await;
    gate.open();
    let status = service.wait_for_exit().await;
    assert!(status.success(), "{status}");
    let seen = fixture.scan(scan).await;
    // A claim may be about to begin when the signal arrives.
    let begun = u32::try_from(fixture.upstream.count()).unwrap();
    assert_eq!(
        (seen.items.ok, seen.items.pending, seen.items.running),
        (begun, 60 - begun, 0)
    );
    assert_eq!(
        fixture.count("select count(*) from workers").await,
        0,
        "the lease is released"
    );
    let next = FarescanProcess::start(&fixture, 10);
    let seen = fixture.wait_until_ended(scan).await;
    next.kill();
    assert_eq!(
        (seen.status, fixture.upstream.count()),
        (ScanStatus::Completed, 60)
    );
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_exits_at_once() {
    let fixture = WorkerFixture::new().await;
    fixture.upstream.reply(Reply::hang());
    let scan = fixture.submit(4, &json!({})).await;
    let service = FarescanProcess::start(&fixture, 4);
    fixture.upstream.wait_for_in_flight(4).await;
    service.signal(Signal::TERM);
    service
        .wait_for_log("shutting down: no new call starts")
        .await;
    service.signal(Signal::INT);
    let status = service.wait_for_exit().await;
    assert_eq!((status.code(), status.signal()), (Some(130), None));
    let next = FarescanProcess::start(&fixture, 4);
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!(
        (seen.items.degraded, fixture.upstream.count()),
        (4, 4),
        "as after a crash: lost, and not repeated"
    );
    println!("{}", LedgerCheck::run(&fixture).await);
    next.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn rolling_restarts_under_load_lose_and_repeat_no_call() {
    let fixture = WorkerFixture::new().await;
    fixture.upstream.answer(|call| {
        Reply::json(json!([fare(120, &call.body)])).delay(Duration::from_millis(150))
    });
    let mut processes = vec![
        FarescanProcess::start(&fixture, 6),
        FarescanProcess::start_worker(&fixture, 6, &[]),
    ];
    let scan = fixture.submit(400, &json!({})).await;
    for round in 1..=4 {
        fixture
            .upstream
            .wait_for("calls continue", |calls| calls.len() >= round * 60)
            .await;
        processes.push(if round % 2 == 0 {
            FarescanProcess::start(&fixture, 6)
        } else {
            FarescanProcess::start_worker(&fixture, 6, &[])
        });
        let oldest = processes.remove(0);
        oldest.signal(Signal::TERM);
        let status = oldest.wait_for_exit().await;
        assert!(status.success(), "{status}");
    }
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!(
        (seen.status, seen.items.ok, fixture.upstream.count()),
        (ScanStatus::Completed, 400, 400)
    );
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}
