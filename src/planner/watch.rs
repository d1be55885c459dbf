//! Watch: spend a budget on each run where the answer may have changed.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use jiff::civil::Date;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use super::verify::estimate::{Estimate, Target, count, stale};
use super::{
    BestCandidate, Candidate, ChangeRates, ExplainedDecision, ExplainedPlanner, PlannerDecision,
    SearchPlanner, SearchView,
};
use crate::contract::scans::DecisionReason;

/// A run has so many sentinels at most, and at most one for so many requests.
const SENTINELS: usize = 5;
const REQUESTS_PER_SENTINEL: usize = 3;
/// One request in so many explores.
const EXPLORE_ONE_IN: usize = 10;
/// A sentinel at this share of its stored price, or below it, has fallen.
const FALLEN: f64 = 0.9;
/// A run without a fall ends when a miss is as unlikely as this.
const ACCEPTED: f64 = 0.01;
/// A price of this multiple of the one before is not believed until it was seen twice.
const DOUBTED: Decimal = Decimal::TWO;

/// What a watch wants to know on each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchQuestion {
    /// Which candidate is the cheapest?
    Cheapest,
    /// Is one below this price? If so: which is the cheapest?
    Below(Decimal),
    /// What does each candidate cost?
    EveryDate,
}

/// One run of a watch. What is known before it are the stored prices with their ages, which earlier
/// runs have left.
///
/// **Sentinels** come first, but for `EveryDate`: the candidates are divided by date into at most
/// five parts, and of each the one with the lowest stored price is searched. If one of them has
/// fallen by 10 % or more, the run spends all of its budget; otherwise it ends as soon as the risk of
/// a miss is at most 1 %.
///
/// **Exploration**: a tenth of the budget goes to the candidates that were not tried for the longest
/// time, half of it as long as some were never tried, all of it if none was. So nothing that is
/// wrongly taken to be dear, or sold out, stays so for good.
///
/// **The rest** goes where the answer may have changed, a few at a time: for `Cheapest` and `Below`
/// as [`VerifyWinners`](super::VerifyWinners) estimates it; for `EveryDate` where a search is worth
/// the most days of a true price.
///
/// Sentinels and explored candidates depend only on what was known before the run, so that they are
/// the same for all of its decisions.
#[derive(Debug, Clone, Copy)]
pub struct Watch<'a> {
    /// What it wants to know.
    pub question: WatchQuestion,
    /// The requests of a run.
    pub budget: usize,
    /// The most searches of this run: fewer than `budget` when some have cost two requests.
    pub ceiling: usize,
    /// The date of the run: days to departure count from it.
    pub today: Date,
    /// How often prices change.
    pub rates: &'a ChangeRates,
}

/// Where the answer may have changed.
struct ChangeRisk {
    /// The estimated probability that the run has missed something; of `EveryDate` the expected
    /// share of candidates whose price has changed unseen.
    risk: f64,
    /// What can still be searched, the likeliest first.
    likeliest: Vec<usize>,
}

impl Watch<'_> {
    /// Of each part of the dates the candidate with the lowest stored price, of equal ones the
    /// first. None of `EveryDate`, which spends its budget anyway.
    fn sentinels(&self, view: &SearchView<'_>) -> Vec<usize> {
        if self.question == WatchQuestion::EveryDate {
            return Vec::new();
        }
        let count = SENTINELS.min(self.budget / REQUESTS_PER_SENTINEL);
        let mut by_date: Vec<_> = (0..view.candidates.len()).collect();
        by_date.sort_by_key(|position| view.candidates[*position].date);
        let size = by_date.len().div_ceil(count.max(1)).max(1);
        let cheapest = |part: &[usize]| {
            let stored = |position: &usize| stored_price(&view.candidates[*position]);
            let known = part.iter().filter_map(|at| Some((stored(at)?, *at)));
            known.min().map(|(_, position)| position)
        };
        by_date
            .chunks(size)
            .take(count)
            .filter_map(cheapest)
            .collect()
    }

    /// The candidates that were not tried for the longest time. Those that never were come first,
    /// spread over the positions.
    fn explored(&self, view: &SearchView<'_>, sentinels: &[usize]) -> Vec<usize> {
        let taken: BTreeSet<_> = sentinels.iter().collect();
        let others = (0..view.candidates.len()).filter(|position| !taken.contains(position));
        let age = |position: &usize| view.candidates[*position].tried_before();
        let (never, mut tried): (Vec<_>, Vec<_>) = others.partition(|at| age(at).is_none());
        let least = explored(self.budget);
        // Without any stored price there is nothing else to search.
        let most = if tried.is_empty() && sentinels.is_empty() {
            self.budget
        } else {
            self.budget / 2
        };
        let mut explored = spread(&never, most.max(least));
        tried.sort_by_key(|position| std::cmp::Reverse(age(position)));
        let left = least.saturating_sub(explored.len());
        explored.extend(tried.into_iter().take(left));
        explored
    }

    fn changes(&self, view: &SearchView<'_>) -> ChangeRisk {
        let target = match self.question {
            WatchQuestion::EveryDate => return self.stale(view),
            WatchQuestion::Cheapest => Target::Best,
            WatchQuestion::Below(price) => Target::Below(price.to_f64().unwrap_or(0.0)),
        };
        let estimate = Estimate::of(view, self.rates, self.today, target);
        ChangeRisk {
            risk: estimate.risk(),
            likeliest: estimate.winners(),
        }
    }

    fn stale(&self, view: &SearchView<'_>) -> ChangeRisk {
        let mut stale = stale(view, self.rates, self.today);
        let changed: f64 = stale.iter().map(|one| one.changed).sum();
        let all = count(view.candidates.len());
        stale.retain(|one| !one.unanswered);
        stale.sort_by(|one, other| other.worth.total_cmp(&one.worth));
        ChangeRisk {
            risk: (changed / all.max(1.0)).clamp(0.0, 1.0),
            likeliest: stale.into_iter().map(|one| one.position).collect(),
        }
    }

    /// How many are searched at a time once sentinels and exploration are over.
    fn batch(&self) -> usize {
        (self.budget / 10).max(2)
    }

    fn next(&self, view: &SearchView<'_>, changes: &ChangeRisk) -> (DecisionReason, Vec<usize>) {
        let sentinels = self.sentinels(view);
        let unsearched = |positions: &[usize]| -> Vec<_> {
            let all = positions.iter().copied();
            all.filter(|position| view.candidates[*position].is_unsearched())
                .collect()
        };
        let first = unsearched(&sentinels);
        if !first.is_empty() {
            return (DecisionReason::Sentinels, first);
        }
        let explored = unsearched(&self.explored(view, &sentinels));
        if !explored.is_empty() {
            return (DecisionReason::LongestUnseen, explored);
        }
        let has_fallen = sentinels
            .iter()
            .any(|position| has_fallen(&view.candidates[*position]));
        if !has_fallen && changes.risk <= ACCEPTED {
            return (DecisionReason::RiskAccepted, Vec::new());
        }
        let reason = match self.question {
            _ if has_fallen => DecisionReason::Burst,
            WatchQuestion::Cheapest => DecisionReason::LikeliestCheaper,
            WatchQuestion::Below(_) => DecisionReason::LikeliestBelow,
            WatchQuestion::EveryDate => DecisionReason::LikeliestChanged,
        };
        let batch = changes.likeliest.iter().copied().take(self.batch());
        (reason, batch.collect())
    }
}

