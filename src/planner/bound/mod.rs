//! Search in the order of bounds: the lowest price that each candidate may plausibly have.
//!
//! One loop answers every question. `find`, `below`, a run of a watch, a start from nothing and a
//! partly known calendar differ in their candidates, their most searches and where they end. The
//! decision is a pure function of the view, so that it can be made again after a crash.
//!
//! No scan uses it yet: `script/study` plays it beside the planners that scans use
//! (docs/laboratory.md, bounds).
//!
//! Here: order, end and guard. In `bounds`: the bound of a candidate. In `misses`: how often a
//! setting has missed the cheapest, and which one a question gets.

mod age;
mod bounds;
mod misses;
mod replay;
#[cfg(test)]
mod tests;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use self::bounds::{CandidateBounds, spread, within_slack};
pub use self::misses::{Known, MIN_QUESTIONS, MissCount, Misses, SETTINGS, Setting, SettingChoice};
pub use self::replay::{Replayed, replay};
use super::{BestCandidate, PlannerDecision, SearchPlanner, SearchView};

/// Searches in a row without anything better, after which a search ends; with one more for each day
/// of the stored prices' age.
const PATIENCE: usize = 8;
/// No search ends by its bounds or its patience with fewer.
const MIN_SEARCHES: usize = 2;
/// The stored prices say nothing if at most one in so many of the found ones is within the slack. In
/// real calendars the share is 78 % to 95 % in the middle and below 60 % in one of twenty questions;
/// without structure it is 0 to 24 %, and above 44 % in one of twenty.
const GUARD_ONE_IN: usize = 2;

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
    /// When its `most` searches are spent: a run of a watch. So many of them go to the candidates
    /// that were not tried for the longest time.
    Spent {
        /// How many explore.
        explore: usize,
    },
}

/// A question with all that is fixed of it: stored before the first decision.
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

/// Why a decision was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundReason {
    /// Search every fourth date where none near it is known.
    EveryFourth,
    /// Search those that were not tried for the longest time.
    LongestUnseen,
    /// Search those with the lowest bounds.
    LowestBound,
    /// Search on: what was found shows that the stored prices say nothing.
    NothingKnown,
    /// End: one is below the price.
    Found,
    /// End: no bound is below the best price, or below the asked one.
    NothingBelow,
    /// End: so many searches in a row found nothing better.
    NothingBetter,
    /// End: the most searches are spent.
    LimitReached,
    /// End: everything was searched.
    NothingLeft,
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
pub struct BoundDecision {
    /// Search these positions, in this order; empty: the end.
    pub search: Vec<usize>,
    /// Why.
    pub reason: BoundReason,
    /// The best candidate so far.
    pub best: Option<usize>,
    /// Of an end: `None` if nobody knows.
    pub risk: Option<Risk>,
}

impl Risk {
    /// From 0 to 1.
    #[must_use]
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
    /// The next searches, or the end.
    #[must_use]
    pub fn decide_bound(&self, view: &SearchView<'_>) -> BoundDecision {
        let bounds = CandidateBounds::of(view, self.choice.setting);
        let best = view.best_found();
        let unsearched: Vec<_> = view.unsearched().collect();
        let searched = view.candidates.len() - unsearched.len();
        let left = self.most.saturating_sub(searched);
        let open = |positions: Vec<usize>| -> Vec<usize> {
            let open = positions.into_iter();
            open.filter(|at| view.candidates[*at].is_unsearched())
                .collect()
        };
        let is_found = self.is_below(best.map(|(_, price)| price)) && self.ends == Ends::Answered;
        let says_nothing = says_nothing(view);
        let answered = self.answered(view, &bounds, best, searched);
        let (reason, search) = if is_found {
            (BoundReason::Found, Vec::new())
        } else if unsearched.is_empty() {
            (BoundReason::NothingLeft, Vec::new())
        } else if let Some(reason) = answered.filter(|_| !says_nothing) {
            (reason, Vec::new())
        } else if left == 0 {
            (BoundReason::LimitReached, Vec::new())
        } else {
            let grid = open(bounds.every_fourth().to_vec());
            let unseen = open(self.unseen(view));
            if !grid.is_empty() {
                (BoundReason::EveryFourth, spread(&grid, self.at_once(left)))
            } else if !unseen.is_empty() {
                (
                    BoundReason::LongestUnseen,
                    first(unseen, self.at_once(left)),
                )
            } else {
                let reason = if says_nothing {
                    BoundReason::NothingKnown
                } else {
                    BoundReason::LowestBound
                };
                let batch = self.at_once(left).min(self.batch.max(1));
                (reason, first(bounds.order().to_vec(), batch))
            }
        };
        BoundDecision {
            risk: search
                .is_empty()
                .then(|| self.risk(view, &bounds, reason))
                .flatten(),
            best: best.map(|(position, _)| position),
            search,
            reason,
        }
    }

