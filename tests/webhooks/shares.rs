//! How callers and hosts share the deliverer.

use std::sync::Arc;
use std::time::Duration;

use farescan::contract::webhooks::DeliveryStatus;
use farescan::ids::MonitorId;
use farescan::webhooks::Sender;
use serde_json::json;

use super::post::{Delivering, Post, address, deliver, enqueue, guard, tenant, webhook};
use crate::support::app::TestApp;
use crate::support::reply::Reply;
use crate::support::upstream::Upstream;

/// Longer than any test waits: no try to a receiver that hangs ends by itself.
const NO_END: Duration = Duration::from_secs(3_600);
const UNDER_WAY: &str = "select count(*) from delivery_tries where ended_at is null";
const ENDED: &str = "select count(*) from delivery_tries where ended_at is not null";

/// A deliverer that waits for a receiver as long as it takes. It is left where it is when its test ends.
fn patient(post: &Post) -> Delivering {
    deliver(
        post.pool(),
        Sender::with_names(guard(), Arc::new(post.names.clone()))
            .unwrap()
            .within(NO_END),
    )
}

async fn hanging() -> Upstream {
    let receiver = Upstream::start().await;
    receiver.on_any().reply(Reply::hang());
    receiver
}

/// Twelve callers with as many receivers that hang as one may try: another caller's delivery goes out while all of them wait.
#[tokio::test(flavor = "multi_thread")]
async fn receivers_of_other_callers_that_hang_delay_no_delivery() {
    let post = Post::open().await;
    let hangs = hanging().await;
    for caller in 0..12 {
        let tenant = tenant(post.pool(), &format!("caller-{caller}-0123456789")).await;
        for number in 0..16 {
            let name = format!("hangs-{caller}-{number}.test");
            post.names.lead(&name, &[&[address(&hangs)]]);
            let (monitor, _) = webhook(post.pool(), tenant, &format!("http://{name}/")).await;
            enqueue(post.pool(), tenant, monitor).await;
        }
    }
    let _deliverer = patient(&post);
    hangs.wait_for_in_flight(40).await;
    let (quick, monitor) = post.receiver("quick.test").await;
    quick.on_any().reply(Reply::status(200));
    for _ in 0..5 {
        let seen = post.ended(post.enqueue(monitor).await).await;
        assert_eq!(seen.delivery.status, DeliveryStatus::Delivered);
    }
    let (under_way, ended) = (post.count(UNDER_WAY).await, post.count(ENDED).await);
    println!("5 deliveries beside {under_way} tries that hang; {ended} tries have ended");
    assert_eq!(ended, 5, "none waited for another caller's try to end");
    assert!(
        under_way < 64,
        "there is always something free: {under_way}"
    );
}

/// However many callers, webhooks and processes: a host is not called more than four times at once, and others are not kept waiting.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_has_at_most_four_tries_in_flight() {
    let post = Post::open().await;
    let hangs = hanging().await;
    for spelling in ["hangs.test", "HANGS.test", "hangs.test.", "%68angs.test"] {
        for name in ["hangs.test", "hangs.test."] {
            post.names.lead(name, &[&[address(&hangs)]]);
        }
        for caller in 0..3 {
            let tenant = tenant(post.pool(), &format!("caller-{caller}-0123456789")).await;
            let (monitor, _) =
                webhook(post.pool(), tenant, &format!("http://{spelling}/{caller}")).await;
            enqueue(post.pool(), tenant, monitor).await;
        }
    }
    let _two = [patient(&post), patient(&post)];
    hangs.wait_for_in_flight(4).await;
    let (quick, monitor) = post.receiver("quick.test").await;
    quick.on_any().reply(Reply::status(200));
    for _ in 0..20 {
        post.ended(post.enqueue(monitor).await).await;
        assert_eq!((post.count(UNDER_WAY).await, hangs.in_flight()), (4, 4));
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

/// A test makes the service call whatever its caller names: once a minute, and neither a resend nor a new webhook is a way round it.
#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_is_tested_at_most_once_a_minute() {
    let post = Post::open().await;
    let app = TestApp::builder().database(&post.db).start().await;
    let (receiver, monitor) = post.receiver("test.test").await;
    receiver.on_any().reply(Reply::status(500));
    let (other, _) = post.webhook("http://test.test/other").await;
    let deliverer = post.deliverer();
    let test = |monitor: MonitorId| format!("/v1/monitors/{monitor}/test");
    let sent = app.post(&test(monitor), &json!({})).await;
    assert_eq!(sent.status, 202, "{}", sent.text());
    let id = sent.json()["id"].as_str().unwrap().to_owned();
    let seen = post.ended(id.parse().unwrap()).await;
    assert_eq!(
        seen.delivery.reason.unwrap().as_str(),
        "test_failed",
        "its one try failed, and no schedule was spent"
    );
    assert_eq!(ask(&app, &test(monitor)).await, "429 too_many_requests");
    assert_eq!(
        ask(&app, &format!("/v1/deliveries/{id}/resend")).await,
        "429 too_many_requests"
    );
    assert_eq!(
        ask(&app, &test(other)).await,
        "202",
        "another monitor is another matter"
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
    post.minute_passes().await;
    assert_eq!(ask(&app, &test(monitor)).await, "202");
    deliverer.stop().await;
}
