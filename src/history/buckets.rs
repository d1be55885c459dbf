//! Prices over time: what was seen of each product, bucket by bucket.

use futures::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use rust_decimal::Decimal;
use sqlx::PgPool;

use super::filter::Filter;
use super::query::{FARE_SHOWS, RATE_SHOWS, other_fields};
use super::store::buckets::{self, BucketRow};
use crate::contract::Endpoint;
use crate::contract::series::{
    Bucket, FlightBucket, FlightSeries, FlightSeriesQuery, HotelBucket, HotelSeries, HotelSeriesQuery,
};
use crate::ids::TenantId;
use crate::paging::{self, PageError};

/// The most products of an answer: with a bucket for each day of the longest range some 5,000 rows.
const MAX_PRODUCTS: usize = 12;

/// How many products an export adds up at a time.
const EXPORT_PRODUCTS: usize = 2;

/// Which time is parted into which buckets.
#[derive(Debug, Clone)]
pub struct Over {
    /// From when.
    pub since: Timestamp,
    /// Before when.
    pub until: Timestamp,
    /// How long a bucket is.
    pub bucket: Bucket,
    /// The zone whose midnights part them.
    pub zone: String,
}

impl Over {
    /// The range and buckets of a query of fares, whose range has been checked.
    #[must_use]
    pub fn of_flights(query: &FlightSeriesQuery, (since, until): (Timestamp, Timestamp)) -> Self {
        let zone = query.timezone_or_default().as_str().to_owned();
        Self { since, until, bucket: query.bucket_or_default(), zone }
    }

    /// The range and buckets of a query of rates, whose range has been checked.
    #[must_use]
    pub fn of_hotels(query: &HotelSeriesQuery, (since, until): (Timestamp, Timestamp)) -> Self {
        let zone = query.timezone_or_default().as_str().to_owned();
        Self { since, until, bucket: query.bucket_or_default(), zone }
    }

    /// The length of a bucket, in the words of the database.
    pub(super) fn step(&self) -> &'static str {
        match self.bucket {
            Bucket::Day => "1 day",
            Bucket::Week => "7 days",
        }
    }
}

/// The last product of the page before.
#[derive(Debug, Clone)]
pub(super) struct After {
    pub(super) endpoint: String,
    pub(super) series: Vec<u8>,
}

/// Fares over time.
///
/// # Errors
/// When the database does not answer.
pub async fn flights(pool: &PgPool, tenant: TenantId, query: &FlightSeriesQuery, over: Over) -> sqlx::Result<FlightSeries> {
    let (rows, next) = page(pool, tenant, &query.into(), &over, None, MAX_PRODUCTS).await?;
    let data = rows.into_iter().filter_map(fares).collect();
    Ok(FlightSeries { data, truncated: next.is_some(), ..no_flights(over) })
}

/// What there is of fares where nothing was ever seen.
#[must_use]
pub fn no_flights(over: Over) -> FlightSeries {
    let Over { since, until, bucket, zone } = over;
    FlightSeries { since, until, bucket, timezone: zone, data: Vec::new(), truncated: false }
}

/// Rates over time.
///
/// # Errors
/// When the database does not answer.
pub async fn hotels(pool: &PgPool, tenant: TenantId, query: &HotelSeriesQuery, over: Over) -> sqlx::Result<HotelSeries> {
    let (rows, next) = page(pool, tenant, &query.into(), &over, None, MAX_PRODUCTS).await?;
    let data = rows.into_iter().filter_map(rates).collect();
    Ok(HotelSeries { data, truncated: next.is_some(), ..no_hotels(over) })
}

/// What there is of rates where nothing was ever seen.
#[must_use]
pub fn no_hotels(over: Over) -> HotelSeries {
    let Over { since, until, bucket, zone } = over;
    HotelSeries { since, until, bucket, timezone: zone, data: Vec::new(), truncated: false }
}

/// Fares over time, row by row, of any number of products.
pub fn all_flights(
    pool: &PgPool,
    tenant: TenantId,
    query: &FlightSeriesQuery,
    over: Over,
) -> impl Stream<Item = Result<FlightBucket, PageError>> + Send + use<> {
    all(pool.clone(), tenant, query.into(), over).try_filter_map(|row| std::future::ready(Ok(fares(row))))
}

