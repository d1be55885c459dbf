//! `back_in_stock` (monitors.md, rule 78).

use super::step::{RuleCondition, price_step};
use super::{AlertRule, FiringCause, PastNeed, PricePoint, RuleStep, ScopeState, ScopeView};
use crate::contract::monitors::BackInStock;

impl AlertRule for BackInStock {
    fn step(&self, before: &ScopeState, view: &ScopeView) -> RuleStep {
        let offered = ScopeView {
            prices: view.offers().cloned().collect(),
            requested_currency: view.requested_currency.clone(),
            ..ScopeView::default()
        };
        price_step(self, before, &offered, |before, price, _| {
            let Some(answer) = price.past.as_ref().and_then(|past| past.last_answer) else {
                return RuleCondition::insufficient();
            };
            // It has fired for an empty answer that is older than the price at which it last fired.
            let is_newer = |last: &PricePoint| answer.at > last.at;
            RuleCondition {
                fires_again: answer.is_empty && before.last_fired.as_ref().is_some_and(is_newer),
                cause: FiringCause {
                    last_answer: Some(answer),
                    ..FiringCause::default()
                },
                ..RuleCondition::of(answer.is_empty)
            }
        })
    }

    fn past(&self) -> Option<PastNeed> {
        Some(PastNeed::LastAnswer)
    }
}
