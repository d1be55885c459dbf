//! `farescan monitors backtest`: what a monitor would have reported in the past days, by the
//! caller's own stored prices (monitors.md, rules 80 to 83). It costs nothing, so it does not ask.

use std::io::Write as _;
use std::path::PathBuf;

use farescan_contract::ids::MonitorId;
use farescan_sheets::{backtest, monitor};
use reqwest::Method;

use super::create::MonitorArgs;
use crate::Failure;
use crate::client::ClientArgs;
use crate::exit::CommandEnd;
use crate::format::zone;
use crate::ids;
use crate::pages::Query;
use crate::render::sheet::section;
use crate::request::{HotelArgs, OnewayArgs, RoundtripArgs};
use crate::scan::{cost, read_body};
use crate::wrap::{for_stdout, note};
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
            let id = ids::find::<MonitorId>(&session.client, &monitor).await?;
            let stored: Monitor = session.client.get(&format!("/v1/monitors/{id}")).await?;
            stored.backtest_body()?
        }
        (None, None) => return Err(CommandEnd::usage("a kind of scan or a file is missing")),
    };
    let path = Query::new("/v1/monitors/backtest")
        .with("days", command.days)
        .path();
    let replayed = session.change::<Backtest>(Method::POST, &path, &body);
    let Some(found) = replayed.await? else {
        return Ok(());
    };
    let preview: MonitorPreview = session.client.post("/v1/monitors/preview", &body).await?;
    let parts = [
        backtest::of_body(&found, &body),
        monitor::month_of(&preview.forecast, &body),
    ];
    let [replay, month] = parts.map(|part| section(&part, session.screen));
    let plans = cost::plans(&preview.forecast.plans);
    let text = format!("{replay}\n\n{month}\n{plans}");
    writeln!(anstream::stdout(), "{}", for_stdout(text.trim_end()))?;
    note!("Times in {}.", zone());
    Ok(())
}
