//! What the stored history says about prices of many products: the verdict on each (history.md,
//! rules 33 to 46), the lowest price of the days before, and the last complete answer before.
//!
//! Products are read some at a time, each once, from packed days and observations. Not here: the
//! formulas (`verdict`), prices of calendars (`judged_latest`) and buckets (`buckets`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use futures::{TryStreamExt as _, pin_mut};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};

use super::compute::compute;
use super::known_price::KnownPrice;
use super::plausibility::{FACTOR, MAX_AGE_DAYS};
use super::price::CompactPrice;
use super::sample::{Sample, day, midnight, unpack};
use super::store::past_prices::{self as store, SeriesRange};
use super::verdict::{self, DailyPrices, JudgedPrice};
use crate::contract::Api;
use crate::contract::history_verdict::{HistoryVerdict, UsualPrice};
use crate::db;
use crate::ids::TenantId;

/// Products that are read together: their daily prices are in memory at a time.
pub(super) const PRODUCTS_AT_A_TIME: usize = 16;
/// Products of one answer whose prices get a verdict.
pub const MAX_JUDGED_PRODUCTS: usize = 100;
/// Dates whose last complete answers are read together.
const DATES_AT_A_TIME: usize = 1_000;
/// Without an answer by then a price counts as plausible. A month of a product takes milliseconds.
const JUDGED_WITHIN: Duration = Duration::from_secs(10);
/// The rule compares thousandths: from prices of 0.1 on, rounding raises no ratio by more.
const FACTOR_ROUNDED: f64 = 0.05;
/// How far back a complete answer is looked for.
pub(super) const MAX_ANSWER_AGE: SignedDuration = SignedDuration::from_hours(24 * 365);

/// What is asked about prices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PastQuestion {
    /// The verdict on each price.
    pub verdicts: bool,
    /// The lowest price of the same product and dates in so many days before, for each number.
    pub lowest_of_days: Vec<u16>,
    /// The last complete answer.
    pub last_answer: bool,
    /// Whether each price is plausible, by all prices of its day. Its verdict says so too.
    pub plausibility: bool,
}

/// The past of a price.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PastOfPrice {
    /// The verdict; `None` if none was asked for or the price is too large to compare.
    pub verdict: Option<HistoryVerdict>,
    /// The lowest price of each number of days, with the first time it was seen.
    pub lowest: BTreeMap<u16, (Decimal, Timestamp)>,
    /// The last complete answer before.
    pub last_answer: Option<LastAnswer>,
    /// What is usual, if the price is implausible.
    pub implausible: Option<UsualPrice>,
}

/// The last complete answer of a product and its dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastAnswer {
    /// When it arrived.
    pub at: Timestamp,
    /// Whether it had no offers at all.
    pub is_empty: bool,
}

