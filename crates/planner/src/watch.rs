//! What is particular to a run of a watch: it spends its budget, and what it searches first does not
//! depend on bounds.

use rust_decimal::Decimal;

use super::bounds::spread;
use super::{Candidate, SearchView};

/// One request in so many explores.
const EXPLORE_ONE_IN: usize = 5;
/// A price of this multiple of the one before is not believed until it was seen twice.
const DOUBTED: Decimal = Decimal::TWO;

/// How many requests of a budget explore.
pub fn explored(budget: usize) -> usize {
    budget.div_ceil(EXPLORE_ONE_IN)
}

/// What may still be as cheap as it was, the lowest stored price first: unsearched candidates whose
/// stored price is below the best one found. So a run names no date whose price is gone.
pub(super) fn cheapest_again(view: &SearchView<'_>) -> Vec<usize> {
    let best = view.best_found().map(|(_, price)| price);
    let stored = |at: usize| {
        let price = view.candidates[at].stored?.price?;
        best.is_none_or(|best| price < best).then_some((price, at))
    };
    let mut known: Vec<_> = view.unsearched().filter_map(stored).collect();
    known.sort_unstable();
    known.into_iter().map(|(_, at)| at).collect()
}

/// So many candidates that were not tried for the longest time: first those that never were, spread
/// over the positions. The same for all decisions of a run.
pub(super) fn longest_unseen(view: &SearchView<'_>, count: usize) -> Vec<usize> {
    let age = |at: &usize| Candidate::tried_before(&view.candidates[*at]);
    let (never, mut tried): (Vec<_>, Vec<_>) =
        (0..view.candidates.len()).partition(|at| age(at).is_none());
    tried.sort_by_key(|at| std::cmp::Reverse(age(at)));
    let mut unseen = spread(&never, count);
    unseen.extend(tried);
    unseen.truncate(count);
    unseen
}

/// The price that a watch goes by, of the last two answers of a candidate that have a price or are
/// empty, the newest first; a partial one with a price counts. A price that has doubled, or is gone,
/// counts only once it was seen twice: an error of one answer would otherwise hide a cheap candidate
/// for as long as nobody looks.
pub fn trusted<T: Copy>(
    answers: [Option<(Option<Decimal>, T)>; 2],
) -> Option<(Option<Decimal>, T)> {
    let [newest, before] = answers;
    let (price, _) = newest?;
    let doubted = before.filter(|(before, _)| match (price, before) {
        (None, Some(_)) => true,
        // No price is as high as a multiple that no decimal holds.
        (Some(price), Some(before)) => before
            .checked_mul(DOUBTED)
            .is_some_and(|doubled| price >= doubled),
        (_, None) => false,
    });
    doubted.or(newest)
}
