//! How likely an unsearched candidate is cheaper than the best searched one, or below a price.

use jiff::civil::Date;
use rust_decimal::prelude::ToPrimitive as _;

use crate::planner::change_rates::{CELL, LOG_STEP, SAME, given_one};
use crate::planner::{Candidate, ChangeRates, SearchView};

/// A price must be below this share of the best one to be cheaper.
const CHEAPER: f64 = 0.99;
/// A route's departures share their fares. So a price that is expected less than this far below
/// the best one (as a logarithm) is taken to be the same fare.
const SAME_FARE: f64 = 0.05;
/// The most changes that one price counts as.
const MOST_CHANGES: f64 = 4.0;
/// The group effect's prior: so many changes, as expected. And its upper limit.
const GROUP_PRIOR: f64 = 5.0;
const GROUP_MOST: f64 = 8.0;
const DAY_SECONDS: f64 = 86_400.0;
/// The prior probability that stored prices say nothing.
const NOTHING: f64 = 0.005;
/// How much each searched price weighs against it: neighbouring dates change together.
const WEIGHT: f64 = 0.3;
/// What a common shift of all searched prices weighs for it.
const SHIFT: f64 = 1.0;
/// A common shift needs so many searched prices: it explains one of them by itself.
const SHIFTED: usize = 4;

/// The estimate of one decision.
///
/// **What is assumed.** Each stored price changes at the rates of [`ChangeRates`] over its age,
/// independently of the others. That declares too much where prices fall together.
///
/// **The group effect.** The rates of the unsearched are multiplied by the changes among the
/// searched, per expected change; a change by several fare steps counts as several. The factor is
/// never below 1: few changes among the searched do not make the others safer.
///
/// **Any price.** A price that may be any (unknown, after many changes, an error) counts as drawn
/// from the same distribution as all known prices of the question. Of u such prices and k known
/// ones, one of the u is the lowest with the probability u / (u + k).
///
/// **Nothing.** That stored prices say nothing at all is a second explanation of what was found. Its
/// probability starts at 0.5 % and grows with each searched price that the distribution of all known
/// prices explains better than the stored price does. By as much the risk becomes the unsearched
/// share.
pub(in crate::planner) struct Estimate {
    unsearched: Vec<Chance>,
    /// Known prices, among which the best one is the lowest.
    known: f64,
    /// The searched prices.
    found: f64,
    /// The probability that stored prices say nothing.
    nothing: f64,
    /// Whether any price was found, so that there is a best one.
    has_best: bool,
}

/// Which price a candidate would have to undercut.
#[derive(Debug, Clone, Copy)]
pub(in crate::planner) enum Target {
    /// The best searched one, by more than 1 %.
    Best,
    /// This one; once a searched price is below it, that one by more than 1 %.
    Below(f64),
}

/// What is estimated of one unsearched candidate, if stored prices say something.
struct Chance {
    position: usize,
    /// It was searched in vain: it may be cheaper, but it is not searched again.
    unanswered: bool,
    /// The stored price.
    stored: f64,
    /// The probability that its stored price has become one below the best.
    below: f64,
    /// The probability that its price may be any.
    any: f64,
}

/// A stored price that was searched again.
struct Verified {
    stored: f64,
    /// None: it has no offer any more.
    found: Option<f64>,
    /// Changes that the rates expect.
    expected: f64,
}

impl Verified {
    fn logarithm(&self) -> Option<f64> {
        Some((self.found? / self.stored).ln())
    }

    /// The changes that it counts as.
    fn changes(&self) -> f64 {
        let steps = self
            .logarithm()
            .map_or(1.0, |logarithm| logarithm.abs() / LOG_STEP);
        if self.logarithm().is_some_and(|by| by.abs() < SAME) {
            0.0
        } else {
            given_one(self.expected).max(steps.round().min(MOST_CHANGES))
        }
    }
}

impl Estimate {
    pub(in crate::planner) fn of(
        view: &SearchView<'_>,
        rates: &ChangeRates,
        today: Date,
        target: Target,
    ) -> Self {
        let verified = verified(view, rates, today);
        let group = group_factor(&verified);
        let found = || {
            view.candidates
                .iter()
                .filter_map(|candidate| number(candidate.searched?))
        };
        // Before anything was found, the lowest stored price is what is to be undercut.
        let lowest = found().reduce(f64::min);
        let best = lowest.or_else(|| unsearched(view).filter_map(stored).reduce(f64::min));
        let (limit, is_given) = match target {
            Target::Below(limit) if lowest.is_none_or(|lowest| lowest >= limit) => {
                (Some(limit), true)
            }
            Target::Best | Target::Below(_) => (best, false),
        };
        let unsearched: Vec<_> = view
            .candidates
            .iter()
            .enumerate()
            .filter(|(_, candidate)| candidate.searched.is_none())
            .map(|(position, candidate)| {
                let expected = expected(candidate, rates, today).map(|expected| expected * group);
                let ratio = ratio_to(candidate, limit, is_given);
                Chance::new(position, candidate, expected, ratio, rates)
            })
            .collect();
        let kept: f64 = unsearched
            .iter()
            .filter(|chance| chance.stored.is_finite())
            .map(|chance| 1.0 - chance.any)
            .sum();
        let found: f64 = found().map(|_| 1.0).sum();
        Self {
            known: found + kept,
            found,
            nothing: nothing(&verified, &known_logarithms(view), group, rates),
            has_best: is_given || lowest.is_some(),
            unsearched,
        }
    }

