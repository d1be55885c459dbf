//! A grid of two swept fields, or a list of one: dates × nights, dates × markets.

use std::collections::HashMap;

use farescan_sheets::cell::CellValue;
use farescan_sheets::numbers::{percent_of, signed_percent};
use farescan_sheets::trip::{self, words};
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::Value;

use super::cell::{PriceScale, cell_words, class, legend, mark_class, mark_legend};
use crate::parts::cell_text;
use farescan_core::contract::scans::{Grid, GridCell, Parity, ParityVerdict};

/// From these percentages on a difference has its first, second and third colour.
const STEPS: [i64; 3] = [2, 6, 12];

/// The table with its heading and legend.
pub(super) fn render(grid: &Grid) -> Markup {
    let scale = PriceScale::of(grid.cells.iter());
    let has_parity = grid.cells.iter().any(|cell| cell.parity.is_some());
    let cells: HashMap<(String, Option<String>), &GridCell> = grid
        .cells
        .iter()
        .map(|cell| {
            let column = cell.column.as_ref().map(Value::to_string);
            ((cell.row.to_string(), column), cell)
        })
        .collect();
    let columns: Vec<Option<&Value>> = match &grid.columns {
        Some(columns) => columns.values.iter().map(Some).collect(),
        None => vec![None],
    };
    html! {
        h2 { (heading(grid, has_parity)) }
        p class="sub" {
            @if !scale.currency.is_empty() { (scale.currency) ". " }
            @if has_parity { "Below each price: the difference to the first market." }
            @else { "The colour is the price's fifth of this scan." }
        }
        div class="scroll" tabindex="0" role="region" aria-label="Price by market" {
            table class="matrix" {
                thead {
                    tr {
                        th scope="col" { (axis_name(&grid.rows.field)) }
                        @for column in &columns {
                            th scope="col" class="num" {
                                @match (column, &grid.columns) {
                                    (Some(value), Some(axis)) => { (axis_value(&axis.field, value)) }
                                    _ => { "Price" }
                                }
                            }
                        }
                    }
                }
                tbody {
                    @for row in &grid.rows.values {
                        tr {
                            th scope="row" { (axis_value(&grid.rows.field, row)) }
                            @for column in &columns {
                                @match cells.get(&(row.to_string(), column.map(Value::to_string))) {
                                    Some(cell) if has_parity => { (market_cell(cell)) }
                                    Some(cell) => { (price_cell(cell, &scale)) }
                                    None => { td class="off" {} }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if has_parity { (parity_legend()) } @else { (legend()) }
    }
}

fn heading(grid: &Grid, has_parity: bool) -> String {
    if has_parity {
        return "Price by market".to_owned();
    }
    let rows = axis_name(&grid.rows.field).to_lowercase();
    match &grid.columns {
        Some(columns) => format!(
            "Cheapest price by {rows} and {}",
            axis_name(&columns.field).to_lowercase()
        ),
        None => format!("Cheapest price by {rows}"),
    }
}

pub(super) fn axis_name(field: &str) -> String {
    match field {
        "departure_date" => "Departure".to_owned(),
        "return_date" => "Return".to_owned(),
        "checkin_date" => "Check-in".to_owned(),
        "checkout_date" => "Check-out".to_owned(),
        "proxy_country" => "Market".to_owned(),
        "nights" => "Nights".to_owned(),
        other => {
            let text = words(other);
            let mut letters = text.chars();
            letters
                .next()
                .map(|first| first.to_uppercase().chain(letters).collect())
                .unwrap_or_default()
        }
    }
}

/// `Fri 4 Dec 2026` for a date, `DE` for a market, `7 nights`.
pub(super) fn axis_value(field: &str, value: &Value) -> String {
    let text = trip::value_text(value);
    let date = value
        .as_str()
        .and_then(|text| text.parse::<jiff::civil::Date>().ok());
    match (field, date) {
        (_, Some(date)) => date.strftime("%a %-d %b %Y").to_string(),
        ("proxy_country", _) => text.to_uppercase(),
        ("nights", _) => format!("{text} nights"),
        _ => text,
    }
}

fn price_cell(cell: &GridCell, scale: &PriceScale) -> Markup {
    html! {
        td class=(class(cell, scale)) {
            a href={ "/items/" (cell.item_id) } title=(cell_words(cell)) { (cell_text(CellValue::of_scan(cell))) }
        }
    }
}

fn market_cell(cell: &GridCell) -> Markup {
    let content = mark_class(CellValue::of_scan(cell));
    let (class, note) = match (&cell.parity, cell.price) {
        _ if cell.implausible => (content, String::new()),
        (None, Some(_)) => ("even", "base".to_owned()),
        (Some(parity), Some(price)) => {
            let percent = exact_percent(parity, price);
            (
                difference_class(parity, percent),
                difference_text(parity, percent),
            )
        }
        (_, None) => (content, String::new()),
    };
    let mut title = cell_words(cell);
    if let Some(parity) = &cell.parity {
        title.push_str(verdict_words(parity.verdict));
    }
    if let Some(room) = &cell.room {
        title.extend(["; ", room]);
    }
    html! {
        td class=(class) {
            a href={ "/items/" (cell.item_id) } title=(title) {
                (cell_text(CellValue::of_scan(cell)))
                @if !note.is_empty() { small { (note) } }
            }
        }
    }
}

fn difference_text(parity: &Parity, percent: Option<Decimal>) -> String {
    let mark = match parity.verdict {
        ParityVerdict::Gap => ["", ""],
        ParityVerdict::Noise => ["≈ ", ""],
        ParityVerdict::Insufficient => ["(", ")"],
        ParityVerdict::NotComparable => return "other room".to_owned(),
    };
    percent.map_or_else(String::new, |percent| {
        let [before, after] = mark;
        format!("{before}{}{after}", signed_percent(percent))
    })
}

/// The exact difference of a market's price to the baseline's, in percent.
fn exact_percent(parity: &Parity, price: Decimal) -> Option<Decimal> {
    percent_of(price, price.checked_sub(parity.difference?)?)
}

fn difference_class(parity: &Parity, percent: Option<Decimal>) -> &'static str {
    match percent {
        Some(percent) if parity.verdict != ParityVerdict::NotComparable => percent_class(percent),
        _ => "even",
    }
}

/// The colour of a difference: the larger it is, the stronger.
pub(super) fn percent_class(percent: Decimal) -> &'static str {
    let reached = STEPS
        .iter()
        .filter(|step| percent.abs() >= Decimal::from(**step))
        .count();
    match (reached, percent.is_sign_negative()) {
        (0, _) => "even",
        (1, true) => "low1",
        (2, true) => "low2",
        (_, true) => "low3",
        (1, false) => "high1",
        (2, false) => "high2",
        (_, false) => "high3",
    }
}

const fn verdict_words(verdict: ParityVerdict) -> &'static str {
    match verdict {
        ParityVerdict::Gap => "; a real gap: the samples do not overlap",
        ParityVerdict::Noise => "; the samples overlap: this may be chance",
        ParityVerdict::Insufficient => "; too few samples to tell a gap from chance",
        ParityVerdict::NotComparable => "; another room, board or currency: not comparable",
    }
}

/// The colours from cheaper to dearer, as an entry of a legend.
pub(super) fn change_scale() -> Markup {
    html! {
        li {
            "Cheaper "
            @for class in ["low3", "low2", "low1", "even", "high1", "high2", "high3"] {
                span class={ "swatch " (class) } {}
            }
            " dearer"
        }
    }
}

fn parity_legend() -> Markup {
    html! {
        ul class="legend" {
            (change_scale())
            li { "≈ the samples overlap: may be chance" }
            li { "( ) too few samples to tell" }
            (mark_legend())
        }
    }
}
