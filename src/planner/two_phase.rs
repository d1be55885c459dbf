//! Two phases: every n-th date first, then the dates next to the cheapest.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use rust_decimal::Decimal;

use super::{
    BestCandidate, ExplainedDecision, ExplainedPlanner, PlannerDecision, SearchPlanner, SearchView,
};
use crate::contract::scans::DecisionReason;

/// The strategy of a two-phase scan, and how positions map to dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwoPhase {
    /// The first phase searches every n-th date.
    pub coarse_step: usize,
    /// The second phase searches next to this many of the cheapest dates.
    pub refine: usize,
    /// The number of dates in the range.
    pub dates: usize,
    /// The number of positions from one date to the next: the combinations of the inner axes.
    pub inner_items: usize,
    /// The number of items without their samples, which is also the distance between two samples.
    pub combinations: usize,
}

/// A search's date, and its values of all other swept fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RangePoint {
    /// Identifies the values of the other swept fields.
    line: usize,
    /// The index of the date in the range.
    date: usize,
}

impl TwoPhase {
    fn point(&self, position: usize) -> RangePoint {
        let search = position % self.combinations;
        let date = search / self.inner_items % self.dates;
        RangePoint {
            line: search - date * self.inner_items,
            date,
        }
    }

    /// Whether the first phase searches the item: every `coarse_step`-th date, and the last one.
    pub fn is_coarse(&self, position: usize) -> bool {
        let date = self.point(position).date;
        date.is_multiple_of(self.coarse_step) || date + 1 == self.dates
    }

    /// How many of `items` are searched: at least those of the first phase; at most also all that
    /// can lie next to `refine` of its dates.
    pub fn searches(&self, items: usize) -> RangeInclusive<usize> {
        let coarse = (0..items)
            .filter(|position| self.is_coarse(*position))
            .count();
        let lines = items / self.dates;
        let refined = self
            .refine
            .saturating_mul(2 * (self.coarse_step - 1))
            .saturating_mul(lines);
        coarse..=items.min(coarse.saturating_add(refined))
    }

    /// The `deferred` positions that the second phase searches: those less than `coarse_step` dates
    /// from one of the `refine` cheapest dates of their line. `prices` are those of the first
    /// phase, by position, in one currency; of equal prices the earlier date counts as cheaper. A
    /// line without a price is not refined.
    pub fn second_phase(&self, prices: &[(usize, Decimal)], deferred: &[usize]) -> BTreeSet<usize> {
        let mut best = BTreeMap::<RangePoint, Decimal>::new();
        for (position, price) in prices {
            let lowest = best.entry(self.point(*position)).or_insert(*price);
            *lowest = (*lowest).min(*price);
        }
        let mut lines = BTreeMap::<usize, Vec<(Decimal, usize)>>::new();
        for (point, price) in best {
            lines
                .entry(point.line)
                .or_default()
                .push((price, point.date));
        }
        for dates in lines.values_mut() {
            dates.sort_unstable();
            dates.truncate(self.refine);
        }
        let is_near = |position: &usize| {
            let RangePoint { line, date } = self.point(*position);
            let cheapest = lines.get(&line);
            cheapest.is_some_and(|dates| {
                dates
                    .iter()
                    .any(|(_, cheap)| cheap.abs_diff(date) < self.coarse_step)
            })
        };
        deferred.iter().copied().filter(is_near).collect()
    }
}

impl SearchPlanner for TwoPhase {
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision {
        self.explain(view).decision
    }
}

impl ExplainedPlanner for TwoPhase {
    fn explain(&self, view: &SearchView<'_>) -> ExplainedDecision {
        let explained = |decision, reason| ExplainedDecision {
            decision,
            reason,
            risk: None,
        };
        let (first, deferred): (Vec<_>, Vec<_>) =
            (0..view.candidates.len()).partition(|position| self.is_coarse(*position));
        let is_unsearched = |position: &usize| view.candidates[*position].is_unsearched();
        let next: Vec<_> = first.iter().copied().filter(is_unsearched).collect();
        if !next.is_empty() {
            return explained(PlannerDecision::Search(next), DecisionReason::FirstPhase);
        }
        let price = |position: usize| view.candidates[position].searched.flatten();
        let prices: Vec<_> = first
            .into_iter()
            .filter_map(|position| Some((position, price(position)?)))
            .collect();
        let next: Vec<_> = self
            .second_phase(&prices, &deferred)
            .into_iter()
            .filter(is_unsearched)
            .collect();
        if !next.is_empty() {
            return explained(PlannerDecision::Search(next), DecisionReason::SecondPhase);
        }
        let best = BestCandidate {
            position: view.cheapest_searched(),
            risk: None,
        };
        explained(PlannerDecision::Stop(best), DecisionReason::PhasesEnded)
    }
}
