//! The daily prices of past searches with their past as it was on their day, for backtests
//! (monitors.md, rules 80 to 83).
//!
//! A price of a day is the lowest that a complete search found on that day of UTC (history.md, rule
//! 34). Not here: which searches a monitor would have made (`monitors`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use rust_decimal::Decimal;
use sqlx::PgConnection;

use super::compute::compute;
use super::past_prices::{
    LastAnswer, MAX_ANSWER_AGE, PRODUCTS_AT_A_TIME, PastError, PastOfPrice, PastQuestion,
    read_samples,
};
use super::price::CompactPrice;
use super::sample::{Sample, SampleStatus, day};
use super::series_key::SeriesKey;
use super::store::past_prices::{self as store, SeriesRange};
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
    /// Whether it searches a hotel by its name: then an empty answer may be one about the name.
    pub by_name: bool,
}

impl ReplayedSearch {
    /// Its dates in days since 1970.
    fn dates(&self) -> (i32, Option<i32>) {
        (day(self.first_date), self.last_date.map(day))
    }
}

/// What a replayed search would have found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplayedPrice {
    /// The price of its day; `None` if nobody searched it then, or nothing was on offer.
    pub price: Option<Decimal>,
    /// The price is implausible, and only an offer: its day has no other. Only where last answers are
    /// asked for.
    pub is_implausible: bool,
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
            .map(|(key, places)| range(*key, places, searches, question, days))
            .collect();
        let mut daily: Vec<_> = products
            .iter()
            .map(|(_, places)| {
                let asked = places.iter().filter(|_| question.last_answer);
                let answers = DailyAnswers::of(asked.map(|place| &searches[*place]));
                (DailyPrices::default(), answers)
            })
            .collect();
        if question.last_answer && searches.iter().any(|search| search.by_name) {
            let unmatched = store::unmatched(conn, tenant, &ranges).await?;
            for (product, at) in unmatched {
                daily[product].1.unmatched.insert(at);
            }
        }
        read_samples(conn, tenant, &ranges, Some(until), |product, sample| {
            let (prices, answers) = &mut daily[product];
            prices.add(sample);
            answers.add(sample);
        })
        .await?;
        for ((_, places), (daily, answers)) in products.iter().zip(daily) {
            let of_product: Vec<_> = places.iter().map(|place| searches[*place]).collect();
            let question = question.clone();
            let replay = move || replay_product(daily, &answers, &of_product, &question);
            let prices = compute(replay).await;
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
    question: &PastQuestion,
    days: u16,
) -> SeriesRange {
    let days_of = || places.iter().map(|place| searches[*place].day);
    let begin = |day: Option<Date>| {
        let day = day.unwrap_or(date(1970, 1, 1));
        let day = day.to_zoned(TimeZone::UTC);
        day.map_or(Timestamp::UNIX_EPOCH, |day| day.timestamp())
    };
    let (first, last) = (begin(days_of().min()), begin(days_of().max()));
    let age = SignedDuration::from_hours(24 * i64::from(days));
    let mut since = verdict::plausible_since(first.checked_sub(age).unwrap_or(first));
    if question.verdicts {
        since = since.min(verdict::compared_since(first));
    }
    if question.last_answer {
        since = since.min(first.checked_sub(MAX_ANSWER_AGE).unwrap_or(first));
    }
    SeriesRange {
        series: key.0.to_vec(),
        since,
        until: last + SignedDuration::from_hours(24),
    }
}

