//! `verdict`: the provider's verdict on a flight's price.

use super::step::{RuleCondition, price_step};
use super::{AlertRule, RuleScan, RuleStep, ScopeState, ScopeView, ValidationError};
use crate::contract::monitors::{RuleType, VerdictLow};
use crate::contract::{Endpoint, FieldValue as _, Verdict};

impl AlertRule for VerdictLow {
    fn step(&self, before: &ScopeState, view: &ScopeView) -> RuleStep {
        price_step(self, before, view, |_, price, _| {
            let holds = price.verdict == Some(Verdict::Low);
            RuleCondition {
                holds,
                rearms: price.is_firm && price.verdict.is_some() && !holds,
                ..RuleCondition::default()
            }
        })
    }

    fn conflict(&self, scan: &RuleScan<'_>) -> Option<ValidationError> {
        let has_verdict = matches!(
            scan.endpoint,
            Endpoint::FlightsOneway | Endpoint::FlightsRoundtrip
        );
        let expected = "a flight scan; hotels have no verdict";
        (!has_verdict)
            .then(|| ValidationError::new("type", &RuleType::Verdict.to_value(), expected))
    }

    fn not_replayed(&self) -> Option<&'static str> {
        Some("stored days have prices, not the provider's verdicts")
    }
}
