//! Tables that have grown since Postgres last counted them, so that plans are made anew.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::stage::{Stage, fares};
use crate::support::PATIENCE;

/// Nine hundred items at once, which autovacuum leaves alone.
async fn grow(stage: &Stage) {
    let alone = "alter table scan_items set (autovacuum_enabled = false)";
    sqlx::query(alone).execute(stage.pool()).await.unwrap();
    let mut sweep = fares(300)["sweep"].clone();
    sweep["to_airport"] = json!(["LHR", "CDG", "JFK"]);
    stage
        .submit(
            300,
            &json!({"request": {"from_airport": "TLV", "currency": "USD"}, "sweep": sweep}),
        )
        .await;
}

/// Waits until the items were counted, with this done before every look.
async fn counted(stage: &Stage, before: &'static str) {
    let rows = "select greatest(reltuples, 0)::bigint from pg_class where relname = 'scan_items'";
    let end = Instant::now() + PATIENCE;
    loop {
        stage.count(before).await;
        if stage.count(rows).await >= 900 {
            return;
        }
        assert!(Instant::now() < end, "nobody has counted");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_sweep_has_them_counted() {
    let stage = Stage::new().await;
    let worker = stage.worker();
    grow(&stage).await;
    counted(&stage, "select 0::bigint").await;
    worker.stop().await;
}

#[tokio::test]
async fn what_has_not_doubled_is_left_to_autovacuum() {
    let stage = Stage::new().await;
    let analyse = "select analyse_grown()::bigint";
    assert_eq!(stage.count(analyse).await, 0, "nothing is there");
    grow(&stage).await;
    counted(&stage, analyse).await;
    assert_eq!(stage.count(analyse).await, 0, "they were counted");
}
