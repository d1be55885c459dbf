//! Separate processes that tick and are killed meanwhile.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use serde_json::json;

use super::with;
use crate::faults::process::FarescanProcess;
use crate::support::Rng;
use crate::support::reply::Reply;
use crate::worker::fixture::WorkerFixture;

const MONITORS: usize = 20;
const ROUNDS: i64 = 4;

/// Slots of all monitors are due at once for three processes, and one of them is killed each time.
#[tokio::test(flavor = "multi_thread")]
async fn each_slot_makes_one_scan_while_processes_are_killed() {
    let fixture = WorkerFixture::new().await;
    fixture.upstream.answer_fares(120);
    let (first, _) = FarescanProcess::start_listening(&fixture).await;
    let warm = crate::worker::fixture::fares(1);
    assert_eq!(first.post("/v1/scans", &warm).await.status, 202);
    fixture
        .wait_for_count(
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
        execute!(
            fixture.pool(),
            "update monitors set next_slot = $1",
            slot.to_sqlx()
        );
        tokio::time::sleep(Duration::from_millis(rng.below(120))).await;
        processes.remove(0).kill();
        processes.push(FarescanProcess::start(&fixture, 4));
        fixture
            .wait_for_count("select count(*) from monitor_slots", round * 20)
            .await;
        fixture
            .wait_for_count("select count(*) from scans where finished_at is null", 0)
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
    fixture
        .wait_for_count(
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
    fixture.upstream.answer_fares(120);
    let (first, _) = FarescanProcess::start_listening(&fixture).await;
    assert_eq!(
        first
            .post("/v1/scans", &crate::worker::fixture::fares(1))
            .await
            .status,
        202
    );
    fixture
        .wait_for_count(
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
        execute!(
            fixture.pool(),
            "update monitors set next_slot = $1",
            slot.to_sqlx()
        );
    };
    let calls = fixture.upstream.count();
    fixture.upstream.reply(Reply::hang());
    slot_comes(yesterday).await;
    fixture.upstream.wait_for_in_flight(1).await;
    first.kill();
    fixture.upstream.answer_fares(120);
    slot_comes(today).await;
    let (second, _) = FarescanProcess::start_listening(&fixture).await;

    fixture
        .wait_for_count("select count(*) from monitor_slots", 2)
        .await;
    fixture
        .wait_for_count(
            "select count(*) from scans where monitor_id is not null and finished_at is not null",
            2,
        )
        .await;
    let outcomes = "select s.outcome || coalesce(', ' || c.ok || ' ok', '') from monitor_slots s
                    left join scans c on c.scan_id = s.scan_id order by s.slot";
    let outcomes: Vec<String> = values!(fixture.pool(), outcomes);
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
