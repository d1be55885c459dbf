//! `farescan deliveries`: what was sent to webhooks, each try, and sending it again.

use std::io::Write as _;

use super::Failure;
use super::client::ClientArgs;
use super::format::{clock, time, time_or, zone};
use super::ids;
use super::pages::{Query, page_limit, print_lines, print_nothing, rows};
use super::question::Confirmation;
use super::render::{CellTone, Column, ListTable, Text};
use crate::wrap::note;
use farescan_contract::webhooks::{Delivery, DeliveryDetail, DeliveryStatus};

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
    let mut table = ListTable::new([
        Column::text("Delivery"),
        Column::text("Status"),
        Column::text("Event").rank(3),
        Column::number("Tries"),
        Column::text("Created"),
        Column::text("Next try").rank(1),
        Column::text("Ended").rank(2),
    ]);
    let shortened = ids::shortened(deliveries.iter().map(|delivery| delivery.id));
    for (delivery, id) in deliveries.iter().zip(shortened) {
        table.row([
            id.into(),
            status(delivery),
            delivery.event_type.clone().into(),
            delivery.try_count.to_string().into(),
            time(delivery.created_at).into(),
            time_or(delivery.next_try_at, "–").into(),
            time_or(delivery.ended_at, "–").into(),
        ]);
    }
    writeln!(anstream::stdout(), "{}", table.render(session.screen))?;
    note!("Times in {}.", zone());
    Ok(())
}

fn status(delivery: &Delivery) -> Text {
    let tone = match delivery.status {
        DeliveryStatus::Delivered => CellTone::Good,
        DeliveryStatus::Failed => CellTone::Bad,
        DeliveryStatus::Pending => CellTone::Plain,
    };
    match delivery.reason {
        Some(reason) => Text::new(format!("{} ({reason})", delivery.status), tone),
        None => Text::new(delivery.status.to_string(), tone),
    }
}

/// What it is of: its channel, or its monitor.
fn owner(delivery: &Delivery) -> String {
    let channel = delivery.channel_id.map(|id| format!("  to {id}"));
    let monitor = delivery.monitor_id.map(|id| format!("  of {id}"));
    channel.or(monitor).unwrap_or_default()
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
    writeln!(
        out,
        "{id}  {}{}",
        status(&detail.delivery).text,
        owner(&detail.delivery)
    )?;
    for attempt in detail.tries.iter().rev() {
        let status = attempt
            .http_status
            .map_or("no answer".to_owned(), |status| format!("HTTP {status}"));
        let error = attempt
            .error
            .map(|error| format!(", {error}"))
            .unwrap_or_default();
        let latency = attempt
            .latency_ms
            .map(|ms| format!(" after {ms} ms"))
            .unwrap_or_default();
        writeln!(
            out,
            "try {}  {}  {status}{error}{latency}",
            attempt.number,
            clock(attempt.started_at)
        )?;
        if let Some(response) = attempt.response.as_deref().filter(|text| !text.is_empty()) {
            writeln!(out, "       {response}")?;
        }
    }
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
