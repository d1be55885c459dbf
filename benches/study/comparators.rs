//! Strategies that exist only for comparison.

use farescan::planner::{BestCandidate, PlannerDecision, SearchPlanner, SearchView};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;

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

/// Searches once, then answers.
fn once(
    view: &SearchView<'_>,
    best: BestCandidate,
    choose: impl FnOnce() -> Vec<usize>,
) -> PlannerDecision {
    let chosen = if view.has_searched() {
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

impl SearchPlanner for RandomDates {
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision {
        let (all, unsearched) = (view.candidates.len(), view.unsearched().count());
        let share = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let best = BestCandidate {
            position: view.cheapest_searched(),
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
            position: view.cheapest_searched(),
            risk: None,
        };
        once(view, best, || self.positions.clone())
    }
}

impl SearchPlanner for Rotation {
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision {
        let best = BestCandidate {
            position: view.cheapest_known(),
            risk: None,
        };
        once(view, best, || {
            let age = |position: &usize| view.candidates[*position].stored.map(|stored| stored.age);
            let mut positions: Vec<_> = (0..view.candidates.len()).collect();
            // A date that was never searched comes first; of equal ages the earlier date.
            positions.sort_by_key(|position| {
                std::cmp::Reverse(age(position).unwrap_or(jiff::SignedDuration::MAX))
            });
            positions.truncate(self.searches);
            positions
        })
    }
}
