//! Search the dates that were the cheapest when they were last searched.

use super::{BestCandidate, PlannerDecision, SearchPlanner, SearchView};

/// Searches the candidates with the lowest stored prices, once.
#[derive(Debug, Clone, Copy)]
pub struct StoredCalendar {
    /// How many of them.
    pub searches: usize,
}

impl SearchPlanner for StoredCalendar {
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision {
        let mut stored: Vec<_> = view
            .candidates
            .iter()
            .enumerate()
            .filter_map(|(position, candidate)| Some((candidate.stored?.price?, position)))
            .collect();
        stored.sort_unstable();
        let cheapest: Vec<_> = stored
            .into_iter()
            .map(|(_, position)| position)
            .take(self.searches)
            .collect();
        if cheapest.is_empty() || view.has_searched() {
            return PlannerDecision::Stop(BestCandidate {
                position: view.cheapest_searched(),
                risk: None,
            });
        }
        PlannerDecision::Search(cheapest)
    }
}