    /// The probability that an unsearched candidate is cheaper.
    pub(in crate::planner) fn risk(&self) -> f64 {
        if self.unsearched.is_empty() {
            return 0.0;
        }
        if !self.has_best {
            return 1.0;
        }
        let any: f64 = self.unsearched.iter().map(|chance| chance.any).sum();
        let dearer: f64 = self
            .unsearched
            .iter()
            .map(|chance| 1.0 - chance.below)
            .product();
        let something = 1.0 - dearer * (1.0 - share(any, self.known));
        let all: f64 = self.unsearched.iter().map(|_| 1.0).sum();
        let risk = self.nothing * share(all, self.found) + (1.0 - self.nothing) * something;
        risk.clamp(0.0, 1.0)
    }

    /// The unsearched positions, those first that are the likeliest to be cheaper; of equal ones
    /// the one with the lower stored price, then the earlier.
    pub(in crate::planner) fn winners(&self) -> Vec<usize> {
        let any: f64 = self.unsearched.iter().map(|chance| chance.any).sum();
        let one = 1.0 / (any + self.known).max(1.0);
        let mut chances: Vec<_> = self
            .unsearched
            .iter()
            .filter(|chance| !chance.unanswered)
            .map(|chance| {
                let cheaper = 1.0 - (1.0 - chance.below) * (1.0 - chance.any * one);
                (cheaper, chance.stored, chance.position)
            })
            .collect();
        chances.sort_by(|one, other| {
            let by_chance = other.0.total_cmp(&one.0);
            by_chance
                .then(one.1.total_cmp(&other.1))
                .then(one.2.cmp(&other.2))
        });
        chances
            .into_iter()
            .map(|(_, _, position)| position)
            .collect()
    }
}

impl Chance {
    fn new(
        position: usize,
        candidate: &Candidate,
        expected: Option<f64>,
        ratio: Option<f64>,
        rates: &ChangeRates,
    ) -> Self {
        let known = stored(candidate).zip(expected);
        let below = expected.zip(ratio);
        let below = below.map_or(0.0, |(expected, ratio)| rates.below(expected, ratio));
        let any = match (known, expected) {
            (Some((_, expected)), _) => rates.any_price(expected),
            // It had no offer: it has one only after a change.
            (None, Some(expected)) => 1.0 - (1.0 - rates.any_price(expected)) * (-expected).exp(),
            (None, None) => 1.0,
        };
        Self {
            position,
            unanswered: candidate.unanswered,
            stored: known.map_or(f64::INFINITY, |(stored, _)| stored),
            below,
            any,
        }
    }
}

/// The changes that the rates expect of a candidate's stored price.
fn expected(candidate: &Candidate, rates: &ChangeRates, today: Date) -> Option<f64> {
    let lead = f64::from((candidate.date - today).get_days());
    let age = candidate.stored?.age.as_secs_f64();
    Some(rates.expected_changes(lead, age / DAY_SECONDS))
}

/// The stored prices that were searched again.
fn verified(view: &SearchView<'_>, rates: &ChangeRates, today: Date) -> Vec<Verified> {
    let all = view.candidates.iter();
    all.filter_map(|candidate| {
        Some(Verified {
            stored: stored(candidate)?,
            found: number(candidate.searched?),
            expected: expected(candidate, rates, today)?,
        })
    })
    .collect()
}

/// The multiple of its stored price that a candidate would have to be below.
fn ratio_to(candidate: &Candidate, limit: Option<f64>, is_given: bool) -> Option<f64> {
    let (stored, limit) = (stored(candidate)?, limit?);
    let ratio = limit / stored;
    if is_given {
        // An unchanged price that is not below the given one must not count as if it were.
        let most = if stored < limit { ratio } else { (-CELL).exp() };
        return Some(ratio.min(most));
    }
    // An unchanged price is known exactly, a changed one only as a fare.
    let factor = if stored < CHEAPER * limit {
        CHEAPER
    } else {
        (-SAME_FARE).exp()
    };
    Some(factor * ratio)
}

fn unsearched<'a>(view: &SearchView<'a>) -> impl Iterator<Item = &'a Candidate> {
    view.candidates
        .iter()
        .filter(|candidate| candidate.searched.is_none())
}

/// The stored price; none if it is not above 0.
fn stored(candidate: &Candidate) -> Option<f64> {
    number(candidate.stored?.price)
}

