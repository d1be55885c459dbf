//! Digests at a receiver, and changes of the settings while one is due.

use std::sync::Arc;

use farescan::webhooks::Sender;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::{HOUR, NightTest, night};
use crate::alerts::{as_sent, time};
use crate::support::reply::Reply;
use crate::support::text;
use crate::support::upstream::{Call, ScriptedServer};
use crate::webhooks::harness::{TRY_TIME, TestResolver, address, deliver, guard, is_signed};

/// The fields of an object, in their order.
fn fields(object: &Value) -> Vec<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

/// Two alerts of one night, over real HTTP: one POST, signed, with the body that is documented.
#[tokio::test(flavor = "multi_thread")]
async fn a_digest_arrives_once_signed_and_as_documented() {
    let test = NightTest::open(&night()).await;
    let receiver = ScriptedServer::start().await;
    receiver.replies([Reply::status(200)]);
    let names = TestResolver::default();
    names.resolve_to("hooks.test", &[&[address(&receiver)]]);
    let rotate = format!("/v1/monitors/{}/rotate-secret", test.id);
    let rotated = test.ask("POST", &rotate, None).await.expect(200).json();
    let secret = text(&rotated["webhook_secret"]);
    test.run_at(290).await;
    test.run_at(280).await;
    let end = time(&test.shown().await["held"]["notify_at"]);

    assert_eq!(test.pass(end).await.notified, 1);
    assert_eq!(test.pass(end).await.notified, 0);
    // The pass was at the end of the night to come: its delivery is due only then. The deliverer
    // starts afterwards: it would lock these rows in the other order.
    let due = "with d as (update deliveries set due_at = clock_timestamp() where due_at is not null returning *)
               update webhook_endpoints w set next_at = clock_timestamp() from d where w.monitor_id = d.monitor_id";
    execute!(test.pool(), due);
    let sender = Sender::with_resolver(guard(), Arc::new(names)).unwrap();
    let deliverer = deliver(test.pool(), sender.with_timeout(TRY_TIME));
    let delivered = "select count(*) from deliveries where status = 'delivered'";
    test.wait_for_count(delivered, 1).await;
    deliverer.stop().await;

    let calls = receiver.calls();
    let [call]: &[Call; 1] = calls.as_slice().try_into().unwrap();
    assert!(is_signed(call, &secret));
    assert!(!is_signed(
        &Call {
            raw: [&call.raw[..], b" "].concat(),
            ..call.clone()
        },
        &secret
    ));
    let delivery = &test.deliveries().await[0];
    assert_eq!(call.header("webhook-id"), text(&delivery["id"]));
    assert_eq!(call.body, delivery["payload"]);
    assert_eq!(fields(&call.body), ["type", "timestamp", "data"]);
    let alerts = test.listed().await;
    let data = &call.body["data"];
    assert_eq!(
        *data,
        json!({
            "monitor_id": test.id, "name": test.shown().await["name"], "since": alerts[1]["fired_at"], "notify_at": end,
            "fired": 2, "truncated": false, "alerts": as_sent(&alerts)
        })
    );
    assert_eq!(
        [&data["alerts"][0]["price"], &data["alerts"][1]["price"]],
        [&json!(280), &json!(290)]
    );
    test.close().await;
}

impl NightTest {
    /// Makes the held alerts due a minute ago by the real clock, which commands go by.
    async fn due_now(&self) -> Timestamp {
        let due = Timestamp::from_second(Timestamp::now().as_second() - 60).unwrap();
        execute!(
            self.pool(),
            "update monitors set notify_at = $1",
            jiff_sqlx::Timestamp::from(due)
        );
        due
    }

    async fn change(&self, notify: Value) -> Value {
        self.patch(&self.id, &json!({"notify": notify})).await;
        self.shown().await["held"].clone()
    }

    /// The number of alerts of each digest, newest first.
    async fn sent(&self) -> Vec<u64> {
        let deliveries = self.deliveries().await;
        let fired = deliveries
            .iter()
            .map(|sent| sent["payload"]["data"]["fired"].as_u64());
        fired.map(Option::unwrap).collect()
    }
}

/// A clock time some hours from now, in UTC.
fn hours_from_now(hours: i64) -> String {
    let at = Timestamp::now() + SignedDuration::from_hours(hours);
    at.strftime("%H:%M").to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_digest_that_is_due_is_sent_once_whatever_changes() {
    let test = NightTest::open(&json!({"digest_at": hours_from_now(6)})).await;
    test.run_at(290).await;
    // Another time of the digest, or no quiet hours now: what is due is sent.
    test.due_now().await;
    assert_eq!(
        test.change(json!({"digest_at": hours_from_now(9)})).await,
        Value::Null
    );
    assert_eq!(test.sent().await, [1]);
    test.pass(Timestamp::now()).await;
    assert_eq!(test.sent().await, [1], "once");

    // Quiet hours that began meanwhile: it waits for their end, and no process sends it before.
    test.run_at(280).await;
    test.due_now().await;
    let quiet = json!({"from": hours_from_now(-2), "until": hours_from_now(3)});
    let held = test
        .change(json!({"quiet_hours": quiet, "digest_at": hours_from_now(9)}))
        .await;
    let end = time(&held["notify_at"]);
    let now = Timestamp::now();
    assert!(end > now + HOUR * 2 && end <= now + HOUR * 3, "{held}");
    assert_eq!(test.pass(now).await.notified, 0);
    assert_eq!(test.sent().await, [1]);
    // Without settings, and with the webhook removed, it is sent at once.
    assert_eq!(test.change(Value::Null).await, Value::Null);
    assert_eq!(test.sent().await, [1, 1]);

    test.change(json!({"digest_at": hours_from_now(6)})).await;
    test.run_at(270).await;
    let due = test.due_now().await;
    // What says nothing about it changes nothing.
    test.patch(&test.id, &json!({"name": "another"})).await;
    assert_eq!(test.shown().await["held"]["notify_at"], json!(due));
    test.patch(&test.id, &json!({"webhook_url": null})).await;
    assert_eq!(test.sent().await, [1, 1, 1]);
    test.pass(Timestamp::now() + HOUR * 48).await;
    assert_eq!(test.sent().await, [1, 1, 1]);
    test.close().await;
}

/// A change and the passes of four processes at once: one digest, with all alerts.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_beside_the_pass_sends_one_digest() {
    let test = NightTest::open(&json!({"digest_at": hours_from_now(6)})).await;
    for round in 0..6_u8 {
        test.run_at(290 - u64::from(round)).await;
        test.due_now().await;
        let now = Timestamp::now();
        let tickers = [(); 4].map(|()| crate::monitors::ticker(test.pool()));
        let passes =
            futures::future::join_all(tickers.iter().map(|ticker| ticker.send_held_alerts(|| now)));
        let notify = json!({"notify": {"digest_at": hours_from_now(6 + i64::from(round % 3))}});
        let (passes, ()) = futures::future::join(passes, test.patch(&test.id, &notify)).await;
        assert!(passes.into_iter().all(|pass| pass.unwrap().failed == 0));
        test.pass(now + 1.second()).await;
        assert_eq!(test.sent().await, vec![1; usize::from(round) + 1]);
    }
    test.close().await;
}
