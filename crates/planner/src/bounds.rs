//! The lowest price that a candidate may plausibly have.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use jiff::civil::Date;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use super::age::{age_in_days, days};
use super::misses::Setting;
use crate::{Candidate, SearchView};

/// A date that was never seen is taken to cost as little as its nearest known dates, so many of them.
const NEAREST: usize = 4;
/// … divided by this, or by the second if nothing was stored at all.
const BELOW_NEAREST: (f64, f64) = (1.1, 1.25);
/// Without a known date nearer than this, every so many-th date is searched first.
const GRID: usize = 4;
/// The share by which a price may change in a day, for the guard.
const SLACK: f64 = 0.06;
/// The least slack: one fare step. That a price has changed once says nothing about the others. And
/// the most, so that the slack of a calendar of weeks does not fit any price.
const SLACK_BETWEEN: (f64, f64) = (0.25, 0.5);
/// The stored prices say nothing if at most one in so many of the found ones is within the slack. In
/// real calendars the share is 78 % to 95 % in the middle and below 60 % in one of twenty questions;
/// without structure it is 0 to 24 %, and above 44 % in one of twenty.
const GUARD_ONE_IN: usize = 2;
/// Fewer found prices give a reason to search on, and nothing to declare.
const MIN_JUDGED: usize = 5;
/// One found price is no reason either.
const MIN_DOUBTED: usize = 2;

/// The bounds of a view's candidates.
pub(super) struct CandidateBounds {
    /// Unsearched positions, the lowest bound first, then those without one, the longest unseen first.
    order: Vec<usize>,
    lowest: Option<f64>,
    in_vain: Vec<f64>,
    grid: Vec<usize>,
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
        let mut grid = Vec::new();
        for line in lines(candidates) {
            grid.extend(every_fourth(candidates, &line));
            let known = known_prices(candidates, &line);
            // Who was answered needs no bound.
            let is_open = |at: &usize| !candidates[*at].is_answered();
            for at in line.into_iter().filter(is_open) {
                let candidate = &candidates[at];
                bounds[at] = match candidate.stored {
                    Some(stored) => stored
                        .price
                        .and_then(|price| bound(price, stored.age, setting)),
                    None => Some(nearest(&known, candidate.date) / below),
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
            grid,
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
    pub(super) fn grid(&self) -> &[usize] {
        &self.grid
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
fn every_fourth(candidates: &[Candidate], line: &Line) -> Vec<usize> {
    let is_of_grid = |index: &usize| index.is_multiple_of(GRID) || index + 1 == line.len();
    let is_far = |index: &usize| {
        let near = index.saturating_sub(GRID - 1)..line.len().min(index + GRID);
        line[near].iter().all(|at| candidates[*at].stored.is_none())
    };
    let indexes = (0..line.len()).filter(is_of_grid).filter(is_far);
    indexes.map(|index| line[index]).collect()
}

/// The prices of a line that are known, with their dates, in the order of the line.
type KnownPrices = Vec<(Date, Decimal)>;

fn known_prices(candidates: &[Candidate], line: &Line) -> KnownPrices {
    let known = line.iter().map(|at| &candidates[*at]);
    known
        .filter_map(|one| Some((one.date, one.known_plausible()?)))
        .collect()
}

/// The lowest price of the nearest dates that have one, for a date without; 0 if none has.
fn nearest(known: &KnownPrices, date: Date) -> f64 {
    let distance = |other: &Date| other.duration_since(date).unsigned_abs();
    let (before, after) = known.split_at(known.partition_point(|(other, _)| *other < date));
    let mut before = before.iter().rev().peekable();
    let mut after = after.iter().peekable();
    let mut lowest = None::<Decimal>;
    for _ in 0..NEAREST {
        let is_before = match (before.peek(), after.peek()) {
            (Some((one, _)), Some((other, _))) => distance(one) <= distance(other),
            (one, _) => one.is_some(),
        };
        let next = if is_before {
            before.next()
        } else {
            after.next()
        };
        let Some((_, found)) = next else {
            break;
        };
        lowest = Some(lowest.map_or(*found, |lowest| lowest.min(*found)));
    }
    lowest.and_then(|lowest| lowest.to_f64()).unwrap_or(0.0)
}

/// The guard: how many of the found prices lie where the stored ones let expect them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Judged {
    within: usize,
    all: usize,
}

impl Judged {
    pub(super) fn of(view: &SearchView<'_>) -> Self {
        let mut judged = Self::default();
        for is_within in view.candidates.iter().filter_map(within_slack) {
            judged.within += usize::from(is_within);
            judged.all += 1;
        }
        judged
    }

    /// Whether what was found shows that the stored prices say nothing.
    pub(super) fn says_nothing(self) -> bool {
        self.all >= MIN_DOUBTED && self.within * GUARD_ONE_IN <= self.all
    }

    /// Whether that may be declared.
    pub(super) fn are_enough(self) -> bool {
        self.all >= MIN_JUDGED
    }
}

/// Whether a found price is near the stored one; `None`: nothing to compare.
fn within_slack(candidate: &Candidate) -> Option<bool> {
    let stored = candidate.stored?;
    let (before, found) = (stored.price?.to_f64()?, candidate.found_price()?.to_f64()?);
    let slack = 1.0 + (SLACK * days(stored.age)).clamp(SLACK_BETWEEN.0, SLACK_BETWEEN.1);
    Some((before / slack..=before * slack).contains(&found))
}

/// At most so many of the positions, at equal distances.
pub(super) fn spread(positions: &[usize], most: usize) -> Vec<usize> {
    let count = most.min(positions.len());
    (0..count)
        .map(|nth| positions[nth * positions.len() / count])
        .collect()
}
