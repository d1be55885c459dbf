//! The limits of tenants and hosts in the deliverer.

use std::sync::Arc;
use std::time::Duration;

use farescan::contract::webhooks::DeliveryStatus;
use farescan::ids::MonitorId;
use farescan::webhooks::Sender;
use serde_json::json;

use super::harness::{
    RunningDeliverer, WebhookTest, address, deliver, enqueue, guard, tenant, webhook,
};
use crate::support::app::TestApp;
use crate::support::reply::Reply;
use crate::support::text;
use crate::support::upstream::ScriptedServer;

/// Longer than any test waits: a try to a hanging receiver does not end by itself.
const NO_END: Duration = Duration::from_secs(3_600);
const UNDER_WAY: &str = "select count(*) from delivery_tries where ended_at is null";
const ENDED: &str = "select count(*) from delivery_tries where ended_at is not null";

/// A deliverer without a timeout for receivers. The end of the test drops it.
fn patient(hooks: &WebhookTest) -> RunningDeliverer {
    deliver(
        hooks.pool(),
        Sender::with_resolver(guard(), Arc::new(hooks.names.clone()))
            .unwrap()
            .with_timeout(NO_END),
    )
}

async fn hanging() -> ScriptedServer {
    let receiver = ScriptedServer::start().await;
    receiver.reply(Reply::hang());
    receiver
}

/// Twelve tenants each have as many hanging receivers as their limit of tries.
#[tokio::test(flavor = "multi_thread")]
async fn hanging_receivers_of_other_tenants_delay_no_delivery() {
    let hooks = WebhookTest::open().await;
    let hangs = hanging().await;
    for caller in 0..12 {
        let tenant = tenant(hooks.pool(), &format!("caller-{caller}-0123456789")).await;
        for number in 0..16 {
            let name = format!("hangs-{caller}-{number}.test");
            hooks.names.resolve_to(&name, &[&[address(&hangs)]]);
            let (monitor, _) = webhook(hooks.pool(), tenant, &format!("http://{name}/")).await;
            enqueue(hooks.pool(), tenant, monitor).await;
        }
    }
    let _deliverer = patient(&hooks);
    hangs.wait_for_in_flight(40).await;
    let (quick, monitor) = hooks.receiver("quick.test").await;
    quick.reply(Reply::status(200));
    for _ in 0..5 {
        let seen = hooks.ended(hooks.enqueue(monitor).await).await;
        assert_eq!(seen.delivery.status, DeliveryStatus::Delivered);
    }
    let (under_way, ended) = (hooks.count(UNDER_WAY).await, hooks.count(ENDED).await);
    println!("5 deliveries beside {under_way} tries that hang; {ended} tries have ended");
    assert_eq!(ended, 5, "none waited for another tenant's try to end");
    assert!(under_way < 64, "some permits stay free: {under_way}");
}

/// Over all tenants, webhooks and processes; other hosts are not delayed.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_has_at_most_four_tries_in_flight() {
    let hooks = WebhookTest::open().await;
    let hangs = hanging().await;
    for spelling in ["hangs.test", "HANGS.test", "hangs.test.", "%68angs.test"] {
        for name in ["hangs.test", "hangs.test."] {
            hooks.names.resolve_to(name, &[&[address(&hangs)]]);
        }
        for caller in 0..3 {
            let tenant = tenant(hooks.pool(), &format!("caller-{caller}-0123456789")).await;
            let (monitor, _) =
                webhook(hooks.pool(), tenant, &format!("http://{spelling}/{caller}")).await;
            enqueue(hooks.pool(), tenant, monitor).await;
        }
    }
    let _two = [patient(&hooks), patient(&hooks)];
    hangs.wait_for_in_flight(4).await;
    let (quick, monitor) = hooks.receiver("quick.test").await;
    quick.reply(Reply::status(200));
    for _ in 0..20 {
        hooks.ended(hooks.enqueue(monitor).await).await;
        assert_eq!((hooks.count(UNDER_WAY).await, hangs.in_flight()), (4, 4));
    }
}

/// The slow receivers of one caller leave half of a host's tries to others.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_has_at_most_two_tries_at_a_host() {
    let hooks = WebhookTest::open().await;
    let shared = ScriptedServer::start().await;
    shared.answer(|call| match call.path.as_str() {
        "/quick" => Reply::status(200),
        _ => Reply::hang(),
    });
    hooks
        .names
        .resolve_to("shared.test", &[&[address(&shared)]]);
    let one = tenant(hooks.pool(), "caller-1-0123456789").await;
    for number in 0..8 {
        let url = format!("http://shared.test/{number}");
        let (monitor, _) = webhook(hooks.pool(), one, &url).await;
        enqueue(hooks.pool(), one, monitor).await;
    }
    let _deliverer = patient(&hooks);
    shared.wait_for_in_flight(2).await;
    let (monitor, _) = hooks.webhook("http://shared.test/quick").await;
    for _ in 0..5 {
        let began = std::time::Instant::now();
        let seen = hooks.ended(hooks.enqueue(monitor).await).await;
        println!("delivered after {:.2?}", began.elapsed());
        assert_eq!(seen.delivery.status, DeliveryStatus::Delivered);
        assert_eq!(hooks.count(UNDER_WAY).await, 2, "of the slow caller");
    }
}

async fn ask(app: &TestApp, path: &str) -> String {
    let answer = app.post(path, &json!({})).await;
    if answer.status == 429 {
        let wait: u64 = answer.header("retry-after").parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        assert!(
            answer.message().contains("at most once a minute"),
            "{}",
            answer.message()
        );
    }
    answer.kind()
}

/// A test makes the service call any URL that its caller names. Neither a resend nor a new webhook
/// evades the limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_is_tested_at_most_once_a_minute() {
    let hooks = WebhookTest::open().await;
    let app = TestApp::builder().database(&hooks.db).start().await;
    let (receiver, monitor) = hooks.receiver("test.test").await;
    receiver.reply(Reply::status(500));
    let (other, _) = hooks.webhook("http://test.test/other").await;
    let deliverer = hooks.deliverer();
    let test = |monitor: MonitorId| format!("/v1/monitors/{monitor}/test");
    let sent = app.post(&test(monitor), &json!({})).await.expect(202);
    let id = text(&sent.json()["id"]);
    let seen = hooks.ended(id.parse().unwrap()).await;
    assert_eq!(
        seen.delivery.reason.unwrap().as_str(),
        "test_failed",
        "its only try failed; a test has no retries"
    );
    assert_eq!(ask(&app, &test(monitor)).await, "429 too_many_requests");
    assert_eq!(
        ask(&app, &format!("/v1/deliveries/{id}/resend")).await,
        "429 too_many_requests"
    );
    assert_eq!(
        ask(&app, &test(other)).await,
        "202",
        "another monitor has its own limit"
    );
    let path = format!("/v1/monitors/{monitor}");
    for url in [json!(null), json!("https://hooks.example.com/")] {
        let patch = app
            .request("PATCH", &path)
            .header("x-api-key", crate::support::app::KEY);
        assert_eq!(
            app.send(patch.json(&json!({"webhook_url": url})))
                .await
                .status,
            200
        );
    }
    assert_eq!(ask(&app, &test(monitor)).await, "429 too_many_requests");
    hooks.age_tests_by_a_minute().await;
    assert_eq!(ask(&app, &test(monitor)).await, "202");
    deliverer.stop().await;
}
