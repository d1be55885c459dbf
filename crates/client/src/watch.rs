//! `farescan watch`: the progress of a scan, then its results.

use super::Failure;
use super::client::ClientArgs;
use super::ids;
use super::scan::follow::follow;
use super::scan::results::{Form, print};
use farescan_contract::ids::ScanId;

/// Settings of `watch`.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    /// Scan: its id, the beginning of it, or `@last`
    #[arg(value_name = "SCAN", default_value = "@last")]
    scan: String,
    /// Print the items as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Follows a scan and prints its results.
pub async fn run(args: WatchArgs) -> Result<(), Failure> {
    let (session, id) = ids::open::<ScanId>(&args.client, &args.scan).await?;
    let scan = follow(&session, id).await?;
    print(&session, &scan, Form::of(session.json, args.csv)).await
}
