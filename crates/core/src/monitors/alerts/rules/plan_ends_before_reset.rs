//! `plan_ends_before_reset`: the forecast of the caller's plan.

use super::step::{RuleCondition, unchanged};
use super::{AlertRule, RuleStep, RuleSubject, ScopeState, ScopeView};
use crate::contract::monitors::PlanEndsBeforeReset;

impl AlertRule for PlanEndsBeforeReset {
    fn step(&self, before: &ScopeState, view: &ScopeView) -> RuleStep {
        let Some(plan_ends) = view.plan_ends else {
            return unchanged(before);
        };
        RuleCondition::of(plan_ends).step(before, before.clone(), None)
    }

    fn subject(&self) -> RuleSubject<'_> {
        RuleSubject::Plan
    }

    fn not_replayed(&self) -> Option<&'static str> {
        Some("it is about the plan, not about prices")
    }
}
