//! How often prices change before departure, and by how much.

/// A route's prices change at these rates: counts over a weak prior.
///
/// A price is taken to change at random moments, at a rate that depends on the days to departure;
/// the rates of all days of a stored price's age add up. Each change multiplies the price by a
/// ratio, or, seldom, leads to any price. Ratios of several changes compound, and lean back to the
/// price that was seen.
///
/// **The prior `low_cost_airline`** is what was measured on 809,000 pairs of next-day prices of 20
/// routes of one low-cost airline: the share of prices that are the same a day later, by days to
/// departure. A change is one fare step of 20 to 25 %, up as often as down. The prior weighs as
/// much as [`PRIOR_DAYS`] observed days in each band and [`PRIOR_CHANGES`] observed changes.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeRates {
    /// Changes and observed days of each band, the prior's included.
    bands: [(f64, f64); UNCHANGED.len()],
    /// The logarithms of the ratios of single changes: counts in [`CELLS`], the prior's included.
    ratios: Vec<f64>,
    /// For each number of changes the cumulative distribution of the ratio, in the same cells.
    compound: Vec<Vec<f64>>,
}

/// One price of a departure, and the next one that was seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriceChange {
    /// Days to departure when the later price was seen.
    pub days_to_departure: f64,
    /// Days from the earlier to the later price.
    pub age: f64,
    /// The later price as a multiple of the earlier one; 1 if it did not change.
    pub ratio: f64,
}

/// What the prior says: up to so many days to departure, this share of prices is the same a day
/// later.
const UNCHANGED: [(f64, f64); 8] = [
    (3.0, 0.35),
    (7.0, 0.51),
    (14.0, 0.65),
    (30.0, 0.70),
    (60.0, 0.77),
    (90.0, 0.81),
    (120.0, 0.87),
    (f64::INFINITY, 0.97),
];
/// A fare step of the prior.
const STEP: (f64, f64) = (1.20, 1.25);
/// The observed days that the prior counts as, in each band.
pub const PRIOR_DAYS: f64 = 100.0;
/// The observed changes that the prior's ratios count as.
pub const PRIOR_CHANGES: f64 = 50.0;
/// The share of changes that lead to any price.
const ANY_BY_CHANGE: f64 = 0.01;
/// The share of prices that say nothing however new they are: errors.
const ANY_AT_ONCE: f64 = 0.002;
/// Fares come back. With each fare step between a price and the one that was seen, the
/// odds grow by this factor that the next change leads back and not further away. Why, and with
/// which figures: docs/decisions/0041.
const BACK: f64 = 2.5;
/// A fare step, as a logarithm.
pub(super) const LOG_STEP: f64 = 0.2;
/// More changes than this, and the price may be any.
const MAX_CHANGES: usize = 12;
/// Ratios that differ by less than this are no change.
pub(super) const SAME: f64 = 0.01;
/// Width of a cell, as a logarithm. Smaller changes count as none.
pub(super) const CELL: f64 = 0.02;
/// Cells on each side of the ratio 1: ratios up to e³. What lies beyond counts as the last.
const SIDE: i32 = 150;
/// The number of cells.
const CELLS: usize = 301;

impl Default for ChangeRates {
    fn default() -> Self {
        Self::low_cost_airline()
    }
}

impl ChangeRates {
    /// The prior alone.
    #[must_use]
    pub fn low_cost_airline() -> Self {
        let mut ratios = vec![0.0; CELLS];
        let parts = 16;
        for part in 0..parts {
            let share = (f64::from(part) + 0.5) / f64::from(parts);
            let step = (STEP.0 + (STEP.1 - STEP.0) * share).ln();
            let weight = PRIOR_CHANGES / f64::from(2 * parts);
            ratios[cell(step)] += weight;
            ratios[cell(-step)] += weight;
        }
        Self {
            bands: UNCHANGED.map(|(_, unchanged)| (-unchanged.ln() * PRIOR_DAYS, PRIOR_DAYS)),
            compound: compound(&ratios),
            ratios,
        }
    }

    /// With own counts added.
    ///
    /// How many changes lie between two prices is not seen. An equal price counts as none. Another
    /// one counts as many as the present rates expect of a price that has changed. Only prices of at
    /// most a day's distance count for the ratio of a change.
    #[must_use]
    pub fn with(mut self, observed: &[PriceChange]) -> Self {
        let before = self.clone();
        for change in observed {
            let logarithm = change.ratio.ln();
            if !(change.age > 0.0 && logarithm.is_finite()) {
                continue;
            }
            let expected = before.expected_changes(change.days_to_departure, change.age);
            let changed = logarithm.abs() >= SAME;
            let changes = if changed { given_one(expected) } else { 0.0 };
            let days = days_in_bands(change.days_to_departure, change.age);
            for (band, days) in days.into_iter().enumerate() {
                let (rate_changes, rate_days) = before.bands[band];
                self.bands[band].0 += changes * days * rate_changes / rate_days / expected;
                self.bands[band].1 += days;
            }
            if changed && change.age <= 1.0 {
                self.ratios[cell(logarithm)] += 1.0;
            }
        }
        self.compound = compound(&self.ratios);
        self
    }

