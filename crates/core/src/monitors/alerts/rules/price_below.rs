//! `price_below` (monitors.md, rule 32).

use super::step::{RuleCondition, price_step};
use super::{AlertRule, RuleScan, RuleStep, ScopeState, ScopeView, ValidationError};
use crate::contract::FieldValue as _;
use crate::contract::monitors::PriceBelow;

impl AlertRule for PriceBelow {
    fn step(&self, before: &ScopeState, view: &ScopeView) -> RuleStep {
        let (amount, rearm) = (self.amount.get(), self.rearm_percent_or_default().get());
        price_step(self, before, view, |_, price, _| {
            RuleCondition::for_price(price, amount, price.amount < amount, rearm)
        })
    }

    fn has_amount(&self) -> bool {
        true
    }

    fn conflict(&self, scan: &RuleScan<'_>) -> Option<ValidationError> {
        let expected = "no `price_below` rule on a scan in several currencies";
        scan.has_currencies()
            .then(|| ValidationError::new("amount", &self.amount.to_value(), expected))
    }
}
