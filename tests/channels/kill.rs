//! A process that is killed between the record of alerts and their sending.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use serde_json::json;

use super::receivers;
use crate::faults::process::FarescanProcess;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::{ScriptedServer, fare};
use crate::worker::fixture::WorkerFixture;

const OPEN: [(&str, &str); 1] = [("FARESCAN_WEBHOOKS_ALLOW_INSECURE", "true")];
const MONITORS: i64 = 6;

#[tokio::test(flavor = "multi_thread")]
async fn each_alert_is_recorded_once_and_sent_under_one_id() {
    let fixture = WorkerFixture::new().await;
    fixture
        .upstream
        .answer(|call| Reply::json(json!([fare(90, &call.body)])));
    let receiver = ScriptedServer::start().await;
    let gate = Gate::closed();
    receiver.reply(Reply::status(200).gated_by(&gate));
    let first = FarescanProcess::start_with(&fixture, 1, &OPEN);
    first.wait_for_log("listening").await;
    let accepting = first
        .post("/v1/scans", &crate::worker::fixture::fares(1))
        .await;
    assert_eq!(accepting.status, 202);
    let ended = "select count(*) from scans where finished_at is not null";
    fixture.wait_for_count(ended, 1).await;
    let body = json!({"name": "phone", "kind": "ntfy", "url": format!("{}/kill", receiver.url())});
    let created = first.post("/v1/channels", &body).await;
    assert_eq!(created.status, 201, "{}", created.body);
    let channel = created.body["id"].as_str().unwrap().to_owned();
    for number in 0..MONITORS {
        let rules = json!([{"type": "price_below", "amount": 100}]);
        let mut body = crate::alerts::monitor(1, &rules);
        body["name"] = json!(number.to_string());
        body["channels"] = json!([channel]);
        body["scan"]["retry"] = json!({"max_attempts": 9, "delay_seconds": 0});
        // A day on which this test never runs.
        body["schedule"] = json!({"cron": "0 0 29 2 *", "timezone": "UTC"});
        assert_eq!(first.post("/v1/monitors", &body).await.status, 201);
    }
    let slot = Timestamp::from_second(Timestamp::now().as_second() - 600).unwrap();
    execute!(
        fixture.pool(),
        "update monitors set next_slot = $1",
        slot.to_sqlx()
    );
    let evaluated = "select count(*) from monitor_slots where evaluated_at is not null";
    fixture.wait_for_count(evaluated, MONITORS).await;
    receiver.wait_for_in_flight(1).await;
    first.kill();
    let next = FarescanProcess::start_with(&fixture, 1, &OPEN);
    gate.open();
    let delivered = "select count(*) from deliveries where status = 'delivered'";
    fixture.wait_for_count(delivered, MONITORS).await;
    assert_eq!(fixture.count("select count(*) from alerts").await, MONITORS);
    assert_eq!(
        fixture.count("select count(*) from deliveries").await,
        MONITORS
    );
    let calls = receiver.calls();
    let ids: BTreeSet<_> = calls
        .iter()
        .map(|call| call.header("farescan-delivery").to_owned())
        .collect();
    let sent = usize::try_from(MONITORS).unwrap();
    println!(
        "{} messages of {sent} alerts, a process killed in a try",
        calls.len()
    );
    assert_eq!(ids.len(), sent, "each under one id");
    assert!(calls.len() > sent, "the one in flight was sent once more");
    for call in &calls {
        receivers::ntfy(call);
    }
    drop(next);
}
