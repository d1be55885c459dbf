//! `farescan monitors`: all of them.

use farescan_sheets::monitor;
use farescan_sheets::sheet::Cell;

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
    // The prices of runs are on the page.
    let table =
        async |monitors: &[Monitor]| Ok(monitor::table(monitors, |_| [Cell::new(), Cell::new()]));
    print_table(&session, query, None, nothing, table).await
}
