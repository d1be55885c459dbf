//! One price for each departure or stay and day.

use rust_decimal::Decimal;

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

/// Collects the prices of one product (history.md, rule 34). Samples should arrive day by day: only
/// those of one day are held together.
#[derive(Debug, Default)]
pub(in crate::history) struct DailyPrices {
    /// Of the last day.
    day: Vec<DailyPrice>,
    /// The lowest of the days before.
    lowest: Vec<DailyPrice>,
}

impl DailyPrices {
    /// Adds the price of a sample, if it counts: the search was complete, and its departure or
    /// check-in had not passed.
    pub(in crate::history) fn add(&mut self, sample: &Sample) {
        let Some(price) = sample.price.and_then(|price| price.thousandths()) else {
            return;
        };
        let day = sample.utc_day();
        if sample.status != SampleStatus::Complete || sample.first_date() < day {
            return;
        }
        if self.day.first().is_some_and(|first| first.day != day) {
            self.close_day();
        }
        self.day.push(DailyPrice {
            nights: sample.nights(),
            day,
            first_date: sample.first_date(),
            price,
        });
    }

    fn close_day(&mut self) {
        keep_lowest(&mut self.day);
        self.lowest.append(&mut self.day);
    }

    /// The lowest price of each length, day and date, in this order.
    pub(in crate::history) fn finish(mut self) -> Vec<DailyPrice> {
        self.close_day();
        keep_lowest(&mut self.lowest);
        self.lowest
    }
}

/// Sorts prices and leaves the lowest of each length, day and date.
fn keep_lowest(prices: &mut Vec<DailyPrice>) {
    prices.sort_unstable();
    prices.dedup_by_key(|price| (price.nights, price.day, price.first_date));
}
