//! `sold_out`: the opposite of `available`.

use super::available::{NO_ABSENCES, presence_step, unknown_presence};
use super::{AlertRule, RuleStep, ScopeState, ScopeView};
use crate::contract::monitors::SoldOut;

impl AlertRule for SoldOut {
    fn step(&self, before: &ScopeState, view: &ScopeView) -> RuleStep {
        presence_step(before, view, false)
    }

    fn first_state(&self) -> ScopeState {
        unknown_presence()
    }

    fn not_replayed(&self) -> Option<&'static str> {
        Some(NO_ABSENCES)
    }
}
