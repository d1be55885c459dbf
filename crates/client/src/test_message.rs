//! Sends a test to a webhook or a channel, and waits for what its receiver answers.

use std::io::Write as _;
use std::time::Duration;

use reqwest::Method;
use tokio::time::Instant;

use super::Failure;
use super::client::ServiceSession;
use super::exit::{CommandEnd, ExitStatus};
use farescan_contract::webhooks::{Delivery, DeliveryDetail, DeliveryStatus};

/// How long the result of a test is waited for: longer than a try may take.
const TEST_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(200);

/// Sends the test of `path` and waits for its only try. `next` is what may mend a refusal.
pub async fn send_test(session: &ServiceSession, path: &str, next: &str) -> Result<(), Failure> {
    let once = uuid::Uuid::now_v7().to_string();
    let answer = session
        .client
        .send(Method::POST, path, None::<&()>, Some(&once))
        .await?;
    let id = answer.read::<Delivery>()?.id;
    let path = format!("/v1/deliveries/{id}");
    let end = Instant::now() + TEST_LIMIT;
    let (detail, text) = loop {
        let answer = session.client.ask(&path).await?;
        let detail: DeliveryDetail = answer.read()?;
        if detail.delivery.status != DeliveryStatus::Pending || Instant::now() > end {
            break (detail, answer.text);
        }
        tokio::time::sleep(POLL).await;
    };
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", text.trim_end())?;
    } else {
        writeln!(out, "{id} is {}{}", detail.delivery.status, result(&detail))?;
    }
    let failed = |why: String| Err(CommandEnd::new(ExitStatus::Failed, why).into());
    match detail.delivery.status {
        DeliveryStatus::Delivered => Ok(()),
        DeliveryStatus::Pending => failed(format!(
            "the test has no result yet\n  next: `farescan deliveries show {id}`"
        )),
        DeliveryStatus::Failed => failed(format!(
            "the receiver did not accept the test\n  next: `farescan deliveries show {id}` has its answer; {next}"
        )),
    }
}

/// `: HTTP 200 after 12 ms`, of the last try.
fn result(detail: &DeliveryDetail) -> String {
    let Some(last) = detail.tries.first() else {
        return String::new();
    };
    let answer = last.http_status.map(|status| format!("HTTP {status}"));
    let error = last.error.map(|error| error.to_string());
    let words = answer.or(error).unwrap_or_else(|| "no answer".to_owned());
    let latency = last
        .latency_ms
        .map(|ms| format!(" after {ms} ms"))
        .unwrap_or_default();
    format!(": {words}{latency}")
}
