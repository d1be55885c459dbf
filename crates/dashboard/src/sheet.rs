//! Sheets as HTML.

use farescan_sheets::numbers::{amount_in, count};
use farescan_sheets::sheet::{
    Column, Figure, Link, Notice, Section, Sheet, Table, TableRow, Tone, Value,
};
use farescan_sheets::{preview, prices};
use maud::{Markup, html};

use super::charts::{Unit, sparkline};
use super::links;
use super::parts::{self, chip};
use farescan_core::contract::history_verdict::HistoryVerdict;
use farescan_core::contract::scans::PlanCost;

/// The facts side by side, then the tags.
pub(super) fn facts(sheet: &Sheet) -> Markup {
    html! {
        @for (number, fact) in sheet.facts.iter().enumerate() {
            @if number > 0 { @if matches!(fact, Value::Tag(_)) { " " } @else { " · " } }
            (value(fact))
        }
    }
}

/// A part of a sheet as a card. `beside` stands at its title, `more` below.
pub(super) fn section(section: &Section, beside: &Markup, more: &Markup) -> Markup {
    html! {
        section class="card" {
            div class="card-head" { h2 { (section.title) } (beside) }
            (content(section))
            (more)
        }
    }
}

/// What stands below the title of a section.
pub(super) fn content(section: &Section) -> Markup {
    html! {
        @if let Some(sentence) = &section.sentence { p class="sub" { (sentence) } }
        @for held in &section.notices { (notice(held, None)) }
        (pairs(&section.figures))
        @if let Some(rows) = section.table.as_ref().filter(|table| !table.rows.is_empty()) { (table(rows)) }
    }
}

/// The first fact as a chip, and the others beside it.
pub(super) fn state(tone: Tone, sheet: &Sheet) -> Markup {
    html! {
        @for (number, fact) in sheet.facts.iter().enumerate() {
            @match fact {
                Value::Text(text) if number == 0 => { (chip(tone, text)) }
                other => { " " span class="muted" { (value(other)) } }
            }
        }
    }
}

pub(super) fn figures(figures: &[Figure]) -> Markup {
    html! {
        dl class="stats" {
            @for figure in figures {
                div class="stat" {
                    dt { (figure.label) }
                    dd class="value" { (figure_value(figure)) @if let Some(unit) = &figure.unit { " " small { (unit) } } }
                    @for note in &figure.notes { dd class="note" { (value(note)) } }
                }
            }
        }
    }
}

fn figure_value(figure: &Figure) -> Markup {
    let class = match figure.tone {
        Tone::Good => "good-text",
        Tone::Warn => "warn-text",
        Tone::Bad => "bad-text",
        Tone::Plain | Tone::Info => return value(&figure.value),
    };
    html! { span class=(class) { (value(&figure.value)) } }
}

/// Figures as a list of names with their values.
pub(super) fn pairs(figures: &[Figure]) -> Markup {
    html! {
        @if !figures.is_empty() {
            dl class="kv" {
                @for figure in figures {
                    dt { (figure.label) }
                    dd {
                        (figure_value(figure))
                        @if let Some(unit) = &figure.unit { " " (unit) }
                        @for note in &figure.notes { span class="muted" { ", " (value(note)) } }
                    }
                }
            }
        }
    }
}

/// A table that scrolls sideways by itself. On a phone each row is a card with the names of the columns; the
/// roles stay those of a table there, which browsers forget with its display.
pub(super) fn table(table: &Table) -> Markup {
    table_of(table, None::<fn(usize) -> Markup>)
}

/// The same with buttons in each row.
pub(super) fn table_with(table: &Table, buttons: impl Fn(usize) -> Markup) -> Markup {
    table_of(table, Some(buttons))
}

fn table_of(table: &Table, buttons: Option<impl Fn(usize) -> Markup>) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(table.name) {
            table class="rows cards" role="table" {
                thead role="rowgroup" {
                    tr role="row" {
                        @for column in table.columns.iter().filter(|column| !column.is_detail) {
                            th scope="col" role="columnheader" class=[column.is_number.then_some("num")] { (column.title) }
                        }
                        @if buttons.is_some() { th scope="col" role="columnheader" { span class="visually-hidden" { "Actions" } } }
                    }
                }
                tbody role="rowgroup" {
                    @for (place, row) in table.rows.iter().enumerate() {
                        tr role="row" {
                            (cells(&table.columns, row))
                            @if let Some(buttons) = &buttons { td role="cell" { div class="actions" { (buttons(place)) } } }
                        }
                    }
                }
            }
        }
    }
}

