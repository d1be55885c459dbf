//! `farescan deliveries`: what was sent to channels and webhooks, each try, and sending it again.

use std::collections::HashMap;
use std::io::Write as _;

use farescan_contract::channels::Channel;
use farescan_contract::ids::{ChannelId, DeliveryId, MonitorId};
use farescan_sheets::delivery;
use serde::de::IgnoredAny;

use super::Failure;
use super::client::{ApiClient, ClientArgs, ClientError};
use super::format::zone;
use super::ids;
use super::list::print_table;
use super::pages::{Query, page_limit, rows};
use super::question::Confirmation;
use super::render::sheet::print_sheet;
use super::reported::NamedMonitors;
use crate::wrap::note;
use farescan_contract::webhooks::{DeliveryDetail, DeliveryStatus};

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
    let monitor = ids::find_given::<MonitorId>(&session.client, args.monitor.as_deref()).await?;
    let query = Query::new("/v1/deliveries")
        .with("monitor_id", monitor)
        .with("status", args.status);
    let nothing = "No deliveries. A monitor sends its alerts to its channels and its webhook: `farescan channels`.";
    print_table(
        &session,
        query,
        Some(args.limit),
        nothing,
        async |deliveries| {
            let monitors = NamedMonitors::read(&session.client).await?;
            let names = channel_names(&session.client).await?;
            let channel = |id: ChannelId| names.get(&id).cloned();
            Ok(delivery::table(deliveries, |id| monitors.of(id), channel))
        },
    )
    .await
}

async fn channel_names(client: &ApiClient) -> Result<HashMap<ChannelId, String>, ClientError> {
    let path = Query::new("/v1/channels").with("limit", Some(page_limit(None)));
    let channels: Vec<Channel> = rows(client, &path.path(), None).await?;
    Ok(channels.into_iter().map(|of| (of.id, of.name)).collect())
}

async fn show_one(args: DeliveryShowArgs) -> Result<(), Failure> {
    let (session, id) = ids::open::<DeliveryId>(&args.client, &args.delivery).await?;
    let Some(detail) = session
        .read::<DeliveryDetail>(&format!("/v1/deliveries/{id}"))
        .await?
    else {
        return Ok(());
    };
    let monitors = NamedMonitors::read(&session.client).await?;
    let monitor = detail.delivery.monitor_id.map(|id| monitors.of(id));
    let sheet = delivery::sheet(&detail, monitor.unwrap_or_default());
    print_sheet(&id, &sheet, session.screen)?;
    let payload = serde_json::to_string_pretty(&detail.payload)?;
    writeln!(anstream::stdout(), "\n{payload}")?;
    note!("Times in {}.", zone());
    Ok(())
}

async fn send_again(args: ResendArgs) -> Result<(), Failure> {
    let (session, id) = ids::open::<DeliveryId>(&args.client, &args.delivery).await?;
    let question = format!("Send {id} again? Its receiver may get it twice.");
    args.confirmation.ask(session.screen, &question).await?;
    let path = format!("/v1/deliveries/{id}/resend");
    let answer = session.command(&path, true).await?;
    if session.read_or_print::<IgnoredAny>(&answer)?.is_some() {
        let next = format!("`farescan deliveries show {id}` has the tries");
        writeln!(anstream::stdout(), "{id} is sent again; {next}")?;
    }
    Ok(())
}
