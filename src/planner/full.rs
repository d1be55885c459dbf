//! Search everything.

use super::{BestCandidate, PlannerDecision, SearchPlanner, SearchView};

/// Searches every candidate.
#[derive(Debug, Clone, Copy)]
pub struct FullSearch;

impl SearchPlanner for FullSearch {
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision {
        let unsearched: Vec<_> = view.unsearched().collect();
        if unsearched.is_empty() {
            PlannerDecision::Stop(BestCandidate {
                position: view.cheapest_searched(),
                risk: Some(0.0),
            })
        } else {
            PlannerDecision::Search(unsearched)
        }
    }
}
