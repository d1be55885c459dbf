//! Processes of their own that judge, killed while they do.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use serde_json::json;

use crate::control::house::Dice;
use crate::faults::process::Serve;
use crate::support::PATIENCE;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::stage::Stage;

const MONITORS: usize = 12;
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

/// The price falls, rises and falls again to the same: the fall is new once, and below the amount twice.
#[tokio::test(flavor = "multi_thread")]
async fn every_run_is_told_once_while_processes_are_killed() {
    let stage = Stage::new().await;
    let price = |round: i64| if round % 2 == 0 { 90_u64 } else { 150 };
    let answers = |stage: &Stage, round: i64| {
        let price = price(round);
        stage
            .upstream
            .on_any()
            .answer(move |call| Reply::json(json!([fare(price, &call.body)])));
    };
    answers(&stage, 0);
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
    let rules = json!([{"type": "new_low"}, {"type": "drop_percent", "percent": 20}, {"type": "price_below", "amount": 100}]);
    for number in 0..MONITORS {
        let mut body = super::monitor(1, &rules);
        body["name"] = json!(number.to_string());
        // A call that is lost with its process is made again: each run is to see its price.
        body["scan"]["retry"] = json!({"max_attempts": 9, "delay_seconds": 0});
        // A day on which nobody runs this test.
        body["schedule"] = json!({"cron": "0 0 29 2 *", "timezone": "UTC"});
        assert_eq!(first.post("/v1/monitors", &body).await.status, 201);
    }
    let mut processes = vec![first, Serve::start(&stage, 4), Serve::start(&stage, 4)];
    for process in &processes {
        process.says("listening").await;
    }
    let mut dice = Dice(11);
    let base = Timestamp::from_second(Timestamp::now().as_second() - 600).unwrap();
    let monitors = i64::try_from(MONITORS).unwrap();
    for round in 1..=ROUNDS {
        answers(&stage, round);
        let slot = base + SignedDuration::from_secs(round);
        sqlx::query("update monitors set next_slot = $1")
            .bind(slot.to_sqlx())
            .execute(stage.pool())
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(dice.below(300))).await;
        processes.remove(0).kill();
        processes.push(Serve::start(&stage, 4));
        until(
            &stage,
            "all runs are judged",
            "select count(*) from monitor_slots where judged_at is not null",
            round * monitors,
        )
        .await;
    }
    let told = "select count(*) from alerts where rule_type = ";
    for (rule, times) in [("new_low", 1), ("drop_percent", 1), ("price_below", 2)] {
        let count: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("{told}'{rule}'")))
            .fetch_one(stage.pool())
            .await
            .unwrap();
        println!(
            "{rule}: {count} alerts of {monitors} monitors in {ROUNDS} runs, {ROUNDS} processes killed"
        );
        assert_eq!(count, times * monitors, "{rule}");
    }
    assert_eq!(
        stage.count("select count(*) from (select distinct monitor_id, rule_type, fired_at from alerts) a").await,
        monitors * 4
    );
    assert_eq!(
        stage
            .count("select sum(fired)::bigint from monitor_slots")
            .await,
        monitors * 4
    );
}
