//! What is particular to a run of a watch: what it searches first does not depend on bounds.

use std::cmp::Reverse;

use rust_decimal::Decimal;

use super::bounds::spread;
use super::{Candidate, best_found, unsearched};

/// One request in so many explores.
const EXPLORE_ONE_IN: usize = 5;
/// A price of this multiple of the one before is not believed until it was seen twice.
const DOUBTED: Decimal = Decimal::TWO;

/// What may still be as cheap as it was: the unsearched candidate with the lowest stored price, if
/// that is below the best one found. So a run names no date whose price is gone.
pub(super) fn cheapest_again(candidates: &[Candidate]) -> Option<usize> {
    let best = best_found(candidates).map(|(_, price)| price);
    let stored = |at: usize| Some((candidates[at].stored?.price?, at));
    let (price, at) = unsearched(candidates).filter_map(stored).min()?;
    best.is_none_or(|best| price < best).then_some(at)
}

/// What a run with this budget explores, and has not searched yet: the candidates that were not tried
/// for the longest time before it, first those that never were, spread over the positions.
pub(super) fn longest_unseen(candidates: &[Candidate], budget: usize) -> Vec<usize> {
    let count = budget.div_ceil(EXPLORE_ONE_IN);
    let age = |at: &usize| candidates[*at].tried_before();
    let (never, mut tried): (Vec<_>, Vec<_>) =
        (0..candidates.len()).partition(|at| age(at).is_none());
    tried.sort_by_key(|at| Reverse(age(at)));
    let mut unseen = spread(&never, count);
    unseen.extend(tried);
    unseen.truncate(count);
    unseen.retain(|at| candidates[*at].is_unsearched());
    unseen
}

/// The price that a watch goes by, of the last two answers of a candidate that have a price or are
/// empty, the newest first; a partial one with a price counts. A price that has doubled, or is gone,
/// counts only once it was seen twice: an error of one answer would otherwise hide a cheap candidate
/// for as long as nobody looks.
pub fn trusted<T>(
    newest: (Option<Decimal>, T),
    before: Option<(Option<Decimal>, T)>,
) -> (Option<Decimal>, T) {
    let doubted = before.filter(|(before, _)| match (newest.0, before) {
        (None, Some(_)) => true,
        // No price is as high as a multiple that no decimal holds.
        (Some(price), Some(before)) => before
            .checked_mul(DOUBTED)
            .is_some_and(|doubled| price >= doubled),
        (_, None) => false,
    });
    doubted.unwrap_or(newest)
}
