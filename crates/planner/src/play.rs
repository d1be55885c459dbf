//! Plays a planner's decisions against known prices.

use rust_decimal::Decimal;

use crate::{Candidate, SearchDecision, SearchPlanner};

/// A played question.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// The searched positions, in order: one request each.
    pub searched: Vec<usize>,
    /// The last decision.
    pub end: SearchDecision,
}

/// Plays a planner from what is known in `candidates`, which then have what was found. `search`
/// returns the price of a position, `None` for an answer without an offer. It ends with the first
/// decision that searches nothing new.
pub fn play(
    planner: &dyn SearchPlanner,
    candidates: &mut [Candidate],
    mut search: impl FnMut(usize) -> Option<Decimal>,
) -> Played {
    let mut searched = Vec::new();
    let mut turn = 0;
    loop {
        let end = planner.decide(candidates);
        let before = searched.len();
        turn += 1;
        for position in end.search.iter().copied() {
            if candidates[position].is_unsearched() {
                candidates[position].searched = Some(search(position));
                candidates[position].turn = turn;
                searched.push(position);
            }
        }
        if searched.len() == before {
            return Played { searched, end };
        }
    }
}
