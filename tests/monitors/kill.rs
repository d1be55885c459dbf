//! Processes of their own that tick, killed while they do.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use serde_json::json;

use super::with;
use crate::control::house::Dice;
use crate::faults::process::Serve;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::stage::Stage;

const MONITORS: usize = 20;
const ROUNDS: i64 = 4;
const PATIENCE: Duration = Duration::from_secs(60);

async fn until(stage: &Stage, what: &str, sql: &'static str, count: i64) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while stage.count(sql).await != count {
        assert!(tokio::time::Instant::now() < end, "waited in vain until {what}: {} of {count}", stage.count(sql).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Slots that come for all monitors at once, with three processes at them, of which one is killed -9 in the middle each time.
#[tokio::test(flavor = "multi_thread")]
async fn each_slot_makes_one_scan_while_processes_are_killed() {
    let stage = Stage::new().await;
    stage.upstream.on_any().answer(|call| Reply::json(json!([fare(120, &call.body)])));
    let (first, _) = Serve::listening(&stage).await;
    let warm = crate::worker::stage::fares(1);
    assert_eq!(first.post("/v1/scans", &warm).await.status, 202);
    until(&stage, "the key is accepted", "select count(*) from scans where finished_at is not null", 1).await;
    for number in 0..MONITORS {
        // A day on which nobody runs this test.
        let schedule = json!({"cron": "0 0 29 2 *", "timezone": "UTC"});
        let body = with(&json!({"name": number.to_string(), "schedule": schedule}));
        assert_eq!(first.post("/v1/monitors", &body).await.status, 201);
    }
    let mut processes = vec![first, Serve::start(&stage, 4), Serve::start(&stage, 4)];
    for process in &processes {
        process.says("listening").await;
    }
    let mut dice = Dice(7);
    let base = Timestamp::from_second(Timestamp::now().as_second() - 600).unwrap();
    for round in 1..=ROUNDS {
        // As if the schedule had a slot now; who ticks is told by the database.
        let slot = base + SignedDuration::from_secs(round);
        sqlx::query("update monitors set next_slot = $1").bind(slot.to_sqlx()).execute(stage.pool()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(dice.below(120))).await;
        processes.remove(0).kill();
        processes.push(Serve::start(&stage, 4));
        until(&stage, "all slots are decided", "select count(*) from monitor_slots", round * 20).await;
        until(&stage, "all runs have ended", "select count(*) from scans where finished_at is null", 0).await;
    }
    assert_eq!(
        stage.count("select count(*) from monitor_slots where outcome = 'late' and scan_id is not null").await,
        ROUNDS * 20
    );
    assert_eq!(stage.count("select count(*) from scans where monitor_id is not null").await, ROUNDS * 20);
    assert_eq!(stage.count("select count(distinct scan_id) from monitor_slots").await, ROUNDS * 20);
    until(&stage, "all runs are judged", "select count(*) from monitor_slots where judged_at is null", 0).await;
    println!("{} slots, {ROUNDS} processes killed", ROUNDS * 20);
}
