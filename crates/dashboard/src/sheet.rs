//! Sheets as HTML.

use farescan_sheets::numbers::{amount_in, count, range};
use farescan_sheets::preview;
use farescan_sheets::sheet::{
    Column, Figure, Link, Notice, Row, Section, Sheet, Table, Tone, Value,
};
use maud::{Markup, html};

use super::charts::{Unit, sparkline};
use super::links;
use super::parts::{self, chip};
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

pub(super) fn figures(figures: &[Figure]) -> Markup {
    html! {
        dl class="stats" {
            @for figure in figures {
                div class="stat" {
                    dt { (figure.label) }
                    dd class="value" { (value(&figure.value)) @if let Some(unit) = &figure.unit { " " small { (unit) } } }
                    @for note in &figure.notes { dd class="note" { (value(note)) } }
                }
            }
        }
    }
}

/// A section as a card; `more` stands beside its title, `below` under its content.
pub(super) fn section(section: &Section, more: &Markup, below: &Markup) -> Markup {
    html! {
        section class="card" {
            div class="card-head" { h2 { (section.title) } (more) }
            @if let Some(sentence) = &section.sentence { p class="sub" { (sentence) } }
            (pairs(&section.figures))
            @for one in &section.notices { (notice(one, None)) }
            @if let Some(of) = &section.table { (table(of)) }
            (below)
        }
    }
}

/// Figures as a list of names with their values.
pub(super) fn pairs(figures: &[Figure]) -> Markup {
    html! {
        @if !figures.is_empty() {
            dl class="kv" {
                @for figure in figures {
                    dt { (figure.label) }
                    dd {
                        (value(&figure.value))
                        @if let Some(unit) = &figure.unit { " " (unit) }
                        @for note in &figure.notes { " " (value(note)) }
                    }
                }
            }
        }
    }
}

/// A table that scrolls sideways by itself.
pub(super) fn table(table: &Table) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(table.name) {
            table class="rows" {
                thead {
                    tr {
                        @for column in table.columns.iter().filter(|column| !column.is_detail) {
                            th scope="col" class=[column.is_number.then_some("num")] { (column.title) }
                        }
                    }
                }
                tbody { @for row in &table.rows { tr { (cells(&table.columns, row)) } } }
            }
        }
    }
}

/// The cells of a row, each with its details beneath. The first one leads to the row's resource.
fn cells(columns: &[Column], row: &Row) -> Markup {
    html! {
        @for (place, (column, cell)) in columns.iter().zip(&row.cells).enumerate().filter(|(_, (column, _))| !column.is_detail) {
            td class=[class(column, cell)] {
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
    html! {
        @if parts.is_empty() { span class="muted" { "–" } }
        @for (place, part) in parts.iter().enumerate() { @if place > 0 { " " } (value(part)) }
    }
}

/// A link; a name may be longer than its column.
pub(super) fn link(to: &Link, name: Option<&str>) -> Markup {
    let is_named = name.is_some() && matches!(to, Link::Monitor(_) | Link::Delivery(_));
    let is_outside = matches!(to, Link::Offer(_));
    html! {
        a href=(href(to)) class=[is_named.then_some("clip")] title=[name.filter(|_| is_named)]
            rel=[is_outside.then_some("noreferrer noopener external")] { (name.unwrap_or(to.kind())) }
    }
}

fn href(to: &Link) -> String {
    match to {
        Link::Scan(id) => parts::scan_path(*id),
        Link::Item(id) => parts::item_path(*id),
        Link::Monitor(id) => links::monitor(*id),
        Link::Alert(id) => links::alert(*id),
        Link::Delivery(id) => links::delivery(*id),
        Link::Route(from, to) => {
            let route = [("from_airport", from), ("to_airport", to)];
            parts::path_with("/prices/flights", route)
        }
        Link::Hotel(name) => parts::path_with("/prices/hotels", [("hotel_name", name)]),
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
        Value::Code(text) => html! { code { (text) } },
        Value::Count(number) => html! { (count(*number)) },
        Value::Money(price, currency) => html! { (amount_in(*price, currency.as_deref())) },
        Value::Time("", at) => parts::time(*at),
        Value::Time(what, at) => html! { (what) " " (parts::time(*at)) },
        Value::Zoned(at, zone) => parts::zoned(*at, zone),
        Value::Link(to, name) => link(to, name.as_deref()),
        Value::Implausible(item, price, text) => {
            html! { a href=(parts::item_path(*item)) { s { (price) } } " " (text) }
        }
        Value::Series(what, prices, currency) => sparkline(what, prices, Unit::Money(currency)),
        Value::Verdict(verdict) => parts::history_verdict(verdict),
        Value::Tag(tag) => {
            html! { a class="chip" href=(parts::with_query("/scans", "tag", tag)) { (tag) } }
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

/// The cost on each of the marketplace's plans.
pub(super) fn plans(plans: &[PlanCost]) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Cost on each plan" {
            table {
                thead {
                    tr {
                        th scope="col" { "Plan" } th scope="col" { "Fits" }
                        th scope="col" class="num" { "USD a month" } th scope="col" class="num" { "Requests left" }
                        th scope="col" class="num" { "Beyond the quota" } th scope="col" class="num" { "USD for them" }
                    }
                }
                tbody { @for plan in plans { (plan_row(plan)) } }
            }
        }
    }
}

fn plan_row(plan: &PlanCost) -> Markup {
    let (tone, fit) = preview::plan_fit(plan);
    html! {
        tr {
            td { (plan.plan.as_str()) @if plan.current { " " (chip(Tone::Info, "yours")) } }
            td { (chip(tone, fit)) }
            td class="num" { (plan.usd_per_month) }
            td class="num" { (count(plan.requests_left)) }
            td class="num" { (range(plan.overage_requests.least, plan.overage_requests.most)) }
            td class="num" {
                @match preview::overage_usd(plan) { Some(usd) => { (usd) } None => { span class="muted" { "stops" } } }
            }
        }
    }
}
