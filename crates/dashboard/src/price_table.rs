//! Tables of prices as HTML: the number first, its colour second. The colours go with the price's
//! fifth or its change; in both themes the greener is the cheaper.

use farescan_sheets::calendar::{Month, WEEKDAYS};
use farescan_sheets::cell::CellValue;
use farescan_sheets::price_table::{
    CalendarCells, Doubt, PriceCell, PriceLayout, PriceTable, Shade,
};
use jiff::civil::Date;
use maud::{Markup, html};

use super::{links, sheet};

/// Calendars of one page; more values of a second field are a matrix.
pub(super) const MOST_CALENDARS: usize = 6;

/// Where the dates of calendars lead, if not to their searches.
#[derive(Clone, Copy)]
pub(super) struct DateLinks<'a> {
    pub(super) path: &'a dyn Fn(Date, &PriceCell) -> Option<String>,
    /// The date that the page shows more of.
    pub(super) chosen: Option<Date>,
}

/// The table and its legend.
pub(super) fn markup(table: &PriceTable, links: Option<DateLinks<'_>>) -> Markup {
    html! {
        @match &table.layout {
            PriceLayout::Calendars(calendars) => {
                @let class = if table.has(|cell| !cell.note.is_empty()) { "months noted" } else { "months" };
                @for (name, days) in calendars {
                    @if let Some(name) = name { h3 { (name) } }
                    div class=(class) {
                        @for month in Month::of_dates(days.keys().copied()) { (month_table(&month, days, links)) }
                    }
                }
            }
            PriceLayout::Markets(markets) => { (sheet::table(markets)) p class="hint" { (farescan_sheets::parity::RULE) } }
            PriceLayout::Matrix { corner, columns, rows } => {
                div class="scroll" tabindex="0" role="region" aria-label=(table.title) {
                    table class="matrix" {
                        thead {
                            tr {
                                th scope="col" { (corner) }
                                @for column in columns { th scope="col" class="num" { (column) } }
                            }
                        }
                        tbody {
                            @for (name, cells) in rows {
                                tr {
                                    th scope="row" { (name) }
                                    @for cell in cells {
                                        @match cell {
                                            Some(cell) => { td class=(class(cell)) { (linked(cell, path(cell), None, &value(cell))) } }
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
        @if table.cells().next().is_some() { (legend(table)) }
    }
}

fn month_table(month: &Month, days: &CalendarCells, links: Option<DateLinks<'_>>) -> Markup {
    html! {
        table class="cal" {
            caption { (month.title) }
            thead { tr { @for (short, long) in WEEKDAYS { th scope="col" abbr=(long) { (short) } } } }
            tbody {
                @for week in &month.weeks {
                    tr {
                        @for date in week {
                            @match date.map(|date| (date, days.get(&date))) {
                                None => { td {} }
                                Some((date, None)) => { td class="off" { i { (date.day()) } } }
                                Some((date, Some(cell))) => { (day(date, cell, links)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn day(date: Date, cell: &PriceCell, links: Option<DateLinks<'_>>) -> Markup {
    let is_chosen = links.is_some_and(|links| links.chosen == Some(date));
    let path = links.map_or_else(|| path(cell), |links| (links.path)(date, cell));
    let class = class(cell) + if is_chosen { " chosen" } else { "" };
    let current = is_chosen.then_some("date");
    html! {
        td class=(class) {
            (linked(cell, path, current, &html! { i { (date.day()) } b { (value(cell)) } }))
        }
    }
}

/// The page of the search of a cell.
fn path(cell: &PriceCell) -> Option<String> {
    cell.item.map(links::of)
}

fn linked(
    cell: &PriceCell,
    path: Option<String>,
    current: Option<&str>,
    content: &Markup,
) -> Markup {
    html! {
        @match path {
            Some(path) => { a href=(path) title=(cell.words) aria-current=[current] { (content) } }
            None => { span class="no-item" title=(cell.words) { (content) } }
        }
    }
}

fn value(cell: &PriceCell) -> Markup {
    html! {
        @match cell.value {
            CellValue::Implausible(_) => { s { (cell.value.text()) } }
            value => { (value.text()) }
        }
        @if cell.is_incomplete { "~" }
        @if !cell.note.is_empty() { small { (cell.note) } }
    }
}

/// The classes of a cell: its colour or its mark, and what is true of it.
fn class(cell: &PriceCell) -> String {
    let mut class = match (cell.value, cell.shade) {
        (CellValue::Price(_), Shade::Fifth(fifth)) => format!("q{fifth}"),
        (CellValue::Price(_), Shade::Difference(step)) => difference_class(step).to_owned(),
        (CellValue::Price(_), Shade::New) => "busy".to_owned(),
        (value, _) => mark_class(value).to_owned(),
    };
    let marks = [
        (cell.is_best, " best"),
        (cell.is_incomplete, " part"),
        (cell.is_old, " old"),
    ];
    for (is_so, name) in marks {
        class.push_str(if is_so { name } else { "" });
    }
    class
}

const fn difference_class(step: i8) -> &'static str {
    match step {
        ..=-3 => "low3",
        -2 => "low2",
        -1 => "low1",
        0 => "even",
        1 => "high1",
        2 => "high2",
        3.. => "high3",
    }
}

/// The class of a cell without a plausible price.
const fn mark_class(value: CellValue) -> &'static str {
    match value {
        CellValue::Price(_) => "",
        CellValue::Implausible(_) => "implausible",
        CellValue::Empty => "none",
        CellValue::Incomplete => "degraded",
        CellValue::Failed => "failed",
        CellValue::Running => "busy",
        CellValue::Waiting => "wait",
        CellValue::NotSearched => "out",
    }
}

/// The colours and marks that the table has, in words.
fn legend(table: &PriceTable) -> Markup {
    let has_shade = |is: fn(Shade) -> bool| table.has(|cell| is(cell.shade));
    html! {
        ul class="legend" {
            @if has_shade(|shade| matches!(shade, Shade::Fifth(_))) {
                li { "Cheap " @for fifth in 1..=5 { span class={ "swatch q" (fifth) } {} } " expensive" }
            }
            @if has_shade(|shade| matches!(shade, Shade::Difference(_))) {
                li { "Cheaper " @for step in -3..=3 { span class={ "swatch " (difference_class(step)) } {} } " more expensive" }
            }
            @if has_shade(|shade| shade == Shade::New) { li { span class="swatch busy" {} " new" } }
            @if table.has(|cell| cell.is_best) { li { span class="swatch best" {} " cheapest" } }
            @if table.has(|cell| cell.is_old) { li { "pale: found a day ago or before" } }
            @for (mark, words) in table.doubts().map(Doubt::legend) { li { (mark) " " (words) } }
            @if table.has(|cell| !cell.note.is_empty()) && !table.notes.is_empty() { li { "Below each price: " (table.notes) } }
            @if table.has(|cell| cell.is_incomplete) { li { "~ the last search was incomplete" } }
            @if table.has(|cell| matches!(cell.value, CellValue::Implausible(_))) { li { s { "60" } " implausible" } }
            @for mark in table.marks() {
                li { span class={ "swatch " (mark_class(mark)) } { (mark.text()) } " " (mark.words(None)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_has_its_own_class() {
        let classes: std::collections::BTreeSet<_> =
            CellValue::MARKS.into_iter().map(mark_class).collect();
        assert_eq!(classes.len(), CellValue::MARKS.len());
    }
}
