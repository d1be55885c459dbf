//! The samples of one product, each with what is usual if its price is implausible (history.md,
//! rules 43 to 45). Pure.

use super::plausibility::{MedianPrice, PlausibilityCheck, PriceOfDay};
use super::price::CompactPrice;
use super::sample::{Sample, SampleStatus};

/// A sample, and the usual price if its own is implausible.
#[derive(Debug, Clone, Copy)]
pub(super) struct MarkedSample {
    pub(super) sample: Sample,
    pub(super) usual: Option<MedianPrice>,
}

impl MarkedSample {
    /// The price, if it is plausible or cannot be compared.
    pub(super) fn plausible_price(&self) -> Option<CompactPrice> {
        self.sample.price.filter(|_| self.usual.is_none())
    }

    /// The price, if it is implausible.
    pub(super) fn implausible_price(&self) -> Option<CompactPrice> {
        self.sample.price.filter(|_| self.usual.is_some())
    }
}

impl PriceOfDay {
    /// `None` for what is never compared: no price, one that is too large, and one that was seen after
    /// the departure or check-in.
    pub(super) fn of(sample: &Sample) -> Option<Self> {
        if sample.first_date() < sample.utc_day() {
            return None;
        }
        Some(Self {
            dates: sample.dates(),
            price: sample.price?.thousandths()?,
            is_complete: sample.status == SampleStatus::Complete,
        })
    }
}

/// Marks samples. They must arrive in the order of their times: only those of one day are held
/// together, because further prices of a day may remove a mark.
#[derive(Debug, Default)]
pub(super) struct MarkedSamples {
    /// The last day, in UTC and days since 1970 …
    day: i32,
    /// … its samples, not yet marked …
    samples: Vec<MarkedSample>,
    /// … and those of their prices that are compared.
    prices: Vec<PriceOfDay>,
    check: PlausibilityCheck,
}

impl MarkedSamples {
    /// Adds a sample. Calls `take_day` with the samples of the day before, once it is over.
    pub(super) fn add(&mut self, sample: &Sample, take_day: impl FnOnce(&[MarkedSample])) {
        let day = sample.utc_day();
        if self.day != day {
            self.close_day(take_day);
            self.day = day;
        }
        self.prices.extend(PriceOfDay::of(sample));
        self.samples.push(MarkedSample {
            sample: *sample,
            usual: None,
        });
    }

    /// Calls `take_day` with the samples of the last day.
    pub(super) fn finish(mut self, take_day: impl FnOnce(&[MarkedSample])) {
        self.close_day(take_day);
    }

    fn close_day(&mut self, take_day: impl FnOnce(&[MarkedSample])) {
        let mut usual = self.check.check_day(self.day, &self.prices).into_iter();
        self.prices.clear();
        for marked in &mut self.samples {
            if PriceOfDay::of(&marked.sample).is_some() {
                marked.usual = usual.next().flatten();
            }
        }
        take_day(&self.samples);
        self.samples.clear();
    }
}
