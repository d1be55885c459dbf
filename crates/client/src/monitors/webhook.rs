//! `farescan monitors webhook`: tests a monitor's webhook, switches it on, gives it a new secret.

use std::io::Write as _;

use super::control::{CommandArgs, MonitorPauseArgs};
use crate::Failure;
use crate::format::{time, zone};
use crate::ids;
use crate::test_message::send_test;
use crate::wrap::note;
use farescan_contract::ids::MonitorId;
use farescan_contract::monitors::Webhook;
use farescan_contract::webhooks::RotatedSecret;

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
    let (session, monitor) = ids::open::<MonitorId>(&args.client, &args.monitor).await?;
    let next = format!("`farescan monitors edit {monitor} --webhook-url URL` changes the address");
    send_test(&session, &format!("/v1/monitors/{monitor}/test"), &next).await
}

async fn enable(args: MonitorPauseArgs) -> Result<(), Failure> {
    let (session, id) = ids::open::<MonitorId>(&args.client, &args.monitor).await?;
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
    let (session, id) = ids::open::<MonitorId>(&args.client, &args.monitor).await?;
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
