//! `farescan scans`: the stored scans, and one of them.

use std::io::Write as _;

use super::Failure;
use super::client::{ClientArgs, ServiceSession};
use super::ids;
use super::list::print_table;
use super::pages::Query;
use super::render::sheet::{cell, lines};
use super::scan::results::next_step;
use super::scan_table;
use crate::wrap::{for_stdout, note};
use farescan_contract::ids::{MonitorId, ScanId};
use farescan_contract::scans::ScanEndpoint;
use farescan_contract::{FieldValue as _, Scan, ScanStatus};
use farescan_sheets::scan::{self, Cheapest, sheet};
use farescan_sheets::strategy;

/// Settings of `scans`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ScansArgs {
    #[command(subcommand)]
    command: Option<ScansCommand>,
    #[command(flatten)]
    list: ScanListArgs,
}

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
enum ScansCommand {
    /// Show one scan with its results
    #[command(
        after_help = "Examples:\n  farescan scans show @last\n  farescan scans show scn_01a203c0e342 --json | jq .items"
    )]
    Show(ScanShowArgs),
}

/// Which scans.
#[derive(Debug, clap::Args)]
struct ScanListArgs {
    /// Only scans in this status: `queued`, `running`, `paused`, `completed`, `incomplete` or
    /// `cancelled`
    #[arg(long, value_name = "STATUS")]
    status: Option<ScanStatus>,
    /// Only scans of this endpoint, such as `flights/oneway`
    #[arg(long, value_name = "ENDPOINT", value_parser = endpoint)]
    endpoint: Option<ScanEndpoint>,
    /// Only scans with this tag
    #[arg(long, value_name = "TEXT")]
    tag: Option<String>,
    /// Only scans of this monitor
    #[arg(long, value_name = "MONITOR")]
    monitor: Option<String>,
    /// The most rows
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    client: ClientArgs,
}

/// One scan.
#[derive(Debug, clap::Args)]
struct ScanShowArgs {
    /// Scan: its id, the beginning of it, or `@last`
    #[arg(value_name = "SCAN", default_value = "@last")]
    scan: String,
    #[command(flatten)]
    client: ClientArgs,
}

fn endpoint(text: &str) -> Result<ScanEndpoint, String> {
    ScanEndpoint::read(&text.into()).map_err(|_| format!("expected {}", ScanEndpoint::expected()))
}

/// Lists scans, or shows one.
pub async fn run(args: ScansArgs) -> Result<(), Failure> {
    match args.command {
        Some(ScansCommand::Show(show)) => show_one(show).await,
        None => list(args.list).await,
    }
}

async fn list(args: ScanListArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let monitor = ids::find_given::<MonitorId>(&session.client, args.monitor.as_deref()).await?;
    let query = Query::new("/v1/scans")
        .with("status", args.status)
        .with("endpoint", args.endpoint.map(|endpoint| endpoint.get()))
        .with("tag", args.tag)
        .with("monitor_id", monitor);
    let nothing = "No scans. `farescan scan oneway TLV LHR --depart 2027-02` shows the cost of the first one.";
    let table = async |scans: &[Scan]| Ok(scan::table("Scans", scans));
    print_table(&session, query, Some(args.limit), nothing, table).await
}

async fn show_one(args: ScanShowArgs) -> Result<(), Failure> {
    let (session, id) = ids::open::<ScanId>(&args.client, &args.scan).await?;
    match session.read(&format!("/v1/scans/{id}")).await? {
        Some(scan) => print(&session, &scan).await,
        None => Ok(()),
    }
}

async fn print(session: &ServiceSession, scan: &Scan) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    let sheet = sheet(scan, Cheapest::default());
    let status = cell(&scan::status(scan)).text;
    let text = format!("{} is {status}\n{}\n", scan.id, lines(&sheet));
    writeln!(out, "{}", for_stdout(&text))?;
    let text = scan_table::render(&session.client, scan, session.screen).await?;
    writeln!(out, "{text}")?;
    if let Some(strategy) = &scan.strategy {
        writeln!(out, "{}", for_stdout(&strategy::sentence(strategy)))?;
    }
    if let Some(next) = next_step(scan) {
        note!("{next}");
    }
    Ok(())
}
