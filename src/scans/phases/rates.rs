//! How often a caller's own prices have changed, over the prior (scans.md, rule 83): pure.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use crate::planner::{ChangeRates, PriceChange};

/// Prices less far apart are not counted: they would count for the ratios of changes too, and one
/// price in a hundred that is an error makes those useless (docs/laboratory.md, own rates).
const MIN_DAYS: f64 = 2.0;
/// Prices further apart are not counted: an equal one may have changed and come back.
const MAX_DAYS: f64 = 7.0;
const DAY_SECONDS: f64 = 86_400.0;

/// A price of a product and its dates, when it was seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PriceSample {
    pub(super) series: Vec<u8>,
    pub(super) first_date: Date,
    /// The first date where there is no second.
    pub(super) last_date: Date,
    pub(super) observed_at: Timestamp,
    pub(super) price: Decimal,
}

/// The rates of a question, and how many pairs of prices they count beside the prior.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::scans) struct CountedRates {
    pub(in crate::scans) rates: ChangeRates,
    pub(in crate::scans) pairs: usize,
}

impl CountedRates {
    /// The prior, and each price with the next one of the same product and dates.
    pub(super) fn of(mut samples: Vec<PriceSample>) -> Self {
        samples.sort_unstable();
        let changes: Vec<_> = samples
            .windows(2)
            .filter_map(|pair| change(&pair[0], &pair[1]))
            .collect();
        Self {
            pairs: changes.len(),
            rates: ChangeRates::default().with(&changes),
        }
    }
}

fn change(earlier: &PriceSample, later: &PriceSample) -> Option<PriceChange> {
    let product = |sample: &PriceSample| (sample.first_date, sample.last_date);
    let is_same = earlier.series == later.series && product(earlier) == product(later);
    let age = later.observed_at.duration_since(earlier.observed_at);
    let age = age.as_secs_f64() / DAY_SECONDS;
    let seen_on = TimeZone::UTC.to_datetime(later.observed_at).date();
    let ratio = later.price.checked_div(earlier.price)?.to_f64()?;
    (is_same && (MIN_DAYS..=MAX_DAYS).contains(&age) && ratio > 0.0).then(|| PriceChange {
        days_to_departure: f64::from((later.first_date - seen_on).get_days()),
        age,
        ratio,
    })
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn sample(series: u8, hours: i64, price: i64) -> PriceSample {
        let first_date = date(2027, 3, 1);
        PriceSample {
            series: vec![series; 16],
            first_date,
            last_date: first_date,
            observed_at: Timestamp::from_second(1_800_000_000 + 3_600 * hours).unwrap(),
            price: Decimal::from(price),
        }
    }

    #[test]
    fn each_price_is_paired_with_the_next_of_its_product() {
        let samples = vec![
            sample(1, 144, 120),
            sample(1, 0, 100),
            sample(2, 24, 300),
            sample(1, 72, 100),
            sample(2, 24 * 9, 300),
            sample(2, 24 * 10, 100),
        ];
        let found = CountedRates::of(samples);
        assert_eq!(
            found.pairs, 2,
            "those of series 2 are too far apart, or too near"
        );
        // The samples begin on 15 January 2027, 45 days before departure.
        let pair = |days_to_departure, ratio| PriceChange {
            days_to_departure,
            age: 3.0,
            ratio,
        };
        let expected = ChangeRates::default().with(&[pair(42.0, 1.0), pair(39.0, 1.2)]);
        assert_eq!(found.rates, expected);
    }

    #[test]
    fn without_two_prices_it_is_the_prior() {
        for samples in [
            vec![],
            vec![sample(1, 0, 100)],
            vec![sample(1, 0, 0), sample(1, 72, 9)],
        ] {
            let found = CountedRates::of(samples);
            assert_eq!((found.pairs, found.rates), (0, ChangeRates::default()));
        }
    }
}
