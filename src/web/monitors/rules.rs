//! The alert rules of a monitor, with what each remembers.

use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::{Map, Value};

use crate::contract::FieldValue as _;
use crate::contract::monitors::{Monitor, PriceMark, Rule, RuleScope, RuleStanding, RuleType};
use crate::web::parts::{self, BadgeTone};

/// A rule as a sentence: `Price below 200 USD`, if its currency is known.
pub(in crate::web) fn sentence(rule: &Rule, currency: Option<&str>) -> String {
    let fields = rule.to_value();
    let number = |name: &str| fields.get(name).map(plain).unwrap_or_default();
    match rule.rule_type() {
        RuleType::PriceBelow => {
            let text = number("amount");
            let shown = text.parse().map_or(text, |price| amount(price, currency));
            format!("Price below {shown}")
        }
        RuleType::DropPercent => format!(
            "Price at least {} % below the lowest of the last {} runs",
            number("percent"),
            fields.get("runs").map_or_else(|| "7".to_owned(), plain)
        ),
        RuleType::Verdict => "The provider calls the price low".to_owned(),
        RuleType::NewLow => "Lower than in every run before".to_owned(),
        RuleType::Available => "On sale again".to_owned(),
        RuleType::SoldOut => "No longer on sale".to_owned(),
        RuleType::ParityGapPercent => format!(
            "A market differs from {} by at least {} %",
            number("baseline").to_uppercase(),
            number("percent")
        ),
        RuleType::Stale => format!(
            "No answer for {} runs",
            fields.get("runs").map_or_else(|| "7".to_owned(), plain)
        ),
    }
}

/// The name of a type of rule.
pub(in crate::web) fn type_name(rule: RuleType) -> &'static str {
    match rule {
        RuleType::PriceBelow => "Price below",
        RuleType::DropPercent => "Price drop",
        RuleType::Verdict => "Low by the provider",
        RuleType::NewLow => "New low",
        RuleType::Available => "On sale again",
        RuleType::SoldOut => "Sold out",
        RuleType::ParityGapPercent => "Parity gap",
        RuleType::Stale => "No answers",
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The rules with their state.
pub(super) fn card(monitor: &Monitor) -> Markup {
    let standings = monitor.rule_standings.as_deref().unwrap_or_default();
    html! {
        section class="card" {
            h2 { "Alert rules" }
            @if monitor.alerts.is_empty() {
                (parts::empty_state(&html! {
                    p { "No rules: this monitor only collects prices." }
                    p { "Add rules with " code { "PATCH /v1/monitors/" (monitor.id) } ", or create a monitor with some." }
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
                @if is_by_cell { " " (parts::chip(BadgeTone::Plain, "each date or market alone")) }
                @if let Some(rearm) = extra.get("rearm_percent") { div class="sub" { "margin " (plain(rearm)) " %" } }
            }
            td { (armed(standing)) }
            td { @if let Some(lowest) = standing.and_then(|standing| standing.lowest.as_ref()) { "lowest " (mark(lowest, currency)) } @else { span class="muted" { "–" } } }
            td { @if let Some(fired) = standing.and_then(|standing| standing.last_fired.as_ref()) { (mark(fired, currency)) } @else { span class="muted" { "never" } } }
        }
    }
}

fn armed(standing: Option<&RuleStanding>) -> Markup {
    let Some(standing) = standing else {
        return parts::chip(BadgeTone::Plain, "no run yet");
    };
    match (standing.armed, standing.cells.zip(standing.armed_cells)) {
        (None, _) => parts::chip(BadgeTone::Plain, "no run yet"),
        (Some(true), Some((cells, armed))) => {
            parts::chip(BadgeTone::Info, &format!("armed for {armed} of {cells}"))
        }
        (Some(true), None) => parts::chip(BadgeTone::Info, "armed"),
        (Some(false), _) => parts::chip(BadgeTone::Warn, "fired, not armed"),
    }
}

/// A price with its time.
pub(in crate::web) fn mark(mark: &PriceMark, currency: Option<&str>) -> Markup {
    html! { (amount(mark.price, currency)) " " span class="muted" { (parts::time(mark.at)) } }
}

/// A price whose currency may be unknown.
pub(in crate::web) fn amount(price: Decimal, currency: Option<&str>) -> String {
    match currency {
        Some(currency) => parts::price(price, currency),
        None => parts::amount(price),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_rule_is_a_sentence_with_its_numbers() {
        for (rule, told) in [
            (
                json!({"type": "price_below", "amount": 1199.5}),
                "Price below 1,199.50 USD",
            ),
            (
                json!({"type": "drop_percent", "percent": 10, "runs": 3}),
                "Price at least 10 % below the lowest of the last 3 runs",
            ),
            (
                json!({"type": "parity_gap_percent", "percent": 5, "baseline": "us"}),
                "A market differs from US by at least 5 %",
            ),
            (json!({"type": "stale"}), "No answer for 7 runs"),
        ] {
            assert_eq!(
                sentence(&serde_json::from_value(rule).unwrap(), Some("USD")),
                told
            );
        }
    }
}
