//! `farescan monitors backtest`: what a monitor would have reported in the past days, by the
//! caller's own stored prices (monitors.md, rules 80 to 83). It costs nothing, so it does not ask.

use std::io::Write as _;
use std::path::PathBuf;

use farescan_sheets::backtest;
use farescan_sheets::numbers::{self, count, counted};
use jiff::tz::TimeZone;
use reqwest::Method;
use serde_json::{Map, Value};

use super::create::MonitorArgs;
use super::show::forecast_line;
use crate::Failure;
use crate::client::ClientArgs;
use crate::exit::CommandEnd;
use crate::format::{time, zone};
use crate::ids;
use crate::pages::Query;
use crate::render::sheet;
use crate::request::{HotelArgs, OnewayArgs, RoundtripArgs};
use crate::scan::{cost, read_body};
use crate::wrap::note;
use farescan_contract::monitors::{Backtest, Monitor, MonitorPreview};

/// A monitor by the kind of its scan, the body of a file, or a stored monitor.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  farescan monitors backtest oneway TLV LHR --depart +30d..+44d --alert price_below=150 --alert new_low\n  farescan monitors backtest --monitor @last --days 365\n  farescan monitors backtest monitor.json --json | jq .fired"
)]
pub(super) struct BacktestArgs {
    #[command(subcommand)]
    kind: Option<BacktestKind>,
    /// File with the body of `POST /v1/monitors`; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "monitor")]
    file: Option<PathBuf>,
    /// A stored monitor instead: its id, the beginning of it, or `@last`
    #[arg(long, value_name = "MONITOR", conflicts_with = "file")]
    monitor: Option<String>,
    #[command(flatten)]
    command: BacktestCommand,
}

/// How far back, and the service.
#[derive(Debug, clap::Args)]
struct BacktestCommand {
    /// How many days back the replay begins, at most 366 [default: 90]
    #[arg(long, value_name = "NUMBER")]
    days: Option<u16>,
    #[command(flatten)]
    client: ClientArgs,
}

/// The scan of each run, with the options of `monitors create`.
#[derive(Debug, clap::Subcommand)]
enum BacktestKind {
    /// Replay a monitor of one-way fares
    #[command(
        after_help = "Examples:\n  farescan monitors backtest oneway TLV LHR 2027-02 --alert price_below=150\n  farescan monitors backtest oneway TLV LHR --depart +30d..+44d --alert percentile_at_most=20 --days 180"
    )]
    Oneway(Box<MonitorArgs<OnewayArgs, BacktestCommand>>),
    /// Replay a monitor of round-trip fares
    #[command(
        after_help = "Examples:\n  farescan monitors backtest roundtrip TLV LHR --depart 2027-02-04 --nights 7 --alert drop_percent=10\n  farescan monitors backtest roundtrip TLV LHR --depart +30d --nights 7,14 --cron \"0 6 * * 1\" --alert new_low"
    )]
    Roundtrip(Box<MonitorArgs<RoundtripArgs, BacktestCommand>>),
    /// Replay a monitor of the rates of a hotel
    #[command(
        after_help = "Examples:\n  farescan monitors backtest hotel \"Hotel Arts\" --checkin 2027-02-04 --nights 3 --alert price_below=200\n  farescan monitors backtest hotel \"Hotel Arts\" --checkin +30d --nights 3 --alert percentile_at_most=40 --days 366"
    )]
    Hotel(Box<MonitorArgs<HotelArgs, BacktestCommand>>),
}

