//! `farescan monitors`: all of them.

use std::io::Write as _;

use crate::Failure;
use crate::client::ClientArgs;
use crate::format::zone;
use crate::pages::{Query, page_limit, print_lines, print_nothing, rows};
use crate::render::sheet;
use crate::wrap::note;
use farescan_contract::monitors::{Monitor, MonitorStatus};
use farescan_sheets::monitor;

/// Which monitors.
#[derive(Debug, clap::Args)]
pub(super) struct MonitorListArgs {
    /// Only monitors in this status: `active` or `paused`
    #[arg(long, value_name = "STATUS")]
    status: Option<MonitorStatus>,
    #[command(flatten)]
    client: ClientArgs,
}

/// Prints a row for each monitor.
pub(super) async fn run(args: MonitorListArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let path = Query::new("/v1/monitors")
        .with("status", args.status)
        .with("limit", Some(page_limit(None)))
        .path();
    if session.json {
        return print_lines(&session, &path).await;
    }
    let monitors: Vec<Monitor> = rows(&session.client, &path, None).await?;
    if monitors.is_empty() {
        return print_nothing(
            &session.client,
            "No monitors. `farescan monitors create --help` has two examples.",
        )
        .await;
    }
    let table = monitor::table(&monitors, |_| &[]);
    writeln!(
        anstream::stdout(),
        "{}",
        sheet::table(&table, session.screen)
    )?;
    note!("Times in {}.", zone());
    Ok(())
}
