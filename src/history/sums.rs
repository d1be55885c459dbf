//! Adding up looks, bucket by bucket: pure.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use super::look::{Came, Dates, Look};
use super::price::{Price, Prices, Range};
use crate::contract::series::Bucket;

/// Which looks are added up into which buckets.
#[derive(Debug, Clone)]
pub(super) struct Measure {
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
    pub(super) bucket: Bucket,
    /// Whose midnights part the buckets.
    pub(super) zone: TimeZone,
    pub(super) dates: Dates,
}

/// What was seen in one bucket.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sum {
    /// Its first day.
    pub(super) bucket: Date,
    pub(super) observations: u64,
    pub(super) empty: u64,
    pub(super) degraded: u64,
    /// How many of the looks brought a price.
    pub(super) prices: u64,
    pub(super) range: Option<Range>,
    pub(super) band_low: Option<Price>,
    pub(super) band_high: Option<Price>,
}

/// The buckets of one product. Looks come in the order of their times.
#[derive(Debug)]
pub(super) struct Sums<'a> {
    measure: &'a Measure,
    /// The end of the last bucket, in microseconds since 1970: a look before it belongs into that.
    ends_at: i64,
    /// The prices of the last bucket: of those before only what they came to is kept.
    prices: Prices,
    buckets: Vec<Sum>,
}

impl<'a> Sums<'a> {
    pub(super) fn new(measure: &'a Measure) -> Self {
        Self {
            measure,
            ends_at: i64::MIN,
            prices: Prices::default(),
            buckets: Vec::new(),
        }
    }

    /// Adds a look, if it is one that is asked for.
    pub(super) fn add(&mut self, look: &Look) {
        let measure = self.measure;
        let is_asked =
            look.at >= measure.since.as_microsecond() && look.at < measure.until.as_microsecond();
        if !is_asked || !look.is_about(measure.dates) {
            return;
        }
        if look.at >= self.ends_at
            && let Ok(time) = Timestamp::from_microsecond(look.at)
        {
            let bucket = measure.bucket_of(time);
            self.ends_at = measure.end_of(bucket);
            self.close();
            self.buckets.push(Sum::new(bucket));
        }
        if let Some(price) = look.price {
            self.prices.push(price);
        }
        if let Some(sum) = self.buckets.last_mut() {
            sum.count(look);
        }
    }

    /// The buckets in which somebody looked, in their order.
    pub(super) fn finish(mut self) -> Vec<Sum> {
        self.close();
        self.buckets
    }

    fn close(&mut self) {
        if let Some(sum) = self.buckets.last_mut() {
            sum.prices = self.prices.len() as u64;
            sum.range = self.prices.take_range();
        }
    }
}

impl Measure {
    fn bucket_of(&self, time: Timestamp) -> Date {
        let day = time.to_zoned(self.zone.clone()).date();
        match self.bucket {
            Bucket::Day => day,
            Bucket::Week => {
                day.saturating_sub(i64::from(day.weekday().since(Weekday::Monday)).days())
            }
        }
    }

    /// In microseconds since 1970.
    fn end_of(&self, bucket: Date) -> i64 {
        let days = match self.bucket {
            Bucket::Day => 1,
            Bucket::Week => 7,
        };
        let next = bucket
            .checked_add(days.days())
            .and_then(|next| next.to_zoned(self.zone.clone()));
        next.map_or(i64::MAX, |next| next.timestamp().as_microsecond())
    }
}

impl Sum {
    fn new(bucket: Date) -> Self {
        Self {
            bucket,
            observations: 0,
            empty: 0,
            degraded: 0,
            prices: 0,
            range: None,
            band_low: None,
            band_high: None,
        }
    }

    fn count(&mut self, look: &Look) {
        self.observations += 1;
        match look.came {
            Came::Answered => {}
            Came::Empty => self.empty += 1,
            Came::Degraded => self.degraded += 1,
        }
        let (low, high) = look.band;
        if low.is_some_and(|low| self.band_low.is_none_or(|known| low < known)) {
            self.band_low = low;
        }
        if high.is_some_and(|high| self.band_high.is_none_or(|known| high > known)) {
            self.band_high = high;
        }
    }

    /// How many of the looks did not complete, of all: to four decimals.
    pub(super) fn degraded_share(&self) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of looks are far below 2^52"
        )]
        let share = self.degraded as f64 / self.observations.max(1) as f64;
        (share * 10_000.0).round() / 10_000.0
    }
}
