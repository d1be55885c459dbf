//! `farescan monitors webhook`: tests a monitor's webhook, switches it on, gives it a new secret.

use std::io::Write as _;
use std::time::Duration;

use reqwest::Method;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::control::{CommandArgs, MonitorPauseArgs};
use crate::Failure;
use crate::client::ServiceSession;
use crate::exit::{CommandEnd, ExitStatus};
use crate::format::{time, zone};
use crate::ids;
use crate::wrap::note;
use farescan_contract::ids::MonitorId;
use farescan_contract::monitors::Webhook;
use farescan_contract::webhooks::{Delivery, DeliveryDetail, DeliveryStatus, RotatedSecret};

/// How long the result of a test is waited for: longer than a try may take.
const TEST_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(200);

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub(super) enum WebhookCommand {
    /// Send a test event once and show what the receiver answered
    #[command(
        after_help = "Examples:\n  farescan monitors webhook test @last\n  farescan monitors webhook test mon_01a203c0e342 --json"
    )]
    Test(MonitorPauseArgs),
    /// Switch a disabled webhook on again
    #[command(
        after_help = "Examples:\n  farescan monitors webhook enable @last\n  farescan monitors webhook enable mon_01a203c0e342 --json"
    )]
    Enable(MonitorPauseArgs),
    /// Give a webhook a new secret, shown once; the old one also signs for 24 hours
    #[command(
        after_help = "Examples:\n  farescan monitors webhook rotate-secret @last\n  farescan monitors webhook rotate-secret mon_01a203c0e342 --yes"
    )]
    RotateSecret(CommandArgs),
}

/// Runs the command.
pub(super) async fn run(command: WebhookCommand) -> Result<(), Failure> {
    match command {
        WebhookCommand::Test(args) => test(args).await,
        WebhookCommand::Enable(args) => enable(args).await,
        WebhookCommand::RotateSecret(args) => rotate_secret(args).await,
    }
}

/// Sends the event and waits for the only try.
async fn test(args: MonitorPauseArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let monitor = ids::monitor(&session.client, &args.monitor).await?;
    let once = uuid::Uuid::now_v7().to_string();
    let path = format!("/v1/monitors/{monitor}/test");
    let answer = session
        .client
        .send(Method::POST, &path, None::<&()>, Some(&once))
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
    match detail.delivery.status {
        DeliveryStatus::Delivered => Ok(()),
        DeliveryStatus::Pending => Err(CommandEnd::new(
            ExitStatus::Failed,
            format!("the test has no result yet\n  next: `farescan deliveries show {id}`"),
        )
        .into()),
        DeliveryStatus::Failed => Err(CommandEnd::new(
            ExitStatus::Failed,
            format!("the receiver did not accept the test\n  next: `farescan deliveries show {id}` has its answer; `farescan monitors edit {monitor} --webhook-url URL` changes the address"),
        )
        .into()),
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

/// Sends a command and reads the answer. `None`: it is printed already, as JSON.
async fn send<T: DeserializeOwned>(
    session: &ServiceSession,
    id: MonitorId,
    command: &str,
) -> Result<Option<T>, Failure> {
    let path = format!("/v1/monitors/{id}/{command}");
    let answer = session
        .client
        .send(Method::POST, &path, None::<&()>, None)
        .await?;
    if session.json {
        writeln!(anstream::stdout(), "{}", answer.text.trim_end())?;
        return Ok(None);
    }
    Ok(Some(answer.read()?))
}

async fn enable(args: MonitorPauseArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let id = ids::monitor(&session.client, &args.monitor).await?;
    let Some(webhook) = send::<Webhook>(&session, id, "enable-webhook").await? else {
        return Ok(());
    };
    writeln!(anstream::stdout(), "{} is on", webhook.url)?;
    note!(
        "What failed before is sent only if you ask: `farescan deliveries --monitor {id} --status failed`, `farescan deliveries resend ID`"
    );
    Ok(())
}

async fn rotate_secret(args: CommandArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let id = ids::monitor(&session.client, &args.monitor).await?;
    let question = format!("Give the webhook of {id} a new secret? The old one ends in 24 hours.");
    args.confirmation.ask(session.screen, &question).await?;
    let Some(rotated) = send::<RotatedSecret>(&session, id, "rotate-secret").await? else {
        return Ok(());
    };
    writeln!(anstream::stdout(), "{}", rotated.webhook_secret.0.as_str())?;
    note!(
        "It is shown this once: keep it. Until {} ({}) the old secret signs too.",
        time(rotated.old_secret_until),
        zone()
    );
    Ok(())
}
