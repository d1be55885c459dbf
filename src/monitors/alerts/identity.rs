//! Which rule is which, however it is written: a rule that a change leaves as it is keeps what it remembers.

use rust_decimal::Decimal;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::contract::FieldValue as _;
use crate::contract::monitors::Rule;

/// The first half of a SHA-256 of the rule's canonical form.
pub(super) type RuleKey = [u8; 16];

/// Rules with their keys, in their order; of equal ones the first alone, for they would fire together for ever.
pub(super) fn distinct(rules: Vec<Rule>) -> Vec<(RuleKey, Rule)> {
    let mut distinct = Vec::<(RuleKey, Rule)>::new();
    for rule in rules {
        let key = key(&rule);
        if distinct.iter().all(|(held, _)| *held != key) {
            distinct.push((key, rule));
        }
    }
    distinct
}

/// Equal for rules that say the same: its type, then every field in the order of their names, with the default where it has none.
pub(super) fn key(rule: &Rule) -> RuleKey {
    let mut given = rule.to_value();
    // The one default that hangs on another field.
    match rule {
        Rule::ParityGapPercent(parity) => {
            given["rearm_percent"] = parity.rearm_percent_or_default().to_value()
        }
        Rule::PriceBelow(_)
        | Rule::DropPercent(_)
        | Rule::Verdict(_)
        | Rule::NewLow(_)
        | Rule::Available(_)
        | Rule::SoldOut(_)
        | Rule::Stale(_) => {}
    }
    let mut fields: Vec<_> = rule
        .rule_type()
        .fields()
        .iter()
        .filter_map(|field| {
            let value = given
                .get(field.name)
                .cloned()
                .or_else(|| field.default_value())?;
            Some((field.name, canonical(&value)))
        })
        .collect();
    fields.sort_unstable();
    let canonical = serde_json::json!([rule.rule_type().as_str(), fields]).to_string();
    let digest: [u8; 32] = Sha256::digest(canonical).into();
    let mut key = RuleKey::default();
    key.copy_from_slice(&digest[..16]);
    key
}

/// A number by its value: 200 and 200.0 are one. Fields of rules hold no objects.
fn canonical(value: &Value) -> String {
    let Value::Number(number) = value else {
        return value.to_string().to_lowercase();
    };
    let written = number.to_string();
    let decimal = written
        .parse::<Decimal>()
        .or_else(|_| Decimal::from_scientific(&written));
    decimal.map_or(written, |decimal| decimal.normalize().to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(value: Value) -> Rule {
        Rule::read(&value).unwrap()
    }

    #[test]
    fn rules_that_say_the_same_are_one_and_others_are_not() {
        let below = key(&rule(json!({"type": "price_below", "amount": 200})));
        for same in [
            json!({"amount": 200.0, "type": "price_below"}),
            json!({"type": "price_below", "amount": 2e2, "rearm_percent": 2}),
            json!({"type": "price_below", "scope": "scan", "rearm_percent": 2.00, "amount": 200}),
        ] {
            assert_eq!(key(&rule(same.clone())), below, "{same}");
        }
        for other in [
            json!({"type": "price_below", "amount": 200.01}),
            json!({"type": "price_below", "amount": 200, "scope": "cell"}),
            json!({"type": "price_below", "amount": 200, "rearm_percent": 5}),
            json!({"type": "new_low"}),
            json!({"type": "available"}),
            json!({"type": "sold_out"}),
        ] {
            assert_ne!(key(&rule(other.clone())), below, "{other}");
        }
        assert_ne!(
            key(&rule(json!({"type": "available"}))),
            key(&rule(json!({"type": "sold_out"})))
        );
        let parity = |percent: f64, rearm: Value| {
            key(&rule(
                json!({"type": "parity_gap_percent", "baseline": "us", "percent": percent, "rearm_percent": rearm}),
            ))
        };
        assert_eq!(
            parity(5.0, Value::Null),
            parity(5.0, json!(2)),
            "whatever it was kept under before half was"
        );
        assert_eq!(parity(3.0, Value::Null), parity(3.0, json!(1.5)));
        assert_ne!(parity(3.0, Value::Null), parity(3.0, json!(2)));
    }

    #[test]
    fn of_equal_rules_there_is_one() {
        let written = [
            json!({"type": "new_low"}),
            json!({"type": "available"}),
            json!({"type": "new_low", "rearm_percent": 2}),
        ];
        assert_eq!(distinct(written.into_iter().map(rule).collect()).len(), 2);
    }
}
