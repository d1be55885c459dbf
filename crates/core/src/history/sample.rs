//! A sample: an observation reduced to what aggregation needs, and the binary format of a day's
//! samples. Pure.
//!
//! `daily_pack` decides which days to pack; `aggregate` reads the samples.

use jiff::Timestamp;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::price::CompactPrice;
use crate::contract::SearchStatus;

/// First byte of a packed day. A new format needs a new number and a migration that repacks all
/// days.
const FORMAT_VERSION: u8 = 1;

/// A UTC day in microseconds.
const DAY: i64 = 24 * 3_600 * 1_000_000;
const EPOCH: Date = date(1970, 1, 1);

/// An observation, reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// Microseconds since 1970.
    pub(super) at: i64,
    /// Departure or check-in, in days since 1970.
    first_date: i32,
    /// Return or check-out, if any.
    last_date: Option<i32>,
    pub(super) status: SampleStatus,
    /// The price of an answered search.
    pub(super) price: Option<CompactPrice>,
    /// Lower and upper bound of the provider's price band.
    pub(super) band: Band,
}

type Band = (Option<CompactPrice>, Option<CompactPrice>);

/// The status of a search, reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SampleStatus {
    /// `ok`.
    Complete,
    /// `partial`: there are results, so a price is valid, but a lower one may be missing.
    Partial,
    Empty,
    Degraded,
}

/// The columns of an observation that make a sample.
#[derive(Debug, Clone)]
pub(super) struct RawSample {
    pub(super) observed_at: Timestamp,
    pub(super) first_date: Date,
    pub(super) last_date: Option<Date>,
    pub(super) status: SearchStatus,
    pub(super) price: Option<Decimal>,
    pub(super) band_low: Option<Decimal>,
    pub(super) band_high: Option<Decimal>,
}

/// A filter on travel or stay dates; `None` matches all.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DateFilter {
    first_from: Option<i32>,
    first_to: Option<i32>,
    last: Option<i32>,
}

/// A packed day in the format of another version.
#[derive(Debug, thiserror::Error)]
#[error("packed history day has an unknown format")]
pub(super) struct UnknownFormat;

impl Sample {
    pub(super) fn of(raw: &RawSample) -> Self {
        let status = match raw.status {
            SearchStatus::Ok => SampleStatus::Complete,
            SearchStatus::Partial => SampleStatus::Partial,
            SearchStatus::Empty => SampleStatus::Empty,
            SearchStatus::Degraded => SampleStatus::Degraded,
        };
        Self {
            at: raw.observed_at.as_microsecond(),
            first_date: day(raw.first_date),
            last_date: raw.last_date.map(day),
            status,
            price: raw
                .price
                .filter(|_| status.is_answered())
                .map(CompactPrice::from),
            band: (
                raw.band_low.map(CompactPrice::from),
                raw.band_high.map(CompactPrice::from),
            ),
        }
    }

    /// Start of its UTC day.
    pub(super) fn day(&self) -> Timestamp {
        Timestamp::from_microsecond(self.at - self.at.rem_euclid(DAY)).unwrap_or(Timestamp::MIN)
    }

    /// The same, in days since 1970.
    pub(super) fn utc_day(&self) -> i32 {
        i32::try_from(self.at.div_euclid(DAY)).unwrap_or(i32::MAX)
    }

    /// Departure or check-in, in days since 1970.
    pub(super) fn first_date(&self) -> i32 {
        self.first_date
    }

    /// First and last date, in days since 1970.
    pub(super) fn dates(&self) -> (i32, Option<i32>) {
        (self.first_date, self.last_date)
    }

    /// Days from departure or check-in to return or check-out, if any.
    pub(super) fn nights(&self) -> Option<i32> {
        Some(self.last_date? - self.first_date)
    }

    pub(super) fn matches(&self, dates: DateFilter) -> bool {
        dates.first_from.is_none_or(|from| self.first_date >= from)
            && dates.first_to.is_none_or(|to| self.first_date <= to)
            && dates.last.is_none_or(|last| self.last_date == Some(last))
    }
}

impl SampleStatus {
    fn is_answered(self) -> bool {
        matches!(self, Self::Complete | Self::Partial)
    }
}

impl DateFilter {
    pub(super) fn of(first_from: Option<Date>, first_to: Option<Date>, last: Option<Date>) -> Self {
        Self {
            first_from: first_from.map(day),
            first_to: first_to.map(day),
            last: last.map(day),
        }
    }
}

/// Start of the UTC day of `time`.
pub(super) fn midnight(time: Timestamp) -> Timestamp {
    time.to_zoned(TimeZone::UTC)
        .start_of_day()
        .map_or(time, |day| day.timestamp())
}

/// A date in days since 1970.
pub(super) fn day(date: Date) -> i32 {
    i32::try_from(date.duration_since(EPOCH).as_hours() / 24)
        .expect("the calendar has four million days")
}

