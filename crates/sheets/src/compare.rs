//! Two scans compared: which cells became cheaper, dearer, new or gone.

use farescan_contract::scans::{Change, ChangeCounts, ComparedCell, Comparison, SeenPrice};
use rust_decimal::Decimal;

use crate::numbers::{amount, count, counted, percent_of, price, signed_amount, signed_percent};
use crate::sheet::{Cell, Column, Figure, Link, Table, Tone, Value};
use crate::trip::axis_value;

/// A change in words.
pub const fn change_words(change: Change) -> &'static str {
    match change {
        Change::Cheaper => "cheaper",
        Change::Dearer => "more expensive",
        Change::Unchanged => "unchanged",
        Change::New => "new",
        Change::Gone => "gone",
        Change::NotComparable => "other currency",
        Change::Unknown => "unknown",
        Change::NoPrice => "no price",
    }
}

/// What the colour of a change repeats.
const fn tone(change: Change) -> Tone {
    match change {
        Change::Cheaper | Change::New => Tone::Good,
        Change::Dearer | Change::Gone => Tone::Bad,
        Change::NotComparable | Change::Unknown => Tone::Warn,
        Change::Unchanged | Change::NoPrice => Tone::Plain,
    }
}

/// The number of cells with a change.
pub const fn count_of(counts: &ChangeCounts, change: Change) -> u32 {
    match change {
        Change::Cheaper => counts.cheaper,
        Change::Dearer => counts.dearer,
        Change::Unchanged => counts.unchanged,
        Change::New => counts.new,
        Change::Gone => counts.gone,
        Change::NotComparable => counts.not_comparable,
        Change::Unknown => counts.unknown,
        Change::NoPrice => counts.no_price,
    }
}

/// The values of a cell: `Thu 4 Feb 2027, 7 nights`.
fn cell_name(cell: &ComparedCell) -> String {
    let values = cell.cell.iter();
    let values: Vec<_> = values
        .map(|(field, value)| axis_value(field, value))
        .collect();
    if values.is_empty() {
        "the search".to_owned()
    } else {
        values.join(", ")
    }
}

/// The change of a cell in percent, exact.
pub(crate) fn exact_percent(cell: &ComparedCell) -> Option<Decimal> {
    cell.difference?;
    percent_of(cell.after.as_ref()?.price, cell.before.as_ref()?.price)
}

/// The cheapest price of both scans, and the numbers of the changes.
pub fn figures(comparison: &Comparison) -> Vec<Figure> {
    let counts = comparison.counts;
    let cheapest = match lowest(comparison) {
        Some((old, new, currency)) => {
            let percent = percent_of(new, old).map(signed_percent);
            let mut figure = Figure::new("Cheapest", format!("{} → {}", amount(old), amount(new)));
            figure.unit = Some(currency.to_owned());
            figure.notes.extend(percent.map(Value::Text));
            figure.note("of what has a price in both")
        }
        None => Figure::new("Cheapest", Value::Absent("–")).note("no two prices in one currency"),
    };
    let of = |label, number: u32, note: String| Figure::new(label, count(number)).note(note);
    let searches = counted(comparison.cells.len() as u64, "search");
    let unchanged = format!("{} unchanged", count(counts.unchanged));
    let new = format!("{} new, {} gone", count(counts.new), count(counts.gone));
    let without = format!("{} without a price in both", count(counts.no_price));
    let incomplete = "of searches that did not complete".to_owned();
    let mut figures = vec![
        cheapest,
        of("Cheaper", counts.cheaper, format!("of {searches}")).tone(Tone::Good),
        of("More expensive", counts.dearer, unchanged).tone(Tone::Bad),
        Figure::new("New and gone", new).note(without),
        of("Unknown", counts.unknown, incomplete),
    ];
    if counts.not_comparable > 0 {
        let why = "they have no difference".to_owned();
        figures.push(of("Other currency", counts.not_comparable, why));
    }
    figures
}

/// The lowest plausible prices of both scans over the cells that have one in both, with their currency.
/// Cells of one side alone would compare different dates.
fn lowest(comparison: &Comparison) -> Option<(Decimal, Decimal, &str)> {
    let cells = comparison.cells.iter();
    let both = cells.filter(|cell| cell.difference.is_some());
    let currency = both
        .clone()
        .find_map(|cell| Some(cell.after.as_ref()?.currency.as_str()))?;
    let lowest = |side: fn(&ComparedCell) -> Option<&SeenPrice>| {
        let seen = both.clone().filter_map(side);
        let seen = seen.filter(|seen| seen.currency == currency && !seen.implausible);
        seen.map(|seen| seen.price).min()
    };
    let before = lowest(|cell| cell.before.as_ref())?;
    Some((before, lowest(|cell| cell.after.as_ref())?, currency))
}

/// The cells as rows.
pub fn table<'a>(cells: impl Iterator<Item = &'a ComparedCell>) -> Table {
    let columns = [
        Column::text("Search"),
        Column::number("Before"),
        Column::number("After"),
        Column::number("Difference"),
        Column::text("Change").rank(1),
    ];
    let rows = cells.map(|cell| {
        let percent = exact_percent(cell).map(|percent| format!("({})", signed_percent(percent)));
        let difference = cell
            .difference
            .map(|difference| signed_amount(difference).into());
        let difference = difference.into_iter().chain(percent.map(Value::Muted));
        let change = Value::Word(tone(cell.change), change_words(cell.change).to_owned());
        let cells = [
            vec![cell_name(cell).into()],
            seen(cell.before.as_ref()),
            seen(cell.after.as_ref()),
            difference.collect(),
            vec![change],
        ];
        (None, cells)
    });
    Table::new("Each price", columns, rows)
}

fn seen(side: Option<&SeenPrice>) -> Cell {
    let Some(seen) = side else {
        return vec!["–".into()];
    };
    let price = Value::Link(
        Link::of(seen.item_id),
        Some(price(seen.price, &seen.currency)),
    );
    let mark = seen
        .implausible
        .then(|| Value::Muted("implausible".to_owned()));
    std::iter::once(price).chain(mark).collect()
}
