//! Told to end: what is in flight is finished, and a rolling restart repeats nothing.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use farescan::contract::scans::ScanStatus;
use rustix::process::Signal;
use serde_json::json;

use super::books::Books;
use super::process::Serve;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::worker::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn told_to_end_it_records_its_calls_and_ends_well() {
    let stage = Stage::new().await;
    let gate = Gate::closed();
    stage
        .upstream
        .on_any()
        .reply(Reply::json(json!([fare(120, &json!({}))])).held_by(&gate));
    let scan = stage.submit(60, &json!({})).await;
    let service = Serve::start(&stage, 10);
    stage.upstream.wait_for_in_flight(10).await;
    service.signal(Signal::TERM);
    service.says("ending: no new call starts").await;
    gate.open();
    let status = service.ended().await;
    assert!(status.success(), "{status}");
    let seen = stage.scan(scan).await;
    // A claim may be on its way to its call when the signal comes.
    let begun = u32::try_from(stage.upstream.count()).unwrap();
    assert_eq!(
        (seen.items.ok, seen.items.pending, seen.items.running),
        (begun, 60 - begun, 0)
    );
    assert_eq!(
        stage.count("select count(*) from workers").await,
        0,
        "the lease is given back"
    );
    let next = Serve::start(&stage, 10);
    let seen = stage.ended(scan).await;
    next.kill();
    assert_eq!(
        (seen.status, stage.upstream.count()),
        (ScanStatus::Completed, 60)
    );
    println!("{}", Books::compare(&stage).await.complete());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_it_at_once() {
    let stage = Stage::new().await;
    stage.upstream.on_any().reply(Reply::hang());
    let scan = stage.submit(4, &json!({})).await;
    let service = Serve::start(&stage, 4);
    stage.upstream.wait_for_in_flight(4).await;
    service.signal(Signal::TERM);
    service.says("ending: no new call starts").await;
    service.signal(Signal::INT);
    let status = service.ended().await;
    assert_eq!((status.code(), status.signal()), (Some(130), None));
    let next = Serve::start(&stage, 4);
    let seen = stage.ended(scan).await;
    assert_eq!(
        (seen.items.degraded, stage.upstream.count()),
        (4, 4),
        "as after a crash: lost, and not asked again"
    );
    println!("{}", Books::compare(&stage).await);
    next.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn restarted_one_after_the_other_under_load_they_repeat_nothing_and_lose_nothing() {
    let stage = Stage::new().await;
    stage.upstream.on_any().answer(|call| {
        Reply::json(json!([fare(120, &call.body)])).delay(Duration::from_millis(150))
    });
    let mut fleet = vec![Serve::start(&stage, 6), Serve::worker(&stage, 6, &[])];
    let scan = stage.submit(400, &json!({})).await;
    for round in 1..=4 {
        stage
            .upstream
            .wait_for("it goes on", |calls| calls.len() >= round * 60)
            .await;
        fleet.push(if round % 2 == 0 {
            Serve::start(&stage, 6)
        } else {
            Serve::worker(&stage, 6, &[])
        });
        let oldest = fleet.remove(0);
        oldest.signal(Signal::TERM);
        let status = oldest.ended().await;
        assert!(status.success(), "{status}");
    }
    let seen = stage.ended(scan).await;
    assert_eq!(
        (seen.status, seen.items.ok, stage.upstream.count()),
        (ScanStatus::Completed, 400, 400)
    );
    println!("{}", Books::compare(&stage).await.complete());
}