fn number(price: Option<rust_decimal::Decimal>) -> Option<f64> {
    price?.to_f64().filter(|price| *price > 0.0)
}

/// One of u prices is the lowest of u + k.
fn share(any: f64, known: f64) -> f64 {
    if any > 0.0 { any / (any + known) } else { 0.0 }
}

/// Changes among the searched, per expected change.
fn group_factor(verified: &[Verified]) -> f64 {
    let changes: f64 = verified.iter().map(Verified::changes).sum();
    let expected: f64 = verified.iter().map(|verified| verified.expected).sum();
    ((GROUP_PRIOR + changes) / (GROUP_PRIOR + expected)).clamp(1.0, GROUP_MOST)
}

/// The logarithms of all known prices, sorted.
fn known_logarithms(view: &SearchView<'_>) -> Vec<f64> {
    let mut known: Vec<_> = view
        .candidates
        .iter()
        .flat_map(|candidate| [stored(candidate), candidate.searched.and_then(number)])
        .flatten()
        .map(f64::ln)
        .collect();
    known.sort_by(f64::total_cmp);
    known
}

/// The probability that stored prices say nothing about what was found.
///
/// Prices that have all moved alike, as after a sale, are explained by what they were: a shift of
/// all by the median is tried too, at the price of [`SHIFT`].
fn nothing(verified: &[Verified], known: &[f64], group: f64, rates: &ChangeRates) -> f64 {
    let moves: Vec<_> = verified
        .iter()
        .filter_map(|one| Some((one.found?.ln(), one.logarithm()?, one.expected * group)))
        .collect();
    let mut sorted: Vec<_> = moves.iter().map(|(_, by, _)| *by).collect();
    sorted.sort_by(f64::total_cmp);
    let is_group = sorted.len() >= SHIFTED;
    let median = sorted.get(sorted.len() / 2).filter(|_| is_group);
    let median = median.copied().unwrap_or_default();
    let against = |shift: f64| -> f64 {
        let one = |(found, by, expected): &(f64, f64, f64)| {
            let drawn = share_near(*found, known);
            let moved = |by: f64| rates.below(*expected, (by - shift).exp());
            let by_steps = moved(by + SAME_FARE) - moved(by - SAME_FARE);
            let explained = by_steps + rates.any_price(*expected) * drawn;
            drawn.ln() - explained.max(f64::MIN_POSITIVE).ln()
        };
        moves.iter().map(one).sum()
    };
    let evidence = (WEIGHT * against(0.0)).min(WEIGHT * against(median) + SHIFT);
    let odds = NOTHING.ln() - (1.0 - NOTHING).ln() + evidence;
    1.0 / (1.0 + (-odds).exp())
}

/// The share of all known prices about this logarithm.
fn share_near(logarithm: f64, known: &[f64]) -> f64 {
    let below = |limit: f64| known.partition_point(|known| *known < limit);
    let near = below(logarithm + SAME_FARE) - below(logarithm - SAME_FARE);
    (count(near) + 1.0) / (count(known.len()) + 2.0)
}

pub(in crate::planner) fn count(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// An unsearched candidate whose stored price may not be true any more.
pub(in crate::planner) struct OldPrice {
    pub(in crate::planner) position: usize,
    /// It was searched in vain, and is not searched again.
    pub(in crate::planner) unanswered: bool,
    /// The probability that its price has changed; 1 if it was never seen.
    pub(in crate::planner) changed: f64,
    /// What a search of it now is worth, in days of a true price: the days that its price has been
    /// wrong for on average, and those that it will be right for.
    ///
    /// Of a price that changes at the rate r and was seen a days ago, (1 − e^(−ra)) / r − a e^(−ra).
    /// So a price that changes each hour is not bought each day for the hour in which it is true.
    pub(in crate::planner) worth: f64,
}

/// The unsearched candidates, with the group effect of [`Estimate`].
pub(in crate::planner) fn stale(
    view: &SearchView<'_>,
    rates: &ChangeRates,
    today: Date,
) -> Vec<OldPrice> {
    let group = group_factor(&verified(view, rates, today));
    let one = |(position, candidate): (usize, &Candidate)| {
        let expected = expected(candidate, rates, today).map(|expected| expected * group);
        let age = candidate
            .stored
            .map(|stored| stored.age.as_secs_f64() / DAY_SECONDS);
        let (changed, worth) = expected
            .zip(age)
            .map_or((1.0, f64::INFINITY), |(expected, age)| {
                let same = (-expected).exp();
                let rate = (expected / age.max(f64::MIN_POSITIVE)).max(f64::MIN_POSITIVE);
                (1.0 - same, (1.0 - same) / rate - age * same)
            });
        OldPrice {
            position,
            unanswered: candidate.unanswered,
            changed,
            worth,
        }
    };
    let all = view.candidates.iter().enumerate();
    all.filter(|(_, candidate)| candidate.searched.is_none())
        .map(one)
        .collect()
}
