//! Strategies that exist only for comparison.

use std::cmp::Reverse;

use farescan::planner::{BestCandidate, Candidate, PlannerDecision, SearchPlanner, SearchView};
use jiff::SignedDuration;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;

/// Searches every date.
#[derive(Debug, Clone, Copy)]
pub struct FullSearch;

/// Searches the dates with the lowest stored prices, once.
#[derive(Debug, Clone, Copy)]
pub struct StoredCalendar {
    pub searches: usize,
}

/// Searches random dates. The risk that it declares is that of a world without structure: the share
/// of the dates that it has not searched.
#[derive(Debug, Clone, Copy)]
pub struct RandomDates {
    pub searches: usize,
    pub seed: u64,
}

/// Searches given dates: what somebody would do who knows the prices.
#[derive(Debug, Clone)]
pub struct GivenDates {
    pub positions: Vec<usize>,
}

/// Searches the dates that were not searched for the longest time, and answers from all that it
/// knows.
#[derive(Debug, Clone, Copy)]
pub struct Rotation {
    pub searches: usize,
}

fn cheapest_searched(view: &SearchView<'_>) -> Option<usize> {
    view.best_found().map(|(position, _)| position)
}

fn has_searched(view: &SearchView<'_>) -> bool {
    view.unsearched().count() < view.candidates.len()
}

/// Searches once, then answers.
fn once(
    view: &SearchView<'_>,
    best: BestCandidate,
    choose: impl FnOnce() -> Vec<usize>,
) -> PlannerDecision {
    let chosen = if has_searched(view) {
        Vec::new()
    } else {
        choose()
    };
    if chosen.is_empty() {
        PlannerDecision::Stop(best)
    } else {
        PlannerDecision::Search(chosen)
    }
}

impl SearchPlanner for FullSearch {
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision {
        let best = BestCandidate {
            position: cheapest_searched(view),
            risk: Some(0.0),
        };
        once(view, best, || view.unsearched().collect())
    }
}

impl SearchPlanner for StoredCalendar {
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision {
        let best = BestCandidate {
            position: cheapest_searched(view),
            risk: None,
        };
        once(view, best, || {
            let stored =
                |position: usize| Some((view.candidates[position].stored?.price?, position));
            let mut stored: Vec<_> = view.unsearched().filter_map(stored).collect();
            stored.sort_unstable();
            let positions = stored.into_iter().map(|(_, position)| position);
            positions.take(self.searches).collect()
        })
    }
}

impl SearchPlanner for RandomDates {
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision {
        let (all, unsearched) = (view.candidates.len(), view.unsearched().count());
        let share = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let best = BestCandidate {
            position: cheapest_searched(view),
            risk: Some(share(unsearched) / share(all)),
        };
        once(view, best, || {
            let mut positions: Vec<_> = (0..all).collect();
            positions.shuffle(&mut StdRng::seed_from_u64(self.seed));
            positions.truncate(self.searches);
            positions
        })
    }
}

impl SearchPlanner for GivenDates {
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision {
        let best = BestCandidate {
            position: cheapest_searched(view),
            risk: None,
        };
        once(view, best, || self.positions.clone())
    }
}

impl SearchPlanner for Rotation {
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision {
        let newest = |candidate: &Candidate| match candidate.searched {
            Some(found) => found,
            None => candidate.stored.and_then(|stored| stored.price),
        };
        let known = view.candidates.iter().map(newest).zip(0..);
        let cheapest = known.filter_map(|(price, position)| Some((price?, position)));
        let best = BestCandidate {
            position: cheapest.min().map(|(_, position)| position),
            risk: None,
        };
        once(view, best, || {
            let age = |position: &usize| view.candidates[*position].stored.map(|stored| stored.age);
            let mut positions: Vec<_> = (0..view.candidates.len()).collect();
            // A date that was never searched comes first; of equal ages the earlier date.
            positions.sort_by_key(|position| Reverse(age(position).unwrap_or(SignedDuration::MAX)));
            positions.truncate(self.searches);
            positions
        })
    }
}
