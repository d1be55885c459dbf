//! The sweep analyses tables that have grown, so that Postgres replans.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::fixture::{WorkerFixture, fares};
use crate::support::WAIT_LIMIT;

/// Submits 900 items at once, with autovacuum disabled.
async fn submit_900_items(fixture: &WorkerFixture) {
    let alone = "alter table scan_items set (autovacuum_enabled = false)";
    execute!(fixture.pool(), alone);
    let mut sweep = fares(300)["sweep"].clone();
    sweep["to_airport"] = json!(["LHR", "CDG", "JFK"]);
    fixture
        .submit(
            300,
            &json!({"request": {"from_airport": "TLV", "currency": "USD"}, "sweep": sweep}),
        )
        .await;
}

/// Waits until the items are analysed; runs `before` ahead of every poll.
async fn wait_until_analyzed(fixture: &WorkerFixture, before: &'static str) {
    let rows = "select greatest(reltuples, 0)::bigint from pg_class where relname = 'scan_items'";
    let end = Instant::now() + WAIT_LIMIT;
    loop {
        fixture.count(before).await;
        if fixture.count(rows).await >= 900 {
            return;
        }
        assert!(Instant::now() < end, "the items are not analysed");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_sweep_analyzes_tables_that_have_grown() {
    let fixture = WorkerFixture::new().await;
    let worker = fixture.start_worker();
    submit_900_items(&fixture).await;
    wait_until_analyzed(&fixture, "select 0::bigint").await;
    worker.stop().await;
}

#[tokio::test]
async fn tables_that_have_not_doubled_are_left_to_autovacuum() {
    let fixture = WorkerFixture::new().await;
    let analyse = "select analyze_grown_tables()::bigint";
    assert_eq!(fixture.count(analyse).await, 0, "the tables are empty");
    submit_900_items(&fixture).await;
    wait_until_analyzed(&fixture, analyse).await;
    assert_eq!(fixture.count(analyse).await, 0, "they were just analysed");
}
