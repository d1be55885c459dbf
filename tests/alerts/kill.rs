//! Separate processes that evaluate rules and are killed meanwhile.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use serde_json::json;

use crate::faults::process::FarescanProcess;
use crate::support::Rng;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::fixture::WorkerFixture;

const MONITORS: usize = 12;
const ROUNDS: i64 = 4;

/// The price falls, rises and falls to the same again: one new low, and twice below the amount.
#[tokio::test(flavor = "multi_thread")]
async fn each_run_fires_once_while_processes_are_killed() {
    let fixture = WorkerFixture::new().await;
    let price = |round: i64| if round % 2 == 0 { 90_u64 } else { 150 };
    let answers = |fixture: &WorkerFixture, round: i64| {
        let price = price(round);
        fixture
            .upstream
            .answer(move |call| Reply::json(json!([fare(price, &call.body)])));
    };
    answers(&fixture, 0);
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
    let rules = json!([{"type": "new_low", "days": 30}, {"type": "drop_percent", "percent": 20}, {"type": "price_below", "amount": 100}, {"type": "price_below", "amount": 100, "confirm": 1}]);
    for number in 0..MONITORS {
        let mut body = super::monitor(1, &rules);
        body["name"] = json!(number.to_string());
        // A call lost with its process is retried, so that each run sees its price.
        body["scan"]["retry"] = json!({"max_attempts": 9, "delay_seconds": 0});
        // No monitor sees the prices of another.
        body["scan"]["request"]["departure_date"] = json!(format!("2030-02-{:02}", number + 1));
        // A day on which this test never runs.
        body["schedule"] = json!({"cron": "0 0 29 2 *", "timezone": "UTC"});
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
    let mut rng = Rng(11);
    let base = Timestamp::from_second(Timestamp::now().as_second() - 600).unwrap();
    let monitors = i64::try_from(MONITORS).unwrap();
    for round in 1..=ROUNDS {
        answers(&fixture, round);
        let slot = base + SignedDuration::from_secs(round);
        execute!(
            fixture.pool(),
            "update monitors set next_slot = $1",
            slot.to_sqlx()
        );
        tokio::time::sleep(Duration::from_millis(rng.below(300))).await;
        processes.remove(0).kill();
        processes.push(FarescanProcess::start(&fixture, 4));
        fixture
            .wait_for_count(
                "select count(*) from monitor_slots where evaluated_at is not null",
                round * monitors,
            )
            .await;
    }
    let events = "select count(*) from alerts where rule_type = ";
    for (rule, times) in [("new_low", 1), ("drop_percent", 1), ("price_below", 4)] {
        let count: i64 = value!(
            fixture.pool(),
            sqlx::AssertSqlSafe(format!("{events}'{rule}'"))
        );
        println!(
            "{rule}: {count} alerts of {monitors} monitors in {ROUNDS} runs, {ROUNDS} processes killed"
        );
        assert_eq!(count, times * monitors, "{rule}");
    }
    assert_eq!(
        fixture.count("select count(*) from (select distinct monitor_id, rule_type, fired_at from alerts) a").await,
        monitors * 4
    );
    assert_eq!(
        fixture
            .count("select sum(fired)::bigint from monitor_slots")
            .await,
        monitors * 6
    );
}
