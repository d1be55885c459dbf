//! The routes: lists, details, resend, test, rotation, enabling.

use serde_json::{Value, json};

use super::harness::{WebhookTest, deliver, is_signed};
use crate::support::app::{KEY, TestApp};
use crate::support::reply::Reply;
use crate::support::{array, text};
use farescan::ids::DeliveryId;
use farescan::webhooks::Sender;

async fn app(hooks: &WebhookTest) -> TestApp {
    TestApp::builder().database(&hooks.db).start().await
}

fn ids(page: &Value) -> Vec<&str> {
    array(&page["data"])
        .iter()
        .map(|row| row["id"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_can_be_listed_and_read() {
    let hooks = WebhookTest::open().await;
    let app = app(&hooks).await;
    let (receiver, monitor) = hooks.receiver("one.test").await;
    let (_, other) = hooks.receiver("two.test").await;
    receiver.replies([
        Reply::status(200).body("thanks"),
        Reply::status(500).body("oh no"),
    ]);
    let deliverer = hooks.deliverer();
    let first = hooks.enqueue(monitor).await;
    hooks.ended(first).await;
    let second = hooks.enqueue(monitor).await;
    hooks.tried(second, 1).await;
    let third = hooks.enqueue(other).await;
    hooks.tried(third, 1).await;
    deliverer.stop().await;
    let [first, second, third] = [first, second, third].map(|id| id.to_string());

    let all = app.get("/v1/deliveries").await.json();
    assert_eq!(ids(&all), [&third, &second, &first]);
    assert_eq!(all["next_cursor"], Value::Null);
    assert!(
        !all.to_string().contains("hunter2") && !all.to_string().contains("one.test"),
        "no URL"
    );
    let of_one = app
        .get(&format!("/v1/deliveries?monitor_id={monitor}&limit=1"))
        .await;
    assert_eq!(ids(&of_one.json()), [&second]);
    assert!(of_one.header("link").contains("rel=\"next\""));
    let cursor = text(&of_one.json()["next_cursor"]);
    let rest = app
        .get(&format!(
            "/v1/deliveries?monitor_id={monitor}&limit=1&cursor={cursor}"
        ))
        .await
        .json();
    assert_eq!(
        (ids(&rest), &rest["next_cursor"]),
        (vec![first.as_str()], &Value::Null)
    );
    assert_eq!(
        ids(&app.get("/v1/deliveries?status=delivered").await.json()),
        [&first]
    );
    // The cursor is read before the monitor is looked for.
    for list in ["deliveries", "alerts"] {
        let path = format!("/v1/{list}?monitor_id=mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b");
        assert_eq!(app.get(&path).await.kind(), "404 not_found", "{list}");
        let refused = app.get(&format!("{path}&cursor=77")).await;
        assert_eq!(refused.kind(), "400 invalid_request", "{list}");
        assert!(refused.message().contains("`cursor`"), "{list}");
    }
    let refused = app
        .get("/v1/deliveries?monitor_id=x&status=lost&limit=0&cursor=77&also=1")
        .await;
    assert_eq!(refused.kind(), "400 invalid_request");
    for field in ["monitor_id", "status", "limit", "also"] {
        assert!(
            refused.message().contains(&format!("`{field}`")),
            "{field}: {}",
            refused.message()
        );
    }

    let read = app.get(&format!("/v1/deliveries/{second}")).await.json();
    assert_eq!(
        [
            &read["status"],
            &read["reason"],
            &read["try_count"],
            &read["monitor_id"],
            &read["event_type"],
            &read["ended_at"]
        ],
        [
            &json!("pending"),
            &Value::Null,
            &json!(1),
            &json!(monitor),
            &json!("monitor.alerts"),
            &Value::Null
        ]
    );
    assert_eq!(
        (
            &read["payload"]["type"],
            &read["payload"]["data"]["monitor_id"]
        ),
        (&json!("monitor.alerts"), &json!(monitor))
    );
    assert!(read["payload"]["timestamp"].is_string() && read["next_try_at"].is_string());
    let tried = &read["tries"][0];
    assert_eq!(
        [
            &tried["number"],
            &tried["http_status"],
            &tried["error"],
            &tried["response"]
        ],
        [
            &json!(1),
            &json!(500),
            &json!("http_status"),
            &json!("oh no")
        ]
    );
    assert!(
        tried["latency_ms"].is_u64()
            && tried["started_at"].is_string()
            && tried["ended_at"].is_string()
    );
    assert_eq!(
        app.get(&format!("/v1/deliveries/{first}")).await.json()["tries"][0]["response"],
        "thanks"
    );
    for path in [
        "/v1/deliveries/nonsense",
        "/v1/deliveries/dlv_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
    ] {
        assert_eq!(app.get(path).await.kind(), "404 not_found");
    }
    let stranger = app
        .request("GET", "/v1/deliveries")
        .header("x-api-key", "nobody-knows-this-key");
    assert_eq!(
        app.send(stranger).await.json(),
        json!({"data": [], "next_cursor": null})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_shows_its_result_and_a_delivery_can_be_resent() {
    let hooks = WebhookTest::open().await;
    let app = app(&hooks).await;
    let (receiver, monitor) = hooks.receiver("test.test").await;
    receiver.replies([Reply::status(500), Reply::status(200)]);
    let deliverer = hooks.deliverer();
    let sent = app
        .post(&format!("/v1/monitors/{monitor}/test"), &json!({}))
        .await
        .expect(202);
    assert_eq!(
        (&sent.json()["status"], &sent.json()["event_type"]),
        (&json!("pending"), &json!("monitor.test"))
    );
    let path = sent.header("location").to_owned();
    let id = text(&sent.json()["id"]);
    assert_eq!(path, format!("/v1/deliveries/{id}"));
    let seen = hooks.ended(id.parse().unwrap()).await;
    assert_eq!(
        (seen.delivery.reason.unwrap().as_str(), seen.tries.len()),
        ("test_failed", 1),
        "a test has one try"
    );
    assert_eq!(receiver.calls()[0].body["type"], "monitor.test");

    hooks.age_tests_by_a_minute().await;
    let again = app.post(&format!("{path}/resend"), &json!({})).await;
    assert_eq!(
        (
            again.status,
            again.header("location"),
            &again.json()["status"]
        ),
        (202, path.as_str(), &json!("pending"))
    );
    let seen = hooks.ended(id.parse().unwrap()).await;
    assert_eq!(
        (seen.delivery.status.as_str(), seen.tries.len()),
        ("delivered", 2)
    );
    let calls = receiver.calls();
    assert_eq!(calls[0].header("webhook-id"), calls[1].header("webhook-id"));
    assert_eq!(calls[0].raw, calls[1].raw, "byte for byte");
    // A delivered one can be resent too.
    hooks.age_tests_by_a_minute().await;
    assert_eq!(
        app.post(&format!("{path}/resend"), &json!({})).await.status,
        202
    );
    hooks
        .when(id.parse().unwrap(), "it was sent a third time", |seen| {
            seen.tries.len() == 3 && seen.delivery.ended_at.is_some()
        })
        .await;
    deliverer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_test_or_resend_request_sends_once() {
    let hooks = WebhookTest::open().await;
    let app = app(&hooks).await;
    let (receiver, monitor) = hooks.receiver("once.test").await;
    receiver.reply(Reply::status(200));
    let deliverer = hooks.deliverer();
    let ask = async |path: &str, key: &'static str| {
        let request = app
            .request("POST", path)
            .header("x-api-key", KEY)
            .header("idempotency-key", key);
        app.send(request.json(&json!({}))).await
    };
    let test = format!("/v1/monitors/{monitor}/test");
    let first = ask(&test, "one").await;
    let id: DeliveryId = first.json()["id"].as_str().unwrap().parse().unwrap();
    hooks.ended(id).await;
    let again = ask(&test, "one").await;
    assert_eq!(
        (
            again.status,
            again.header("idempotent-replayed"),
            again.json()
        ),
        (202, "true", first.json())
    );
    assert_eq!(again.header("location"), first.header("location"));
    let resend = format!("/v1/deliveries/{id}/resend");
    hooks.age_tests_by_a_minute().await;
    assert_eq!(
        ask(&resend, "one").await.header("idempotent-replayed"),
        "",
        "the same key on another path is independent"
    );
    hooks
        .when(id, "it was sent again", |seen| {
            seen.tries.len() == 2 && seen.delivery.ended_at.is_some()
        })
        .await;
    assert_eq!(
        ask(&resend, "one").await.header("idempotent-replayed"),
        "true"
    );
    hooks.age_tests_by_a_minute().await;
    let other = ask(&test, "two").await.json()["id"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert_ne!(other, id);
    assert_eq!(ask(&test, "not a key").await.kind(), "400 invalid_request");
    hooks.ended(other).await;
    assert_eq!(
        (
            hooks.count("select count(*) from deliveries").await,
            receiver.count()
        ),
        (2, 3)
    );
    deliverer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_can_be_rotated_and_a_webhook_enabled() {
    let hooks = WebhookTest::open().await;
    let app = app(&hooks).await;
    let (receiver, _) = hooks.receiver("rotate.test").await;
    receiver.replies([Reply::status(200), Reply::status(410)]);
    let (monitor, old) = hooks.webhook("http://rotate.test/").await;
    let rotated = app
        .post(&format!("/v1/monitors/{monitor}/rotate-secret"), &json!({}))
        .await;
    assert_eq!(
        (rotated.status, rotated.header("cache-control")),
        (200, "no-store"),
        "{}",
        rotated.text()
    );
    let new = text(&rotated.json()["webhook_secret"]);
    assert!(new.starts_with("whsec_") && rotated.json()["old_secret_until"].is_string());
    let deliverer = hooks.deliverer();
    hooks.ended(hooks.enqueue(monitor).await).await;
    assert!(is_signed(&receiver.calls()[0], &old) && is_signed(&receiver.calls()[0], &new));
    for _ in 0..2 {
        assert_eq!(
            app.post(&format!("/v1/monitors/{monitor}/rotate-secret"), &json!({}))
                .await
                .status,
            200
        );
    }
    assert_eq!(
        app.post(&format!("/v1/monitors/{monitor}/rotate-secret"), &json!({}))
            .await
            .kind(),
        "409 invalid_state"
    );

    let gone = hooks.enqueue(monitor).await;
    hooks.ended(gone).await;
    for path in [
        format!("/v1/monitors/{monitor}/test"),
        format!("/v1/deliveries/{gone}/resend"),
    ] {
        let refused = app.post(&path, &json!({})).await;
        assert_eq!(refused.kind(), "409 invalid_state", "{path}");
        assert!(
            refused.message().contains("switched off"),
            "{}",
            refused.message()
        );
    }
    let on = app
        .post(
            &format!("/v1/monitors/{monitor}/enable-webhook"),
            &json!({}),
        )
        .await;
    assert_eq!(
        (on.status, &on.json()["off_at"], &on.json()["url"]),
        (200, &Value::Null, &json!("http://rotate.test/"))
    );
    assert_eq!(
        app.post(&format!("/v1/monitors/{monitor}/test"), &json!({}))
            .await
            .status,
        202
    );
    for verb in ["test", "rotate-secret", "enable-webhook"] {
        let other = app
            .post(
                &format!("/v1/monitors/mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b/{verb}"),
                &json!({}),
            )
            .await;
        assert_eq!(other.kind(), "404 not_found", "{verb}");
    }
    deliverer.stop().await;
}

/// Also a URL that the setting once allowed is refused at its next try.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_insecure_setting_loopback_is_not_called() {
    let hooks = WebhookTest::open().await;
    let (receiver, _) = hooks.receiver("here.test").await;
    let strict = farescan::webhooks::Guard::new(&farescan::config::WebhookConfig::default());
    let deliverer = deliver(
        hooks.pool(),
        Sender::with_resolver(strict, std::sync::Arc::new(hooks.names.clone())).unwrap(),
    );
    for url in [
        "http://here.test/",
        "https://here.test/",
        &format!("{}/", receiver.url()),
        "https://127.0.0.1/",
        "https://[::1]/",
    ] {
        let (monitor, _) = hooks.webhook(url).await;
        let seen = hooks.tried(hooks.enqueue(monitor).await, 1).await;
        let refused = if url == "https://here.test/" {
            "unresolved"
        } else {
            "address_refused"
        };
        assert_eq!(seen.tries[0].error.unwrap().as_str(), refused, "{url}");
    }
    assert_eq!(receiver.count(), 0);
    deliverer.stop().await;
}
