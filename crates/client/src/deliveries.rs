//! `farescan deliveries`: what was sent to webhooks, each try, and sending it again.

use std::io::Write as _;

use super::Failure;
use super::client::ClientArgs;
use super::format::zone;
use super::ids;
use super::pages::{Query, page_limit, print_lines, print_nothing, rows};
use super::question::Confirmation;
use super::render::sheet;
use super::reported::Monitors;
use crate::wrap::note;
use farescan_contract::webhooks::{Delivery, DeliveryDetail, DeliveryStatus};
use farescan_sheets::delivery;

/// Settings of `deliveries`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DeliveriesArgs {
    #[command(subcommand)]
    command: Option<DeliveriesCommand>,
    #[command(flatten)]
    list: DeliveryListArgs,
}

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
enum DeliveriesCommand {
    /// Show a delivery with its payload and tries
    #[command(
        after_help = "Examples:\n  farescan deliveries show @last\n  farescan deliveries show dlv_01a203c0e342 --json | jq .payload"
    )]
    Show(DeliveryShowArgs),
    /// Send a delivery again
    #[command(
        after_help = "Examples:\n  farescan deliveries resend @last\n  farescan deliveries resend dlv_01a203c0e342 --yes"
    )]
    Resend(ResendArgs),
}

/// Which deliveries.
#[derive(Debug, clap::Args)]
struct DeliveryListArgs {
    /// Only deliveries of this monitor
    #[arg(long, value_name = "MONITOR")]
    monitor: Option<String>,
    /// Only deliveries in this status: `pending`, `delivered` or `failed`
    #[arg(long, value_name = "STATUS")]
    status: Option<DeliveryStatus>,
    /// The most rows
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    client: ClientArgs,
}

/// One delivery.
#[derive(Debug, clap::Args)]
struct DeliveryShowArgs {
    /// Delivery: its id, the beginning of it, or `@last`
    #[arg(value_name = "DELIVERY", default_value = "@last")]
    delivery: String,
    #[command(flatten)]
    client: ClientArgs,
}

/// One delivery, and the consent.
#[derive(Debug, clap::Args)]
struct ResendArgs {
    /// Delivery: its id, the beginning of it, or `@last`
    #[arg(value_name = "DELIVERY")]
    delivery: String,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    client: ClientArgs,
}

/// Lists deliveries, shows one, or sends one again.
pub async fn run(args: DeliveriesArgs) -> Result<(), Failure> {
    match args.command {
        Some(DeliveriesCommand::Show(show)) => show_one(show).await,
        Some(DeliveriesCommand::Resend(resend)) => send_again(resend).await,
        None => list(args.list).await,
    }
}

async fn list(args: DeliveryListArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let monitor = match &args.monitor {
        Some(monitor) => Some(ids::monitor(&session.client, monitor).await?),
        None => None,
    };
    let path = Query::new("/v1/deliveries")
        .with("monitor_id", monitor)
        .with("status", args.status)
        .with("limit", Some(page_limit(Some(args.limit))))
        .path();
    if session.json {
        return print_lines(&session, &path).await;
    }
    let deliveries: Vec<Delivery> = rows(&session.client, &path, Some(args.limit)).await?;
    if deliveries.is_empty() {
        return print_nothing(
            &session.client,
            "No deliveries. A monitor with --webhook-url sends its alerts to that address.",
        )
        .await;
    }
    let monitors = Monitors::read(&session.client).await?;
    let table = delivery::table(&deliveries, |id| monitors.of(id));
    writeln!(
        anstream::stdout(),
        "{}",
        sheet::table(&table, session.screen)
    )?;
    note!("Times in {}.", zone());
    Ok(())
}

async fn show_one(args: DeliveryShowArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let id = ids::delivery(&session.client, &args.delivery).await?;
    let answer = session.client.ask(&format!("/v1/deliveries/{id}")).await?;
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
        return Ok(());
    }
    let detail: DeliveryDetail = answer.read()?;
    let monitors = Monitors::read(&session.client).await?;
    let shown = delivery::sheet(&detail, monitors.of(detail.delivery.monitor_id));
    writeln!(out, "{id}  {}", sheet::whole(&shown, session.screen))?;
    writeln!(out, "{}", serde_json::to_string_pretty(&detail.payload)?)?;
    note!("Times in {}.", zone());
    Ok(())
}

async fn send_again(args: ResendArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let id = ids::delivery(&session.client, &args.delivery).await?;
    let question = format!("Send {id} again? Its receiver may get it twice.");
    args.confirmation.ask(session.screen, &question).await?;
    let once = uuid::Uuid::now_v7().to_string();
    let path = format!("/v1/deliveries/{id}/resend");
    let answer = session
        .client
        .send(reqwest::Method::POST, &path, None::<&()>, Some(&once))
        .await?;
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
    } else {
        writeln!(
            out,
            "{id} is sent again; `farescan deliveries show {id}` has the tries"
        )?;
    }
    Ok(())
}
