//! The lowest price that a candidate may plausibly have.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use super::Setting;
use super::age::{age_in_days, days};
use crate::planner::{Candidate, SearchView};

/// A date that was never seen is taken to cost as little as its nearest known dates, so many of them.
const NEAREST: usize = 4;
/// … divided by this, or by the second if nothing was stored at all.
const BELOW_NEAREST: (f64, f64) = (1.1, 1.25);
/// Without a known date nearer than this, every so many-th date is searched first.
const GRID: usize = 4;
/// The share by which a price may change in a day, for the guard.
const SLACK: f64 = 0.06;
/// The least slack: one fare step. That a price has changed once says nothing about the others.
const MIN_SLACK: f64 = 0.25;

/// The bounds of a view's candidates.
pub(super) struct CandidateBounds {
    /// Unsearched positions, the lowest bound first, then those without one, the longest unseen first.
    order: Vec<usize>,
    lowest: Option<f64>,
    in_vain: Vec<f64>,
    every_fourth: Vec<usize>,
    age_in_days: usize,
}

/// A candidate's line: its positions by their dates.
type Line = Vec<usize>;

impl CandidateBounds {
    pub(super) fn of(view: &SearchView<'_>, setting: Setting) -> Self {
        let candidates = view.candidates;
        let nothing_stored = candidates
            .iter()
            .all(|candidate| candidate.stored.is_none());
        let below = if nothing_stored {
            BELOW_NEAREST.1
        } else {
            BELOW_NEAREST.0
        };
        let mut bounds = vec![None; candidates.len()];
        let mut every_fourth = Vec::new();
        for line in lines(candidates) {
            every_fourth.extend(grid(candidates, &line));
            for (index, at) in line.iter().enumerate() {
                let candidate = &candidates[*at];
                bounds[*at] = match candidate.stored {
                    Some(stored) => stored
                        .price
                        .and_then(|price| bound(price, stored.age, setting)),
                    None => Some(nearest(candidates, &line, index) / below),
                };
            }
        }
        let bound = |at: usize| bounds[at].unwrap_or(f64::INFINITY);
        let mut order: Vec<_> = view.unsearched().collect();
        order.sort_by(|one, other| {
            let unseen = |at: usize| std::cmp::Reverse(candidates[at].tried_before());
            let by_bound = bound(*one).total_cmp(&bound(*other));
            by_bound
                .then(unseen(*one).cmp(&unseen(*other)))
                .then(one.cmp(other))
        });
        let is_in_vain =
            |at: &usize| !candidates[*at].is_unsearched() && !candidates[*at].is_answered();
        Self {
            lowest: order.first().and_then(|at| bounds[*at]),
            in_vain: (0..candidates.len())
                .filter(is_in_vain)
                .filter_map(|at| bounds[at])
                .collect(),
            order,
            every_fourth,
            age_in_days: age_in_days(candidates),
        }
    }

    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// The lowest bound of an unsearched candidate.
    pub(super) fn lowest(&self) -> Option<f64> {
        self.lowest
    }

    /// The bounds of candidates that were searched without a plausible answer.
    pub(super) fn in_vain(&self) -> &[f64] {
        &self.in_vain
    }

    /// What is searched first, whatever is found: the same for all decisions of a question.
    pub(super) fn every_fourth(&self) -> &[usize] {
        &self.every_fourth
    }

    pub(super) fn age_in_days(&self) -> usize {
        self.age_in_days
    }
}

/// The bound of a candidate that was seen at a price.
fn bound(price: Decimal, age: SignedDuration, setting: Setting) -> Option<f64> {
    Some(price.to_f64()? / (1.0 + setting.growth() * days(age)))
}

/// The candidates by the values of their other swept fields, and by date.
fn lines(candidates: &[Candidate]) -> impl Iterator<Item = Line> {
    let mut lines = BTreeMap::<usize, Line>::new();
    for (position, candidate) in candidates.iter().enumerate() {
        lines.entry(candidate.line).or_default().push(position);
    }
    lines.into_values().map(|mut line| {
        line.sort_by_key(|at| candidates[*at].date);
        line
    })
}

/// Every fourth candidate of a line and its last one, if no stored answer is less than four from it.
fn grid(candidates: &[Candidate], line: &Line) -> Vec<usize> {
    let is_of_grid = |index: &usize| index.is_multiple_of(GRID) || index + 1 == line.len();
    let is_far = |index: &usize| {
        let near = index.saturating_sub(GRID - 1)..line.len().min(index + GRID);
        line[near].iter().all(|at| candidates[*at].stored.is_none())
    };
    let indexes = (0..line.len()).filter(is_of_grid).filter(is_far);
    indexes.map(|index| line[index]).collect()
}

/// The lowest price of the nearest candidates of the line that have one; 0 if none has.
fn nearest(candidates: &[Candidate], line: &Line, index: usize) -> f64 {
    let price = |at: &usize| candidates[*at].known_plausible();
    let mut before = line[..index]
        .iter()
        .rev()
        .filter(|at| price(at).is_some())
        .peekable();
    let mut after = line[index + 1..]
        .iter()
        .filter(|at| price(at).is_some())
        .peekable();
    let distance = |at: &usize| {
        (candidates[*at].date - candidates[line[index]].date)
            .get_days()
            .unsigned_abs()
    };
    let mut lowest = None::<Decimal>;
    for _ in 0..NEAREST {
        let is_before = match (before.peek(), after.peek()) {
            (Some(one), Some(other)) => distance(one) <= distance(other),
            (one, _) => one.is_some(),
        };
        let next = if is_before {
            before.next()
        } else {
            after.next()
        };
        let Some(found) = next.and_then(price) else {
            break;
        };
        lowest = Some(lowest.map_or(found, |lowest| lowest.min(found)));
    }
    lowest.and_then(|lowest| lowest.to_f64()).unwrap_or(0.0)
}

/// Whether a searched price lies where the stored one let expect it; `None`: nothing to compare.
pub(super) fn within_slack(candidate: &Candidate) -> Option<bool> {
    let stored = candidate.stored?;
    let (before, found) = (stored.price?.to_f64()?, candidate.found_price()?.to_f64()?);
    let slack = 1.0 + (SLACK * days(stored.age)).max(MIN_SLACK);
    Some((before / slack..=before * slack).contains(&found))
}

/// At most so many of the positions, at equal distances.
pub(super) fn spread(positions: &[usize], most: usize) -> Vec<usize> {
    let count = most.min(positions.len());
    (0..count)
        .map(|nth| positions[nth * positions.len() / count])
        .collect()
}