/// The cells of a row, each with its details beneath. The first one leads to the row's resource.
fn cells(columns: &[Column], row: &TableRow) -> Markup {
    html! {
        @for (place, (column, cell)) in columns.iter().zip(&row.cells).enumerate().filter(|(_, (column, _))| !column.is_detail) {
            td role="cell" data-label=(column.title) class=[class(column, cell)] {
                @match (&row.of, cell.as_slice()) {
                    (Some(of), [Value::Text(name), rest @ ..]) if place == 0 => {
                        (link(of, Some(name)))
                        @for part in rest { " " (value(part)) }
                    }
                    (Some(of), [first, rest @ ..]) if place == 0 => {
                        a href=(href(of)) { (value(first)) }
                        @for part in rest { " " (value(part)) }
                    }
                    (_, parts) => { (side_by_side(parts)) }
                }
                @for (_, detail) in columns.iter().zip(&row.cells).skip(place + 1).take_while(|(column, _)| column.is_detail) {
                    @if !detail.is_empty() { div class="sub" { (side_by_side(detail)) } }
                }
            }
        }
    }
}

fn class(column: &Column, cell: &[Value]) -> Option<&'static str> {
    let has_time = |value: &Value| matches!(value, Value::Time(..) | Value::Zoned(..));
    if column.is_number {
        Some("num")
    } else {
        cell.iter().any(has_time).then_some("nowrap")
    }
}

/// The values of a cell.
pub(super) fn side_by_side(parts: &[Value]) -> Markup {
    html! { @if parts.is_empty() { span class="muted" { "–" } } @for (place, part) in parts.iter().enumerate() { @if place > 0 { " " } (value(part)) } }
}

/// A link; a name may be longer than its column.
fn link(to: &Link, name: Option<&str>) -> Markup {
    let is_named = name.is_some() && !matches!(to, Link::Offer(_));
    let rel = matches!(to, Link::Offer(_)).then_some("noreferrer noopener external");
    html! {
        a class=[is_named.then_some("clip")] href=(href(to)) rel=[rel] title=[name.filter(|_| is_named)] { (name.unwrap_or(to.title())) }
    }
}

pub(super) fn href(to: &Link) -> String {
    match to {
        Link::Of(id) => links::of(*id),
        Link::Comparison(before, after) => format!("{}/compare/{after}", links::of(*before)),
        Link::Offer(url) => url.clone(),
    }
}

pub(super) fn value(value: &Value) -> Markup {
    match value {
        Value::Text(text) => html! { (text) },
        Value::Strong(text) => html! { b { (text) } },
        Value::Muted(text) => html! { span class="muted" { (text) } },
        Value::Absent(word) => html! { span class="muted" { (word) } },
        Value::Word(tone, word) => chip(*tone, word),
        Value::Count(number) => html! { (count(*number)) },
        Value::Money(price, currency) => html! { (amount_in(*price, currency.as_deref())) },
        Value::Time("", at) => parts::time(*at),
        Value::Time(what, at) => html! { (what) " " (parts::time(*at)) },
        Value::Zoned(at, zone) => parts::zoned(*at, zone),
        Value::Code(text) => html! { code { (text) } },
        Value::Series(of, prices, currency) => sparkline(of, prices, Unit::Money(currency)),
        Value::Progress(share, words) => html! {
            progress max="1" value=(share) aria-label="Progress" {}
            div class="sub nowrap" { (words) }
        },
        Value::Link(to, name) => link(to, name.as_deref()),
        Value::Implausible(item, price, text) => {
            html! { a href=(links::of(*item)) { s { (price) } } " " (text) }
        }
        Value::Verdict(verdict) => history_verdict(verdict),
        Value::Tag(tag) => {
            html! { a class="chip" href=(links::with_query("/scans", "tag", tag)) { (tag) } }
        }
    }
}

/// A notice, with buttons for what can be done about it.
pub(super) fn notice(notice: &Notice, buttons: Option<&Markup>) -> Markup {
    let tone = match notice.tone {
        Tone::Warn => " warn",
        Tone::Bad => " bad",
        Tone::Plain | Tone::Info | Tone::Good => "",
    };
    let action = if buttons.is_some() {
        " notice-action"
    } else {
        ""
    };
    html! {
        div class={ "notice" (tone) (action) } {
            p { b { (notice.lead) } " " (notice.text) }
            @if let Some(buttons) = buttons { div class="actions" { (buttons) } }
        }
    }
}

/// The cost on the caller's plan, and folded that on the marketplace's others.
pub(super) fn plans(plans: &[PlanCost]) -> Markup {
    let (own, others): (Vec<_>, Vec<_>) = plans.iter().partition(|plan| plan.current);
    let name = if own.is_empty() {
        "Cost on each plan"
    } else {
        "Cost on other plans"
    };
    html! {
        @if !own.is_empty() { (table(&preview::plans("Cost on your plan", &own))) }
        @if !others.is_empty() {
            details class="fold" {
                summary { (name) }
                (table(&preview::plans(name, &others)))
            }
        }
    }
}

/// A price among the caller's own past prices: the class, and the sentence that says it.
pub(super) fn history_verdict(verdict: &HistoryVerdict) -> Markup {
    html! { (value(&prices::class(verdict.class))) " " span class="muted" { (verdict.sentence) } }
}
