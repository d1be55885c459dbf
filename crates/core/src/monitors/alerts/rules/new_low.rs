//! `new_low` (monitors.md, rule 77).

use super::step::{RuleCondition, further_drop, last_fired_price, price_step};
use super::{
    AlertRule, FiringCause, LowestPrice, PastNeed, PricePoint, RuleMemory, RuleScan, RuleStep,
    ScopeState, ScopeView, ValidationError,
};
use crate::contract::monitors::NewLow;

impl AlertRule for NewLow {
    fn step(&self, before: &ScopeState, view: &ScopeView) -> RuleStep {
        price_step(self, before, view, |before, price, after| {
            condition(self, before, price, after)
        })
    }

    fn past(&self) -> Option<PastNeed> {
        Some(PastNeed::LowestOfDays(self.days.get()))
    }

    fn first_state(&self) -> ScopeState {
        ScopeState::new(true, RuleMemory::Lowest(None))
    }

    fn conflict(&self, scan: &RuleScan<'_>) -> Option<ValidationError> {
        scan.currencies_conflict(self.scope_or_default())
    }
}

fn condition(
    rule: &NewLow,
    before: &ScopeState,
    price: &LowestPrice,
    after: &mut ScopeState,
) -> RuleCondition {
    let past = price.past.as_ref();
    let lowest = past.and_then(|past| past.lowest.get(&rule.days.get()));
    let Some((lowest, at)) = lowest.copied() else {
        return RuleCondition::insufficient();
    };
    let lowest = PricePoint { price: lowest, at };
    let rearm = rule.rearm_percent_or_default().get();
    let condition =
        RuleCondition::for_price(price, lowest.price, price.amount < lowest.price, rearm);
    let lowest_now = condition.holds.then(|| price.mark());
    after.memory = RuleMemory::Lowest(Some(lowest_now.unwrap_or_else(|| lowest.clone())));
    after.last_fired = last_fired_price(before, Some(&lowest)).cloned();
    let last = after.last_fired.as_ref();
    let is_further = last.is_some_and(|last| further_drop(last, price, rearm).is_some());
    RuleCondition {
        fires_again: condition.holds && is_further,
        cause: FiringCause {
            reference: Some(lowest),
            ..condition.cause
        },
        ..condition
    }
}
