//! `farescan monitors webhook`: tests a monitor's webhook, switches it on, gives it a new secret.

use std::io::Write as _;
use std::time::Duration;

use farescan_sheets::delivery;
use farescan_sheets::item::latency;
use serde::de::IgnoredAny;
use tokio::time::Instant;

use super::control::{CommandArgs, MonitorPauseArgs};
use crate::Failure;
use crate::exit::{CommandEnd, ExitStatus};
use crate::format::{time, zone};
use crate::ids;
use crate::render::sheet::cell;
use crate::wrap::note;
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
    let path = format!("/v1/monitors/{monitor}/test");
    let answer = session.command(&path, true).await?;
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
    if session.read_or_print::<IgnoredAny>(&answer)?.is_some() {
        let status = detail.delivery.status;
        writeln!(anstream::stdout(), "{id} is {status}{}", result(&detail))?;
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

/// `: delivered HTTP 200 after 12 ms`, of the last try.
fn result(detail: &DeliveryDetail) -> String {
    let Some(last) = detail.tries.first() else {
        return String::new();
    };
    let latency = last.latency_ms.map(|ms| format!(" after {}", latency(ms)));
    let result = cell(&delivery::result(last)).text;
    format!(": {result}{}", latency.unwrap_or_default())
}

async fn enable(args: MonitorPauseArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let id = ids::monitor(&session.client, &args.monitor).await?;
    let path = format!("/v1/monitors/{id}/enable-webhook");
    let answer = session.command(&path, false).await?;
    let Some(webhook) = session.read_or_print::<Webhook>(&answer)? else {
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
    let path = format!("/v1/monitors/{id}/rotate-secret");
    let answer = session.command(&path, false).await?;
    let Some(rotated) = session.read_or_print::<RotatedSecret>(&answer)? else {
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
