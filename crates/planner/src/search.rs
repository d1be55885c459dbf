//! One loop for every question: the cheapest, one below a price, a run of a watch, a start from
//! nothing. They differ in their candidates, their most searches, and where they end.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use crate::bounds::{CandidateBounds, guard, spread};
use crate::candidate::age_in_days;
use crate::misses::EVERYTHING;
use crate::watch::{cheapest_again, longest_unseen};
use crate::{Candidate, MissCount, Setting, SettingChoice, best_found, unsearched};
use farescan_contract::scans::DecisionReason;

/// Searches in a row without anything better, after which a search ends; with one more for each day
/// of the stored prices' age.
const PATIENCE: usize = 8;
/// No search ends by its bounds or its patience with fewer, and no decision searches fewer unless it
/// may not.
const MIN_SEARCHES: usize = 2;
/// The decisions of a question are about so many at most: with 90 candidates two are searched at a
/// time.
const DECISIONS: usize = 45;
/// The decisions of a run of a watch, as far as they go by bounds.
const DECISIONS_OF_WATCH: usize = 10;
/// The bounds of a watch.
const OF_WATCH: Setting = Setting {
    percent_a_day: 3,
    is_patient: false,
};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The cheapest candidate.
    Cheapest,
    /// One below this price.
    Below(Decimal),
}

/// Where a search ends, at the latest after its `most` searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// When the question is answered, by these bounds.
    Answered(SettingChoice),
    /// When a run of a watch has spent its requests. Its answer is what it has searched, so no count
    /// is about it.
    Spent {
        /// How many.
        budget: usize,
    },
}

/// A question with all that is fixed of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundSearch {
    /// What is asked.
    pub wanted: Wanted,
    /// Where it ends.
    pub ends: Ends,
    /// The most searches in all.
    pub most: usize,
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
    /// Of an end: how often such an answer is wrong, from 0 to 1; `None` if nobody knows.
    pub risk: Option<f64>,
}

/// A way to choose searches.
pub trait SearchPlanner {
    /// The next searches, or the end. A pure function of what is known.
    fn decide(&self, candidates: &[Candidate]) -> SearchDecision;
}

/// What a decision is made from.
struct Facts<'a> {
    candidates: &'a [Candidate],
    bounds: CandidateBounds,
    /// The stored prices say nothing.
    says_nothing: bool,
    /// … and that may be declared.
    is_declared: bool,
    best: Option<(usize, Decimal)>,
    searched: usize,
}

