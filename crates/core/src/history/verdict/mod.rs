//! The verdict on a price: its percentile among the caller's own past prices of the same product,
//! seen the same number of days before departure or check-in (history.md, rules 33 to 46). Pure.
//!
//! [`PlausiblePrices`] are one for each departure or stay and day, without implausible ones, to which
//! [`DailyPrices`] reduces samples; [`verdicts`] judges prices by those of the days before. The statement in
//! docs/guides/is-that-a-good-price.md computes the same from an exported file: whoever changes a
//! formula changes both.

mod daily_price;
mod formula;
mod sentence;
mod window;

#[cfg(test)]
mod tests;

use std::ops::Range;

use jiff::civil::{Date, date};
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use rust_decimal::Decimal;

pub(super) use self::daily_price::{DailyPrice, DailyPrices, PlausiblePrices};
use self::window::PriceWindow;
use super::plausibility::{self, MedianPrice};
use super::price::CompactPrice;
use super::sample::{Sample, day, midnight};
use crate::contract::Api;
use crate::contract::history_verdict::{HistoryVerdict, LeadBin, PriceClass, UsualPrice};

/// How far back prices are compared, in days.
const WINDOW_DAYS: i32 = 180;
/// Fewer prices than this give no verdict, and no frequency.
const MIN_PRICES: u32 = 20;
/// A price becomes cheaper within this many days.
const CHEAPER_WITHIN_DAYS: i32 = 14;

/// The first days of the bins of days before departure or check-in.
const BINS: [i32; 8] = [0, 4, 8, 15, 31, 61, 91, 121];

/// A price to be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct JudgedPrice {
    /// The day in UTC on which it was seen, in days since 1970.
    day: i32,
    /// Departure or check-in, in days since 1970.
    first_date: i32,
    /// Length of the trip or stay; `None` for one way.
    nights: Option<i32>,
    /// In thousandths.
    price: i64,
}

impl JudgedPrice {
    /// `None` for a price that is too large to compare.
    fn new(day: i32, first_date: i32, nights: Option<i32>, price: CompactPrice) -> Option<Self> {
        Some(Self {
            day,
            first_date,
            nights,
            price: price.thousandths()?,
        })
    }

    /// A daily price.
    pub(super) fn of_daily(price: &DailyPrice) -> Self {
        Self {
            day: price.day,
            first_date: price.first_date,
            nights: price.nights,
            price: price.price,
        }
    }

    /// The price of a sample, if there is one that can be compared.
    pub(super) fn of(sample: &Sample) -> Option<Self> {
        let (seen_on, first) = (sample.utc_day(), sample.first_date());
        Self::new(seen_on, first, sample.nights(), sample.price?)
    }

    /// A price of these dates; `None` if it is too large to compare.
    pub(super) fn of_dates(
        seen_on: Date,
        first_date: Date,
        last_date: Option<Date>,
        price: Decimal,
    ) -> Option<Self> {
        let (seen_on, first) = (day(seen_on), day(first_date));
        let nights = last_date.map(|last| day(last) - first);
        Self::new(seen_on, first, nights, price.into())
    }
}

/// The begin of the first day that says something about a price that was seen at `time`: of those
/// with which it is compared, and of those before, which say whether these are plausible.
pub(super) fn compared_since(time: Timestamp) -> Timestamp {
    days_before(time, WINDOW_DAYS + plausibility::MAX_AGE_DAYS)
}

/// The begin of the first day that says whether a price that was seen at `time` is plausible.
pub(super) fn plausible_since(time: Timestamp) -> Timestamp {
    days_before(time, plausibility::MAX_AGE_DAYS)
}

fn days_before(time: Timestamp, days: i32) -> Timestamp {
    midnight(time)
        .checked_sub(SignedDuration::from_hours(24 * i64::from(days)))
        .unwrap_or(Timestamp::MIN)
}

/// The end of the day on which a price was seen: until then other prices of that day may say that
/// it is plausible after all.
pub(super) fn end_of_day(time: Timestamp) -> Timestamp {
    days_before(time, -1)
}

/// The bin of a number of days before departure or check-in; `None` after it.
fn bin_of(lead: i32) -> Option<usize> {
    BINS.partition_point(|first| *first <= lead).checked_sub(1)
}

fn bin_bounds(bin: usize) -> LeadBin {
    LeadBin {
        from_days: BINS[bin].unsigned_abs(),
        to_days: BINS.get(bin + 1).map(|next| next.unsigned_abs() - 1),
    }
}

/// The verdicts on prices of one product, in their order, by the product's prices of the days
/// before each. Without a price there is no verdict.
pub(super) fn verdicts(
    api: Api,
    prices: &PlausiblePrices,
    judged: &[Option<JudgedPrice>],
) -> Vec<Option<HistoryVerdict>> {
    let mut verdicts = verdicts_without_sentences(prices, judged);
    for verdict in verdicts.iter_mut().flatten() {
        add_sentence(verdict, api);
    }
    verdicts
}

/// Says a verdict in words.
pub(super) fn add_sentence(verdict: &mut HistoryVerdict, api: Api) {
    verdict.sentence = sentence::sentence(verdict, api);
}

/// The usual price in major units, and the oldest of its days.
pub(super) fn usual_price(median: MedianPrice) -> UsualPrice {
    UsualPrice {
        price: Decimal::new(median.price, 3).normalize(),
        since: date_of(median.since),
    }
}

/// As [`verdicts`], for many prices of which few are shown.
pub(super) fn verdicts_without_sentences(
    prices: &PlausiblePrices,
    judged: &[Option<JudgedPrice>],
) -> Vec<Option<HistoryVerdict>> {
    let mut verdicts = vec![None; judged.len()];
    let known = judged.iter().zip(&mut verdicts);
    let mut known: Vec<_> = known
        .filter_map(|(judged, verdict)| Some((judged.as_ref()?, verdict)))
        .collect();
    known.sort_by_key(|(judged, _)| (judged.nights, judged.day));
    for of_one_length in known.chunk_by_mut(|one, other| one.0.nights == other.0.nights) {
        let nights = of_one_length[0].0.nights;
        let mut window = PriceWindow::new(&prices.daily[range_of(&prices.daily, nights)]);
        for (judged, verdict) in of_one_length {
            let compared = window.verdict(judged);
            **verdict = Some(match prices.implausible.get(judged) {
                None => compared,
                Some(median) => HistoryVerdict {
                    class: PriceClass::Implausible,
                    percentile: None,
                    became_cheaper: None,
                    usual: Some(usual_price(*median)),
                    ..compared
                },
            });
        }
    }
    verdicts
}

/// Where the prices of one length of trip are. `prices` are sorted by it first.
fn range_of(prices: &[DailyPrice], nights: Option<i32>) -> Range<usize> {
    let begin = prices.partition_point(|price| price.nights < nights);
    let end = prices.partition_point(|price| price.nights <= nights);
    begin..end
}

fn date_of(day: i32) -> Date {
    date(1970, 1, 1).saturating_add(day.days())
}
