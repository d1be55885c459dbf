//! `percentile_at_most` (monitors.md, rule 75).

use rust_decimal::Decimal;

use super::step::{RuleCondition, price_step};
use super::{
    AlertRule, FiringCause, LowestPrice, PastNeed, RuleScan, RuleStep, ScopeState, ScopeView,
    ValidationError,
};
use crate::contract::FieldValue as _;
use crate::contract::monitors::PercentileAtMost;

impl AlertRule for PercentileAtMost {
    fn step(&self, before: &ScopeState, view: &ScopeView) -> RuleStep {
        price_step(self, before, view, |_, price, _| condition(self, price))
    }

    fn past(&self) -> Option<PastNeed> {
        Some(PastNeed::Verdict)
    }

    fn conflict(&self, scan: &RuleScan<'_>) -> Option<ValidationError> {
        let rearm = self.rearm_percent_or_default();
        if self.percentile.get() + rearm.get() > 100.into() {
            let expected = "at most 100 together with `percentile`; otherwise the rule would fire once and never again";
            return Some(ValidationError::new(
                "rearm_percent",
                &rearm.to_value(),
                expected,
            ));
        }
        scan.currencies_conflict(self.scope_or_default())
    }
}

fn condition(rule: &PercentileAtMost, price: &LowestPrice) -> RuleCondition {
    let verdict = price.past.as_ref().and_then(|past| past.verdict.as_ref());
    // A percentile has one decimal; that of an `insufficient` verdict is null.
    let percentile = verdict.and_then(|verdict| Decimal::from_f64_retain(verdict.percentile?));
    let Some(percentile) = percentile.map(|percentile| percentile.round_dp(1)) else {
        return RuleCondition::insufficient();
    };
    let threshold = rule.percentile.get();
    let holds = percentile <= threshold;
    let high_enough = percentile >= threshold + rule.rearm_percent_or_default().get();
    RuleCondition {
        holds,
        rearms: price.is_firm && !holds && high_enough,
        cause: FiringCause {
            threshold: Some(threshold),
            strength: (threshold - percentile) / Decimal::ONE_HUNDRED,
            verdict: verdict.cloned(),
            ..FiringCause::default()
        },
        ..RuleCondition::default()
    }
}