impl SearchPlanner for Watch<'_> {
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision {
        self.explain(view).decision
    }
}

impl ExplainedPlanner for Watch<'_> {
    fn explain(&self, view: &SearchView<'_>) -> ExplainedDecision {
        let unsearched = view.unsearched().count();
        let left = self
            .ceiling
            .saturating_sub(view.candidates.len() - unsearched);
        let changes = self.changes(view);
        let (reason, mut next) = if unsearched == 0 {
            (DecisionReason::NothingLeft, Vec::new())
        } else if left == 0 {
            (DecisionReason::LimitReached, Vec::new())
        } else {
            self.next(view, &changes)
        };
        // Each may cost two requests: a decision that could spend more than is left would pause its scan.
        next.truncate(left.div_ceil(2));
        let risk = Some(changes.risk);
        let decision = if next.is_empty() {
            PlannerDecision::Stop(BestCandidate {
                position: view.cheapest_searched(),
                risk,
            })
        } else {
            PlannerDecision::Search(next)
        };
        ExplainedDecision {
            decision,
            reason,
            risk,
        }
    }
}

/// How many requests of a budget explore, at least.
#[must_use]
pub fn explored(budget: usize) -> usize {
    budget.div_ceil(EXPLORE_ONE_IN)
}

/// The price that a watch goes by, of the last two answers of a candidate that have a price or are
/// empty, the newest first; a partial one with a price counts. A price that has doubled, or is gone,
/// counts only once it was seen twice: an error of one answer would otherwise hide a cheap candidate
/// for as long as nobody looks.
#[must_use]
pub fn trusted<T: Copy>(
    answers: [Option<(Option<Decimal>, T)>; 2],
) -> Option<(Option<Decimal>, T)> {
    let [newest, before] = answers;
    let (price, _) = newest?;
    let doubted = before.filter(|(before, _)| match (price, before) {
        (None, Some(_)) => true,
        // No price is as high as a multiple that no decimal holds.
        (Some(price), Some(before)) => before
            .checked_mul(DOUBTED)
            .is_some_and(|doubled| price >= doubled),
        (_, None) => false,
    });
    doubted.or(newest)
}

fn stored_price(candidate: &Candidate) -> Option<Decimal> {
    candidate
        .stored?
        .price
        .filter(|price| *price > Decimal::ZERO)
}

/// Whether a sentinel was found at 90 % of its stored price or less.
fn has_fallen(candidate: &Candidate) -> bool {
    let found = candidate
        .searched
        .flatten()
        .and_then(|price| price.to_f64());
    let stored = stored_price(candidate).and_then(|price| price.to_f64());
    found
        .zip(stored)
        .is_some_and(|(found, stored)| found > 0.0 && found <= FALLEN * stored)
}

/// At most so many of the positions, at equal distances.
fn spread(positions: &[usize], most: usize) -> Vec<usize> {
    let count = most.min(positions.len());
    (0..count)
        .map(|nth| positions[nth * positions.len() / count])
        .collect()
}
