//! Postgres crashes under load.

use std::time::Duration;

use farescan::contract::scans::ScanStatus;
use serde_json::json;

use crate::support::db::PrivatePg;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn crashed_twice_under_load_it_costs_no_answer_and_no_second_call() {
    let mut server = PrivatePg::start().await;
    let stage = Stage::on(&server.url()).await;
    stage.upstream.on_any().answer(|call| Reply::json(json!([fare(120, &call.body)])).delay(Duration::from_millis(150)));
    let worker = stage.worker();
    let scan = stage.submit(300, &json!({})).await;
    for calls in [40, 120] {
        stage.upstream.wait_for("it is in the middle", |ledger| ledger.len() >= calls).await;
        server.stop_immediate().await;
        let before = stage.upstream.count();
        server.restart().await;
        let up = tokio::time::Instant::now();
        stage.upstream.wait_for("it goes on", |ledger| ledger.len() > before).await;
        // The promise is 5 s; the rest is for a machine that has other things to do.
        assert!(up.elapsed() < Duration::from_secs(15), "{:?}", up.elapsed());
    }
    let seen = stage.ended_within(scan, Duration::from_secs(60)).await;
    worker.stop().await;
    assert_eq!((seen.status, seen.items.ok, stage.upstream.count()), (ScanStatus::Completed, 300, 300));
    assert_eq!(stage.count("select count(*) from answers").await, 300);
}
