//! Alert rules as sentences, and as they are entered.

use farescan_contract::FieldValue as _;
use farescan_contract::monitors::{Rule, RuleType};
use serde_json::{Value, json};

use crate::draft::{number, plain};
use crate::numbers::amount_in;

/// A rule as a sentence: `Price below 200 USD`, if its currency is known.
pub fn sentence(rule: &Rule, currency: Option<&str>) -> String {
    let fields = rule.to_value();
    let number = |name: &str| fields.get(name).map(plain).unwrap_or_default();
    let condition = match rule.rule_type() {
        RuleType::PriceBelow => {
            let text = number("amount");
            let shown = text
                .parse()
                .map_or(text, |amount| amount_in(amount, currency));
            format!("Price below {shown}")
        }
        RuleType::DropPercent => format!(
            "Price at least {} % below the lowest of the last {} runs",
            number("percent"),
            fields.get("runs").map_or_else(|| "7".to_owned(), plain)
        ),
        RuleType::Verdict => "The provider calls the price low".to_owned(),
        RuleType::NewLow => format!(
            "Lower than every price of the same dates in the last {} days",
            number("days")
        ),
        RuleType::PercentileAtMost => format!(
            "Among the cheapest {} % of your past prices",
            number("percentile")
        ),
        RuleType::BackInStock => "Back in stock".to_owned(),
        RuleType::EveryRun => "A report of each run".to_owned(),
        RuleType::PlanEndsBeforeReset => "The plan ends before its reset".to_owned(),
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
    };
    if rule.confirms() {
        return format!("{condition}, confirmed by one more search");
    }
    condition
}

/// The field with the number that a rule is about: `amount` of `price_below`.
pub fn main_field(rule: RuleType) -> Option<&'static str> {
    let first = rule.fields().first()?.name;
    (!["scope", "rearm_percent", "confirm"].contains(&first)).then_some(first)
}

/// A rule with the text of its number, if it has one.
pub fn entered(rule: RuleType, text: &str) -> Value {
    let mut body = json!({"type": rule});
    if let Some(field) = main_field(rule) {
        body[field] = number(text);
    }
    body
}

/// The name of a type of rule.
pub fn type_name(rule: RuleType) -> &'static str {
    match rule {
        RuleType::PriceBelow => "Price below",
        RuleType::DropPercent => "Price drop",
        RuleType::Verdict => "Low by the provider",
        RuleType::NewLow => "New low",
        RuleType::Available => "On sale again",
        RuleType::SoldOut => "Sold out",
        RuleType::ParityGapPercent => "Parity gap",
        RuleType::Stale => "No answers",
        RuleType::PercentileAtMost => "Cheap by percentile",
        RuleType::BackInStock => "Back in stock",
        RuleType::EveryRun => "Each run",
        RuleType::PlanEndsBeforeReset => "Plan ends",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_field_of_a_rule_is_its_number() {
        for (rule, text, body) in [
            (
                RuleType::PriceBelow,
                "150.5",
                json!({"type": "price_below", "amount": 150.5}),
            ),
            (RuleType::Stale, "3", json!({"type": "stale", "runs": 3})),
            (
                RuleType::ParityGapPercent,
                "x",
                json!({"type": "parity_gap_percent", "percent": "x"}),
            ),
            (RuleType::SoldOut, "yes", json!({"type": "sold_out"})),
            (
                RuleType::PlanEndsBeforeReset,
                "yes",
                json!({"type": "plan_ends_before_reset"}),
            ),
        ] {
            assert_eq!(entered(rule, text), body);
        }
    }

    #[test]
    fn each_rule_is_a_sentence_with_its_numbers() {
        for (rule, sentence_of_it) in [
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
            (
                json!({"type": "new_low", "days": 30, "confirm": 1}),
                "Lower than every price of the same dates in the last 30 days, confirmed by one more search",
            ),
            (
                json!({"type": "percentile_at_most", "percentile": 12.5}),
                "Among the cheapest 12.5 % of your past prices",
            ),
        ] {
            assert_eq!(
                sentence(&serde_json::from_value(rule).unwrap(), Some("USD")),
                sentence_of_it
            );
        }
    }
}
