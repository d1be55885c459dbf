//! Processes of their own that tick, killed while they do.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use serde_json::json;

use super::with;
use crate::control::house::Dice;
use crate::faults::process::Serve;
use crate::support::PATIENCE;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::stage::Stage;

const MONITORS: usize = 20;
const ROUNDS: i64 = 4;

async fn until(stage: &Stage, what: &str, sql: &'static str, count: i64) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while stage.count(sql).await != count {
        assert!(
            tokio::time::Instant::now() < end,
            "waited in vain until {what}: {} of {count}",
            stage.count(sql).await
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Slots that come for all monitors at once, with three processes at them, of which one is killed -9 in the middle each time.
#[tokio::test(flavor = "multi_thread")]
async fn each_slot_makes_one_scan_while_processes_are_killed() {
    let stage = Stage::new().await;
    stage
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(120, &call.body)])));
    let (first, _) = Serve::listening(&stage).await;
    let warm = crate::worker::stage::fares(1);
    assert_eq!(first.post("/v1/scans", &warm).await.status, 202);
    until(
        &stage,
        "the key is accepted",
        "select count(*) from scans where finished_at is not null",
        1,
    )
    .await;
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
        sqlx::query("update monitors set next_slot = $1")
            .bind(slot.to_sqlx())
            .execute(stage.pool())
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(dice.below(120))).await;
        processes.remove(0).kill();
        processes.push(Serve::start(&stage, 4));
        until(
            &stage,
            "all slots are decided",
            "select count(*) from monitor_slots",
            round * 20,
        )
        .await;
        until(
            &stage,
            "all runs have ended",
            "select count(*) from scans where finished_at is null",
            0,
        )
        .await;
    }
    assert_eq!(
        stage
            .count(
                "select count(*) from monitor_slots where outcome = 'late' and scan_id is not null"
            )
            .await,
        ROUNDS * 20
    );
    assert_eq!(
        stage
            .count("select count(*) from scans where monitor_id is not null")
            .await,
        ROUNDS * 20
    );
    assert_eq!(
        stage
            .count("select count(distinct scan_id) from monitor_slots")
            .await,
        ROUNDS * 20
    );
    until(
        &stage,
        "all runs are judged",
        "select count(*) from monitor_slots where judged_at is null",
        0,
    )
    .await;
    println!("{} slots, {ROUNDS} processes killed", ROUNDS * 20);
}

/// Daily at 06:00: the process dies in the run of one day, nobody is there on the next at 06:00, and it starts again at 09:00.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_missed_while_all_was_down_runs_once_late() {
    const HOUR: SignedDuration = SignedDuration::from_hours(1);
    let stage = Stage::new().await;
    stage
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(120, &call.body)])));
    let (first, _) = Serve::listening(&stage).await;
    assert_eq!(
        first
            .post("/v1/scans", &crate::worker::stage::fares(1))
            .await
            .status,
        202
    );
    until(
        &stage,
        "the key is accepted",
        "select count(*) from scans where finished_at is not null",
        1,
    )
    .await;
    // Its own slots come on a day on which nobody runs this test; those of the story are set.
    let body = with(&json!({"schedule": {"cron": "0 0 29 2 *", "timezone": "UTC"}}));
    assert_eq!(first.post("/v1/monitors", &body).await.status, 201);
    let nine = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    let (yesterday, today) = (nine - HOUR * 27, nine - HOUR * 3);
    let slot_comes = async |slot: Timestamp| {
        sqlx::query("update monitors set next_slot = $1")
            .bind(slot.to_sqlx())
            .execute(stage.pool())
            .await
            .unwrap();
    };
    let calls = stage.upstream.count();
    stage.upstream.on_any().reply(Reply::hang());
    slot_comes(yesterday).await;
    stage.upstream.wait_for_in_flight(1).await;
    first.kill();
    stage
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(120, &call.body)])));
    slot_comes(today).await;
    let (second, _) = Serve::listening(&stage).await;

    until(
        &stage,
        "both slots are decided",
        "select count(*) from monitor_slots",
        2,
    )
    .await;
    until(
        &stage,
        "both runs have ended",
        "select count(*) from scans where monitor_id is not null and finished_at is not null",
        2,
    )
    .await;
    let outcomes = "select s.outcome || coalesce(', ' || c.ok || ' ok', '') from monitor_slots s
                    left join scans c on c.scan_id = s.scan_id order by s.slot";
    let outcomes: Vec<String> = sqlx::query_scalar(outcomes)
        .fetch_all(stage.pool())
        .await
        .unwrap();
    assert_eq!(
        outcomes,
        ["late, 0 ok", "late, 1 ok"],
        "the day has its price"
    );
    assert_eq!(
        stage.upstream.count() - calls,
        2,
        "one call for each day, and none again"
    );
    second.kill();
}