// Header byte of a packed sample: the status in the lowest two bits, then flags for the numbers
// that follow after time and first date.
const STATUS_MASK: u8 = 0b0000_0011;
const COMPLETE: u8 = 0;
const EMPTY: u8 = 1;
const DEGRADED: u8 = 2;
const PARTIAL: u8 = 3;
/// Days from first date to last date.
const LAST_DATE: u8 = 0b0000_0100;
const SHORT_PRICE: u8 = 0b0000_1000;
const LONG_PRICE: u8 = 0b0001_0000;
/// Both bounds of the band are short.
const SHORT_BAND: u8 = 0b0010_0000;
/// Any other band. Neither flag: same band as the previous sample.
const OTHER_BAND: u8 = 0b0100_0000;

/// Appends a sample as a delta to the previous one: 10 to 15 bytes, mostly time and prices.
fn write(previous: &Sample, sample: &Sample, packed: Vec<u8>) -> Vec<u8> {
    let status = match sample.status {
        SampleStatus::Complete => COMPLETE,
        SampleStatus::Partial => PARTIAL,
        SampleStatus::Empty => EMPTY,
        SampleStatus::Degraded => DEGRADED,
    };
    let last_date = if sample.last_date.is_some() {
        LAST_DATE
    } else {
        0
    };
    let price = match sample.price {
        None => 0,
        Some(CompactPrice::Short(_)) => SHORT_PRICE,
        Some(CompactPrice::Long(_)) => LONG_PRICE,
    };
    let band = match sample.band {
        band if band == previous.band => 0,
        (Some(CompactPrice::Short(_)), Some(CompactPrice::Short(_))) => SHORT_BAND,
        _ => OTHER_BAND,
    };
    let mut packed = packed;
    packed.push(status | last_date | price | band);
    packed = put(packed, sample.at.wrapping_sub(previous.at));
    packed = put(packed, sample.first_date.wrapping_sub(previous.first_date));
    if let Some(last_date) = sample.last_date {
        packed = put(packed, last_date.wrapping_sub(sample.first_date));
    }
    packed = match sample.price {
        None => packed,
        Some(CompactPrice::Short(digits)) => put(packed, digits),
        Some(CompactPrice::Long(price)) => put(packed, price),
    };
    match sample.band {
        (Some(CompactPrice::Short(low)), Some(CompactPrice::Short(high))) if band == SHORT_BAND => {
            put(packed, (low, high))
        }
        any if band == OTHER_BAND => put(packed, any),
        _ => packed,
    }
}

/// Reads the sample that follows `previous`.
fn read(previous: &Sample, packed: &mut &[u8]) -> Result<Sample, UnknownFormat> {
    let (&head, rest) = packed.split_first().ok_or(UnknownFormat)?;
    *packed = rest;
    let status = match head & STATUS_MASK {
        EMPTY => SampleStatus::Empty,
        DEGRADED => SampleStatus::Degraded,
        PARTIAL => SampleStatus::Partial,
        _ => SampleStatus::Complete,
    };
    let at = previous.at.wrapping_add(take(packed)?);
    let first_date = previous.first_date.wrapping_add(take(packed)?);
    let last_date = if head & LAST_DATE == 0 {
        None
    } else {
        Some(first_date.wrapping_add(take(packed)?))
    };
    let price = match head & (SHORT_PRICE | LONG_PRICE) {
        0 => None,
        SHORT_PRICE => Some(CompactPrice::Short(take(packed)?)),
        LONG_PRICE => Some(CompactPrice::Long(take(packed)?)),
        _ => return Err(UnknownFormat),
    };
    let band = match head & (SHORT_BAND | OTHER_BAND) {
        0 => previous.band,
        SHORT_BAND => (
            Some(CompactPrice::Short(take(packed)?)),
            Some(CompactPrice::Short(take(packed)?)),
        ),
        OTHER_BAND => take(packed)?,
        _ => return Err(UnknownFormat),
    };
    Ok(Sample {
        at,
        first_date,
        last_date,
        status,
        price,
        band,
    })
}

fn put(packed: Vec<u8>, value: impl Serialize) -> Vec<u8> {
    postcard::to_extend(&value, packed).expect("numbers can always be written")
}

fn take<'a, Value: Deserialize<'a>>(packed: &mut &'a [u8]) -> Result<Value, UnknownFormat> {
    let (value, rest) = postcard::take_from_bytes(packed).map_err(|_| UnknownFormat)?;
    *packed = rest;
    Ok(value)
}

/// Predecessor of the first sample of a day.
const ZERO: Sample = Sample {
    at: 0,
    first_date: 0,
    last_date: None,
    status: SampleStatus::Complete,
    price: None,
    band: (None, None),
};

