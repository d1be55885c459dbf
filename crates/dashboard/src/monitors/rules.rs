//! The alert rules of a monitor, with what each remembers.

use farescan_sheets::draft::plain;
use farescan_sheets::rule::sentence;
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::links;
use crate::parts::{self, Tone};
use farescan_core::contract::FieldValue as _;
use farescan_core::contract::monitors::{Monitor, Rule, RuleScope, RuleStanding};

/// The rules with their state.
pub(super) fn card(monitor: &Monitor) -> Markup {
    let standings = monitor.rule_standings.as_deref().unwrap_or_default();
    html! {
        section class="card" {
            div class="card-head" {
                h2 { "Alert rules" }
                @if !monitor.alerts.is_empty() { a href={ (links::monitor(monitor.id)) "/backtest" } { "What would they have reported?" } }
            }
            @if monitor.alerts.is_empty() {
                (parts::empty_state(&html! {
                    p { "No rules: this monitor only collects prices." }
                    p { "A rule tells when a price deserves an alert." }
                    p { a class="button" href={ (links::monitor(monitor.id)) "/edit" } { "Add a rule" } }
                }))
            } @else {
                div class="scroll" tabindex="0" role="region" aria-label="Rules" {
                    table class="rows" {
                        thead { tr { th scope="col" { "Rule" } th scope="col" { "State" } th scope="col" { "Remembers" } th scope="col" { "Last fired" } } }
                        tbody {
                            @for (place, rule) in monitor.alerts.iter().enumerate() {
                                (row(rule, standings.get(place)))
                            }
                        }
                    }
                }
                p class="hint" { "A rule fires once, then waits until its condition has become false by its margin (" code { "rearm_percent" } ")." }
            }
        }
    }
}

fn row(rule: &Rule, standing: Option<&RuleStanding>) -> Markup {
    let currency = standing.and_then(|standing| standing.currency.as_deref());
    let is_by_cell = standing.is_some_and(|standing| standing.scope == RuleScope::Cell);
    let extra: Map<String, Value> = match rule.to_value() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    html! {
        tr {
            td {
                (sentence(rule, currency))
                @if is_by_cell { " " (parts::chip(Tone::Plain, "each date or market alone")) }
                @if let Some(rearm) = extra.get("rearm_percent") { div class="sub" { "margin " (plain(rearm)) " %" } }
            }
            td { (armed(standing)) }
            td { @if let Some(lowest) = standing.and_then(|standing| standing.lowest.as_ref()) { "lowest " (parts::price_mark(lowest, currency)) } @else { span class="muted" { "–" } } }
            td { @if let Some(fired) = standing.and_then(|standing| standing.last_fired.as_ref()) { (parts::price_mark(fired, currency)) } @else { span class="muted" { "never" } } }
        }
    }
}

fn armed(standing: Option<&RuleStanding>) -> Markup {
    let Some(standing) = standing else {
        return parts::chip(Tone::Plain, "no run yet");
    };
    match (standing.armed, standing.cells.zip(standing.armed_cells)) {
        (None, _) => parts::chip(Tone::Plain, "no run yet"),
        (Some(true), Some((cells, armed))) => {
            parts::chip(Tone::Info, &format!("armed for {armed} of {cells}"))
        }
        (Some(true), None) => parts::chip(Tone::Info, "armed"),
        (Some(false), _) => parts::chip(Tone::Warn, "fired, not armed"),
    }
}
