//! The identity of a rule, independent of how it is written: a rule that an update leaves unchanged
//! keeps its states.

use rust_decimal::Decimal;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::rules;
use crate::contract::monitors::Rule;

/// The first half of a SHA-256 of the rule's canonical form.
pub(super) type RuleKey = [u8; 16];

/// Rules with their keys, in order, without duplicates: equal rules would always fire together.
pub(super) fn distinct_rules(rules: Vec<Rule>) -> Vec<(RuleKey, Rule)> {
    let mut distinct = Vec::<(RuleKey, Rule)>::new();
    for rule in rules {
        let key = rule_key(&rule);
        if distinct.iter().all(|(other, _)| *other != key) {
            distinct.push((key, rule));
        }
    }
    distinct
}

/// A field that is younger than stored states: left out where it has its default.
const CONFIRM: &str = "confirm";

/// The key of a rule: its type and all fields in the order of their names, with defaults filled in.
pub(super) fn rule_key(rule: &Rule) -> RuleKey {
    let mut fields: Vec<_> = rule
        .rule_type()
        .fields()
        .iter()
        .filter(|field| field.name != CONFIRM || rule.confirms())
        .filter_map(|field| {
            let value = rule
                .value(field.name)
                .or_else(|| rules::of(rule).dependent_default(field.name))?;
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

/// The canonical form of a value: 200 and 200.0 are equal. Rules have no object fields.
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
    use crate::contract::FieldValue as _;

    fn rule(value: Value) -> Rule {
        Rule::read(&value).unwrap()
    }

    #[test]
    fn equivalent_rules_have_equal_keys() {
        let below = rule_key(&rule(json!({"type": "price_below", "amount": 200})));
        for same in [
            json!({"amount": 200.0, "type": "price_below"}),
            json!({"type": "price_below", "amount": 2e2, "rearm_percent": 2}),
            json!({"type": "price_below", "scope": "scan", "rearm_percent": 2.00, "amount": 200}),
            json!({"type": "price_below", "amount": 200, "confirm": 0}),
        ] {
            assert_eq!(rule_key(&rule(same.clone())), below, "{same}");
        }
        for other in [
            json!({"type": "price_below", "amount": 200.01}),
            json!({"type": "price_below", "amount": 200, "scope": "cell"}),
            json!({"type": "price_below", "amount": 200, "rearm_percent": 5}),
            json!({"type": "price_below", "amount": 200, "confirm": 1}),
            json!({"type": "new_low", "days": 30}),
            json!({"type": "available"}),
            json!({"type": "sold_out"}),
        ] {
            assert_ne!(rule_key(&rule(other.clone())), below, "{other}");
        }
        assert_ne!(
            rule_key(&rule(json!({"type": "available"}))),
            rule_key(&rule(json!({"type": "sold_out"})))
        );
        let parity = |percent: f64, rearm: Value| {
            rule_key(&rule(
                json!({"type": "parity_gap_percent", "baseline": "us", "percent": percent, "rearm_percent": rearm}),
            ))
        };
        assert_eq!(
            parity(5.0, Value::Null),
            parity(5.0, json!(2)),
            "2 is the default of percent 5"
        );
        assert_eq!(parity(3.0, Value::Null), parity(3.0, json!(1.5)));
        assert_ne!(parity(3.0, Value::Null), parity(3.0, json!(2)));
    }

    /// States of monitors are found by it: it must never change.
    #[test]
    fn the_key_of_a_rule_without_confirm_is_that_of_stored_states() {
        let fields = [
            ("amount", "200"),
            ("rearm_percent", "2"),
            ("scope", "\"scan\""),
        ];
        let canonical = json!(["price_below", fields]).to_string();
        let digest: [u8; 32] = Sha256::digest(canonical).into();
        let rule = rule(json!({"type": "price_below", "amount": 200}));
        assert_eq!(rule_key(&rule)[..], digest[..16]);
    }

    #[test]
    fn duplicate_rules_are_dropped() {
        let written = [
            json!({"type": "new_low", "days": 30}),
            json!({"type": "available"}),
            json!({"type": "new_low", "days": 30, "rearm_percent": 2}),
        ];
        assert_eq!(
            distinct_rules(written.into_iter().map(rule).collect()).len(),
            2
        );
    }
}
