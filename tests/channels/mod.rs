//! Channels: receivers on loopback that check the published forms of ntfy and Slack strictly, real
//! runs of monitors, and real processes that are killed.

mod addresses;
mod command;
mod kill;
mod locks;
mod mail;
pub mod mail_server;
mod mail_tls;
mod messages;
mod receivers;
mod relay;
mod routes;
mod scripted_mail;

use serde_json::{Value, json};

use crate::alerts::AlertTest;
use crate::support::TestService;
use crate::support::app::TestApp;
use crate::webhooks::harness::{RunningDeliverer, deliver, guard};

/// A service that takes channels on loopback, with a running worker.
async fn open() -> AlertTest {
    let builder = TestApp::builder().state(|app| app.with_webhook_guard(guard()));
    let test = AlertTest::of(TestService::start_with(builder).await);
    test.accept_key().await;
    test
}

fn deliverer(test: &AlertTest) -> RunningDeliverer {
    deliver(
        test.pool(),
        farescan::webhooks::Sender::new(guard()).unwrap(),
    )
}

/// Creates a channel; returns its id.
pub async fn channel(test: &TestService, body: &Value) -> String {
    test.post("/v1/channels", body).await.created(201)
}

/// A monitor of one date whose fare is below 100, and these channels.
fn cheap(channels: &[&str]) -> Value {
    let mut body = crate::alerts::of_one_date(&json!([{"type": "price_below", "amount": 100}]));
    body["channels"] = json!(channels);
    body
}
