//! Quiet hours and digests: what is held, until when, and that it is sent once (monitors.md, rules
//! 90 to 94).

mod sent;

use std::time::Duration;

use farescan::config::RetentionConfig;
use farescan::monitors::tick::{self, NotifyPass};
use farescan::upkeep::retention::remove_expired;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{AlertTest, MOMENT, fares, monitor, of_one_date, time};
use crate::monitors::ticker;
use crate::support::{array, text};

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

fn night() -> Value {
    json!({"quiet_hours": {"from": "22:00", "until": "07:00"}})
}

/// A service with a monitor that runs at 03:00 and 05:00, and fires at each price below all before.
struct NightTest {
    test: AlertTest,
    id: String,
}

impl std::ops::Deref for NightTest {
    type Target = AlertTest;

    fn deref(&self) -> &AlertTest {
        &self.test
    }
}

impl NightTest {
    async fn open(notify: &Value) -> Self {
        let test = AlertTest::open().await;
        let mut body = of_one_date(&json!([{"type": "new_low", "days": 30, "rearm_percent": 0}]));
        body["schedule"] = json!({"cron": "0 3,5 * * *", "timezone": "UTC"});
        body["notify"] = notify.clone();
        let id = test.monitor(&body).await;
        let night = Self { test, id };
        // The first price is compared with nothing, and equal ones do not fire.
        night.run_at(300).await;
        while night
            .next_slot(&night.id)
            .await
            .to_zoned(TimeZone::UTC)
            .hour()
            != 3
        {
            night.run_at(300).await;
        }
        night
    }

    async fn run_at(&self, price: u64) -> Value {
        self.respond_with(move |asked| fares(&[price], asked));
        self.run(&self.id).await
    }

    async fn pass(&self, now: Timestamp) -> NotifyPass {
        let pass = ticker(self.pool()).send_held_alerts(|| now).await.unwrap();
        assert_eq!(pass.failed, 0);
        pass
    }

    async fn shown(&self) -> Value {
        self.get(&format!("/v1/monitors/{}", self.id)).await
    }

    /// Its alerts, newest first.
    async fn listed(&self) -> Vec<Value> {
        self.alerts(&self.id).await
    }

    /// Its deliveries with their payloads, newest first.
    async fn deliveries(&self) -> Vec<Value> {
        let path = format!("/v1/deliveries?monitor_id={}&limit=500", self.id);
        let mut deliveries = Vec::new();
        for delivery in self.page(&path).await {
            let path = format!("/v1/deliveries/{}", text(&delivery["id"]));
            deliveries.push(self.get(&path).await);
        }
        deliveries
    }