/// Why the past of prices is not known.
#[derive(Debug, thiserror::Error)]
pub enum PastError {
    /// There was no time to read all of it.
    #[error("reading the price history exceeded the time limit")]
    OutOfTime,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// The verdict on each price as of its own day, in their order: of the first
/// [`MAX_JUDGED_PRODUCTS`] products.
pub async fn verdicts(
    conn: PoolConnection<Postgres>,
    tenant: TenantId,
    prices: Vec<Option<KnownPrice>>,
) -> sqlx::Result<Vec<Option<HistoryVerdict>>> {
    let mut verdicts = vec![None; prices.len()];
    let mut products = BTreeSet::new();
    let (mut places, mut asked) = (Vec::new(), Vec::new());
    for (place, price) in prices.into_iter().enumerate() {
        let Some(price) = price else { continue };
        let product = price.series;
        if products.len() < MAX_JUDGED_PRODUCTS || products.contains(&product) {
            products.insert(product);
            places.push(place);
            asked.push(price);
        }
    }
    if asked.is_empty() {
        return Ok(verdicts);
    }
    let mut snapshot = db::snapshot(conn).await?;
    let question = PastQuestion {
        verdicts: true,
        plausibility: true,
        ..PastQuestion::default()
    };
    let past = past_of_prices(&mut snapshot, tenant, &question, &asked, None).await;
    let past = past.map_err(|error| match error {
        PastError::Database(error) => error,
        PastError::OutOfTime => sqlx::Error::PoolTimedOut,
    })?;
    for (place, past) in places.into_iter().zip(past) {
        verdicts[place] = past.verdict;
    }
    Ok(verdicts)
}

/// What is usual instead of each price that is implausible (history.md, rules 43 to 45) and below it:
/// one that is too high is not taken for the cheapest. What cannot be read of the history in time says
/// nothing against a price.
pub async fn implausibly_low(
    conn: &mut PgConnection,
    tenant: TenantId,
    prices: &[KnownPrice],
) -> sqlx::Result<Vec<Option<UsualPrice>>> {
    let mut usual = vec![None; prices.len()];
    // The usual price is one of these. The whole product is read for the few that are far below one.
    let max_age = SignedDuration::from_hours(24 * i64::from(MAX_AGE_DAYS + 1));
    let far =
        store::far_below_earlier(conn, tenant, prices, FACTOR - FACTOR_ROUNDED, max_age).await?;
    if far.is_empty() {
        return Ok(usual);
    }
    let asked: Vec<_> = far.iter().map(|place| prices[*place]).collect();
    let question = PastQuestion {
        plausibility: true,
        ..PastQuestion::default()
    };
    let until = Instant::now() + JUDGED_WITHIN;
    match past_of_prices(conn, tenant, &question, &asked, Some(until)).await {
        Ok(past) => {
            for (place, past) in far.into_iter().zip(past) {
                let is_below = |usual: &UsualPrice| prices[place].price < usual.price;
                usual[place] = past.implausible.filter(is_below);
            }
            Ok(usual)
        }
        Err(PastError::Database(error)) if !matches!(error, sqlx::Error::Decode(_)) => Err(error),
        Err(error) => {
            tracing::warn!(%error, "whether a found price is plausible is not known");
            Ok(usual)
        }
    }
}

/// The past of each price, in their order.
///
/// # Errors
/// When `until` passes first, if there is such a limit, or the database fails.
pub async fn past_of_prices(
    conn: &mut PgConnection,
    tenant: TenantId,
    question: &PastQuestion,
    prices: &[KnownPrice],
    until: Option<Instant>,
) -> Result<Vec<PastOfPrice>, PastError> {
    let mut past = vec![PastOfPrice::default(); prices.len()];
    if question.verdicts || question.plausibility || !question.lowest_of_days.is_empty() {
        let mut by_series = BTreeMap::<_, Vec<_>>::new();
        for (place, price) in prices.iter().enumerate() {
            by_series.entry(price.series).or_default().push(place);
        }
        let by_series: Vec<_> = by_series.into_values().collect();
        for products in by_series.chunks(PRODUCTS_AT_A_TIME) {
            let products: Vec<_> = products
                .iter()
                .map(|places| AskedProduct::new(places, prices, question))
                .collect();
            let answered = read_products(conn, tenant, products, until).await?;
            for (place, found) in answered {
                past[place] = found;
            }
        }
    }
    if question.last_answer {
        let places: Vec<_> = (0..prices.len()).collect();
        for places in places.chunks(DATES_AT_A_TIME) {
            check_time(until)?;
            let asked: Vec<_> = places.iter().map(|place| &prices[*place]).collect();
            let answers = store::last_answers(conn, tenant, &asked, MAX_ANSWER_AGE).await?;
            for (place, at, is_empty) in answers {
                past[places[place]].last_answer = Some(LastAnswer { at, is_empty });
            }
        }
    }
    Ok(past)
}

fn check_time(until: Option<Instant>) -> Result<(), PastError> {
    if until.is_some_and(|until| Instant::now() >= until) {
        return Err(PastError::OutOfTime);
    }
    Ok(())
}

/// The prices of one product that are asked for, and what has been read of its past.
struct AskedProduct {
    key: Vec<u8>,
    api: Api,
    verdicts: bool,
    plausibility: bool,
    since: Timestamp,
    until: Timestamp,
    prices: Vec<AskedPrice>,
    /// The places in `prices` by first and last date.
    by_dates: HashMap<(i32, Option<i32>), Vec<usize>>,
    daily: DailyPrices,
}

/// A price of a product.
struct AskedPrice {
    place: usize,
    judged: Option<JudgedPrice>,
    before: i64,
    lowest: Vec<LowestOfDays>,
}

/// The lowest price of some days. Times are in microseconds since 1970.
struct LowestOfDays {
    days: u16,
    since: i64,
    /// So far, with the first time it was seen.
    lowest: Option<(CompactPrice, i64)>,
}

impl AskedProduct {
    /// `places` are those of one product, at least one.
    fn new(places: &[usize], prices: &[KnownPrice], question: &PastQuestion) -> Self {
        let first = &prices[places[0]];
        let mut asked = Self {
            key: first.series.0.to_vec(),
            api: first.api,
            verdicts: question.verdicts,
            plausibility: question.plausibility,
            since: Timestamp::MAX,
            until: Timestamp::MIN,
            prices: Vec::new(),
            by_dates: HashMap::new(),
            daily: DailyPrices::default(),
        };
        for place in places {
            asked.add(*place, &prices[*place], question);
        }
        asked
    }