    fn is_below(&self, found: Option<Decimal>) -> bool {
        match (self.wanted, found) {
            (Wanted::Below(price), Some(found)) => found < price,
            _ => false,
        }
    }

    /// Why the question is answered; `None`: it is not yet. Implausible prices answer nothing.
    fn answered(
        &self,
        view: &SearchView<'_>,
        bounds: &CandidateBounds,
        best: Option<(usize, Decimal)>,
        searched: usize,
    ) -> Option<BoundReason> {
        let is_open = |at: &usize| view.candidates[*at].is_unsearched();
        if self.ends != Ends::Answered
            || self.choice.setting.searches_everything()
            || searched < MIN_SEARCHES
            || bounds.every_fourth().iter().any(is_open)
        {
            return None;
        }
        let best_price = best.map(|(_, price)| price);
        let to_beat = match self.wanted {
            Wanted::Cheapest => best_price,
            Wanted::Below(price) => Some(price),
        };
        let is_below = |bound: f64| {
            to_beat
                .and_then(|price| price.to_f64())
                .is_none_or(|price| bound < price)
        };
        if !bounds.lowest().is_some_and(is_below) {
            return Some(BoundReason::NothingBelow);
        }
        let (position, _) = best.filter(|_| self.choice.setting.is_patient)?;
        let found_in = view.candidates[position].turn;
        let is_later = |at: &usize| {
            let candidate = &view.candidates[*at];
            candidate.turn > found_in
                && candidate.found_price().is_some()
                && !bounds.every_fourth().contains(at)
        };
        let later = (0..view.candidates.len()).filter(is_later).count();
        (later >= PATIENCE + bounds.age_in_days()).then_some(BoundReason::NothingBetter)
    }

    /// What a run of a watch explores: the same for all of its decisions.
    fn unseen(&self, view: &SearchView<'_>) -> Vec<usize> {
        let Ends::Spent { explore } = self.ends else {
            return Vec::new();
        };
        let age = |at: &usize| view.candidates[*at].tried_before();
        let (never, mut tried): (Vec<_>, Vec<_>) =
            (0..view.candidates.len()).partition(|at| age(at).is_none());
        tried.sort_by_key(|at| std::cmp::Reverse(age(at)));
        let mut unseen = spread(&never, explore);
        unseen.extend(tried);
        unseen.truncate(explore);
        unseen
    }

    /// How many may be searched at once. A search of a watch may cost two requests: a decision that
    /// could spend more than is left would pause its run.
    fn at_once(&self, left: usize) -> usize {
        match self.ends {
            Ends::Answered => left,
            Ends::Spent { .. } => left.div_ceil(2),
        }
    }

    fn risk(
        &self,
        view: &SearchView<'_>,
        bounds: &CandidateBounds,
        reason: BoundReason,
    ) -> Option<Risk> {
        let best = view.best_found().map(|(_, price)| price);
        let could_win = |bound: f64| {
            best.and_then(|best| best.to_f64())
                .is_none_or(|best| bound < best)
        };
        // What was searched in vain may be cheaper than the best: no count is about that.
        let is_hidden = bounds.in_vain().iter().copied().any(could_win);
        match reason {
            BoundReason::Found => Some(Risk::None),
            _ if is_hidden => None,
            BoundReason::NothingLeft => Some(Risk::None),
            _ if says_nothing(view) => Some(Risk::Unsearched {
                unsearched: view.unsearched().count(),
                of: view.candidates.len(),
            }),
            // The counts are of searches that ended by the rule, or of runs that spent all.
            BoundReason::LimitReached if self.ends == Ends::Answered => None,
            _ => self.choice.counted.map(Risk::Counted),
        }
    }
}

impl SearchPlanner for BoundSearch {
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision {
        let decision = self.decide_bound(view);
        if decision.search.is_empty() {
            PlannerDecision::Stop(BestCandidate {
                position: decision.best,
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

/// The guard: whether what was found shows that the stored prices say nothing. Before five searches
/// that is no judgement yet, only a reason to search on.
fn says_nothing(view: &SearchView<'_>) -> bool {
    let judged: Vec<_> = view.candidates.iter().filter_map(within_slack).collect();
    let within = judged.iter().filter(|is_within| **is_within).count();
    judged.len() >= MIN_SEARCHES && within * GUARD_ONE_IN <= judged.len()
}