    /// All counts, as they are stored.
    #[must_use]
    pub fn counts(&self) -> Vec<f64> {
        let bands = self.bands.iter();
        let bands = bands.flat_map(|(changes, days)| [*changes, *days]);
        bands.chain(self.ratios.iter().copied()).collect()
    }

    /// The rates of [`Self::counts`]; `None` if they are not so many.
    #[must_use]
    pub fn of_counts(counts: &[f64]) -> Option<Self> {
        let (bands, ratios) = counts.split_at_checked(2 * UNCHANGED.len())?;
        if ratios.len() != CELLS {
            return None;
        }
        let mut rates = Self::low_cost_airline();
        for (band, stored) in rates.bands.iter_mut().zip(bands.chunks_exact(2)) {
            *band = (stored[0], stored[1]);
        }
        rates.ratios = ratios.to_vec();
        rates.compound = compound(&rates.ratios);
        Some(rates)
    }

    /// The expected number of changes of a price that was seen `age` days ago, with so many days to
    /// departure now.
    #[must_use]
    pub fn expected_changes(&self, days_to_departure: f64, age: f64) -> f64 {
        let days = days_in_bands(days_to_departure, age).into_iter();
        days.zip(&self.bands)
            .map(|(days, (changes, observed))| days * changes / observed)
            .sum()
    }

    /// The probability that the price is any, independent of what it was, after so many expected
    /// changes.
    #[must_use]
    pub fn any_price(&self, expected: f64) -> f64 {
        let kept: f64 = kept(expected).map(|(_, share)| share).sum();
        (1.0 - kept).clamp(0.0, 1.0)
    }

    /// The probability that the price is not any, and is now below this multiple of what it was.
    #[must_use]
    pub fn below(&self, expected: f64, ratio: f64) -> f64 {
        let logarithm = ratio.ln();
        if logarithm.is_nan() {
            return 0.0;
        }
        let cell = cell(logarithm);
        kept(expected)
            .map(|(changes, share)| share * self.compound[changes][cell])
            .sum()
    }
}

/// The number of changes of a price that has changed, if so many were expected of any.
pub(super) fn given_one(expected: f64) -> f64 {
    if expected > 0.0 {
        expected / (1.0 - (-expected).exp())
    } else {
        1.0
    }
}

/// Numbers of changes with their probabilities (Poisson), of prices that have not become any.
fn kept(expected: f64) -> impl Iterator<Item = (usize, f64)> {
    let mut share = (1.0 - ANY_AT_ONCE) * (-expected).exp();
    let mut divisor = 0.0;
    (0..=MAX_CHANGES).map(move |changes| {
        let this = share;
        divisor += 1.0;
        share *= expected * (1.0 - ANY_BY_CHANGE) / divisor;
        (changes, this)
    })
}

/// How many of the `age` days before `days_to_departure` lie in each band.
fn days_in_bands(days_to_departure: f64, age: f64) -> [f64; UNCHANGED.len()] {
    let (last, first) = (
        days_to_departure.max(0.0),
        days_to_departure.max(0.0) + age.max(0.0),
    );
    let mut from = 0.0;
    UNCHANGED.map(|(to, _)| {
        let days = first.min(to) - last.max(from);
        from = to;
        days.max(0.0)
    })
}

/// The cell of a ratio's logarithm.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the cells"
)]
fn cell(logarithm: f64) -> usize {
    let side = f64::from(SIDE);
    (logarithm / CELL + side).round().clamp(0.0, 2.0 * side) as usize
}