/// Replays the monitor and prints what it would have reported.
pub(super) async fn run(args: BacktestArgs) -> Result<(), Failure> {
    let of_kind = match args.kind {
        Some(BacktestKind::Oneway(replayed)) => Some(replayed.body()?),
        Some(BacktestKind::Roundtrip(replayed)) => Some(replayed.body()?),
        Some(BacktestKind::Hotel(replayed)) => Some(replayed.body()?),
        None => None,
    };
    let (given, command) = match (of_kind, args.file) {
        (Some((body, command)), _) => (Some(body), command),
        (None, Some(file)) => (Some(read_body(&file)?), args.command),
        (None, None) => (None, args.command),
    };
    let session = command.client.open()?;
    let body = match (given, args.monitor) {
        (Some(body), _) => body,
        (None, Some(monitor)) => {
            let id = ids::monitor(&session.client, &monitor).await?;
            let stored: Monitor = session.client.get(&format!("/v1/monitors/{id}")).await?;
            stored.backtest_body()?
        }
        (None, None) => return Err(CommandEnd::usage("a kind of scan or a file is missing").into()),
    };
    let path = Query::new("/v1/monitors/backtest")
        .with("days", command.days)
        .path();
    let answer = session
        .client
        .send(Method::POST, &path, Some(&body), None)
        .await?;
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
        return Ok(());
    }
    let found: Backtest = answer.read()?;
    let preview: MonitorPreview = session.client.post("/v1/monitors/preview", &body).await?;
    write!(out, "{}", describe(&found, &body))?;
    writeln!(out, "A month   {}", forecast_line(&preview.forecast))?;
    write!(out, "{}", cost::plans(&preview.forecast.plans))?;
    if !found.alerts.is_empty() {
        // The terminal has its own zone.
        let table = backtest::table(&found, "");
        writeln!(out, "\n{}", sheet::table(&table, session.screen))?;
        note!("Times in {}.", zone());
    }
    Ok(())
}

/// What was replayed, and its outcome.
fn describe(backtest: &Backtest, body: &Map<String, Value>) -> String {
    let day = |at: jiff::Timestamp| at.to_zoned(TimeZone::UTC).date();
    let mut lines = vec![
        format!(
            "Replayed  {} from {} to {}",
            counted(backtest.runs, "run"),
            day(backtest.since),
            day(backtest.until)
        ),
        format!(
            "Prices    on {} of {} with a run; for {} of {}",
            count(backtest.days_with_prices),
            counted(backtest.days, "day"),
            count(backtest.searches_with_prices),
            counted(backtest.searches, "search")
        ),
        format!(
            "Requests  the runs would have cost {}; this costs none",
            numbers::request_range(backtest.requests)
        ),
        format!("Alerts    {}", outcome(backtest, body)),
    ];
    lines.extend(backtest.not_replayed.iter().map(|rule| {
        format!(
            "Note      {} is not replayed: {}",
            rule.rule_type, rule.reason
        )
    }));
    let failed = backtest.failed.iter().map(|month| ("Failed", month));
    let limited = backtest.monthly_ceiling.iter();
    let without_run = failed.chain(limited.map(|month| ("Limit", month)));
    lines.extend(without_run.map(|(why, month)| {
        format!(
            "{why:<9} {} without a run from {}: {}",
            counted(month.slots, "slot"),
            time(month.slot),
            month.reason
        )
    }));
    if backtest.fired > 0 && is_watch(body) {
        lines.push(
            "Note      every date with a price is replayed; the watch searches fewer, so it may report less"
                .to_owned(),
        );
    }
    lines.join("\n") + "\n"
}

/// How many alerts, or why none.
fn outcome(backtest: &Backtest, body: &Map<String, Value>) -> String {
    let has_rules = body
        .get("alerts")
        .and_then(Value::as_array)
        .is_some_and(|rules| !rules.is_empty());
    let shown = u32::try_from(backtest.alerts.len()).unwrap_or(u32::MAX);
    if backtest.slots == 0 {
        "none: the schedule has no run in this time".to_owned()
    } else if !has_rules {
        "none: the monitor has no rule; add one with --alert".to_owned()
    } else if backtest.days_with_prices == 0 {
        "none: your history has no price of these searches in this time, so there was nothing to replay; scans and the runs of monitors fill it".to_owned()
    } else if backtest.fired == 0 {
        "none would have been sent".to_owned()
    } else if backtest.fired > shown {
        format!(
            "{} would have been sent; the first {} are below",
            count(backtest.fired),
            count(shown)
        )
    } else {
        format!("{} would have been sent", count(backtest.fired))
    }
}

fn is_watch(body: &Map<String, Value>) -> bool {
    let strategy = body.get("scan").and_then(|scan| scan.get("strategy"));
    strategy.is_some_and(|strategy| strategy.get("watch").is_some())
}
