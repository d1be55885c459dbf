//! The cells of a comparison as a calendar or a matrix: the later price, and below it its change.

use std::collections::{HashMap, HashSet};

use farescan_sheets::calendar::Month;
use farescan_sheets::numbers::{self, amount, percent_of, signed_percent};
use jiff::civil::Date;
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::Value;

use super::calendar::month_table;
use super::matrix::{axis_name, axis_value, change_scale, percent_class};
use crate::parts;
use farescan_core::contract::scans::{Change, ComparedCell, Comparison, SeenPrice};

/// More cells than this are only in the table.
const MAX_CELLS: usize = 2_500;

/// The grid; nothing for cells of three fields or none.
pub(super) fn section(comparison: &Comparison) -> Markup {
    let cells = &comparison.cells;
    let mut fields: Vec<&str> = cells
        .first()
        .map(|cell| cell.cell.keys().map(String::as_str).collect())
        .unwrap_or_default();
    // Dates are rows.
    fields.sort_by_key(|field| !field.ends_with("_date"));
    let grid = match fields.as_slice() {
        _ if cells.len() > MAX_CELLS => return html! {},
        [date] if date.ends_with("_date") => calendar(cells, date),
        [rows, columns] => matrix(cells, rows, columns),
        _ => return html! {},
    };
    html! {
        section class="card" {
            h2 { "The later price and its change" }
            (grid)
            (legend())
        }
    }
}

fn calendar(cells: &[ComparedCell], field: &str) -> Markup {
    let by_date: HashMap<Date, &ComparedCell> = cells
        .iter()
        .filter_map(|cell| Some((cell.cell.get(field)?.as_str()?.parse().ok()?, cell)))
        .collect();
    let months = Month::of_dates(by_date.keys().copied());
    let day = |date: Date| {
        let cell = by_date.get(&date)?;
        let shown = ShownChange::of(cell);
        Some(html! {
            td class=(shown.class) {
                (linked(cell, &html! {
                    i { (date.day()) }
                    b { (shown.text) @if !shown.note.is_empty() { small { (shown.note) } } }
                }))
            }
        })
    };
    html! {
        div class="months changes" { @for month in &months { (month_table(month, &day)) } }
    }
}

fn matrix(cells: &[ComparedCell], rows: &str, columns: &str) -> Markup {
    let by_place: HashMap<(String, String), &ComparedCell> = cells
        .iter()
        .filter_map(|cell| {
            let text = |field: &str| Some(cell.cell.get(field)?.to_string());
            Some(((text(rows)?, text(columns)?), cell))
        })
        .collect();
    let column_values = axis(cells, columns);
    // Few cells may lie far apart.
    if axis(cells, rows).len() * column_values.len() > MAX_CELLS {
        return html! {};
    }
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="The later price and its change" {
            table class="matrix" {
                thead {
                    tr {
                        th scope="col" { (axis_name(rows)) }
                        @for value in &column_values { th scope="col" class="num" { (axis_value(columns, value)) } }
                    }
                }
                tbody {
                    @for row in axis(cells, rows) {
                        tr {
                            th scope="row" { (axis_value(rows, row)) }
                            @for column in &column_values {
                                @match by_place.get(&(row.to_string(), column.to_string())) {
                                    Some(cell) => { (matrix_cell(cell)) }
                                    None => { td class="off" {} }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn matrix_cell(cell: &ComparedCell) -> Markup {
    let shown = ShownChange::of(cell);
    html! {
        td class=(shown.class) {
            (linked(cell, &html! { (shown.text) @if !shown.note.is_empty() { small { (shown.note) } } }))
        }
    }
}

/// The values of a field: dates and numbers in their order, others as they come.
fn axis<'a>(cells: &'a [ComparedCell], field: &str) -> Vec<&'a Value> {
    let mut seen = HashSet::new();
    let mut values: Vec<&Value> = cells
        .iter()
        .filter_map(|cell| cell.cell.get(field))
        .filter(|value| seen.insert(value.to_string()))
        .collect();
    if field.ends_with("_date") {
        values.sort_by_key(|value| value.as_str());
    } else if values.iter().all(|value| value.is_u64()) {
        values.sort_by_key(|value| value.as_u64());
    }
    values
}

/// The content as a link to the later search, or to the earlier one.
fn linked(cell: &ComparedCell, content: &Markup) -> Markup {
    let item = cell
        .after
        .as_ref()
        .or(cell.before.as_ref())
        .map(|seen| seen.item_id);
    let title = sentence(cell);
    html! {
        @match item {
            Some(item) => { a href=(parts::item_path(item)) title=(title) { (content) } }
            None => { span class="no-item" title=(title) { (content) } }
        }
    }
}

/// `Thu 4 Feb 2027: 305 USD, then 290 USD, cheaper`.
fn sentence(cell: &ComparedCell) -> String {
    let price = |side: Option<&SeenPrice>| {
        side.map_or_else(
            || "no price".to_owned(),
            |seen| numbers::price(seen.price, &seen.currency),
        )
    };
    format!(
        "{}: {}, then {}: {}",
        cell_name(cell),
        price(cell.before.as_ref()),
        price(cell.after.as_ref()),
        change_words(cell.change)
    )
}

/// What a cell shows.
struct ShownChange {
    class: &'static str,
    text: String,
    note: String,
}

impl ShownChange {
    fn of(cell: &ComparedCell) -> Self {
        let percent = exact_percent(cell);
        let price = cell.after.as_ref().map(|seen| amount(seen.price.round()));
        let (class, text, note) = match cell.change {
            Change::Cheaper | Change::Dearer => (
                percent.map_or("even", percent_class),
                price,
                percent.map(signed_percent),
            ),
            Change::Unchanged => ("even", price, Some("=".to_owned())),
            Change::New => ("busy", price, Some("new".to_owned())),
            Change::Gone => ("none", None, Some("gone".to_owned())),
            Change::NotComparable => ("even", price, Some("other currency".to_owned())),
            Change::Unknown => ("degraded", Some("?".to_owned()), None),
            Change::NoPrice => ("none", None, None),
        };
        Self {
            class,
            text: text.unwrap_or_else(|| "–".to_owned()),
            note: note.unwrap_or_default(),
        }
    }
}

fn legend() -> Markup {
    html! {
        ul class="legend" {
            (change_scale())
            li { span class="swatch busy" {} " new" }
            li { span class="swatch none" { "–" } " gone, or no price in both" }
            li { span class="swatch degraded" { "?" } " unknown: a search did not complete" }
        }
    }
}

/// A change in words.
pub(super) const fn change_words(change: Change) -> &'static str {
    match change {
        Change::Cheaper => "cheaper",
        Change::Dearer => "dearer",
        Change::Unchanged => "unchanged",
        Change::New => "new",
        Change::Gone => "gone",
        Change::NotComparable => "other currency",
        Change::Unknown => "unknown",
        Change::NoPrice => "no price",
    }
}

/// The values of a cell: `Thu 4 Feb 2027, 7 nights`.
pub(super) fn cell_name(cell: &ComparedCell) -> String {
    let values = cell
        .cell
        .iter()
        .map(|(field, value)| axis_value(field, value));
    let name = values.collect::<Vec<_>>().join(", ");
    if name.is_empty() {
        "the search".to_owned()
    } else {
        name
    }
}

/// The change of a cell in percent, exact.
pub(super) fn exact_percent(cell: &ComparedCell) -> Option<Decimal> {
    cell.difference?;
    percent_of(cell.after.as_ref()?.price, cell.before.as_ref()?.price)
}
