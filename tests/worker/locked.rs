//! A lane that is due while somebody holds its lock.

use std::time::Instant;

use farescan::measure;
use serde_json::json;

use super::stage::Stage;

/// How often a claimer of this process has looked for work.
fn visits() -> u32 {
    let text = measure::text();
    let count = text
        .lines()
        .find_map(|line| line.strip_prefix(r#"farescan_queue_batch_size_count{step="claim"} "#));
    count.map_or(0, |count| count.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claimer_asks_less_and_less_for_a_lane_that_is_locked() {
    measure::start();
    let stage = Stage::new().await;
    let scan = stage.submit(1, &json!({})).await;
    let mut holder = farescan::db::begin(stage.pool()).await.unwrap();
    sqlx::query("select from lanes for update")
        .execute(&mut *holder)
        .await
        .unwrap();
    let worker = stage.worker();
    let begun = Instant::now();
    while visits() < 60 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let took = begun.elapsed();
    println!("60 visits took {took:?}");
    // The waits of 60 visits are 2, 4, 8, 16, 32 and then 50 ms, but for those that a notification cut short.
    assert!(took.as_millis() > 2_000, "{took:?}");
    holder.rollback().await.unwrap();
    stage.ended(scan).await;
    worker.stop().await;
}