    async fn close(self) {
        self.test.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_of_the_quiet_hours_are_sent_together_at_their_end() {
    let test = NightTest::open(&night()).await;
    let slot = test.next_slot(&test.id).await;
    let end = slot + HOUR * 4;
    test.run_at(290).await;
    test.run_at(280).await;
    // Stored and listed at once; each says when it is sent.
    let listed = test.listed().await;
    assert_eq!(listed.len(), 2);
    for alert in &listed {
        assert_eq!(alert["notify_at"], json!(end));
        assert_eq!(alert["delivery_id"], Value::Null);
        let path = format!("/v1/alerts/{}", text(&alert["id"]));
        assert_eq!(&test.get(&path).await, alert);
    }
    let shown = test.shown().await;
    assert_eq!(shown["held"], json!({"fired": 2, "notify_at": end}));
    assert_eq!(shown["next_digest_at"], Value::Null);
    assert!(test.deliveries().await.is_empty());

    let before = test.pass(end - MOMENT).await;
    assert_eq!((before.notified, before.next), (0, Some(end)));
    let pass = test.pass(end).await;
    assert_eq!((pass.notified, pass.next), (1, None));
    let [delivery] = &test.deliveries().await[..] else {
        panic!("one delivery")
    };
    assert_eq!(delivery["event_type"], "monitor.digest");
    let event = &delivery["payload"];
    assert_eq!(event["type"], "monitor.digest");
    let data = &event["data"];
    assert_eq!(
        (&data["monitor_id"], &data["fired"], &data["truncated"]),
        (&json!(test.id), &json!(2), &json!(false))
    );
    assert_eq!(
        (&data["since"], &data["notify_at"]),
        (&listed[1]["fired_at"], &json!(end))
    );
    let prices: Vec<_> = array(&data["alerts"])
        .iter()
        .map(|alert| alert["price"].as_u64().unwrap())
        .collect();
    assert_eq!(prices, [280, 290]);
    for alert in test.listed().await {
        assert_eq!(alert["notify_at"], Value::Null);
        assert_eq!(alert["delivery_id"], delivery["id"]);
    }
    assert_eq!(test.shown().await["held"], Value::Null);
    assert_eq!(test.pass(end + MOMENT).await.notified, 0);

    // Outside the quiet hours a run sends its own, at once.
    let schedule = json!({"cron": "0 12 * * *", "timezone": "UTC"});
    test.patch(&test.id, &json!({"schedule": schedule})).await;
    test.run_at(270).await;
    let deliveries = test.deliveries().await;
    assert_eq!(deliveries.len(), 2);
    assert_eq!(deliveries[0]["event_type"], "monitor.alerts");
    assert_eq!(
        test.listed().await[0]["delivery_id"],
        deliveries[0]["id"],
        "an alert that was not held says its delivery too"
    );
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_joins_those_that_are_due_and_not_sent() {
    let test = NightTest::open(&night()).await;
    test.run_at(290).await;
    let end = time(&test.shown().await["held"]["notify_at"]);
    // No process sent them, and the next run is after the quiet hours.
    let schedule = json!({"cron": "0 8 * * *", "timezone": "UTC"});
    execute!(test.pool(), "update monitors set cron = '0 8 * * *'");
    test.respond_with(|asked| fares(&[280], asked));
    let slot = end + HOUR;
    execute!(
        test.pool(),
        "update monitors set next_slot = $1",
        jiff_sqlx::Timestamp::from(slot)
    );
    assert_eq!(test.shown().await["schedule"], schedule);
    test.run(&test.id).await;
    assert!(test.deliveries().await.is_empty());
    test.pass(slot + MOMENT).await;
    let deliveries = test.deliveries().await;
    assert_eq!(deliveries.len(), 1);
    assert_eq!(deliveries[0]["payload"]["data"]["fired"], 2);
    test.close().await;
}

/// Manual runs count, days without alerts have no digest, and processes that were away send one.
#[tokio::test(flavor = "multi_thread")]
async fn a_digest_is_sent_once_a_day_if_there_are_alerts() {
    let test = NightTest::open(&json!({"digest_at": "08:00"})).await;
    let digest = test.next_slot(&test.id).await + HOUR * 5;
    assert_eq!(test.pass(digest - DAY).await.next, None, "nothing is held");
    test.run_at(290).await;
    // A manual run is evaluated like any other.
    test.respond_with(|asked| fares(&[280], asked));
    let path = format!("/v1/monitors/{}/run", test.id);
    test.ask("POST", &path, None).await.expect(202);
    test.all_ended().await;
    test.tick(digest - HOUR * 4).await;
    let shown = test.shown().await;
    assert_eq!(shown["held"], json!({"fired": 2, "notify_at": digest}));

    // Four processes tick at once, each of them twice.
    let tickers = [(); 4].map(|()| ticker(test.pool()));
    let twice = tickers.iter().chain(&tickers);
    let passes = twice.map(|ticker| ticker.send_held_alerts(|| digest));
    let sent: usize = futures::future::join_all(passes)
        .await
        .into_iter()
        .map(|pass| pass.unwrap().notified)
        .sum();
    assert_eq!(sent, 1);
    assert_eq!(test.deliveries().await.len(), 1);
    assert_eq!(test.deliveries().await[0]["payload"]["data"]["fired"], 2);

    // A process whose clock is behind does not make another one of the same day.
    assert_eq!(test.run_at(280).await["judged"]["fired"], 0);
    test.respond_with(|asked| fares(&[270], asked));
    let slot = test.next_slot(&test.id).await;
    test.tick(slot).await;
    test.all_ended().await;
    test.tick(digest - MOMENT).await;
    assert_eq!(
        test.shown().await["held"],
        json!({"fired": 1, "notify_at": digest + DAY})
    );
    // Away for two days: one digest, when a process is there again.
    assert_eq!(test.pass(digest + DAY * 3 + HOUR).await.notified, 1);
    let data = test.deliveries().await[0]["payload"]["data"].clone();
    assert_eq!(
        (&data["notify_at"], &data["fired"]),
        (&json!(digest + DAY), &json!(1))
    );
    // A day without alerts.
    assert_eq!(test.pass(digest + DAY * 5).await.notified, 0);
    assert_eq!(test.deliveries().await.len(), 2);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missed_digest_waits_for_the_end_of_the_quiet_hours() {
    let mut notify = night();
    notify["digest_at"] = json!("21:00");
    let test = NightTest::open(&notify).await;
    test.run_at(290).await;
    let digest = time(&test.shown().await["held"]["notify_at"]);
    let (late, end) = (digest + HOUR * 4, digest + HOUR * 10);
    let pass = test.pass(late).await;
    assert_eq!((pass.notified, pass.next), (1, Some(end)));
    assert!(test.deliveries().await.is_empty());
    assert_eq!(test.listed().await[0]["notify_at"], json!(end));
    assert_eq!(test.pass(end).await.notified, 1);
    assert_eq!(test.deliveries().await.len(), 1);
    test.close().await;
}

/// The connection dies after all writes, before the commit.
#[tokio::test(flavor = "multi_thread")]
async fn an_uncommitted_digest_is_sent_by_the_next_pass() {
    let test = NightTest::open(&night()).await;
    test.run_at(290).await;
    let end = time(&test.shown().await["held"]["notify_at"]);
    let dies = "create function dies() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
                create constraint trigger dies after insert on deliveries deferrable initially deferred
                for each row execute function dies();";
    execute!(test.pool(), dies);
    for _ in 0..3 {
        // The dead session may hold the lock for a moment; then the pass skips the monitor.
        let pass = loop {
            let pass = ticker(test.pool()).send_held_alerts(|| end).await.unwrap();
            if pass.skipped == 0 {
                break pass;
            }
        };
        assert_eq!((pass.notified, pass.failed, pass.next), (0, 1, Some(end)));
        assert!(test.deliveries().await.is_empty());
        assert_eq!(test.shown().await["held"]["fired"], 1);
    }
    execute!(test.pool(), "drop trigger dies on deliveries");
    assert_eq!(test.pass(end).await.notified, 1);
    assert_eq!(test.deliveries().await.len(), 1);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_digest_is_bounded_and_counts_all() {
    let test = AlertTest::open().await;
    let mut body = monitor(
        60,
        &json!([
            {"type": "price_below", "amount": 200, "scope": "cell"},
            {"type": "price_below", "amount": 250, "scope": "cell"}
        ]),
    );
    body["notify"] = json!({"digest_at": "12:00"});
    let id = test.monitor(&body).await;
    test.respond_with(|asked| fares(&[150], asked));
    test.run(&id).await;
    let held = test.get(&format!("/v1/monitors/{id}")).await["held"].clone();
    assert_eq!(held["fired"], 120);
    let due = time(&held["notify_at"]);
    let pass = ticker(test.pool()).send_held_alerts(|| due).await.unwrap();
    assert_eq!(pass.notified, 1);
    let deliveries = test.page("/v1/deliveries").await;
    let path = format!("/v1/deliveries/{}", text(&deliveries[0]["id"]));
    let data = test.get(&path).await["payload"]["data"].clone();
    let sent = array(&data["alerts"]);
    assert_eq!(
        (sent.len(), &data["fired"], &data["truncated"]),
        (100, &json!(120), &json!(true))
    );
    // The rest is found by `since`, and knows its delivery.
    let path = format!(
        "/v1/monitors/{id}/alerts?limit=500&since={}",
        text(&data["since"])
    );
    let all = test.page(&path).await;
    assert_eq!(all.len(), 120);
    let without = |alert: &Value| {
        let mut alert = alert.clone();
        assert_eq!(
            alert.as_object_mut().unwrap().remove("delivery_id"),
            Some(deliveries[0]["id"].clone())
        );
        alert
    };
    let first: Vec<_> = all[..100].iter().map(without).collect();
    assert_eq!(&first, sent);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_settings_move_or_send_what_is_held() {
    let test = NightTest::open(&json!({"digest_at": "08:00"})).await;
    let digest = test.next_slot(&test.id).await + HOUR * 5;
    test.run_at(290).await;
    // Another name moves nothing.
    test.patch(&test.id, &json!({"name": "another"})).await;
    assert_eq!(test.shown().await["held"]["notify_at"], json!(digest));
    // Later, by another zone: 08:00 in New York.
    let schedule = json!({"cron": "0 3,5 * * *", "timezone": "America/New_York"});
    test.patch(&test.id, &json!({"schedule": schedule})).await;
    let shown = test.shown().await;
    let moved = time(&shown["held"]["notify_at"]);
    assert_eq!(shown["next_digest_at"], shown["held"]["notify_at"]);
    let zoned = moved.to_zoned(TimeZone::get("America/New_York").unwrap());
    assert_eq!((zoned.hour(), zoned.minute()), (8, 0));
    test.patch(&test.id, &json!({"notify": {"digest_at": "09:30"}}))
        .await;
    let shown = test.shown().await;
    assert_eq!(shown["notify"], json!({"digest_at": "09:30"}));
    let moved = time(&shown["held"]["notify_at"]);
    let zoned = moved.to_zoned(TimeZone::get("America/New_York").unwrap());
    assert_eq!((zoned.hour(), zoned.minute()), (9, 30));
    assert!(test.deliveries().await.is_empty());

    test.patch(&test.id, &json!({"notify": null})).await;
    let deliveries = test.deliveries().await;
    assert_eq!(deliveries.len(), 1);
    assert_eq!(deliveries[0]["event_type"], "monitor.digest");
    assert_eq!(deliveries[0]["payload"]["data"]["fired"], 1);
    let shown = test.shown().await;
    assert_eq!(
        (&shown["notify"], &shown["held"], &shown["next_digest_at"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(test.pass(moved + DAY).await.notified, 0);
    // What was sent early does not take the time of the next digest.
    test.patch(&test.id, &json!({"notify": {"digest_at": "09:30"}}))
        .await;
    test.run_at(280).await;
    let fired = time(&test.listed().await[0]["fired_at"]);
    let next = time(&test.shown().await["held"]["notify_at"]);
    assert!(next > fired && next <= fired + DAY, "{fired} {next}");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn held_alerts_of_a_paused_monitor_are_sent() {
    let test = NightTest::open(&night()).await;
    test.run_at(290).await;
    let end = time(&test.shown().await["held"]["notify_at"]);
    let path = format!("/v1/monitors/{}", test.id);
    test.ask("POST", &format!("{path}/pause"), None)
        .await
        .expect(200);
    assert_eq!(test.pass(end).await.notified, 1);
    assert_eq!(test.deliveries().await[0]["status"], "pending");

    test.ask("POST", &format!("{path}/resume"), None)
        .await
        .expect(200);
    test.run_at(290).await;
    test.run_at(280).await;
    assert_eq!(test.shown().await["held"]["fired"], 1);
    test.ask("DELETE", &path, None).await.expect(204);
    let pass = test.pass(end + DAY * 3).await;
    assert_eq!((pass.notified, pass.next), (0, None));
    assert_eq!(test.count("select count(*) from deliveries").await, 0);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_off_or_closed_gets_a_failed_delivery() {
    let test = NightTest::open(&night()).await;
    test.run_at(290).await;
    let end = time(&test.shown().await["held"]["notify_at"]);
    let off = "update webhook_endpoints set off_at = now(), off_reason = 'gone', next_at = null";
    execute!(test.pool(), off);
    test.pass(end).await;
    let delivery = test.deliveries().await[0].clone();
    assert_eq!(
        (&delivery["status"], &delivery["reason"]),
        (&json!("failed"), &json!("endpoint_off"))
    );

    execute!(
        test.pool(),
        "update webhook_endpoints set off_at = null, off_reason = null"
    );
    test.run_at(290).await;
    test.run_at(280).await;
    assert_eq!(test.shown().await["held"]["fired"], 1);
    test.patch(&test.id, &json!({"webhook_url": null})).await;
    let delivery = test.deliveries().await[0].clone();
    assert_eq!(
        (&delivery["event_type"], &delivery["reason"]),
        (&json!("monitor.digest"), &json!("endpoint_closed"))
    );
    assert_eq!(delivery["payload"]["data"]["fired"], 1);
    assert_eq!(test.listed().await[0]["delivery_id"], delivery["id"]);
    // Without a webhook nothing is held, and a new one begins with the next alert.
    test.run_at(270).await;
    let shown = test.shown().await;
    assert_eq!(shown["held"], Value::Null);
    let url = json!({"webhook_url": "https://hooks.example.com/fares"});
    test.patch(&test.id, &url).await;
    assert_eq!(test.pass(end + DAY * 3).await.notified, 0);
    assert_eq!(test.deliveries().await.len(), 2);
    // What failed can be sent again.
    let path = format!("/v1/deliveries/{}/resend", text(&delivery["id"]));
    test.ask("POST", &path, None).await.expect(202);
    assert_eq!(test.deliveries().await[0]["status"], "pending");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn held_alerts_do_not_expire_and_a_parked_copy_sends_none() {
    let test = NightTest::open(&night()).await;
    test.run_at(290).await;
    let end = time(&test.shown().await["held"]["notify_at"]);
    let later = end + DAY * 400;
    let days = RetentionConfig {
        alert_retention_days: 365,
        answer_retention_days: 0,
        ..RetentionConfig::default()
    };
    assert_eq!(
        remove_expired(test.pool(), &days, later)
            .await
            .unwrap()
            .alerts,
        0
    );
    let park = "update monitors set not_before = '9999-01-01 00:00:00+00'";
    execute!(test.pool(), park);
    let pass = test.pass(later).await;
    assert_eq!((pass.notified, pass.next), (0, None));
    execute!(test.pool(), "update monitors set not_before = null");
    assert_eq!(test.pass(later).await.notified, 1);
    assert_eq!(
        remove_expired(test.pool(), &days, later)
            .await
            .unwrap()
            .alerts,
        1
    );
    test.close().await;
}

/// A pass takes a bounded number; the others are due in the next one.
#[tokio::test(flavor = "multi_thread")]
async fn many_monitors_with_one_time_are_sent_in_passes() {
    let test = NightTest::open(&night()).await;
    test.run_at(290).await;
    let end = time(&test.shown().await["held"]["notify_at"]);
    let copies = "insert into monitors (tenant_id, monitor_id, name, cron, timezone, scan, api, rules, notify, notify_at, held_fired,
                                        paused, grant_id, created_at, updated_at)
                  select tenant_id, md5(n::text)::uuid, name, cron, timezone, scan, api, rules, notify, notify_at, held_fired,
                         true, grant_id, created_at, updated_at from monitors, generate_series(1, 449) n;
                  insert into webhook_endpoints (tenant_id, monitor_id, url_id, host, secret_ids, created_at)
                  select tenant_id, md5(n::text)::uuid, url_id, host, secret_ids, created_at from webhook_endpoints, generate_series(1, 449) n;
                  insert into alerts (tenant_id, alert_id, monitor_id, rule_type, fired_at, alert, is_held)
                  select tenant_id, md5(n::text)::uuid, md5(n::text)::uuid, rule_type, fired_at, alert, true
                  from alerts, generate_series(1, 449) n;";
    execute!(test.pool(), copies);
    let mut passes = Vec::new();
    for _ in 0..4 {
        let pass = test.pass(end).await;
        passes.push((pass.notified, pass.next));
    }
    let more = Some(end);
    assert_eq!(passes, [(200, more), (200, more), (50, None), (0, None)]);
    let deliveries = "select count(distinct monitor_id) from deliveries";
    assert_eq!(test.count(deliveries).await, 450);
    assert_eq!(test.count("select count(*) from deliveries").await, 450);
    test.close().await;
}

/// The running tick sleeps until the time, and is woken when it comes sooner.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_tick_sends_at_the_time() {
    let test = NightTest::open(&night()).await;
    test.run_at(290).await;
    // No slot is due while the tick runs by the real clock.
    execute!(
        test.pool(),
        "update monitors set next_slot = null, paused = true, notify = '{\"digest_at\": \"08:00\"}'"
    );
    let stop = CancellationToken::new();
    let running = tokio::spawn(tick::run(ticker(test.pool()), stop.clone()));
    let listens = "select count(*) from pg_stat_activity where datname = current_database() and query ilike 'listen%farescan_monitor%'";
    test.wait_for_count(listens, 1).await;
    let soon = "update monitors set notify_at = clock_timestamp() + interval '300 ms'";
    execute!(test.pool(), soon);
    let sent =
        "select count(*) from deliveries where created_at >= (select notified_for from monitors)";
    tokio::time::timeout(Duration::from_secs(30), test.wait_for_count(sent, 1))
        .await
        .unwrap();
    stop.cancel();
    running.await.unwrap();
    test.close().await;
}
