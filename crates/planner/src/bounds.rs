//! The lowest price that a candidate may plausibly have.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use crate::candidate::days;
use crate::{Candidate, Setting, unsearched};

/// A date that was never seen is taken to cost as little as its nearest known dates, so many of them.
const NEAREST: usize = 4;
/// … divided by this, or by the second if nothing was stored at all.
const BELOW_NEAREST: (f64, f64) = (1.1, 1.25);
/// Without a known date nearer than this, every so many-th date is searched first.
const GRID: usize = 4;
/// A line is empty once so many of its dates had no offer, at least one of each weekday that it has:
/// flights of one day a week are not overlooked.
const MIN_EMPTY: usize = 7;
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

/// The bounds of a question's candidates.
pub(super) struct CandidateBounds {
    /// Unsearched positions, the lowest bound first, then those without one, the longest unseen first.
    pub(super) order: Vec<usize>,
    /// The lowest bound of an unsearched candidate.
    pub(super) lowest: Option<f64>,
    /// The bounds of candidates that were searched without an answer.
    pub(super) in_vain: Vec<f64>,
    /// What is searched first, whatever is found: the same for all decisions of a question.
    pub(super) grid: Vec<usize>,
}

impl CandidateBounds {
    pub(super) fn of(candidates: &[Candidate], setting: Setting) -> Self {
        let nothing_stored = candidates.iter().all(|one| one.stored.is_none());
        let below = if nothing_stored {
            BELOW_NEAREST.1
        } else {
            BELOW_NEAREST.0
        };
        let has_price = candidates.iter().any(|one| one.known_price().is_some());
        let mut bounds = vec![None; candidates.len()];
        let mut grid = Vec::new();
        for line in lines(candidates) {
            grid.extend(every_fourth(candidates, &line));
            let known = line.iter().map(|at| &candidates[*at]);
            let known: Vec<_> = known
                .filter_map(|one| Some((one.date, one.known_price()?)))
                .collect();
            // Where nothing has a price yet, every date is searched before the answer is "nothing".
            let is_empty = has_price && known.is_empty() && is_empty(candidates, &line);
            // Who was answered needs no bound.
            for at in line {
                let candidate = &candidates[at];
                bounds[at] = match candidate.stored {
                    _ if candidate.searched.is_some() => None,
                    Some(stored) => stored.price.and_then(|price| price.to_f64()).map(|price| {
                        price / (1.0 + f64::from(setting.percent_a_day) / 100.0 * days(stored.age))
                    }),
                    None if is_empty => None,
                    None => Some(nearest(&known, candidate.date) / below),
                };
            }
        }
        let mut order: Vec<_> = unsearched(candidates).collect();
        order.sort_by(|one, other| {
            let bound = |at: usize| bounds[at].unwrap_or(f64::INFINITY);
            let unseen = |at: usize| (Reverse(candidates[at].tried_before()), at);
            let by_bound = bound(*one).total_cmp(&bound(*other));
            by_bound.then(unseen(*one).cmp(&unseen(*other)))
        });
        let in_vain = candidates.iter().zip(&bounds);
        Self {
            lowest: order.first().and_then(|at| bounds[*at]),
            in_vain: in_vain
                .filter_map(|(candidate, bound)| bound.filter(|_| candidate.unanswered))
                .collect(),
            order,
            grid,
        }
    }
}

/// The positions with equal values of the other swept fields, by date.
fn lines(candidates: &[Candidate]) -> impl Iterator<Item = Vec<usize>> {
    let mut lines = BTreeMap::<usize, Vec<usize>>::new();
    for (position, candidate) in candidates.iter().enumerate() {
        lines.entry(candidate.line).or_default().push(position);
    }
    lines.into_values().map(|mut line| {
        line.sort_by_key(|at| candidates[*at].date);
        line
    })
}

/// Whether the answers of a line, none of which has a price, show that there is nothing.
fn is_empty(candidates: &[Candidate], line: &[usize]) -> bool {
    let weekdays = |positions: &[usize]| -> BTreeSet<_> {
        let weekday = |at: &usize| candidates[*at].date.weekday().to_monday_zero_offset();
        positions.iter().map(weekday).collect()
    };
    let is_without_offer = |at: &usize| candidates[*at].is_without_offer();
    let empty: Vec<_> = line.iter().copied().filter(is_without_offer).collect();
    empty.len() >= MIN_EMPTY && weekdays(&empty) == weekdays(line)
}

/// Every fourth candidate of a line and its last one, if no stored answer is less than four from it.
fn every_fourth(candidates: &[Candidate], line: &[usize]) -> Vec<usize> {
    let is_of_grid = |index: &usize| index.is_multiple_of(GRID) || index + 1 == line.len();
    let is_far = |index: &usize| {
        let near = index.saturating_sub(GRID - 1)..line.len().min(index + GRID);
        line[near].iter().all(|at| candidates[*at].stored.is_none())
    };
    let indexes = (0..line.len()).filter(is_of_grid).filter(is_far);
    indexes.map(|index| line[index]).collect()
}

/// The lowest price of the nearest dates of a line that have one, for a date without; 0 if none has.
fn nearest(known: &[(Date, Decimal)], date: Date) -> f64 {
    let mut after = known.partition_point(|(other, _)| *other < date);
    let mut before = after;
    let days_from = |(other, _): &(Date, Decimal)| other.duration_since(date).unsigned_abs();
    // A question of hundreds of dates asks this for each of them at each decision: nothing is sorted.
    while after - before < NEAREST.min(known.len()) {
        let next = known.get(after).map(days_from);
        let is_before = before > 0 && next.is_none_or(|next| days_from(&known[before - 1]) <= next);
        if is_before { before -= 1 } else { after += 1 }
    }
    let prices = known[before..after].iter().map(|(_, price)| price);
    prices.min().and_then(|price| price.to_f64()).unwrap_or(0.0)
}

/// Whether what was found shows that the stored prices say nothing, and whether that may be declared.
pub(super) fn guard(candidates: &[Candidate]) -> (bool, bool) {
    let within: Vec<_> = candidates.iter().filter_map(within_slack).collect();
    let near = within.iter().filter(|is_within| **is_within).count();
    let says_nothing = within.len() >= MIN_DOUBTED && near * GUARD_ONE_IN <= within.len();
    (says_nothing, says_nothing && within.len() >= MIN_JUDGED)
}

/// Whether a found price is near the stored one; `None`: nothing to compare.
fn within_slack(candidate: &Candidate) -> Option<bool> {
    let stored = candidate.stored?;
    let (before, found) = (stored.price?.to_f64()?, candidate.searched??.to_f64()?);
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