/// The cumulative distributions of the ratio after 0, 1, … changes.
fn compound(ratios: &[f64]) -> Vec<Vec<f64>> {
    let total: f64 = ratios.iter().sum();
    let one: Vec<_> = (-SIDE..=SIDE)
        .zip(ratios)
        .filter(|(_, weight)| **weight > 0.0)
        .map(|(shift, weight)| (shift, weight / total))
        .collect();
    let mut now = vec![0.0; CELLS];
    now[cell(0.0)] = 1.0;
    let mut all = Vec::with_capacity(MAX_CHANGES + 1);
    for _ in 0..=MAX_CHANGES {
        all.push(cumulative(&now));
        let mut next = vec![0.0; CELLS];
        for (at, weight) in (-SIDE..=SIDE)
            .zip(&now)
            .filter(|(_, weight)| **weight > 0.0)
        {
            let back = BACK.powf(f64::from(at.abs()) * CELL / LOG_STEP);
            let leaning = |shift: i32| match at.signum() * shift.signum() {
                -1 => back / (1.0 + back),
                1 => 1.0 / (1.0 + back),
                _ => 0.5,
            };
            let sum: f64 = one
                .iter()
                .map(|(shift, share)| share * leaning(*shift))
                .sum();
            for (shift, share) in &one {
                next[cell(f64::from(at + shift) * CELL)] += weight * share * leaning(*shift) / sum;
            }
        }
        now = next;
    }
    all
}

fn cumulative(weights: &[f64]) -> Vec<f64> {
    weights
        .iter()
        .scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, wanted: f64, within: f64) {
        assert!((found - wanted).abs() < within, "{found}, not {wanted}");
    }

    #[test]
    fn the_prior_says_what_was_measured() {
        let rates = ChangeRates::low_cost_airline();
        for (days, unchanged) in [(1.0, 0.35), (5.0, 0.51), (45.0, 0.77), (200.0, 0.97)] {
            near((-rates.expected_changes(days, 1.0)).exp(), unchanged, 1e-9);
        }
        // From 8 to 6 days before departure: one day of each band.
        near((-rates.expected_changes(6.0, 2.0)).exp(), 0.51 * 0.65, 1e-9);
    }

    #[test]
    fn a_change_is_a_fare_step_and_a_few_become_any() {
        let rates = ChangeRates::low_cost_airline();
        let below = |ratio| rates.below(0.01, ratio);
        near(below(0.99), 0.005, 0.0005);
        near(below(0.75), 0.0, 0.0001);
        near(below(1.01) + rates.any_price(0.01), 1.0, 0.0055);
        assert!(rates.any_price(0.0) > 0.0 && rates.any_price(0.0) < 0.01);
        near(rates.any_price(100.0), 1.0, 1e-6);
    }

    #[test]
    fn probabilities_stay_probabilities() {
        let rates = ChangeRates::low_cost_airline();
        for expected in [0.0, 0.3, 3.0, 30.0] {
            let mut last = 0.0;
            for ratio in [0.0, 0.01, 0.5, 0.8, 1.0, 2.0, 100.0, f64::INFINITY] {
                let below = rates.below(expected, ratio);
                assert!(
                    below >= last && below <= 1.0,
                    "{expected}, {ratio}: {below}"
                );
                last = below;
            }
            near(last + rates.any_price(expected), 1.0, 1e-6);
        }
    }

    #[test]
    fn own_counts_outweigh_the_prior() {
        let change = |ratio| PriceChange {
            days_to_departure: 40.0,
            age: 1.0,
            ratio,
        };
        let prior = ChangeRates::low_cost_airline();
        let steady = prior.clone().with(&vec![change(1.0); 10_000]);
        near(steady.expected_changes(40.0, 1.0), 0.0, 0.01);
        let elsewhere = (
            steady.expected_changes(100.0, 1.0),
            prior.expected_changes(100.0, 1.0),
        );
        near(elsewhere.0, elsewhere.1, 1e-9);
        let wild = prior.clone().with(&vec![change(0.5); 10_000]);
        assert!(wild.expected_changes(40.0, 1.0) > 1.0);
        near(wild.below(0.01, 0.6), 0.01, 0.001);
    }

    #[test]
    fn rates_are_those_of_their_counts() {
        let change = PriceChange {
            days_to_departure: 12.5,
            age: 0.7,
            ratio: 0.8,
        };
        let rates = ChangeRates::low_cost_airline().with(&[change]);
        let counts = rates.counts();
        assert_eq!(ChangeRates::of_counts(&counts), Some(rates));
        assert_eq!(ChangeRates::of_counts(&counts[1..]), None);
        assert_eq!(ChangeRates::of_counts(&[]), None);
    }

    #[test]
    fn what_is_no_ratio_is_not_counted() {
        let change = |age, ratio| PriceChange {
            days_to_departure: 40.0,
            age,
            ratio,
        };
        let wrong = [
            change(1.0, 0.0),
            change(1.0, -1.0),
            change(0.0, 1.2),
            change(f64::NAN, 1.2),
            change(1.0, f64::NAN),
        ];
        let prior = ChangeRates::low_cost_airline();
        assert_eq!(prior.clone().with(&wrong), prior);
    }
}
