//! One price for each departure or stay and day, without implausible ones.

use std::collections::HashMap;

use rust_decimal::Decimal;

use super::JudgedPrice;
use crate::history::plausibility::{MedianPrice, PlausibilityCheck, PriceOfDay};
use crate::history::sample::{Sample, SampleStatus};

/// The lowest price of a departure or stay on one day. The order of the fields is the order of
/// [`DailyPrices::finish`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::history) struct DailyPrice {
    /// Length of the trip or stay; `None` for one way.
    pub(in crate::history) nights: Option<i32>,
    /// The day in UTC on which it was seen, in days since 1970.
    pub(in crate::history) day: i32,
    /// Departure or check-in, in days since 1970.
    pub(in crate::history) first_date: i32,
    /// In thousandths.
    pub(in crate::history) price: i64,
}

impl DailyPrice {
    /// The price in major units.
    pub(in crate::history) fn decimal(&self) -> Decimal {
        Decimal::new(self.price, 3).normalize()
    }
}

/// Collects the prices of one product (history.md, rules 34 and 43). Samples must arrive in the
/// order of their times: only those of one day are held together.
#[derive(Debug, Default)]
pub(in crate::history) struct DailyPrices {
    /// The last day …
    day: i32,
    /// … and its prices, with their samples.
    seen: Vec<PriceOfDay>,
    samples: Vec<Sample>,
    check: PlausibilityCheck,
    prices: PlausiblePrices,
}

/// The prices of one product.
#[derive(Debug, Default)]
pub(in crate::history) struct PlausiblePrices {
    /// The lowest plausible one of each length, day and date, in this order.
    pub(in crate::history) daily: Vec<DailyPrice>,
    /// The implausible ones, each with the usual price.
    pub(in crate::history) implausible: HashMap<JudgedPrice, MedianPrice>,
}

impl DailyPrices {
    /// Adds the price of a sample, if its departure or check-in had not passed.
    pub(in crate::history) fn add(&mut self, sample: &Sample) {
        self.add_with(sample, |_| {});
    }

    /// As [`Self::add`]. Calls `visit` with the samples of the day before, once it is over, that have
    /// a plausible price.
    pub(in crate::history) fn add_with(&mut self, sample: &Sample, visit: impl FnMut(&Sample)) {
        let Some(price) = sample.price.and_then(|price| price.thousandths()) else {
            return;
        };
        let day = sample.utc_day();
        if sample.first_date() < day {
            return;
        }
        if self.day != day {
            self.close_day(visit);
            self.day = day;
        }
        self.seen.push(PriceOfDay {
            dates: sample.dates(),
            price,
            is_complete: sample.status == SampleStatus::Complete,
        });
        self.samples.push(*sample);
    }

    fn close_day(&mut self, mut visit: impl FnMut(&Sample)) {
        let usual = self.check.check_day(self.day, &self.seen);
        let mut lowest = Vec::with_capacity(self.seen.len());
        let seen = self.seen.drain(..).zip(self.samples.drain(..));
        for ((seen, sample), usual) in seen.zip(usual) {
            let (first_date, _) = seen.dates;
            let price = DailyPrice {
                nights: sample.nights(),
                day: self.day,
                first_date,
                price: seen.price,
            };
            if let Some(usual) = usual {
                let judged = JudgedPrice::of_daily(&price);
                self.prices.implausible.insert(judged, usual);
                continue;
            }
            visit(&sample);
            // A partial answer may lack the lowest price.
            if seen.is_complete {
                lowest.push(price);
            }
        }
        keep_lowest(&mut lowest);
        self.prices.daily.append(&mut lowest);
    }

    pub(in crate::history) fn finish(self) -> PlausiblePrices {
        self.finish_with(|_| {})
    }

    /// As [`Self::finish`]. Calls `visit` with the samples of the last day that have a plausible
    /// price.
    pub(in crate::history) fn finish_with(mut self, visit: impl FnMut(&Sample)) -> PlausiblePrices {
        self.close_day(visit);
        keep_lowest(&mut self.prices.daily);
        self.prices
    }
}

/// Sorts prices and leaves the lowest of each length, day and date.
fn keep_lowest(prices: &mut Vec<DailyPrice>) {
    prices.sort_unstable();
    prices.dedup_by_key(|price| (price.nights, price.day, price.first_date));
}
