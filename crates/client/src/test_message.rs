//! Sends a test to a webhook or a channel, and waits for what its receiver answers.

use std::io::Write as _;
use std::time::Duration;

use farescan_contract::webhooks::{Delivery, DeliveryDetail, DeliveryStatus};
use farescan_sheets::delivery;
use farescan_sheets::item::latency;
use serde::de::IgnoredAny;
use tokio::time::Instant;

use super::Failure;
use super::client::ServiceSession;
use super::exit::{CommandEnd, ExitStatus};
use super::render::sheet::cell;

/// How long the result is waited for: longer than a try may take.
const TEST_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(200);

/// Sends the test of `path` and waits for its only try. `next` is what may mend a refusal.
pub async fn send_test(session: &ServiceSession, path: &str, next: &str) -> Result<(), Failure> {
    let answer = session.command(path, true).await?;
    let id = answer.read::<Delivery>()?.id;
    let path = format!("/v1/deliveries/{id}");
    let end = Instant::now() + TEST_LIMIT;
    let (detail, answer) = loop {
        let answer = session.client.ask(&path).await?;
        let detail: DeliveryDetail = answer.read()?;
        if detail.delivery.status != DeliveryStatus::Pending || Instant::now() > end {
            break (detail, answer);
        }
        tokio::time::sleep(POLL).await;
    };
    let status = detail.delivery.status;
    if session.read_or_print::<IgnoredAny>(&answer)?.is_some() {
        writeln!(anstream::stdout(), "{id} is {status}{}", result(&detail))?;
    }
    let failed = |why: String| Err(CommandEnd::with(ExitStatus::Failed, why));
    match status {
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
    let latency = last.latency_ms.map(|ms| format!(" after {}", latency(ms)));
    // The first word is the status, which is printed already.
    let result = cell(&delivery::result(last)[1..].to_vec()).text;
    format!(": {result}{}", latency.unwrap_or_default())
}