    fn add(&mut self, place: usize, price: &KnownPrice, question: &PastQuestion) {
        let begin = |days: u16| {
            let age = SignedDuration::from_hours(24 * i64::from(days));
            price.seen_at.checked_sub(age).unwrap_or(Timestamp::MIN)
        };
        let (first, last) = (price.first_date, price.last_date);
        let seen_on = price.seen_at.to_zoned(TimeZone::UTC).date();
        let judged = (question.verdicts || question.plausibility)
            .then(|| JudgedPrice::of_dates(seen_on, first, last, price.price))
            .flatten();
        let lowest = question.lowest_of_days.iter();
        let lowest = lowest.map(|days| LowestOfDays {
            days: *days,
            since: begin(*days).as_microsecond(),
            lowest: None,
        });
        if question.verdicts {
            self.since = self.since.min(verdict::compared_since(price.seen_at));
        }
        if let Some(days) = question.lowest_of_days.iter().max() {
            let since = verdict::plausible_since(begin(*days));
            self.since = self.since.min(since);
        }
        self.until = self.until.max(price.before);
        if question.plausibility {
            self.since = self.since.min(verdict::plausible_since(price.seen_at));
            self.until = self.until.max(verdict::end_of_day(price.seen_at));
        }
        let dates = (day(first), last.map(day));
        self.by_dates
            .entry(dates)
            .or_default()
            .push(self.prices.len());
        self.prices.push(AskedPrice {
            place,
            judged,
            before: price.before.as_microsecond(),
            lowest: lowest.collect(),
        });
    }

    fn range(&self) -> SeriesRange {
        SeriesRange {
            series: self.key.clone(),
            since: self.since,
            until: self.until,
        }
    }

    /// Takes a sample; they come in the order of their times.
    fn take(&mut self, sample: &Sample) {
        // Packed days are read whole; what came after the run began is its own.
        if sample.at < self.until.as_microsecond() {
            let plausible = |sample: &Sample| lower(&self.by_dates, &mut self.prices, sample);
            self.daily.add_with(sample, plausible);
        }
    }

