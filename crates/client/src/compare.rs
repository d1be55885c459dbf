//! `farescan compare`: which cells of a scan became cheaper or dearer in another.

use std::io::Write as _;

use farescan_contract::ids::ScanId;
use farescan_sheets::compare;

use super::Failure;
use super::client::ClientArgs;
use super::ids;
use super::render::sheet::{figures, table};
use crate::wrap::for_stdout;
use farescan_contract::scans::{Change, ComparedCell, Comparison};

/// Settings of `compare`.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// The earlier scan: its id or the beginning of it
    #[arg(value_name = "BEFORE")]
    before: String,
    /// The later scan: its id, the beginning of it, or `@last`
    #[arg(value_name = "AFTER", default_value = "@last")]
    after: String,
    /// Also the cells without a change
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Prints the changed cells.
pub async fn run(args: CompareArgs) -> Result<(), Failure> {
    let (session, before) = ids::open::<ScanId>(&args.client, &args.before).await?;
    let after = ids::find::<ScanId>(&session.client, &args.after).await?;
    let path = format!("/v1/scans/{before}/compare/{after}");
    let Some(comparison) = session.read::<Comparison>(&path).await? else {
        return Ok(());
    };
    let mut out = anstream::stdout();
    let is_shown = |cell: &&ComparedCell| {
        args.all || !matches!(cell.change, Change::Unchanged | Change::NoPrice)
    };
    let cells = compare::table(comparison.cells.iter().filter(is_shown));
    if !cells.rows.is_empty() {
        writeln!(out, "{}", table(&cells, session.screen))?;
    }
    let text = figures(&compare::figures(&comparison));
    writeln!(out, "{}", for_stdout(&text))?;
    Ok(())
}
