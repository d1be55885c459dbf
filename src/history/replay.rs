//! The daily prices of past searches with their past as it was on their day, for backtests
//! (monitors.md, rules 80 to 83).
//!
//! A price of a day is the lowest that a complete search found on that day of UTC (history.md, rule
//! 34). Not here: which searches a monitor would have made (`monitors`).

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use rust_decimal::Decimal;
use sqlx::PgConnection;

use super::past_prices::{
    PRODUCTS_AT_A_TIME, PastError, PastOfPrice, PastQuestion, ProductRange, read_samples,
};
use super::sample::day;
use super::series::SeriesKey;
use super::verdict::{self, DailyPrice, DailyPrices, JudgedPrice};
use crate::contract::Api;
use crate::contract::history_verdict::HistoryVerdict;
use crate::ids::TenantId;

/// A search that a monitor would have made.
#[derive(Debug, Clone, Copy)]
pub struct ReplayedSearch {
    /// The product.
    pub series: SeriesKey,
    /// Departure or check-in.
    pub first_date: Date,
    /// Return or check-out, if any.
    pub last_date: Option<Date>,
    /// The day in UTC.
    pub day: Date,
}

/// What a replayed search would have found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplayedPrice {
    /// The price of its day; `None` if nobody searched it then, or nothing was on offer.
    pub price: Option<Decimal>,
    /// What came before that day; its verdict has no sentence.
    pub past: PastOfPrice,
}

/// Says a verdict of a replayed price in words, which it lacks: few are shown.
pub fn add_sentence(verdict: &mut HistoryVerdict, api: Api) {
    verdict::add_sentence(verdict, api);
}

/// The prices of searches, in their order.
///
/// # Errors
/// When `until` passes first, or the database fails.
pub async fn replay(
    conn: &mut PgConnection,
    tenant: TenantId,
    question: &PastQuestion,
    searches: &[ReplayedSearch],
    until: Instant,
) -> Result<Vec<ReplayedPrice>, PastError> {
    let mut by_series = BTreeMap::<_, Vec<_>>::new();
    for (place, search) in searches.iter().enumerate() {
        by_series.entry(search.series).or_default().push(place);
    }
    let by_series: Vec<_> = by_series.into_iter().collect();
    let days = question.lowest_of_days.iter().copied().max().unwrap_or(0);
    let mut found = vec![ReplayedPrice::default(); searches.len()];
    for products in by_series.chunks(PRODUCTS_AT_A_TIME) {
        let ranges: Vec<_> = products
            .iter()
            .map(|(key, places)| range(*key, places, searches, question.verdicts, days))
            .collect();
        let mut daily: Vec<_> = products.iter().map(|_| DailyPrices::default()).collect();
        read_samples(conn, tenant, &ranges, Some(until), |product, sample| {
            daily[product].add(sample);
        })
        .await?;
        for ((_, places), daily) in products.iter().zip(daily) {
            let of_product: Vec<_> = places.iter().map(|place| searches[*place]).collect();
            let question = question.clone();
            let replay = move || replay_product(daily, &of_product, &question);
            let prices = match tokio::task::spawn_blocking(replay).await {
                Ok(prices) => prices,
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            };
            for (place, price) in places.iter().zip(prices) {
                found[*place] = price;
            }
        }
    }
    Ok(found)
}

/// The times of a product that its searches and their past need. `places` has at least one.
fn range(
    key: SeriesKey,
    places: &[usize],
    searches: &[ReplayedSearch],
    is_judged: bool,
    days: u16,
) -> ProductRange {
    let days_of = || places.iter().map(|place| searches[*place].day);
    let begin = |day: Option<Date>| {
        let day = day.unwrap_or(date(1970, 1, 1));
        let day = day.to_zoned(TimeZone::UTC);
        day.map_or(Timestamp::UNIX_EPOCH, |day| day.timestamp())
    };
    let (first, last) = (begin(days_of().min()), begin(days_of().max()));
    let age = SignedDuration::from_hours(24 * i64::from(days));
    let mut since = verdict::plausible_since(first.checked_sub(age).unwrap_or(first));
    if is_judged {
        since = since.min(verdict::compared_since(first));
    }
    ProductRange {
        series: key.0.to_vec(),
        since,
        until: last + SignedDuration::from_hours(24),
    }
}

/// The searches of one product.
fn replay_product(
    daily: DailyPrices,
    searches: &[ReplayedSearch],
    question: &PastQuestion,
) -> Vec<ReplayedPrice> {
    let prices = daily.finish();
    let mut by_dates = HashMap::<_, Vec<DailyPrice>>::new();
    for price in &prices.daily {
        // Sorted by day, since they are within one length of trip.
        let dates = (price.nights, price.first_date);
        by_dates.entry(dates).or_default().push(*price);
    }
    let found: Vec<_> = searches
        .iter()
        .map(|search| {
            let (first, seen_on) = (day(search.first_date), day(search.day));
            let nights = search.last_date.map(|last| day(last) - first);
            let of_dates = by_dates.get(&(nights, first)).map(Vec::as_slice);
            let of_dates = of_dates.unwrap_or_default();
            let at = of_dates.binary_search_by_key(&seen_on, |price| price.day);
            at.ok().map(|at| (of_dates, at, nights))
        })
        .collect();
    let judged: Vec<_> = found
        .iter()
        .map(|found| {
            let (of_dates, at, _) = found.as_ref().filter(|_| question.verdicts)?;
            Some(JudgedPrice::of_daily(&of_dates[*at]))
        })
        .collect();
    let verdicts = verdict::verdicts_without_sentences(&prices, &judged);
    found
        .into_iter()
        .zip(verdicts)
        .map(|(found, verdict)| {
            let Some((of_dates, at, _)) = found else {
                return ReplayedPrice::default();
            };
            let lowest = question.lowest_of_days.iter().filter_map(|days| {
                let begin = of_dates[at].day - i32::from(*days);
                let first = of_dates[..at].partition_point(|price| price.day < begin);
                let lowest = of_dates[first..at].iter().min_by_key(|price| price.price)?;
                Some((*days, (lowest.decimal(), midnight_of(lowest.day))))
            });
            ReplayedPrice {
                price: Some(of_dates[at].decimal()),
                past: PastOfPrice {
                    verdict,
                    lowest: lowest.collect(),
                    last_answer: None,
                    implausible: None,
                },
            }
        })
        .collect()
}

fn midnight_of(day: i32) -> Timestamp {
    let day = date(1970, 1, 1).saturating_add(day.days());
    let day = day.to_zoned(TimeZone::UTC);
    day.map_or(Timestamp::UNIX_EPOCH, |day| day.timestamp())
}
