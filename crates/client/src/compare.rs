//! `farescan compare`: which cells of a scan became cheaper or dearer in another.

use std::io::Write as _;

use farescan_sheets::numbers::{amount, percent_of, signed_amount, signed_percent};
use rust_decimal::Decimal;
use serde_json::Value;

use super::Failure;
use super::client::ClientArgs;
use super::ids;
use super::render::{CellTone, Column, ListTable, Text};
use farescan_contract::scans::{Change, ComparedCell, Comparison, SeenPrice};

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
    let session = args.client.open()?;
    let before = ids::scan(&session.client, &args.before).await?;
    let after = ids::scan(&session.client, &args.after).await?;
    let answer = session
        .client
        .ask(&format!("/v1/scans/{before}/compare/{after}"))
        .await?;
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
        return Ok(());
    }
    let comparison: Comparison = answer.read()?;
    let is_shown = |cell: &&ComparedCell| {
        args.all || !matches!(cell.change, Change::Unchanged | Change::NoPrice)
    };
    let cells: Vec<_> = comparison.cells.iter().filter(is_shown).collect();
    if !cells.is_empty() {
        writeln!(out, "{}", table(&cells).render(session.screen))?;
    }
    let counts = comparison.counts;
    let parts = [
        (counts.cheaper, Change::Cheaper),
        (counts.dearer, Change::Dearer),
        (counts.unchanged, Change::Unchanged),
        (counts.new, Change::New),
        (counts.gone, Change::Gone),
        (counts.not_comparable, Change::NotComparable),
        (counts.unknown, Change::Unknown),
        (counts.no_price, Change::NoPrice),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let words: Vec<_> = parts
        .map(|(count, change)| format!("{count} {}", words(*change)))
        .collect();
    writeln!(out, "{}", words.join(", "))?;
    Ok(())
}

fn words(change: Change) -> &'static str {
    match change {
        Change::Cheaper => "cheaper",
        Change::Dearer => "dearer",
        Change::Unchanged => "unchanged",
        Change::New => "new",
        Change::Gone => "gone",
        Change::NotComparable => "of another currency",
        Change::Unknown => "unknown",
        Change::NoPrice => "without a price",
    }
}

fn table(cells: &[&ComparedCell]) -> ListTable {
    let mut table = ListTable::new([
        Column::text("Search"),
        Column::number("Before"),
        Column::number("After"),
        Column::number("Difference"),
        Column::number("%"),
        Column::text("Change").rank(1),
    ]);
    for cell in cells {
        let tone = match cell.change {
            Change::Cheaper | Change::New => CellTone::Good,
            Change::Dearer | Change::Gone => CellTone::Bad,
            Change::NotComparable | Change::Unknown => CellTone::Warning,
            Change::Unchanged | Change::NoPrice => CellTone::Plain,
        };
        let values = cell.cell.values().map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let percent = seen_price(cell.after.as_ref())
            .zip(seen_price(cell.before.as_ref()))
            .filter(|_| cell.difference_percent.is_some())
            .and_then(|(after, before)| percent_of(after, before));
        let difference = cell.difference.map(signed_amount).unwrap_or_default();
        let percent = percent.map(signed_percent).unwrap_or_default();
        table.row([
            values.collect::<Vec<_>>().join(", ").into(),
            seen(cell.before.as_ref()).into(),
            seen(cell.after.as_ref()).into(),
            Text::new(difference, tone),
            Text::new(percent, tone),
            Text::new(words(cell.change), tone),
        ]);
    }
    table
}

fn seen_price(seen: Option<&SeenPrice>) -> Option<Decimal> {
    Some(seen?.price)
}

fn seen(seen: Option<&SeenPrice>) -> String {
    seen.map_or_else(
        || "–".to_owned(),
        |seen| {
            let mark = if seen.implausible {
                ", implausible"
            } else {
                ""
            };
            format!("{} {}{mark}", amount(seen.price), seen.currency)
        },
    )
}
