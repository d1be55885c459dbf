//! `farescan alerts`: rules that fired, and the data on which one fired.

use farescan_contract::Item;
use farescan_contract::ids::{AlertId, MonitorId};
use farescan_sheets::alert::{self, Reported};
use farescan_sheets::fare;
use farescan_sheets::trip::endpoint_of;

use super::Failure;
use super::client::{ClientArgs, ServiceSession};
use super::format::zone;
use super::ids;
use super::list::print_table;
use super::pages::Query;
use super::render::sheet::print_sheet;
use super::reported::NamedMonitors;
use crate::wrap::note;
use farescan_contract::monitors::{Alert, RuleType};
use serde::Deserialize as _;

/// Settings of `alerts`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AlertsArgs {
    #[command(subcommand)]
    command: Option<AlertsCommand>,
    #[command(flatten)]
    list: AlertListArgs,
}

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
enum AlertsCommand {
    /// Show an alert with the data on which it fired
    #[command(
        after_help = "Examples:\n  farescan alerts show @last\n  farescan alerts show alr_01a203c0e342 --json | jq .searched"
    )]
    Show(AlertShowArgs),
}

/// Which alerts.
#[derive(Debug, clap::Args)]
struct AlertListArgs {
    /// Only alerts of this monitor
    #[arg(long, value_name = "MONITOR")]
    monitor: Option<String>,
    /// Only alerts of rules of this type, such as `price_below`
    #[arg(long = "type", value_name = "TYPE")]
    rule_type: Option<RuleType>,
    /// The most rows
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    client: ClientArgs,
}

/// One alert.
#[derive(Debug, clap::Args)]
struct AlertShowArgs {
    /// Alert: its id, the beginning of it, or `@last`
    #[arg(value_name = "ALERT", default_value = "@last")]
    alert: String,
    /// Say how the price compares with your own past prices
    #[arg(long)]
    verdict: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Lists alerts, or shows one.
pub async fn run(args: AlertsArgs) -> Result<(), Failure> {
    match args.command {
        Some(AlertsCommand::Show(show)) => show_one(show).await,
        None => list(args.list).await,
    }
}

async fn list(args: AlertListArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let monitor = ids::find_given::<MonitorId>(&session.client, args.monitor.as_deref()).await?;
    let query = Query::new("/v1/alerts")
        .with("monitor_id", monitor)
        .with("type", args.rule_type);
    let nothing = "No alerts. `farescan monitors show` has the rules and their state.";
    print_table(&session, query, Some(args.limit), nothing, async |alerts| {
        let read = alerts.iter().map(Alert::deserialize);
        let read: Vec<_> = read.filter_map(Result::ok).collect();
        let monitors = NamedMonitors::of_alerts(&session.client, &read).await?;
        Ok(alert::table(alerts, |of| monitors.of_alert(of)))
    })
    .await
}

async fn show_one(args: AlertShowArgs) -> Result<(), Failure> {
    let (session, id) = ids::open::<AlertId>(&args.client, &args.alert).await?;
    let path = Query::new(format!("/v1/alerts/{id}"))
        .with("history_verdict", args.verdict.then_some(true))
        .path();
    let Some(of) = session.read::<Alert>(&path).await? else {
        return Ok(());
    };
    let monitors = NamedMonitors::of_alerts(&session.client, [&of]).await?;
    let reported = Reported {
        fare: fare_of(&session, &of).await,
        ..monitors.of_alert(&of)
    };
    let sheet = alert::sheet(&of, reported);
    print_sheet(&id, &sheet, session.screen)?;
    note!("Times in {}.", zone());
    Ok(())
}

/// The fare of an alert's price, if its answer is still stored and can be read.
async fn fare_of(session: &ServiceSession, alert: &Alert) -> Option<String> {
    // Hotels have no `buy_link`.
    let (item, link) = (alert.item_id?, alert.buy_link.as_deref()?);
    let path = format!("/v1/items/{item}?expand=answer");
    let item: Item = session.client.get(&path).await.ok()?;
    let endpoint = endpoint_of(&item.search)?;
    fare::line(endpoint, item.answer?.as_str(), alert.price?, Some(link))
}
