//! One price for each departure or stay and day, without implausible ones.

use std::collections::HashMap;

use rust_decimal::Decimal;

use super::JudgedPrice;
use crate::history::marked_samples::{MarkedSample, MarkedSamples};
use crate::history::plausibility::{MedianPrice, PriceOfDay};
use crate::history::sample::Sample;

/// The lowest price of a departure or stay on one day. The order of the fields is the order of
/// [`PlausiblePrices::daily`].
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

/// The prices of one product (history.md, rules 34 and 43).
#[derive(Debug, Default)]
pub(in crate::history) struct PlausiblePrices {
    /// The lowest plausible one of each length, day and date; once [`Self::sorted`], in this order.
    pub(in crate::history) daily: Vec<DailyPrice>,
    /// The implausible ones, each with the usual price.
    pub(in crate::history) implausible: HashMap<JudgedPrice, MedianPrice>,
}

impl PlausiblePrices {
    /// Adds the prices of a day. Days must ascend.
    pub(in crate::history) fn add_day(&mut self, samples: &[MarkedSample]) {
        let mut lowest = Vec::with_capacity(samples.len());
        for marked in samples {
            let Some(seen) = PriceOfDay::of(&marked.sample) else {
                continue;
            };
            let (first_date, _) = seen.dates;
            let price = DailyPrice {
                nights: marked.sample.nights(),
                day: marked.sample.utc_day(),
                first_date,
                price: seen.price,
            };
            if let Some(usual) = marked.usual {
                let judged = JudgedPrice::of_daily(&price);
                self.implausible.insert(judged, usual);
            } else if seen.is_complete {
                // A partial answer may lack the lowest price.
                lowest.push(price);
            }
        }
        keep_lowest(&mut lowest);
        self.daily.append(&mut lowest);
    }

    /// The same, in the order of the lengths.
    pub(in crate::history) fn sorted(mut self) -> Self {
        keep_lowest(&mut self.daily);
        self
    }
}

/// Sorts prices and leaves the lowest of each length, day and date.
fn keep_lowest(prices: &mut Vec<DailyPrice>) {
    prices.sort_unstable();
    prices.dedup_by_key(|price| (price.nights, price.day, price.first_date));
}

/// Collects the prices of one product. Samples must arrive in the order of their times.
#[derive(Debug, Default)]
pub(in crate::history) struct DailyPrices {
    marked: MarkedSamples,
    prices: PlausiblePrices,
}

impl DailyPrices {
    /// Adds the price of a sample, if its departure or check-in had not passed.
    pub(in crate::history) fn add(&mut self, sample: &Sample) {
        self.add_with(sample, |_| {});
    }

    /// As [`Self::add`]. Calls `visit` with the samples of the day before, once it is over, that have
    /// a plausible price.
    pub(in crate::history) fn add_with(&mut self, sample: &Sample, visit: impl FnMut(&Sample)) {
        if PriceOfDay::of(sample).is_some() {
            let prices = &mut self.prices;
            self.marked.add(sample, |day| take_day(prices, day, visit));
        }
    }

    pub(in crate::history) fn finish(self) -> PlausiblePrices {
        self.finish_with(|_| {})
    }

    /// As [`Self::finish`]. Calls `visit` with the samples of the last day that have a plausible
    /// price.
    pub(in crate::history) fn finish_with(self, visit: impl FnMut(&Sample)) -> PlausiblePrices {
        let mut prices = self.prices;
        self.marked.finish(|day| take_day(&mut prices, day, visit));
        prices.sorted()
    }
}

fn take_day(prices: &mut PlausiblePrices, day: &[MarkedSample], visit: impl FnMut(&Sample)) {
    prices.add_day(day);
    let plausible = day.iter().filter(|marked| marked.usual.is_none());
    plausible.map(|marked| &marked.sample).for_each(visit);
}