/// Rates over time, row by row, of any number of products.
pub fn all_hotels(
    pool: &PgPool,
    tenant: TenantId,
    query: &HotelSeriesQuery,
    over: Over,
) -> impl Stream<Item = Result<HotelBucket, PageError>> + Send + use<> {
    all(pool.clone(), tenant, query.into(), over).try_filter_map(|row| std::future::ready(Ok(rates(row))))
}

fn all(pool: PgPool, tenant: TenantId, filter: Filter, over: Over) -> impl Stream<Item = Result<BucketRow, PageError>> + Send {
    paging::walk(None, move |after: Option<After>| {
        let (pool, filter, over) = (pool.clone(), filter.clone(), over.clone());
        async move {
            let (rows, next) = page(&pool, tenant, &filter, &over, after.as_ref(), EXPORT_PRODUCTS).await?;
            Ok((rows, next.map(Some)))
        }
    })
}

/// The buckets of at most `products` products, and the last of them if there are more.
async fn page(
    pool: &PgPool,
    tenant: TenantId,
    filter: &Filter,
    over: &Over,
    after: Option<&After>,
    products: usize,
) -> sqlx::Result<(Vec<BucketRow>, Option<After>)> {
    let mut rows = buckets::buckets(pool, tenant, filter, over, after, paging::one_more_than(products)).await?;
    let mut last: Option<After> = None;
    let mut seen = 0;
    let cut = rows.iter().position(|row| {
        if last.as_ref().is_none_or(|last| last.series != row.series) {
            seen += 1;
            if seen > products {
                return true;
            }
            last = Some(After { endpoint: row.endpoint.clone(), series: row.series.clone() });
        }
        false
    });
    rows.truncate(cut.unwrap_or(rows.len()));
    Ok((rows, last.filter(|_| cut.is_some())))
}

fn count(number: Option<i64>) -> u64 {
    number.and_then(|number| u64::try_from(number).ok()).unwrap_or_default()
}

/// To four decimals; both are counts of rows.
fn share(part: u64, whole: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of rows are far below 2^52")]
    let share = part as f64 / whole.max(1) as f64;
    (share * 10_000.0).round() / 10_000.0
}

fn normal(price: Option<Decimal>) -> Option<Decimal> {
    price.map(|price| price.normalize())
}

/// `None` for a product that was not looked at.
fn fares(row: BucketRow) -> Option<FlightBucket> {
    let endpoint = Endpoint::parse(&row.endpoint)?;
    let (observations, degraded) = (count(row.observations), count(row.degraded));
    Some(FlightBucket {
        bucket: row.bucket?.to_jiff(),
        endpoint,
        from_airport: row.origin.unwrap_or_default(),
        to_airport: row.place,
        product: other_fields(endpoint, &row.product, &FARE_SHOWS),
        currency: row.currency,
        observations,
        prices: count(row.prices),
        minimum: normal(row.minimum),
        median: normal(row.median),
        maximum: normal(row.maximum),
        price_insights_low: normal(row.band_low),
        price_insights_high: normal(row.band_high),
        empty: count(row.empty),
        degraded,
        degraded_share: share(degraded, observations),
    })
}

/// `None` for a product that was not looked at.
fn rates(row: BucketRow) -> Option<HotelBucket> {
    let endpoint = Endpoint::parse(&row.endpoint)?;
    let (observations, degraded) = (count(row.observations), count(row.degraded));
    Some(HotelBucket {
        bucket: row.bucket?.to_jiff(),
        endpoint,
        place: row.place,
        proxy_country: row.market,
        product: other_fields(endpoint, &row.product, &RATE_SHOWS),
        currency: row.currency,
        observations,
        prices: count(row.prices),
        minimum: normal(row.minimum),
        median: normal(row.median),
        maximum: normal(row.maximum),
        empty: count(row.empty),
        degraded,
        degraded_share: share(degraded, observations),
    })
}
