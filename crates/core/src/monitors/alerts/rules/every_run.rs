//! `every_run`: a report of each run.

use super::step::{comparable_price, with_price};
use super::{AlertRule, FiringCause, RuleStep, ScopeState, ScopeView};
use crate::contract::monitors::EveryRun;

impl AlertRule for EveryRun {
    fn step(&self, before: &ScopeState, view: &ScopeView) -> RuleStep {
        // Nothing is compared, so a price in another currency than before is reported too.
        let found = comparable_price(view.prices.iter(), &view.requested_currency, None);
        let (at, price) = found.unzip();
        RuleStep {
            after: with_price(before, price),
            fired: Some(FiringCause {
                price: at,
                ..FiringCause::default()
            }),
            not_comparable: false,
        }
    }

    fn not_replayed(&self) -> Option<&'static str> {
        Some("it fires in each run")
    }
}