    /// The past of each price with its place.
    fn finish(mut self) -> Vec<(usize, PastOfPrice)> {
        let judged: Vec<_> = self.prices.iter().map(|price| price.judged).collect();
        let plausible = |sample: &Sample| lower(&self.by_dates, &mut self.prices, sample);
        let mut prices = self.daily.finish_with(plausible);
        if !self.plausibility {
            // Here the day is read up to the time of the price alone, where a mark is not final.
            prices.implausible.clear();
        }
        let verdicts = if self.verdicts {
            verdict::verdicts(self.api, &prices, &judged)
        } else {
            vec![None; judged.len()]
        };
        let past = self.prices.into_iter().zip(verdicts);
        let past = past.map(|(asked, verdict)| {
            let judged = asked.judged.as_ref().filter(|_| self.plausibility);
            let implausible = judged.and_then(|judged| prices.implausible.get(judged));
            let lowest = asked.lowest.into_iter().filter_map(|of_days| {
                let (price, at) = of_days.lowest?;
                Some((
                    of_days.days,
                    (price.into(), Timestamp::from_microsecond(at).ok()?),
                ))
            });
            let past = PastOfPrice {
                verdict,
                lowest: lowest.collect(),
                last_answer: None,
                implausible: implausible.copied().map(verdict::usual_price),
            };
            (asked.place, past)
        });
        past.collect()
    }
}

/// Makes a plausible price the lowest of its dates, where it is.
fn lower(
    by_dates: &HashMap<(i32, Option<i32>), Vec<usize>>,
    prices: &mut [AskedPrice],
    sample: &Sample,
) {
    let Some(price) = sample.price else { return };
    for place in by_dates.get(&sample.dates()).into_iter().flatten() {
        let asked = &mut prices[*place];
        if sample.at >= asked.before {
            continue;
        }
        for of_days in &mut asked.lowest {
            let is_lower = of_days.lowest.is_none_or(|(known, _)| price < known);
            if sample.at >= of_days.since && is_lower {
                of_days.lowest = Some((price, sample.at));
            }
        }
    }
}

/// Reads the samples of some products, and computes the past of their prices on a blocking thread.
async fn read_products(
    conn: &mut PgConnection,
    tenant: TenantId,
    mut products: Vec<AskedProduct>,
    until: Option<Instant>,
) -> Result<Vec<(usize, PastOfPrice)>, PastError> {
    let ranges: Vec<_> = products.iter().map(AskedProduct::range).collect();
    read_samples(conn, tenant, &ranges, until, |product, sample| {
        products[product].take(sample);
    })
    .await?;
    let finish = move || {
        products
            .into_iter()
            .flat_map(AskedProduct::finish)
            .collect()
    };
    Ok(compute(finish).await)
}

/// Calls `take` with the place of each product and its samples, those of a product in the order of
/// their times.
pub(super) async fn read_samples(
    conn: &mut PgConnection,
    tenant: TenantId,
    products: &[SeriesRange],
    until: Option<Instant>,
    mut take: impl FnMut(usize, &Sample),
) -> Result<(), PastError> {
    check_time(until)?;
    let keys: Vec<_> = products
        .iter()
        .map(|product| product.series.clone())
        .collect();
    let unpacked = store::unpacked_since(conn, tenant, &keys).await?;
    let places: HashMap<_, _> = keys.into_iter().zip(0..).collect();
    let (mut packed, mut observed) = (Vec::new(), Vec::new());
    for product in products {
        // A product without a row has no history.
        let Some(unpacked_since) = unpacked.get(&product.series) else {
            continue;
        };
        let range = |since: Timestamp, until: Timestamp| SeriesRange {
            series: product.series.clone(),
            since,
            until,
        };
        let end = unpacked_since.map_or(product.until, |since| since.min(product.until));
        packed.push(range(midnight(product.since), end));
        if let Some(since) = *unpacked_since {
            observed.push(range(since.max(product.since), product.until));
        }
    }
    {
        let days = store::packed(conn, tenant, &packed);
        pin_mut!(days);
        while let Some((series, day)) = days.try_next().await? {
            check_time(until)?;
            let Some(place) = places.get(&series) else {
                continue;
            };
            for sample in unpack(&day) {
                let sample = sample.map_err(|error| sqlx::Error::Decode(error.into()))?;
                take(*place, &sample);
            }
        }
    }
    let samples = store::samples(conn, tenant, &observed);
    pin_mut!(samples);
    let mut count = 0_usize;
    while let Some((series, sample)) = samples.try_next().await? {
        count += 1;
        if count.is_multiple_of(1_000) {
            check_time(until)?;
        }
        if let Some(place) = places.get(&series) {
            take(*place, &sample);
        }
    }
    check_time(until)
}
