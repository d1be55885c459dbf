//! `stale`: consecutive runs without an answer. Runs without any search do not count.

use std::borrow::Cow;

use super::step::{RuleCondition, unchanged, with_price};
use super::{AlertRule, FiringCause, RuleMemory, RuleStep, RuleSubject, ScopeState, ScopeView};
use crate::contract::monitors::Stale;

impl AlertRule for Stale {
    fn step(&self, before: &ScopeState, view: &ScopeView) -> RuleStep {
        let Some(answered) = view.answered else {
            return unchanged(before);
        };
        let unanswered = if answered {
            0
        } else {
            before.memory.absent().saturating_add(1)
        };
        let mut after = with_price(before, view.prices.first());
        after.memory = RuleMemory::Absent(unanswered);
        let runs = u32::from(self.runs_or_default().get());
        let condition = RuleCondition {
            holds: unanswered >= runs,
            rearms: answered,
            cause: FiringCause {
                threshold: Some(runs.into()),
                ..FiringCause::default()
            },
            ..RuleCondition::default()
        };
        condition.step(before, after, None)
    }

    fn subject(&self) -> RuleSubject<'_> {
        RuleSubject::Answers
    }

    fn first_state(&self) -> ScopeState {
        ScopeState::new(true, RuleMemory::Absent(0))
    }

    /// In full: in a slot without a run only the key names the cell.
    fn state_key<'a>(&self, key: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(key)
    }

    fn not_replayed(&self) -> Option<&'static str> {
        Some("it is about searches, not about prices")
    }
}
