//! Strategies that exist only for comparison.

use std::cmp::Reverse;

use farescan::contract::scans::DecisionReason;
use farescan::planner::{Candidate, SearchDecision, SearchPlanner, best_found, unsearched};
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

/// Searches once, then answers with the cheapest found.
fn once(
    candidates: &[Candidate],
    risk: Option<f64>,
    choose: impl FnOnce() -> Vec<usize>,
) -> SearchDecision {
    let has_searched = unsearched(candidates).count() < candidates.len();
    SearchDecision {
        search: if has_searched { Vec::new() } else { choose() },
        reason: DecisionReason::NothingLeft,
        best: best_found(candidates),
        risk,
    }
}

impl SearchPlanner for FullSearch {
    fn decide(&self, candidates: &[Candidate]) -> SearchDecision {
        once(candidates, Some(0.0), || unsearched(candidates).collect())
    }
}

impl SearchPlanner for StoredCalendar {
    fn decide(&self, candidates: &[Candidate]) -> SearchDecision {
        once(candidates, None, || {
            let stored = |position: usize| Some((candidates[position].stored?.price?, position));
            let mut stored: Vec<_> = unsearched(candidates).filter_map(stored).collect();
            stored.sort_unstable();
            let positions = stored.into_iter().map(|(_, position)| position);
            positions.take(self.searches).collect()
        })
    }
}

impl SearchPlanner for RandomDates {
    fn decide(&self, candidates: &[Candidate]) -> SearchDecision {
        let share = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let risk = share(unsearched(candidates).count()) / share(candidates.len());
        once(candidates, Some(risk), || {
            let mut positions: Vec<_> = (0..candidates.len()).collect();
            positions.shuffle(&mut StdRng::seed_from_u64(self.seed));
            positions.truncate(self.searches);
            positions
        })
    }
}

impl SearchPlanner for GivenDates {
    fn decide(&self, candidates: &[Candidate]) -> SearchDecision {
        once(candidates, None, || self.positions.clone())
    }
}

impl SearchPlanner for Rotation {
    fn decide(&self, candidates: &[Candidate]) -> SearchDecision {
        let newest = |candidate: &Candidate| match candidate.searched {
            Some(found) => found,
            None => candidate.stored.and_then(|stored| stored.price),
        };
        let known = candidates.iter().map(newest).zip(0..);
        let cheapest = known.filter_map(|(price, position)| Some((price?, position)));
        let best = cheapest.min().map(|(price, position)| (position, price));
        let decision = once(candidates, None, || {
            let age = |position: &usize| candidates[*position].stored.map(|stored| stored.age);
            let mut positions: Vec<_> = (0..candidates.len()).collect();
            // A date that was never searched comes first; of equal ages the earlier date.
            positions.sort_by_key(|position| Reverse(age(position).unwrap_or(SignedDuration::MAX)));
            positions.truncate(self.searches);
            positions
        });
        SearchDecision { best, ..decision }
    }
}
