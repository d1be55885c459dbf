//! `drop_percent`: a drop below the lowest price of the last runs, and each further drop.

use super::step::{
    RuleCondition, drop_fraction, further_drop, last_fired_price, plus_percent, price_step,
};
use super::{
    AlertRule, FiringCause, LowestPrice, RuleMemory, RuleScan, RuleStep, ScopeState, ScopeView,
    ValidationError,
};
use crate::contract::FieldValue as _;
use crate::contract::monitors::DropPercent;

impl AlertRule for DropPercent {
    fn step(&self, before: &ScopeState, view: &ScopeView) -> RuleStep {
        price_step(self, before, view, |before, price, after| {
            condition(self, before, price, after)
        })
    }

    fn first_state(&self) -> ScopeState {
        ScopeState::new(true, RuleMemory::Window(Vec::new()))
    }

    fn conflict(&self, scan: &RuleScan<'_>) -> Option<ValidationError> {
        if self.percent.get() >= 100.into() {
            let expected = "a number below 100; no price drops by more";
            return Some(ValidationError::new(
                "percent",
                &self.percent.to_value(),
                expected,
            ));
        }
        scan.currencies_conflict(self.scope_or_default())
    }
}

fn condition(
    rule: &DropPercent,
    before: &ScopeState,
    price: &LowestPrice,
    after: &mut ScopeState,
) -> RuleCondition {
    let lowest = before.memory.lowest();
    if let RuleMemory::Window(window) = &mut after.memory
        && (price.is_firm || lowest.is_none_or(|lowest| price.amount < lowest.price))
    {
        window.push(price.mark());
        let runs = usize::from(rule.runs_or_default().get());
        window.drain(..window.len().saturating_sub(runs));
    }
    let percent = rule.percent.get();
    after.last_fired = last_fired_price(before, lowest).cloned();
    let Some((lowest, threshold)) =
        lowest.and_then(|lowest| Some((lowest, plus_percent(lowest.price, -percent)?)))
    else {
        return RuleCondition::default();
    };
    let rearm = rule.rearm_percent_or_default().get();
    let condition = RuleCondition::for_price(price, threshold, price.amount <= threshold, rearm);
    let last = after.last_fired.as_ref();
    let further = last.and_then(|last| Some((last, further_drop(last, price, percent)?)));
    // The alert shows the comparison by which the rule fires.
    let (reference, threshold) = further
        .filter(|_| !(before.armed && condition.holds))
        .unwrap_or((lowest, threshold));
    RuleCondition {
        fires_again: further.is_some(),
        cause: FiringCause {
            threshold: Some(threshold),
            reference: Some(reference.clone()),
            strength: drop_fraction(reference.price, price.amount),
            ..FiringCause::default()
        },
        ..condition
    }
}
