//! One loop for every question: the cheapest, one below a price, a run of a watch, a start from
//! nothing. They differ in their candidates, their most searches, and where they end.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use super::bounds::{CandidateBounds, Judged, spread};
use super::misses::{MissCount, SettingChoice};
use super::watch::{cheapest_again, explored, longest_unseen};
use super::{BestCandidate, PlannerDecision, SearchPlanner, SearchView};
use farescan_contract::scans::DecisionReason;

/// Searches in a row without anything better, after which a search ends; with one more for each day
/// of the stored prices' age.
const PATIENCE: usize = 8;
/// No search ends by its bounds or its patience with fewer.
const MIN_SEARCHES: usize = 2;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The cheapest candidate.
    Cheapest,
    /// One below this price.
    Below(Decimal),
}

/// Where a search ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// When the question is answered, and at the latest after `most` searches.
    Answered,
    /// When its `most` searches are spent: a run of a watch. So many of them explore.
    Spent {
        /// How many.
        explore: usize,
    },
}

/// A question with all that is fixed of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundSearch {
    /// What is asked.
    pub wanted: Wanted,
    /// How the bounds are made, and the misses that are declared.
    pub choice: SettingChoice,
    /// The most searches in all.
    pub most: usize,
    /// The candidates that are searched at a time; 0 counts as 1.
    pub batch: usize,
    /// Where it ends.
    pub ends: Ends,
}

/// How often such an answer is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    /// It is certain: one below was found, or every price was.
    None,
    /// Of so many such questions so many were missed.
    Counted(MissCount),
    /// The stored prices say nothing, and so many of all candidates were not searched.
    Unsearched {
        /// Candidates that were not searched.
        unsearched: usize,
        /// All candidates.
        of: usize,
    },
}

/// A decision with its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchDecision {
    /// Search these positions, in this order; empty: the end.
    pub search: Vec<usize>,
    /// Why.
    pub reason: DecisionReason,
    /// The best candidate so far, with its price.
    pub best: Option<(usize, Decimal)>,
    /// Of an end: `None` if nobody knows.
    pub risk: Option<Risk>,
}

/// What a decision is made from.
struct Facts<'a> {
    view: &'a SearchView<'a>,
    bounds: CandidateBounds,
    judged: Judged,
    best: Option<(usize, Decimal)>,
    searched: usize,
}

impl Risk {
    /// From 0 to 1.
    pub fn share(&self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Counted(count) => count.share(),
            Self::Unsearched { unsearched, of } => {
                let count = |count: usize| count.to_f64().unwrap_or(f64::MAX);
                count(*unsearched) / count(*of).max(1.0)
            }
        }
    }
}

impl BoundSearch {
    /// A run of a watch with `budget` requests, of which `most` searches may be made. Its answer is
    /// what it has searched, so no count is about it.
    pub fn of_watch(wanted: Wanted, budget: usize, most: usize) -> Self {
        Self {
            wanted,
            choice: SettingChoice::OF_WATCH,
            most,
            batch: (budget / 10).max(2),
            ends: Ends::Spent {
                explore: explored(budget),
            },
        }
    }

    /// The next searches, or the end, with the reason.
    pub fn explain(&self, view: &SearchView<'_>) -> SearchDecision {
        let facts = Facts {
            view,
            bounds: CandidateBounds::of(view, self.choice.setting),
            judged: Judged::of(view),
            best: view.best_found(),
            searched: view.candidates.len() - view.unsearched().count(),
        };
        let (reason, search) = match self.end(&facts) {
            Some(reason) => (reason, Vec::new()),
            None => self.next(&facts),
        };
        let is_end = search.is_empty();
        SearchDecision {
            risk: is_end.then(|| self.risk(&facts, reason)).flatten(),
            best: facts.best,
            search,
            reason,
        }
    }

    /// Why it ends; `None`: it does not yet.
    fn end(&self, facts: &Facts<'_>) -> Option<DecisionReason> {
        let is_answered = self.ends == Ends::Answered;
        if is_answered && self.is_below(facts.best) {
            return Some(DecisionReason::Found);
        }
        if facts.searched == facts.view.candidates.len() {
            return Some(DecisionReason::NothingLeft);
        }
        let answered = self.answered(facts).filter(|_| is_answered);
        answered
            .filter(|_| !facts.judged.says_nothing())
            .or((facts.searched >= self.most).then_some(DecisionReason::LimitReached))
    }

    fn is_below(&self, best: Option<(usize, Decimal)>) -> bool {
        match (self.wanted, best) {
            (Wanted::Below(price), Some((_, found))) => found < price,
            _ => false,
        }
    }

