//! Plays a planner's decisions against known prices.

use rust_decimal::Decimal;

use super::{BestCandidate, Candidate, PlannerDecision, SearchPlanner, SearchView};

/// A played question.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// The searched positions, in order: one request each.
    pub searched: Vec<usize>,
    /// The answer.
    pub best: BestCandidate,
}

/// Plays a planner from what is known in `candidates`, which then have what was found. `search`
/// returns the price of a position, `None` for an answer without an offer.
///
/// A planner that searches a position twice, or nothing, ends there without an answer.
pub fn play(
    planner: &dyn SearchPlanner,
    candidates: &mut [Candidate],
    mut search: impl FnMut(usize) -> Option<Decimal>,
) -> Played {
    let mut searched = Vec::new();
    let mut turn = 0;
    loop {
        turn += 1;
        let batch = match planner.decide(&SearchView { candidates }) {
            PlannerDecision::Stop(best) => return Played { searched, best },
            PlannerDecision::Search(batch) => batch,
        };
        let before = searched.len();
        for position in batch {
            let Some(candidate) = candidates.get_mut(position) else {
                continue;
            };
            if candidate.searched.is_none() {
                candidate.searched = Some(search(position));
                candidate.turn = turn;
                searched.push(position);
            }
        }
        if searched.len() == before {
            let best = BestCandidate {
                position: None,
                risk: None,
            };
            return Played { searched, best };
        }
    }
}
