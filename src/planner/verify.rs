//! Verify the winners: search what can still be the cheapest, until the rest hardly can.

pub(super) mod estimate;
#[cfg(test)]
mod tests;

use jiff::civil::Date;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use self::estimate::{Estimate, Target};
use super::{
    BestCandidate, ChangeRates, ExplainedDecision, ExplainedPlanner, PlannerDecision,
    SearchPlanner, SearchView, TwoPhase,
};
use crate::contract::scans::DecisionReason;

/// Starts from stored prices with their ages, and searches in batches the candidates that are the
/// likeliest to be cheaper than the best searched one by more than 1 %. Stops when the estimated
/// probability that an unsearched one is does not exceed `max_risk`, and declares it. `Estimate`
/// says how it is estimated.
///
/// With a price to be below, it searches those that are the likeliest to be below that, and stops as
/// soon as one is.
///
/// Whatever `max_risk`, the batches are the same, and a higher one only stops earlier.
///
/// If the searched prices show that the stored ones say nothing, it searches on up to `ceiling` and
/// declares what is then true: each candidate is as likely as another to be the cheapest.
///
/// With few stored answers it does what `otherwise` does, up to `ceiling`, whatever `max_risk`, and
/// declares no risk: rates of change say nothing about prices that were never seen. To search each of
/// those costs more than two phases, and some of them in no order find less.
#[derive(Debug, Clone, Copy)]
pub struct VerifyWinners<'a> {
    /// The price of which one below is looked for; `None`: the cheapest is.
    pub below: Option<Decimal>,
    /// The highest acceptable risk, from 0 to 1. With 0 it searches all, or until one is below.
    pub max_risk: f64,
    /// The most searches for the question.
    pub ceiling: usize,
    /// The candidates that are searched at a time; 0 counts as 1. Fewer spare requests, more spare
    /// time.
    pub batch: usize,
    /// The date of the question: days to departure count from it.
    pub today: Date,
    /// How often prices change.
    pub rates: &'a ChangeRates,
    /// What is done with few stored prices.
    pub otherwise: TwoPhase,
}

impl VerifyWinners<'_> {
    /// Whether there is a stored price, and half of the candidates have a stored answer: fewer are
    /// enough where `otherwise` searches all. The same for all decisions of a question, because its
    /// stored answers are those of the first one.
    fn has_enough_stored(&self, view: &SearchView<'_>) -> bool {
        let stored = || {
            view.candidates
                .iter()
                .filter_map(|candidate| candidate.stored)
        };
        let mut positions = 0..view.candidates.len();
        let searches_all = positions.all(|position| self.otherwise.is_coarse(position));
        stored().any(|stored| stored.price.is_some())
            && (searches_all || 2 * stored().count() >= view.candidates.len())
    }

    /// Whether one was found below the price.
    fn is_found(&self, view: &SearchView<'_>) -> bool {
        let cheapest = view.cheapest_searched();
        let price = cheapest.and_then(|position| view.candidates[position].searched.flatten());
        price
            .zip(self.below)
            .is_some_and(|(price, below)| price < below)
    }

    /// `otherwise`, up to the ceiling.
    fn with_few_stored_prices(&self, view: &SearchView<'_>, left: usize) -> ExplainedDecision {
        let mut explained = self.otherwise.explain(view);
        match &mut explained.decision {
            PlannerDecision::Search(batch) if left > 0 => batch.truncate(left),
            PlannerDecision::Search(_) => {
                explained.reason = DecisionReason::LimitReached;
                explained.decision = PlannerDecision::Stop(BestCandidate {
                    position: view.cheapest_searched(),
                    risk: None,
                });
            }
            PlannerDecision::Stop(_) => {}
        }
        explained
    }
}

impl SearchPlanner for VerifyWinners<'_> {
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision {
        self.explain(view).decision
    }
}

impl ExplainedPlanner for VerifyWinners<'_> {
    fn explain(&self, view: &SearchView<'_>) -> ExplainedDecision {
        if self.is_found(view) {
            let risk = Some(0.0);
            let position = view.cheapest_searched();
            return ExplainedDecision {
                decision: PlannerDecision::Stop(BestCandidate { position, risk }),
                reason: DecisionReason::Found,
                risk,
            };
        }
        let searched = view.candidates.len() - view.unsearched().count();
        let left = self.ceiling.saturating_sub(searched);
        if !self.has_enough_stored(view) {
            return self.with_few_stored_prices(view, left);
        }
        let (target, likeliest) = match self.below {
            Some(below) => (
                Target::Below(below.to_f64().unwrap_or(0.0)),
                DecisionReason::LikeliestBelow,
            ),
            None => (Target::Best, DecisionReason::LikeliestCheaper),
        };
        let estimate = Estimate::of(view, self.rates, self.today, target);
        let risk = Some(estimate.risk());
        let reason = if searched == view.candidates.len() {
            DecisionReason::NothingLeft
        } else if searched > 0 && estimate.risk() <= self.max_risk {
            DecisionReason::RiskAccepted
        } else if left == 0 {
            DecisionReason::LimitReached
        } else {
            likeliest
        };
        let decision = if reason == likeliest {
            let mut winners = estimate.winners();
            winners.truncate(self.batch.max(1).min(left));
            PlannerDecision::Search(winners)
        } else {
            PlannerDecision::Stop(BestCandidate {
                position: view.cheapest_searched(),
                risk,
            })
        };
        ExplainedDecision {
            decision,
            reason,
            risk,
        }
    }
}
