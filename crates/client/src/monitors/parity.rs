//! `farescan monitors parity`: the markets of a monitor, run by run.

use std::io::Write as _;

use farescan_contract::ids::MonitorId;
use farescan_contract::monitors::ParityHistory;
use farescan_sheets::parity;

use crate::Failure;
use crate::client::ClientArgs;
use crate::format::zone;
use crate::ids;
use crate::pages::Query;
use crate::render::sheet::table;
use crate::wrap::note;

/// Markets over time.
#[derive(Debug, clap::Args)]
pub(super) struct ParityArgs {
    /// Monitor: its id, the beginning of it, or `@last`
    #[arg(value_name = "MONITOR", default_value = "@last")]
    monitor: String,
    /// The market to compare with [default: that of the monitor's alert, or its first market]
    #[arg(long, value_name = "COUNTRY")]
    baseline: Option<String>,
    /// The most runs, the newest first
    #[arg(long, value_name = "N", default_value_t = 12)]
    runs: u16,
    #[command(flatten)]
    client: ClientArgs,
}

/// Prints the markets over all runs, and run by run.
pub(super) async fn run(args: ParityArgs) -> Result<(), Failure> {
    let (session, id) = ids::open::<MonitorId>(&args.client, &args.monitor).await?;
    let path = Query::new(format!("/v1/monitors/{id}/parity"))
        .with("runs", Some(args.runs))
        .with("baseline", args.baseline)
        .path();
    let Some(history) = session.read::<ParityHistory>(&path).await? else {
        return Ok(());
    };
    let mut out = anstream::stdout();
    writeln!(out, "{}", parity::sentence(&history))?;
    if history.runs.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "{}\n",
        table(&parity::markets(&history), session.screen)
    )?;
    writeln!(out, "{}", table(&parity::runs(&history), session.screen))?;
    note!("{} Times in {}.", parity::RULE, zone());
    Ok(())
}
