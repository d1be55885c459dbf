//! What is sent, to whom, and how often.

use serde_json::{Value, json};

use super::{channel, cheap, deliverer, open, receivers};
use crate::alerts::fares;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::ScriptedServer;
use crate::support::{array, text};

async fn receiver() -> ScriptedServer {
    let receiver = ScriptedServer::start().await;
    // As ntfy answers: with the topic.
    receiver.reply(Reply::json(json!({"topic": "fares-3f9a2c71d0"})));
    receiver
}

/// As of a version whose dictionary this one lacks.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_read_costs_a_message_its_fare_alone() {
    let test = open().await;
    let phone = receiver().await;
    let url = format!("{}/fares-3f9a2c71d0", phone.url());
    let ntfy = channel(
        &test,
        &json!({"name": "my phone", "kind": "ntfy", "url": url}),
    )
    .await;
    let unreadable = "create function unreadable() returns trigger language plpgsql as
                      $$ begin new.body = 'none'::bytea; return new; end $$;
                      create trigger unreadable before insert on answers
                      for each row execute function unreadable()";
    sqlx::raw_sql(unreadable)
        .execute(test.pool())
        .await
        .unwrap();
    test.respond_with(|asked| fares(&[90], asked));
    let monitor = test.create_monitor(&cheap(&[&ntfy])).await;
    assert_eq!(test.run(&monitor).await["judged"]["alerts"], 1);
    let running = deliverer(&test);
    test.wait_for_count(
        "select count(*) from deliveries where status = 'delivered'",
        1,
    )
    .await;
    let message = receivers::ntfy(&phone.calls()[0]);
    assert_eq!(message["title"], "TLV → LHR, 1 Feb 2030: 90 USD");
    let lines = message["message"].as_str().unwrap();
    assert!(!lines.contains("Example Air"), "{lines}");
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_reaches_each_channel_in_its_published_form() {
    let test = open().await;
    let (phone, chat) = (receiver().await, receiver().await);
    let ntfy = channel(
        &test,
        &json!({"name": "my phone", "kind": "ntfy", "url": format!("{}/fares-3f9a2c71d0", phone.url()), "token": "tk_hunter2"}),
    )
    .await;
    let slack = channel(
        &test,
        &json!({"name": "team", "kind": "slack", "url": format!("{}/services/T0/B0/hunter2", chat.url())}),
    )
    .await;
    // It wants nothing less urgent than what was waited for, and hears of it too.
    let urgent = channel(
        &test,
        &json!({"name": "urgent", "kind": "slack", "url": format!("{}/urgent", chat.url()), "least_priority": "high"}),
    )
    .await;
    test.respond_with(|asked| fares(&[90], asked));
    let both = test
        .create_monitor(&cheap(&[&slack, &ntfy, &urgent, &ntfy]))
        .await;
    assert_eq!(
        test.get(&format!("/v1/monitors/{both}")).await["channels"],
        json!([slack, ntfy, urgent]),
        "each once, in the given order"
    );
    let quiet = test
        .create_monitor(&{
            let mut body = cheap(&[&urgent]);
            body["alerts"] = json!([{"type": "stale", "runs": 1}]);
            body
        })
        .await;
    assert_eq!(test.run(&both).await["judged"]["alerts"], 1);
    assert_eq!(test.run(&quiet).await["judged"]["alerts"], 0);
    let running = deliverer(&test);
    test.wait_for_count(
        "select count(*) from deliveries where status = 'delivered'",
        3,
    )
    .await;
    let [call] = &phone.calls()[..] else {
        panic!("{:#?}", phone.calls())
    };
    let message = receivers::ntfy(call);
    assert_eq!(
        (&message["topic"], call.header("authorization")),
        (&json!("fares-3f9a2c71d0"), "Bearer tk_hunter2")
    );
    assert_eq!(message["title"], "TLV → LHR, 1 Feb 2030: 90 USD");
    let lines = message["message"].as_str().unwrap();
    assert!(lines.starts_with("Price below 100 USD\n"), "{lines}");
    assert!(
        lines.contains("\nExample Air, 7:15 – 10:40, 5 hr, non-stop\n"),
        "{lines}"
    );
    assert!(lines.contains("\nMonitor: a week ahead"), "{lines}");
    assert_eq!(message["priority"], 4);
    let calls = chat.calls();
    assert_eq!(calls.len(), 2);
    for call in &calls {
        let shown = receivers::slack(call);
        assert!(
            shown.starts_with("*TLV → LHR, 1 Feb 2030: 90 USD*\n"),
            "{shown}"
        );
        assert_eq!(call.header("authorization"), "");
    }
    let listed = test
        .page(&format!("/v1/deliveries?channel_id={ntfy}"))
        .await;
    let [delivery] = &listed[..] else {
        panic!("{listed:#?}")
    };
    assert_eq!(call.header("farescan-delivery"), delivery["id"]);
    assert_eq!(
        (
            &delivery["monitor_id"],
            &delivery["event_type"],
            &delivery["status"]
        ),
        (&json!(both), &json!("channel.alerts"), &json!("delivered"))
    );
    let detail = test
        .get(&format!("/v1/deliveries/{}", text(&delivery["id"])))
        .await;
    assert_eq!(detail["payload"]["data"]["fired"], 1);
    assert_eq!(detail["tries"][0]["http_status"], 200);
    let shown = test.get(&format!("/v1/channels/{ntfy}")).await;
    assert!(shown["last_success_at"].is_string(), "{shown}");
    let dump = test.dump_database().await;
    assert!(!dump.contains("hunter2") && !dump.contains("fares-3f9a2c71d0"));
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_alerts_in_quiet_hours_become_one_message() {
    let test = open().await;
    let phone = receiver().await;
    // All of the day but its last minute.
    let quiet = json!({"quiet_hours": {"from": "00:00", "until": "23:59"}});
    let id = channel(
        &test,
        &json!({"name": "my phone", "kind": "ntfy", "url": format!("{}/night", phone.url()), "notify": quiet}),
    )
    .await;
    test.respond_with(|asked| fares(&[90], asked));
    let rules = json!([{"type": "price_below", "amount": 100, "scope": "cell"}]);
    for number in 0..10 {
        let mut body = crate::alerts::monitor(50, &rules);
        body["name"] = json!(format!("monitor {number}"));
        body["channels"] = json!([id]);
        let monitor = test.create_monitor(&body).await;
        assert_eq!(test.run(&monitor).await["judged"]["fired"], 50);
    }
    let running = deliverer(&test);
    let shown = test.get(&format!("/v1/channels/{id}")).await;
    assert_eq!(shown["held"]["fired"], 500, "{shown}");
    assert!(
        shown["held"]["notify_at"]
            .as_str()
            .unwrap()
            .contains("T23:59:00"),
        "{shown}"
    );
    let alerts = test.page("/v1/alerts?limit=500").await;
    assert_eq!(alerts.len(), 500, "alerts are listed at once");
    let listed = test.page("/v1/deliveries").await;
    assert_eq!((listed.len(), &listed[0]["status"]), (1, &json!("pending")));
    assert_eq!(listed[0]["monitor_id"], Value::Null, "of several monitors");
    assert_eq!(phone.count(), 0);
    // Without quiet hours nothing holds them.
    let patched = test
        .ask(
            "PATCH",
            &format!("/v1/channels/{id}"),
            Some(&json!({"notify": null})),
        )
        .await
        .expect(200)
        .json();
    assert_eq!(patched["notify"], Value::Null);
    test.wait_for_count(
        "select count(*) from deliveries where status = 'delivered'",
        1,
    )
    .await;
    let calls = phone.calls();
    assert_eq!(calls.len(), 1, "one message");
    let message = receivers::ntfy(&calls[0]);
    assert_eq!(message["title"], "500 alerts");
    assert_eq!(calls[0].header("farescan-delivery"), listed[0]["id"]);
    assert_eq!(
        test.get(&format!("/v1/channels/{id}")).await["held"],
        Value::Null
    );
    running.stop().await;
    test.close().await;
}

/// A message that was due before its quiet hours is not sent in them.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_message_waits_for_the_end_of_quiet_hours_and_a_test_does_not() {
    let test = open().await;
    let phone = receiver().await;
    let id = channel(
        &test,
        &json!({"name": "my phone", "kind": "ntfy", "url": format!("{}/night", phone.url())}),
    )
    .await;
    test.respond_with(|asked| fares(&[90], asked));
    let monitor = test.create_monitor(&cheap(&[&id])).await;
    test.run(&monitor).await;
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let clock = |hours: i64| {
        let time = &now + jiff::Span::new().hours(hours);
        time.strftime("%H:%M").to_string()
    };
    let quiet = json!({"notify": {"quiet_hours": {"from": clock(-2), "until": clock(2)}}});
    test.ask("PATCH", &format!("/v1/channels/{id}"), Some(&quiet))
        .await
        .expect(200);
    let running = deliverer(&test);
    test.post(&format!("/v1/channels/{id}/test"), &json!({}))
        .await
        .expect(202);
    let late = "select count(*) from deliveries where event_type = 'channel.alerts' and tries = 0 and due_at > now() + interval '1 h'";
    test.wait_for_count(late, 1).await;
    test.wait_for_count(
        "select count(*) from deliveries where status = 'delivered'",
        1,
    )
    .await;
    let calls = phone.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(receivers::ntfy(&calls[0])["title"], "This is a test");
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_thirty_messages_in_an_hour_the_rest_become_one() {
    let test = open().await;
    let phone = receiver().await;
    let id = channel(
        &test,
        &json!({"name": "my phone", "kind": "ntfy", "url": format!("{}/many", phone.url())}),
    )
    .await;
    test.respond_with(|asked| fares(&[90], asked));
    let running = deliverer(&test);
    for number in 0..35 {
        let mut body = cheap(&[&id]);
        body["name"] = json!(format!("monitor {number}"));
        let monitor = test.create_monitor(&body).await;
        assert_eq!(test.run(&monitor).await["judged"]["alerts"], 1);
    }
    test.wait_for_count(
        "select count(*) from deliveries where status = 'delivered'",
        30,
    )
    .await;
    let shown = test.get(&format!("/v1/channels/{id}")).await;
    assert_eq!(shown["held"]["fired"], 5, "{shown}");
    assert_eq!(
        (phone.count(), test.page("/v1/deliveries").await.len()),
        (30, 31)
    );
    // An hour passes.
    let later = "update webhook_endpoints set recent = array(select at - interval '1 h' from unnest(recent) as x (at)), next_at = now()";
    execute!(test.pool(), later);
    execute!(
        test.pool(),
        "update deliveries set due_at = now() where due_at is not null"
    );
    execute!(test.pool(), "notify farescan_delivery");
    test.wait_for_count(
        "select count(*) from deliveries where status = 'delivered'",
        31,
    )
    .await;
    let calls = phone.calls();
    let last = receivers::ntfy(calls.last().unwrap());
    assert_eq!((calls.len(), &last["title"]), (31, &json!("5 alerts")));
    assert_eq!(last["message"].as_str().unwrap().lines().count(), 5);
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_is_paused_during_a_try_sends_again_when_it_is_active() {
    let test = open().await;
    let phone = ScriptedServer::start().await;
    let gate = Gate::closed();
    phone.reply(Reply::status(500).gated_by(&gate));
    let id = channel(
        &test,
        &json!({"name": "my phone", "kind": "ntfy", "url": format!("{}/pause", phone.url())}),
    )
    .await;
    test.respond_with(|asked| fares(&[90], asked));
    let monitor = test.create_monitor(&cheap(&[&id])).await;
    test.run(&monitor).await;
    let running = deliverer(&test);
    phone.wait_for_in_flight(1).await;
    let path = format!("/v1/channels/{id}");
    let status = async |status: &str| {
        let body = json!({"status": status});
        test.ask("PATCH", &path, Some(&body)).await.expect(200);
    };
    status("paused").await;
    gate.open();
    let ended =
        "select count(*) from deliveries where reason = 'endpoint_off' and ended_at is not null
                 and exists (select from delivery_tries where http_status = 500)";
    test.wait_for_count(ended, 1).await;
    test.wait_for_count(
        "select count(*) from webhook_endpoints where taken_until is not null",
        0,
    )
    .await;
    status("active").await;
    phone.reply(Reply::status(200));
    test.post(&format!("{path}/test"), &json!({}))
        .await
        .expect(202);
    test.wait_for_count(
        "select count(*) from deliveries where status = 'delivered'",
        1,
    )
    .await;
    running.stop().await;
    test.close().await;
}

/// Its caller has seen that it failed (channels.md, rule 5).
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_a_pause_has_failed_stays_failed_when_its_try_fails() {
    let test = open().await;
    let phone = ScriptedServer::start().await;
    let gate = Gate::closed();
    phone.reply(Reply::status(500).gated_by(&gate));
    let id = channel(
        &test,
        &json!({"name": "my phone", "kind": "ntfy", "url": format!("{}/pause", phone.url())}),
    )
    .await;
    test.respond_with(|asked| fares(&[90], asked));
    let monitor = test.create_monitor(&cheap(&[&id])).await;
    test.run(&monitor).await;
    let running = deliverer(&test);
    phone.wait_for_in_flight(1).await;
    for status in ["paused", "active"] {
        let body = json!({"status": status});
        test.ask("PATCH", &format!("/v1/channels/{id}"), Some(&body))
            .await
            .expect(200);
    }
    gate.open();
    let free = "select count(*) from webhook_endpoints where taken_until is null";
    test.wait_for_count(free, 1).await;
    let tried = "select count(*) from delivery_tries where http_status = 500";
    assert_eq!(test.count(tried).await, 1);
    let listed = test.page("/v1/deliveries").await;
    assert_eq!(
        (&listed[0]["status"], &listed[0]["reason"]),
        (&json!("failed"), &json!("endpoint_off"))
    );
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_failed_for_three_days_is_paused() {
    let test = open().await;
    let phone = receiver().await;
    phone.reply(Reply::status(500));
    let id = channel(
        &test,
        &json!({"name": "my phone", "kind": "ntfy", "url": format!("{}/broken", phone.url())}),
    )
    .await;
    test.respond_with(|asked| fares(&[90], asked));
    let monitor = test.create_monitor(&cheap(&[&id])).await;
    test.run(&monitor).await;
    let days = "update webhook_endpoints set failing_since = now() - interval '3 days'";
    execute!(test.pool(), days);
    execute!(test.pool(), "update deliveries set failures = 7");
    let running = deliverer(&test);
    test.wait_for_count(
        "select count(*) from deliveries where reason = 'tries_spent'",
        1,
    )
    .await;
    let shown = test.get(&format!("/v1/channels/{id}")).await;
    assert_eq!(
        (&shown["status"], &shown["status_reason"]),
        (&json!("paused"), &json!("failing"))
    );
    let refused = test
        .post(&format!("/v1/channels/{id}/test"), &json!({}))
        .await;
    assert_eq!(refused.kind(), "409 invalid_state");
    let paused = test.page("/v1/channels?status=paused").await;
    assert_eq!(array(&json!(paused)).len(), 1);
    phone.reply(Reply::status(200));
    test.ask(
        "PATCH",
        &format!("/v1/channels/{id}"),
        Some(&json!({"status": "active"})),
    )
    .await
    .expect(200);
    let failed = test.page("/v1/deliveries?status=failed").await;
    let path = format!("/v1/deliveries/{}/resend", text(&failed[0]["id"]));
    test.post(&path, &json!({})).await.expect(202);
    test.wait_for_count(
        "select count(*) from deliveries where status = 'delivered'",
        1,
    )
    .await;
    let calls = phone.calls();
    assert_eq!(
        calls[0].header("farescan-delivery"),
        calls[1].header("farescan-delivery"),
        "the same id"
    );
    running.stop().await;
    test.close().await;
}
