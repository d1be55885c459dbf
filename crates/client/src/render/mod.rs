//! Tables for the terminal: a month of fares as a calendar, one stay from several markets.
//!
//! Pure functions from cells to a table. Colour only repeats what the text shows; a search that
//! found nothing, one that did not complete and one not yet made have different marks.

mod list;
pub mod price_table;
pub mod sheet;
mod sparkline;
mod tone;

pub use farescan_sheets::sheet::Column;
pub use list::ListTable;
pub use sparkline::sparkline;
pub use tone::{CellTone, Text};

use farescan_sheets::cell::CellValue;
use farescan_sheets::numbers::amount;
use farescan_sheets::price_table::{Doubt, PriceTable, Shade};

/// The whole price of a cell, for a list; an implausible one is in brackets.
pub fn exact_text(value: CellValue) -> Text {
    match value {
        CellValue::Price(price) => amount(price).into(),
        CellValue::Implausible(price) => Text::new(format!("({})", amount(price)), tone(value)),
        other => Text::new(other.text(), tone(other)),
    }
}

/// What the colour of a cell repeats.
fn tone(value: CellValue) -> CellTone {
    match value {
        CellValue::Price(_) | CellValue::Running => CellTone::Plain,
        CellValue::Incomplete => CellTone::Warning,
        CellValue::Failed => CellTone::Bad,
        CellValue::Empty
        | CellValue::Waiting
        | CellValue::NotSearched
        | CellValue::Implausible(_) => CellTone::Quiet,
    }
}

/// The text of a cell: a price has no separators, because a cell is narrow. An implausible one is in
/// brackets.
fn cell_text(value: CellValue) -> String {
    match value {
        CellValue::Price(price) => price.round().normalize().to_string(),
        CellValue::Implausible(price) => format!("({})", price.round().normalize()),
        _ => value.text(),
    }
}

/// The width of a legend's lines.
const LEGEND_WIDTH: usize = 79;

/// Explains the marks that a table has and, with `colour`, the colours. Each line fits 80 columns.
pub fn legend(table: &PriceTable, colour: bool) -> String {
    let marks = table.marks();
    let marks = marks.map(|mark| format!("{} {}", mark.text(), mark.words(None)));
    let mut marks: Vec<String> = marks.collect();
    if table.has(|cell| cell.is_best) {
        marks.insert(0, "* cheapest".to_owned());
    }
    if table.has(|cell| matches!(cell.value, CellValue::Implausible(_))) {
        marks.push("(60) implausible".to_owned());
    }
    let doubts = table.doubts().map(Doubt::legend);
    marks.extend(doubts.map(|(mark, words)| format!("{mark} {words}")));
    let mut colours = Vec::new();
    if colour && table.has(|cell| matches!(cell.shade, Shade::Fifth(_))) {
        colours.extend(["green: the cheapest fifth", "red: the most expensive"].map(str::to_owned));
    }
    if colour && table.has(|cell| cell.value == CellValue::Incomplete) {
        colours.push("yellow: incomplete".to_owned());
    }
    let lines = [marks, colours].into_iter().filter(|line| !line.is_empty());
    lines
        .map(|line| entries(&line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Entries side by side, none of them broken.
fn entries(entries: &[String]) -> String {
    let kept: Vec<_> = entries
        .iter()
        .map(|entry| entry.replace(' ', "\u{a0}"))
        .collect();
    let options = textwrap::Options::new(LEGEND_WIDTH)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .initial_indent("   ")
        .subsequent_indent("   ");
    textwrap::fill(&kept.join("   "), options).replace('\u{a0}', " ")
}

/// Makes `colour` decide on styling, not the table's own detection of a terminal.
fn set_styling(table: &mut comfy_table::Table, colour: bool) {
    if colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
}

#[cfg(test)]
mod tests;
