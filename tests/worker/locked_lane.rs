//! A due lane that another transaction locks.

use std::time::Instant;

use farescan::metrics;
use serde_json::json;

use super::fixture::WorkerFixture;

/// How often a claimer of this process has claimed.
fn claim_count() -> u32 {
    let text = metrics::render();
    let count = text
        .lines()
        .find_map(|line| line.strip_prefix(r#"farescan_queue_batch_size_count{step="claim"} "#));
    count.map_or(0, |count| count.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claimer_backs_off_from_a_locked_lane() {
    metrics::start();
    let fixture = WorkerFixture::new().await;
    let scan = fixture.submit(1, &json!({})).await;
    let mut holder = crate::support::db::begin_holding(fixture.pool()).await;
    execute!(&mut *holder, "select from lanes for update");
    let worker = fixture.start_worker();
    let begun = Instant::now();
    while claim_count() < 60 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let took = begun.elapsed();
    println!("60 claims took {took:?}");
    // The waits between 60 claims are 2, 4, 8, 16, 32 and then 50 ms, unless a notification ends
    // one early.
    assert!(took.as_millis() > 2_000, "{took:?}");
    holder.rollback().await.unwrap();
    fixture.wait_until_ended(scan).await;
    worker.stop().await;
}
