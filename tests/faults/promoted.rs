//! A standby is promoted that had not heard of the calls that are in flight.

use std::fs::File;

use serde_json::json;

use super::books::Books;
use super::process::Serve;
use crate::support::db::PrivatePg;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::worker::stage::Stage;

const CALLS: u16 = 4;

/// Stops the server and starts it as a standby, which is then promoted.
async fn promote(server: &mut PrivatePg, stage: &Stage) {
    server.stop_fast().await;
    let signal = server.data_dir().join("standby.signal");
    File::create(&signal).unwrap();
    server.give(&signal);
    server.restart().await;
    // A connection of before is broken, which its pool finds out when it is asked.
    for _ in 0..600 {
        if let Ok(true) = sqlx::query_scalar("select pg_promote()").fetch_one(stage.pool()).await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the standby is not promoted");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_promotion_it_stores_what_it_holds_before_it_claims() {
    let mut server = PrivatePg::start().await;
    let stage = Stage::on(&server.url()).await;
    let (first, others) = (Gate::closed(), Gate::closed());
    let (mut asked, held) = (0, (first.clone(), others.clone()));
    stage.upstream.on_any().answer(move |call| {
        asked += 1;
        let gate = if asked == 1 { &held.0 } else { &held.1 };
        Reply::json(json!([fare(120, &call.body)])).held_by(gate)
    });
    let service = Serve::worker(&stage, CALLS, &[("FARESCAN_LEASE_SECONDS", "60")]);
    let scan = stage.submit(CALLS.into(), &json!({})).await;
    stage.upstream.wait_for_in_flight(CALLS.into()).await;
    promote(&mut server, &stage).await;
    sqlx::raw_sql(
        "delete from attempts;
         update scan_items set state = 'pending', attempt = 0, calls = 0, counted_calls = 0, requests_spent = 0, worker_id = null;
         update scans set requests_spent = 0, status = 'queued', started_at = null;
         update lanes set next_at = clock_timestamp(), virtual_time = 0",
    )
    .execute(stage.pool())
    .await
    .unwrap();
    first.open();
    stage.scan_when(scan, "the first answer is stored", |scan| scan.items.ok == 1).await;
    service.says("a standby was promoted").await;
    others.open();
    let seen = stage.ended(scan).await;
    assert_eq!((seen.items.ok, seen.requests.spent), (u32::from(CALLS), u32::from(CALLS)));
    assert_eq!(stage.upstream.count(), usize::from(CALLS), "none is called again");
    service.kill();
    println!("{}", Books::compare(&stage).await.complete());
}