    /// Why the question is answered; `None`: it is not yet. Implausible prices answer nothing.
    fn answered(&self, facts: &Facts<'_>) -> Option<DecisionReason> {
        let Facts { view, bounds, .. } = facts;
        let is_open = |at: &usize| view.candidates[*at].is_unsearched();
        if self.choice.setting.searches_everything()
            || facts.searched < MIN_SEARCHES
            || bounds.grid().iter().any(is_open)
        {
            return None;
        }
        let to_beat = match self.wanted {
            Wanted::Cheapest => facts.best.map(|(_, price)| price),
            Wanted::Below(price) => Some(price),
        };
        let is_below = |bound: f64| {
            to_beat
                .and_then(|price| price.to_f64())
                .is_none_or(|price| bound < price)
        };
        if !bounds.lowest().is_some_and(is_below) {
            return Some(DecisionReason::NothingBelow);
        }
        let (position, _) = facts.best.filter(|_| self.choice.setting.is_patient)?;
        let found_in = view.candidates[position].turn;
        let is_later = |at: &usize| {
            let candidate = &view.candidates[*at];
            candidate.turn > found_in
                && candidate.found_price().is_some()
                && !bounds.grid().contains(at)
        };
        let later = (0..view.candidates.len()).filter(is_later).count();
        (later >= PATIENCE + bounds.age_in_days()).then_some(DecisionReason::NothingBetter)
    }

    /// What is searched next, and why: at least one.
    fn next(&self, facts: &Facts<'_>) -> (DecisionReason, Vec<usize>) {
        let Facts { view, bounds, .. } = facts;
        let left = self.most - facts.searched;
        let (at_once, explore) = match self.ends {
            Ends::Answered => (left, 0),
            // Each may cost two requests: a decision that could spend more than is left would pause
            // its run.
            Ends::Spent { explore } => (left.div_ceil(2), explore),
        };
        let batch = self.batch.max(1).min(at_once);
        let is_open = |at: &usize| view.candidates[*at].is_unsearched();
        let mut unseen = longest_unseen(view, explore);
        unseen.retain(is_open);
        let mut grid = bounds.grid().to_vec();
        grid.retain(is_open);
        let again = match self.ends {
            // What explores is not spent on it.
            Ends::Spent { .. } if left > unseen.len() => cheapest_again(view),
            _ => Vec::new(),
        };
        if !again.is_empty() {
            // As a rule the first one still is.
            (DecisionReason::CheapestAgain, first(again, 1))
        } else if !unseen.is_empty() {
            (DecisionReason::LongestUnseen, first(unseen, at_once))
        } else if !grid.is_empty() {
            (DecisionReason::EveryFourth, spread(&grid, at_once))
        } else {
            let reason = if facts.judged.says_nothing() {
                DecisionReason::NothingKnown
            } else {
                DecisionReason::LowestBound
            };
            (reason, first(bounds.order().to_vec(), batch))
        }
    }

    /// How often such an answer is wrong.
    fn risk(&self, facts: &Facts<'_>, reason: DecisionReason) -> Option<Risk> {
        let could_win = |bound: f64| {
            facts
                .best
                .and_then(|(_, best)| best.to_f64())
                .is_none_or(|best| bound < best)
        };
        // What was searched in vain may be cheaper than the best: no count is about that.
        let is_hidden = facts.bounds.in_vain().iter().copied().any(could_win);
        match reason {
            DecisionReason::Found => Some(Risk::None),
            _ if is_hidden => None,
            DecisionReason::NothingLeft => Some(Risk::None),
            _ if facts.judged.are_enough() && facts.judged.says_nothing() => {
                Some(Risk::Unsearched {
                    unsearched: facts.view.unsearched().count(),
                    of: facts.view.candidates.len(),
                })
            }
            // The counts are of searches that ended by the rule.
            DecisionReason::LimitReached => None,
            _ => self.choice.counted.map(Risk::Counted),
        }
    }
}

impl SearchPlanner for BoundSearch {
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision {
        let decision = self.explain(view);
        if decision.search.is_empty() {
            PlannerDecision::Stop(BestCandidate {
                position: decision.best.map(|(position, _)| position),
                risk: decision.risk.map(|risk| risk.share()),
            })
        } else {
            PlannerDecision::Search(decision.search)
        }
    }
}

fn first(mut positions: Vec<usize>, most: usize) -> Vec<usize> {
    positions.truncate(most);
    positions
}
