//! A calendar of prices: a table for each month, weeks from Monday. A cell has its day and its
//! price; the colour repeats the price's fifth.

use std::collections::HashMap;

use jiff::civil::Date;
use maud::{Markup, html};
use serde_json::Value;

use super::cell::{CellContent, PriceScale, cell_words};
use super::describe::value_text;
use crate::contract::scans::{Grid, GridCell};
use crate::web::parts::words;

const WEEKDAYS: [(&str, &str); 7] = [
    ("Mon", "Monday"),
    ("Tue", "Tuesday"),
    ("Wed", "Wednesday"),
    ("Thu", "Thursday"),
    ("Fri", "Friday"),
    ("Sat", "Saturday"),
    ("Sun", "Sunday"),
];

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
    let mut months: Vec<Date> = cells.keys().map(|date| date.first_of_month()).collect();
    months.sort_unstable();
    months.dedup();
    html! {
        div class="months" {
            @for month in months {
                (month_table(month, &|date| Some(day(date, cells.get(&date)?, scale))))
            }
        }
    }
}

/// The table of a month; `cell` makes the `td` of a date, or nothing for one that was not asked.
pub(super) fn month_table(month: Date, cell: &dyn Fn(Date) -> Option<Markup>) -> Markup {
    let blanks = usize::try_from(month.weekday().to_monday_zero_offset()).unwrap_or_default();
    let days = month
        .series(jiff::Span::new().days(1))
        .take_while(|date| date.month() == month.month())
        .map(Some);
    let mut dates: Vec<Option<Date>> = std::iter::repeat_n(None, blanks).chain(days).collect();
    dates.resize(dates.len().next_multiple_of(WEEKDAYS.len()), None);
    html! {
        table class="cal" {
            caption { (month.strftime("%B %Y")) }
            thead { tr { @for (short, long) in WEEKDAYS { th scope="col" abbr=(long) { (short) } } } }
            tbody {
                @for week in dates.chunks(WEEKDAYS.len()) {
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
                b { (cell_text(cell)) }
            }
        }
    }
}

/// The text of a cell; an implausible price is struck out.
pub(super) fn cell_text(cell: &GridCell) -> Markup {
    let content = CellContent::of(cell);
    match content {
        CellContent::Implausible(_) => html! { s { (content.text()) } },
        _ => html! { (content.text()) },
    }
}

/// The classes of a cell: its fifth or its mark, and whether it is the cheapest.
pub(super) fn class(cell: &GridCell, scale: &PriceScale) -> String {
    let mut class = match scale.fifth(cell) {
        Some(fifth) => format!("q{fifth}"),
        None => CellContent::of(cell).class().to_owned(),
    };
    if scale.cheapest == Some(cell.item_id) {
        class.push_str(" best");
    }
    if cell.price.is_some() && cell.search_status == Some(crate::contract::SearchStatus::Partial) {
        class.push_str(" part");
    }
    class
}

/// The colours and marks in words.
pub(super) fn legend() -> Markup {
    html! {
        ul class="legend" {
            li {
                "Cheap "
                @for fifth in 1..=5 { span class={ "swatch q" (fifth) } {} }
                " dear"
            }
            li { span class="swatch best" {} " cheapest" }
            li { "~ a part of the search failed" }
            li { s { "60" } " implausible" }
            (mark_legend())
        }
    }
}

/// The marks of cells without a price.
pub(super) fn mark_legend() -> Markup {
    const MARKS: [(CellContent, &str); 6] = [
        (CellContent::Empty, "nothing offered"),
        (CellContent::Incomplete, "did not complete"),
        (CellContent::Failed, "failed: refused"),
        (CellContent::Running, "being searched"),
        (CellContent::Waiting, "not searched yet"),
        (CellContent::NotSearched, "left out"),
    ];
    html! {
        @for (mark, meaning) in MARKS {
            li { span class={ "swatch " (mark.class()) } { (mark.text()) } " " (meaning) }
        }
    }
}
