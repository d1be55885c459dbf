//! Separate processes that tick and are killed meanwhile.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use serde_json::json;

use super::with;
use crate::control::test_service::Rng;
use crate::faults::process::FarescanProcess;
use crate::support::WAIT_LIMIT;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::fixture::WorkerFixture;

const MONITORS: usize = 20;
const ROUNDS: i64 = 4;

async fn until(fixture: &WorkerFixture, what: &str, sql: &'static str, count: i64) {
    let end = tokio::time::Instant::now() + WAIT_LIMIT;
    while fixture.count(sql).await != count {
        assert!(
            tokio::time::Instant::now() < end,
            "timed out waiting until {what}: {} of {count}",
            fixture.count(sql).await
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Slots of all monitors are due at once for three processes, and one of them is killed each time.
#[tokio::test(flavor = "multi_thread")]
async fn each_slot_makes_one_scan_while_processes_are_killed() {
    let fixture = WorkerFixture::new().await;
    fixture
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(120, &call.body)])));
    let (first, _) = FarescanProcess::start_listening(&fixture).await;
    let warm = crate::worker::fixture::fares(1);
    assert_eq!(first.post("/v1/scans", &warm).await.status, 202);
    until(
        &fixture,
        "the key is accepted",
        "select count(*) from scans where finished_at is not null",
        1,
    )
    .await;
    for number in 0..MONITORS {
        // A day on which this test never runs.
        let schedule = json!({"cron": "0 0 29 2 *", "timezone": "UTC"});
        let body = with(&json!({"name": number.to_string(), "schedule": schedule}));
        assert_eq!(first.post("/v1/monitors", &body).await.status, 201);
    }
    let mut processes = vec![
        first,
        FarescanProcess::start(&fixture, 4),
        FarescanProcess::start(&fixture, 4),
    ];
    for process in &processes {
        process.wait_for_log("listening").await;
    }
    let mut rng = Rng(7);
    let base = Timestamp::from_second(Timestamp::now().as_second() - 600).unwrap();
    for round in 1..=ROUNDS {
        // As if the schedule had a slot now; the database notifies the processes.
        let slot = base + SignedDuration::from_secs(round);
        sqlx::query("update monitors set next_slot = $1")
            .bind(slot.to_sqlx())
            .execute(fixture.pool())
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(rng.below(120))).await;
        processes.remove(0).kill();
        processes.push(FarescanProcess::start(&fixture, 4));
        until(
            &fixture,
            "all slots are decided",
            "select count(*) from monitor_slots",
            round * 20,
        )
        .await;
        until(
            &fixture,
            "all runs have ended",
            "select count(*) from scans where finished_at is null",
            0,
        )
        .await;
    }
    assert_eq!(
        fixture
            .count(
                "select count(*) from monitor_slots where outcome = 'late' and scan_id is not null"
            )
            .await,
        ROUNDS * 20
    );
    assert_eq!(
        fixture
            .count("select count(*) from scans where monitor_id is not null")
            .await,
        ROUNDS * 20
    );
    assert_eq!(
        fixture
            .count("select count(distinct scan_id) from monitor_slots")
            .await,
        ROUNDS * 20
    );
    until(
        &fixture,
        "all runs are evaluated",
        "select count(*) from monitor_slots where evaluated_at is null",
        0,
    )
    .await;
    println!("{} slots, {ROUNDS} processes killed", ROUNDS * 20);
}

/// Daily at 06:00: the process dies in one day's run, is down at 06:00 the next day and starts at
/// 09:00.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_missed_during_an_outage_runs_once_late() {
    const HOUR: SignedDuration = SignedDuration::from_hours(1);
    let fixture = WorkerFixture::new().await;
    fixture
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(120, &call.body)])));
    let (first, _) = FarescanProcess::start_listening(&fixture).await;
    assert_eq!(
        first
            .post("/v1/scans", &crate::worker::fixture::fares(1))
            .await
            .status,
        202
    );
    until(
        &fixture,
        "the key is accepted",
        "select count(*) from scans where finished_at is not null",
        1,
    )
    .await;
    // Its schedule has no slot while this test runs; the test sets the slots.
    let body = with(&json!({"schedule": {"cron": "0 0 29 2 *", "timezone": "UTC"}}));
    assert_eq!(first.post("/v1/monitors", &body).await.status, 201);
    let nine = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    let (yesterday, today) = (nine - HOUR * 27, nine - HOUR * 3);
    let slot_comes = async |slot: Timestamp| {
        sqlx::query("update monitors set next_slot = $1")
            .bind(slot.to_sqlx())
            .execute(fixture.pool())
            .await
            .unwrap();
    };
    let calls = fixture.upstream.count();
    fixture.upstream.on_any().reply(Reply::hang());
    slot_comes(yesterday).await;
    fixture.upstream.wait_for_in_flight(1).await;
    first.kill();
    fixture
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(120, &call.body)])));
    slot_comes(today).await;
    let (second, _) = FarescanProcess::start_listening(&fixture).await;

    until(
        &fixture,
        "both slots are decided",
        "select count(*) from monitor_slots",
        2,
    )
    .await;
    until(
        &fixture,
        "both runs have ended",
        "select count(*) from scans where monitor_id is not null and finished_at is not null",
        2,
    )
    .await;
    let outcomes = "select s.outcome || coalesce(', ' || c.ok || ' ok', '') from monitor_slots s
                    left join scans c on c.scan_id = s.scan_id order by s.slot";
    let outcomes: Vec<String> = sqlx::query_scalar(outcomes)
        .fetch_all(fixture.pool())
        .await
        .unwrap();
    assert_eq!(
        outcomes,
        ["late, 0 ok", "late, 1 ok"],
        "the late run gets a price"
    );
    assert_eq!(
        fixture.upstream.count() - calls,
        2,
        "one call for each day, none repeated"
    );
    second.kill();
}