/// Packs the samples of a day, in order.
pub(super) fn pack(samples: &[Sample]) -> Vec<u8> {
    let before = std::iter::once(&ZERO).chain(samples);
    before
        .zip(samples)
        .fold(vec![FORMAT_VERSION], |packed, (previous, sample)| {
            write(previous, sample, packed)
        })
}

/// Unpacks the samples of a day in order. The iterator ends after an error.
pub(super) fn unpack(packed: &[u8]) -> impl Iterator<Item = Result<Sample, UnknownFormat>> + '_ {
    let (mut rest, mut previous) = (packed.strip_prefix(&[FORMAT_VERSION]), ZERO);
    std::iter::from_fn(move || {
        if rest.is_some_and(<[u8]>::is_empty) {
            return None;
        }
        let sample = rest
            .as_mut()
            .ok_or(UnknownFormat)
            .and_then(|rest| read(&previous, rest));
        match &sample {
            Ok(sample) => previous = *sample,
            Err(_) => rest = Some(&[]),
        }
        Some(sample)
    })
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use proptest::prelude::*;

    use super::*;
    use crate::history::price::tests::decimal;

    fn raw_sample() -> impl Strategy<Value = RawSample> {
        let status = prop::sample::select(vec![
            SearchStatus::Ok,
            SearchStatus::Partial,
            SearchStatus::Empty,
            SearchStatus::Degraded,
        ]);
        let days = (
            -100_000_i32..2_000_000,
            prop::option::of(-100_000_i32..2_000_000),
        );
        let date = |day: i32| EPOCH + SignedDuration::from_hours(24 * i64::from(day));
        let time = any::<i64>()
            .prop_map(|at| Timestamp::from_microsecond(at % 200_000_000_000_000_000).unwrap());
        (
            time,
            days,
            status,
            prop::option::of(decimal()),
            prop::option::of(decimal()),
            prop::option::of(decimal()),
        )
            .prop_map(
                move |(observed_at, days, status, price, band_low, band_high)| RawSample {
                    observed_at,
                    first_date: date(days.0),
                    last_date: days.1.map(date),
                    status,
                    price,
                    band_low,
                    band_high,
                },
            )
    }

    proptest! {
        #[test]
        fn unpacking_restores_packed_samples(raw in prop::collection::vec(raw_sample(), 0..80)) {
            let samples: Vec<_> = raw.iter().map(Sample::of).collect();
            let unpacked: Vec<_> = unpack(&pack(&samples)).map(Result::unwrap).collect();
            prop_assert_eq!(&unpacked, &samples);
            for (sample, raw) in unpacked.iter().zip(&raw) {
                let answered = matches!(raw.status, SearchStatus::Ok | SearchStatus::Partial);
                prop_assert_eq!(sample.at, raw.observed_at.as_microsecond());
                let prices = [sample.price, sample.band.0, sample.band.1].map(|price| price.map(Decimal::from));
                prop_assert_eq!(sample.status == SampleStatus::Partial, raw.status == SearchStatus::Partial);
                prop_assert_eq!(prices, [raw.price.filter(|_| answered), raw.band_low, raw.band_high]);
                let one = DateFilter::of(Some(raw.first_date), Some(raw.first_date), raw.last_date);
                prop_assert!(sample.matches(one));
            }
        }

        /// Arbitrary bytes give at most one error, and the iterator ends.
        #[test]
        fn unpacking_arbitrary_bytes_fails_once_or_ends(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let read: Vec<_> = unpack(&bytes).collect();
            let errors = read.iter().filter(|sample| sample.is_err()).count();
            prop_assert!(errors <= 1 && read.iter().rev().skip(1).all(Result::is_ok));
            prop_assert!(bytes.first() == Some(&FORMAT_VERSION) || read.len() == 1 && errors == 1);
        }
    }

    #[test]
    fn samples_match_date_filters() {
        let sample = |first: Date, last: Option<Date>| {
            Sample::of(&RawSample {
                observed_at: Timestamp::UNIX_EPOCH,
                first_date: first,
                last_date: last,
                status: SearchStatus::Ok,
                price: None,
                band_low: None,
                band_high: None,
            })
        };
        let day = |day| date(2027, 1, day);
        for (dates, expected) in [
            (DateFilter::default(), true),
            (DateFilter::of(Some(day(14)), Some(day(14)), None), true),
            (DateFilter::of(Some(day(15)), None, None), false),
            (DateFilter::of(None, Some(day(13)), None), false),
            (DateFilter::of(None, None, Some(day(20))), true),
            (DateFilter::of(None, None, Some(day(21))), false),
        ] {
            assert_eq!(
                sample(day(14), Some(day(20))).matches(dates),
                expected,
                "{dates:?}"
            );
        }
        assert!(
            !sample(day(14), None).matches(DateFilter::of(None, None, Some(day(14)))),
            "one way has no return"
        );
    }
}
