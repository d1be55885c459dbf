//! Aggregates samples into buckets. Pure.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use rust_decimal::Decimal;

use super::marked_samples::MarkedSample;
use super::price::{CompactPrice, PriceAccumulator, PriceRange};
use super::sample::{DateFilter, Sample, SampleStatus};
use crate::contract::series::Bucket;

/// Which samples go into which buckets.
#[derive(Debug, Clone)]
pub(super) struct BucketSpec {
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
    pub(super) bucket: Bucket,
    /// Buckets begin at midnight in this zone.
    pub(super) zone: TimeZone,
    pub(super) dates: DateFilter,
}

/// The statistics of one bucket.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BucketStats {
    /// First day of the bucket.
    pub bucket: Date,
    pub(super) observations: u64,
    pub(super) empty: u64,
    pub(super) degraded: u64,
    /// Number of samples with a plausible price.
    pub(super) prices: u64,
    /// Of the plausible prices.
    pub range: Option<PriceRange>,
    /// The first sample with the lowest plausible price.
    pub(super) lowest: Option<Sample>,
    /// Number of samples with an implausible price.
    pub implausible: u64,
    lowest_implausible: Option<CompactPrice>,
    band_low: Option<CompactPrice>,
    band_high: Option<CompactPrice>,
}

/// Aggregates the samples of one product. Samples must arrive in chronological order.
#[derive(Debug)]
pub(super) struct BucketAggregator<'a> {
    spec: &'a BucketSpec,
    /// End of the last bucket, in microseconds since 1970.
    ends_at: i64,
    /// Prices of the last bucket only; earlier buckets hold their final statistics.
    prices: PriceAccumulator,
    buckets: Vec<BucketStats>,
}

impl<'a> BucketAggregator<'a> {
    pub(super) fn new(spec: &'a BucketSpec) -> Self {
        Self {
            spec,
            ends_at: i64::MIN,
            prices: PriceAccumulator::default(),
            buckets: Vec::new(),
        }
    }

    /// Adds a sample if it matches the requested range and dates.
    pub(super) fn add(&mut self, marked: &MarkedSample) {
        let sample = &marked.sample;
        if !self.spec.selects(sample) {
            return;
        }
        if sample.at >= self.ends_at
            && let Some((bucket, ends_at)) = self.spec.bucket_at(sample.at)
        {
            self.ends_at = ends_at;
            self.close();
            self.buckets.push(BucketStats {
                bucket,
                ..BucketStats::default()
            });
        }
        if let Some(price) = marked.plausible_price() {
            self.prices.push(price);
        }
        if let Some(bucket) = self.buckets.last_mut() {
            bucket.count(marked);
        }
    }

    /// The non-empty buckets, oldest first.
    pub(super) fn finish(mut self) -> Vec<BucketStats> {
        self.close();
        self.buckets
    }

    fn close(&mut self) {
        if let Some(bucket) = self.buckets.last_mut() {
            bucket.prices = self.prices.len() as u64;
            bucket.range = self.prices.take_range();
        }
    }
}

impl BucketSpec {
    /// Whether a sample is in the requested range and of the requested dates.
    pub(super) fn selects(&self, sample: &Sample) -> bool {
        sample.at >= self.since.as_microsecond()
            && sample.at < self.until.as_microsecond()
            && sample.matches(self.dates)
    }

    /// The bucket of a time and the bucket's end; times are in microseconds since 1970.
    pub(super) fn bucket_at(&self, at: i64) -> Option<(Date, i64)> {
        let time = Timestamp::from_microsecond(at).ok()?;
        let day = time.to_zoned(self.zone.clone()).date();
        let (bucket, days) = match self.bucket {
            Bucket::Day => (day, 1),
            Bucket::Week => {
                let past = i64::from(day.weekday().since(Weekday::Monday));
                (day.saturating_sub(past.days()), 7)
            }
        };
        let next = bucket
            .checked_add(days.days())
            .and_then(|next| next.to_zoned(self.zone.clone()));
        let ends_at = next.map_or(i64::MAX, |next| next.timestamp().as_microsecond());
        Some((bucket, ends_at))
    }
}

impl BucketStats {
    fn count(&mut self, marked: &MarkedSample) {
        let sample = &marked.sample;
        self.observations += 1;
        match sample.status {
            SampleStatus::Complete | SampleStatus::Partial => {}
            SampleStatus::Empty => self.empty += 1,
            SampleStatus::Degraded => self.degraded += 1,
        }
        let lowest = self.lowest.and_then(|lowest| lowest.price);
        let price = marked.plausible_price();
        if price.is_some_and(|price| lowest.is_none_or(|lowest| price < lowest)) {
            self.lowest = Some(*sample);
        }
        if let Some(price) = marked.implausible_price() {
            self.implausible += 1;
            self.lowest_implausible = self.lowest_implausible.into_iter().chain([price]).min();
        }
        let (low, high) = sample.band;
        if low.is_some_and(|low| self.band_low.is_none_or(|known| low < known)) {
            self.band_low = low;
        }
        if high.is_some_and(|high| self.band_high.is_none_or(|known| high > known)) {
            self.band_high = high;
        }
    }

    /// The lowest implausible price.
    pub fn lowest_implausible(&self) -> Option<Decimal> {
        self.lowest_implausible.map(Decimal::from)
    }

    /// The lowest bottom and the highest top of the provider's bands.
    pub fn band(&self) -> (Option<Decimal>, Option<Decimal>) {
        let price = |price: Option<CompactPrice>| price.map(Decimal::from);
        (price(self.band_low), price(self.band_high))
    }

    /// Degraded samples as a share of all samples, rounded to four decimals.
    pub(super) fn degraded_share(&self) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of samples are far below 2^52"
        )]
        let share = self.degraded as f64 / self.observations.max(1) as f64;
        (share * 10_000.0).round() / 10_000.0
    }
}
