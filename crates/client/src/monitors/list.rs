//! `farescan monitors`: all of them.

use farescan_sheets::monitor;
use farescan_sheets::sheet::{Cell, Table};

use crate::Failure;
use crate::client::ClientArgs;
use crate::list::print_table;
use crate::pages::Query;
use farescan_contract::monitors::{Monitor, MonitorStatus};

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
    let query = Query::new("/v1/monitors").with("status", args.status);
    let nothing = "No monitors. `farescan monitors create --help` has two examples.";
    print_table(&session, query, None, nothing, async |rows| Ok(table(rows))).await
}

/// Monitors without the prices of their runs, which are on the page.
pub fn table(monitors: &[Monitor]) -> Table {
    monitor::table(monitors, |_| [Cell::new(), Cell::new()])
}
