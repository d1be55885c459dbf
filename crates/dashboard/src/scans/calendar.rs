//! A calendar of prices: a table for each month, weeks from Monday. A cell has its day and its
//! price; the colour repeats the price's fifth.

use std::collections::HashMap;

use farescan_sheets::calendar::{Month, WEEKDAYS};
use farescan_sheets::cell::CellValue;
use farescan_sheets::trip::{value_text, words};
use jiff::civil::Date;
use maud::{Markup, html};
use serde_json::Value;

use super::cell::{PriceScale, cell_words, class, legend};
use crate::parts::cell_text;
use farescan_core::contract::scans::{Grid, GridCell};

/// One calendar, or one for each column.
pub(super) fn render(grid: &Grid) -> Markup {
    let scale = PriceScale::of(grid.cells.iter());
    let what = if grid.rows.field == "checkin_date" {
        "Cheapest stay by check-in date"
    } else {
        "Cheapest fare by departure date"
    };
    html! {
        h2 { (what) }
        p class="sub" {
            @if !scale.currency.is_empty() { (scale.currency) ". " }
            "The colour is the price's fifth of this scan."
        }
        @match &grid.columns {
            None => { (months(grid, None, &scale)) }
            Some(columns) => {
                @for value in &columns.values {
                    section class="sheet" {
                        h3 { (words(&columns.field)) " " (value_text(value)) }
                        (months(grid, Some(value), &scale))
                    }
                }
            }
        }
        (legend())
    }
}

/// The tables of every month that has a date.
fn months(grid: &Grid, column: Option<&Value>, scale: &PriceScale) -> Markup {
    let cells: HashMap<Date, &GridCell> = grid
        .cells
        .iter()
        .filter(|cell| cell.column.as_ref() == column)
        .filter_map(|cell| Some((cell.row.as_str()?.parse().ok()?, cell)))
        .collect();
    html! {
        div class="months" {
            @for month in Month::of_dates(cells.keys().copied()) {
                (month_table(&month, &|date| Some(day(date, cells.get(&date)?, scale))))
            }
        }
    }
}

/// The table of a month; `cell` makes the `td` of a date, or nothing for one that was not asked.
pub(super) fn month_table(month: &Month, cell: &dyn Fn(Date) -> Option<Markup>) -> Markup {
    html! {
        table class="cal" {
            caption { (month.title) }
            thead { tr { @for (short, long) in WEEKDAYS { th scope="col" abbr=(long) { (short) } } } }
            tbody {
                @for week in &month.weeks {
                    tr {
                        @for date in week {
                            @match date {
                                None => { td {} }
                                Some(date) => {
                                    @match cell(*date) {
                                        None => { td class="off" { i { (date.day()) } } }
                                        Some(cell) => { (cell) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn day(date: Date, cell: &GridCell, scale: &PriceScale) -> Markup {
    let spoken = format!("{}: {}", date.strftime("%a %-d %b %Y"), cell_words(cell));
    html! {
        td class=(class(cell, scale)) {
            a href={ "/items/" (cell.item_id) } title=(spoken) {
                i { (date.day()) }
                b { (cell_text(CellValue::of_scan(cell))) }
            }
        }
    }
}
