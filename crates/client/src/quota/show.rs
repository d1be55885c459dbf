//! What is left of each plan, the pace of scans, and the caller's own limits.

use std::io::Write as _;

use crate::dates::now;
use farescan_sheets::plan;

use crate::Failure;
use crate::client::ClientArgs;
use crate::format::zone;
use crate::render::sheet::{lines, said};
use crate::wrap::{for_stdout, note};
use farescan_contract::Api;
use farescan_contract::quota::{LaneQuota, Quota};

/// Prints the quota.
pub(super) async fn run(args: ClientArgs) -> Result<(), Failure> {
    let session = args.open()?;
    let Some(quota) = session.read::<Quota>("/v1/quota").await? else {
        return Ok(());
    };
    let mut out = anstream::stdout();
    let lanes = [(Api::Flights, &quota.flights), (Api::Hotels, &quota.hotels)];
    let lanes = lanes.map(|(api, lane)| text(api, lane));
    writeln!(out, "{}", lanes.join("\n\n"))?;
    if !quota.known_key {
        note!("The service does not know this key yet: `farescan verify` checks it.");
    }
    note!(
        "Times in {}. `farescan quota set --help`: a reserve and other limits of your own.",
        zone()
    );
    Ok(())
}

/// The plan of an API, and why it is paused.
pub(super) fn text(api: Api, lane: &LaneQuota) -> String {
    let sheet = plan::sheet(api, lane, now());
    let notices = sheet
        .notices
        .iter()
        .map(|notice| format!("\n{}", said(notice)));
    for_stdout(&format!("{}{}", lines(&sheet), notices.collect::<String>()))
}
