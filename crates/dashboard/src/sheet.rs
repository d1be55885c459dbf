//! Sheets as HTML.

use farescan_sheets::numbers::{count, range};
use farescan_sheets::preview;
use farescan_sheets::sheet::{Figure, Notice, Sheet, Tone, Value};
use maud::{Markup, html};

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

/// Figures below each other.
pub(super) fn listed(figures: &[Figure]) -> Markup {
    html! {
        dl class="kv" {
            @for figure in figures {
                dt { (figure.label) }
                dd {
                    (value(&figure.value)) @if let Some(unit) = &figure.unit { " " (unit) }
                    @for note in &figure.notes { span class="muted" { ", " (value(note)) } }
                }
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
                    dd class="value" { (value(&figure.value)) @if let Some(unit) = &figure.unit { " " small { (unit) } } }
                    @for note in &figure.notes { dd class="note" { (value(note)) } }
                }
            }
        }
    }
}

fn value(value: &Value) -> Markup {
    match value {
        Value::Text(text) => html! { (text) },
        Value::Strong(text) => html! { b { (text) } },
        Value::Absent(word) => html! { span class="muted" { (word) } },
        Value::Time(what, at) => html! { (what) " " (parts::time(*at)) },
        Value::Price(item, price) => html! { a href=(parts::item_path(*item)) { (price) } },
        Value::Implausible(item, price, text) => {
            html! { a href=(parts::item_path(*item)) { s { (price) } } " " (text) }
        }
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