impl SearchPlanner for BoundSearch {
    fn decide(&self, candidates: &[Candidate]) -> SearchDecision {
        let setting = match self.ends {
            Ends::Answered(choice) => choice.setting,
            Ends::Spent { .. } => OF_WATCH,
        };
        let (says_nothing, is_declared) = guard(candidates);
        let facts = Facts {
            candidates,
            bounds: CandidateBounds::of(candidates, setting),
            says_nothing,
            is_declared,
            best: best_found(candidates),
            searched: candidates.len() - unsearched(candidates).count(),
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
}

impl BoundSearch {
    /// Why it ends; `None`: it does not yet.
    fn end(&self, facts: &Facts<'_>) -> Option<DecisionReason> {
        let of_question = match self.ends {
            Ends::Answered(choice) => self.answered(facts, choice.setting),
            Ends::Spent { .. } => None,
        };
        let is_all = facts.searched == facts.candidates.len();
        match of_question {
            Some(DecisionReason::Found) => of_question,
            _ if is_all => Some(DecisionReason::NothingLeft),
            Some(_) if !facts.says_nothing => of_question,
            _ => (facts.searched >= self.most).then_some(DecisionReason::LimitReached),
        }
    }

    /// Why the question is answered; `None`: it is not yet.
    fn answered(&self, facts: &Facts<'_>, setting: Setting) -> Option<DecisionReason> {
        let Facts {
            candidates, bounds, ..
        } = facts;
        let best = facts.best.map(|(_, price)| price);
        let to_beat = match self.wanted {
            Wanted::Cheapest => best,
            Wanted::Below(price) if best.is_some_and(|best| best < price) => {
                return Some(DecisionReason::Found);
            }
            Wanted::Below(price) => Some(price),
        };
        if setting == EVERYTHING
            || facts.searched < MIN_SEARCHES
            || bounds.grid.iter().any(|at| candidates[*at].is_unsearched())
        {
            return None;
        }
        if bounds.lowest.is_none_or(|bound| !is_below(bound, to_beat)) {
            return Some(DecisionReason::NothingBelow);
        }
        let (position, _) = facts.best.filter(|_| setting.is_patient)?;
        let found_in = candidates[position].turn;
        let is_later = |at: &usize| {
            let candidate = &candidates[*at];
            let is_found = candidate.searched.flatten().is_some();
            candidate.turn > found_in && is_found && !bounds.grid.contains(at)
        };
        let later = (0..candidates.len()).filter(is_later).count();
        (later >= PATIENCE + age_in_days(candidates)).then_some(DecisionReason::NothingBetter)
    }

    /// What is searched next, and why: at least one.
    fn next(&self, facts: &Facts<'_>) -> (DecisionReason, Vec<usize>) {
        let Facts {
            candidates, bounds, ..
        } = facts;
        let left = self.most - facts.searched;
        let (at_once, batch, unseen) = match self.ends {
            Ends::Answered(_) => (left, candidates.len() / DECISIONS, Vec::new()),
            // Each may cost two requests: a decision that could spend more than is left would pause
            // its run.
            Ends::Spent { budget } => (
                left.div_ceil(2),
                budget / DECISIONS_OF_WATCH,
                longest_unseen(candidates, budget),
            ),
        };
        // What explores is not spent on it.
        let verifies = matches!(self.ends, Ends::Spent { .. }) && left > unseen.len();
        let again = cheapest_again(candidates).filter(|_| verifies);
        let mut grid = bounds.grid.clone();
        grid.retain(|at| candidates[*at].is_unsearched());
        let first = |positions: &[usize], most| positions.iter().copied().take(most).collect();
        if let Some(position) = again {
            // As a rule the first one still is.
            (DecisionReason::CheapestAgain, vec![position])
        } else if !unseen.is_empty() {
            (DecisionReason::LongestUnseen, first(&unseen, at_once))
        } else if !grid.is_empty() {
            let mut search = spread(&grid, at_once);
            // Across the lines, so that an early price of each is seen.
            search.sort_by_key(|at| (candidates[*at].date, candidates[*at].line));
            (DecisionReason::EveryFourth, search)
        } else {
            let reason = if facts.says_nothing {
                DecisionReason::NothingKnown
            } else {
                DecisionReason::LowestBound
            };
            let batch = batch.max(MIN_SEARCHES).min(at_once);
            (reason, first(&bounds.order, batch))
        }
    }

    /// How often such an answer is wrong.
    fn risk(&self, facts: &Facts<'_>, reason: DecisionReason) -> Option<f64> {
        let best = facts.best.map(|(_, price)| price);
        let mut in_vain = facts.bounds.in_vain.iter();
        match (reason, self.ends) {
            (DecisionReason::Found, _) => Some(0.0),
            // What was searched in vain may be cheaper than the best: no count is about that.
            _ if in_vain.any(|bound| is_below(*bound, best)) => None,
            (DecisionReason::NothingLeft, _) => Some(0.0),
            _ if facts.is_declared => {
                let all = facts.candidates.len();
                Some((all - facts.searched).to_f64()? / all.to_f64()?)
            }
            // The counts are of searches that ended by the rule.
            (DecisionReason::LimitReached, _) | (_, Ends::Spent { .. }) => None,
            (_, Ends::Answered(choice)) => choice.counted.map(MissCount::share),
        }
    }
}

/// Whether a bound is below a price, as any is while there is none.
fn is_below(bound: f64, price: Option<Decimal>) -> bool {
    let price = price.and_then(|price| price.to_f64());
    price.is_none_or(|price| bound < price)
}
