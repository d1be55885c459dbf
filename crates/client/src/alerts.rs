//! `farescan alerts`: rules that fired, and the data on which one fired.

use std::io::Write as _;

use farescan_contract::FieldValue as _;
use farescan_contract::monitors::Rule;
use farescan_sheets::draft::plain;
use farescan_sheets::numbers::amount;
use farescan_sheets::rule::sentence;
use serde_json::Value;

use super::Failure;
use super::client::ClientArgs;
use super::format::{price_or, time, zone};
use super::ids;
use super::pages::{Query, page_limit, print_lines, print_nothing, rows};
use super::render::{Column, ListTable, Text};
use crate::wrap::note;
use farescan_contract::monitors::{Alert, RuleType};

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
    let monitor = match &args.monitor {
        Some(monitor) => Some(ids::monitor(&session.client, monitor).await?),
        None => None,
    };
    let path = Query::new("/v1/alerts")
        .with("monitor_id", monitor)
        .with("type", args.rule_type)
        .with("limit", Some(page_limit(Some(args.limit))))
        .path();
    if session.json {
        return print_lines(&session, &path).await;
    }
    let alerts: Vec<Alert> = rows(&session.client, &path, Some(args.limit)).await?;
    if alerts.is_empty() {
        return print_nothing(
            &session.client,
            "No alerts. `farescan monitors show` has the rules and their state.",
        )
        .await;
    }
    let mut table = ListTable::new([
        Column::text("Alert"),
        Column::text("Rule"),
        Column::number("Price"),
        Column::number("Before").rank(2),
        Column::text("Search"),
        Column::text("Fired").rank(1),
        Column::text("Monitor").rank(3),
    ]);
    for (alert, id) in alerts
        .iter()
        .zip(ids::shortened(alerts.iter().map(|alert| alert.id)))
    {
        let currency = alert.currency.as_deref().unwrap_or_default();
        table.row([
            Text::from(id),
            rule(alert).into(),
            format!("{} {currency}", price_or(alert.price, "–"))
                .trim()
                .to_owned()
                .into(),
            price_or(alert.before.as_ref().map(|before| before.price), "").into(),
            cell(alert).into(),
            time(alert.fired_at).into(),
            alert.monitor_id.to_string().into(),
        ]);
    }
    writeln!(anstream::stdout(), "{}", table.render(session.screen))?;
    note!("Times in {}.", zone());
    Ok(())
}

/// The type of the rule, and whether one more search has found the price.
fn rule(alert: &Alert) -> String {
    let confirmed = alert.confirmed_at.map_or("", |_| ", confirmed");
    format!("{}{confirmed}", alert.rule_type)
}

fn cell(alert: &Alert) -> String {
    let values = alert.cell.values().map(plain);
    values.collect::<Vec<_>>().join(", ")
}

/// The rule as a sentence; one of a newer service as the API has it.
fn rule_words(alert: &Alert) -> Result<String, Failure> {
    let currency = alert.currency.as_deref();
    match Rule::read(&alert.rule) {
        Ok(rule) => Ok(sentence(&rule, currency)),
        Err(_) => Ok(serde_json::to_string(&alert.rule)?),
    }
}

async fn show_one(args: AlertShowArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let id = ids::alert(&session.client, &args.alert).await?;
    let path = Query::new(format!("/v1/alerts/{id}"))
        .with("history_verdict", args.verdict.then_some(true))
        .path();
    let answer = session.client.ask(&path).await?;
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
        return Ok(());
    }
    let alert: Alert = answer.read()?;
    writeln!(
        out,
        "{id}  {}  fired {}",
        alert.rule_type,
        time(alert.fired_at)
    )?;
    writeln!(out, "rule      {}", rule_words(&alert)?)?;
    if let Some(verdict) = &alert.history_verdict {
        writeln!(out, "past      {}, {}", verdict.class, verdict.sentence)?;
    }
    if let Some((first, at)) = alert.found_first.as_ref().zip(alert.confirmed_at) {
        writeln!(
            out,
            "confirmed {}; found first at {} on {}",
            time(at),
            amount(first.price),
            time(first.at)
        )?;
    }
    // Every other field that has a value, as the API has it: nothing of the evidence is left out.
    let fields: serde_json::Map<String, Value> = answer.read()?;
    let shown = [
        "id",
        "type",
        "rule",
        "fired_at",
        "history_verdict",
        "confirmed_at",
        "found_first",
    ];
    let others = fields
        .iter()
        .filter(|(name, value)| !shown.contains(&name.as_str()) && !value.is_null());
    for (name, value) in others {
        writeln!(out, "{name}  {}", plain(value))?;
    }
    note!("Times in {}; those of the evidence as in the API.", zone());
    Ok(())
}