/// The searches of one product.
fn replay_product(
    daily: DailyPrices,
    answers: &DailyAnswers,
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
            let (seen_on, (first, last)) = (day(search.day), search.dates());
            let nights = last.map(|last| last - first);
            let of_dates = by_dates.get(&(nights, first)).map(Vec::as_slice);
            let of_dates = of_dates.unwrap_or_default();
            let at = of_dates.binary_search_by_key(&seen_on, |price| price.day);
            at.ok().map(|at| (of_dates, at))
        })
        .collect();
    let judged: Vec<_> = found
        .iter()
        .map(|found| {
            let (of_dates, at) = found.as_ref().filter(|_| question.verdicts)?;
            Some(JudgedPrice::of_daily(&of_dates[*at]))
        })
        .collect();
    let verdicts = verdict::verdicts_without_sentences(&prices, &judged);
    let found = found.into_iter().zip(verdicts).zip(searches);
    found
        .map(|((found, verdict), search)| {
            let last_answer = answers.before(search);
            let Some((of_dates, at)) = found else {
                let price = answers.offer(search);
                return ReplayedPrice {
                    price,
                    is_implausible: price.is_some(),
                    past: PastOfPrice {
                        last_answer,
                        ..PastOfPrice::default()
                    },
                };
            };
            let lowest = question.lowest_of_days.iter().filter_map(|days| {
                let begin = of_dates[at].day - i32::from(*days);
                let first = of_dates[..at].partition_point(|price| price.day < begin);
                let lowest = of_dates[first..at].iter().min_by_key(|price| price.price)?;
                Some((*days, (lowest.decimal(), midnight_of(lowest.day))))
            });
            ReplayedPrice {
                price: Some(of_dates[at].decimal()),
                is_implausible: false,
                past: PastOfPrice {
                    verdict,
                    lowest: lowest.collect(),
                    last_answer,
                    implausible: None,
                },
            }
        })
        .collect()
}

/// The complete answers about some dates of a product, by days. Samples must arrive in the order of
/// their times.
#[derive(Debug, Default)]
struct DailyAnswers {
    by_dates: HashMap<(i32, Option<i32>), Vec<AnsweredDay>>,
    /// When empty answers arrived that say that nothing has the name of the hotel: they are none
    /// about its offers. In microseconds since 1970.
    unmatched: HashSet<i64>,
}

/// The complete answers of a day.
#[derive(Debug)]
struct AnsweredDay {
    day: i32,
    is_last_empty: bool,
    /// The lowest price, plausible or not.
    offer: Option<CompactPrice>,
}

impl DailyAnswers {
    /// Those about the dates of these searches.
    fn of<'a>(searches: impl Iterator<Item = &'a ReplayedSearch>) -> Self {
        Self {
            by_dates: searches
                .map(|search| (search.dates(), Vec::new()))
                .collect(),
            unmatched: HashSet::new(),
        }
    }

    fn add(&mut self, sample: &Sample) {
        let Some(days) = self.by_dates.get_mut(&sample.dates()) else {
            return;
        };
        let is_empty = match sample.status {
            SampleStatus::Complete => false,
            SampleStatus::Empty if !self.unmatched.contains(&sample.at) => true,
            _ => return,
        };
        let offer = sample.price.filter(|_| !is_empty);
        match days.last_mut().filter(|last| last.day == sample.utc_day()) {
            Some(last) => {
                last.is_last_empty = is_empty;
                last.offer = last.offer.into_iter().chain(offer).min();
            }
            None => days.push(AnsweredDay {
                day: sample.utc_day(),
                is_last_empty: is_empty,
                offer,
            }),
        }
    }

    /// The last answer before the day of a search. Its time is the end of its own day: what a run of
    /// that day has found is older.
    fn before(&self, search: &ReplayedSearch) -> Option<LastAnswer> {
        let days = self.by_dates.get(&search.dates())?;
        let (seen_on, oldest) = (day(search.day), MAX_ANSWER_AGE.as_hours() / 24);
        let last = days[..days.partition_point(|one| one.day < seen_on)].last()?;
        (i64::from(seen_on - last.day) <= oldest).then(|| LastAnswer {
            at: midnight_of(last.day + 1),
            is_empty: last.is_last_empty,
        })
    }

    /// The lowest price of the day of a search.
    fn offer(&self, search: &ReplayedSearch) -> Option<Decimal> {
        let days = self.by_dates.get(&search.dates())?;
        let at = days.binary_search_by_key(&day(search.day), |one| one.day);
        days[at.ok()?].offer.map(Decimal::from)
    }
}

fn midnight_of(day: i32) -> Timestamp {
    let day = date(1970, 1, 1).saturating_add(day.days());
    let day = day.to_zoned(TimeZone::UTC);
    day.map_or(Timestamp::UNIX_EPOCH, |day| day.timestamp())
}
