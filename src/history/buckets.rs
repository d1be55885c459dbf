//! Prices over time: what was seen of each product, bucket by bucket.
//!
//! Days that have passed are read packed (`days`), what came since as it is; both are added up alike (`sums`). Where the one ends, the one
//! and the other are asked for one after the other, so they are read as of one moment: what is taken out meanwhile is in all of an answer
//! or in none of it. A file is of one moment for each of its pages.

use futures::{Stream, TryStreamExt as _, pin_mut};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres};

use super::days::midnight;
use super::filter::Filter;
use super::look::unpack;
use super::shown::Shown;
use super::store::days;
use super::store::products::{ProductRow, products};
use super::sums::{Measure, Sum, Sums};
use crate::contract::Endpoint;
use crate::contract::series::{
    Bucket, FlightBucket, FlightSeries, FlightSeriesQuery, HotelBucket, HotelSeries,
    HotelSeriesQuery,
};
use crate::db;
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
        Self {
            since,
            until,
            bucket: query.bucket_or_default(),
            zone,
        }
    }

    /// The range and buckets of a query of rates, whose range has been checked.
    #[must_use]
    pub fn of_hotels(query: &HotelSeriesQuery, (since, until): (Timestamp, Timestamp)) -> Self {
        let zone = query.timezone_or_default().as_str().to_owned();
        Self {
            since,
            until,
            bucket: query.bucket_or_default(),
            zone,
        }
    }

    fn measure(&self, filter: &Filter) -> Measure {
        // A zone of the contract is one of the database of zones.
        let zone = TimeZone::get(&self.zone).unwrap_or(TimeZone::UTC);
        Measure {
            since: self.since,
            until: self.until,
            bucket: self.bucket,
            zone,
            dates: filter.dates(),
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
pub async fn flights(
    conn: PoolConnection<Postgres>,
    tenant: TenantId,
    query: &FlightSeriesQuery,
    over: Over,
) -> sqlx::Result<FlightSeries> {
    let mut moment = db::snapshot(conn).await?;
    let (rows, next) = page(
        &mut moment,
        tenant,
        &query.into(),
        &over,
        None,
        MAX_PRODUCTS,
    )
    .await?;
    let mut shown = Shown::by_fares();
    let data = rows
        .into_iter()
        .flat_map(|seen| fares(seen, &mut shown))
        .collect();
    Ok(FlightSeries {
        data,
        truncated: next.is_some(),
        ..no_flights(over)
    })
}

/// What there is of fares where nothing was ever seen.
#[must_use]
pub fn no_flights(over: Over) -> FlightSeries {
    let Over {
        since,
        until,
        bucket,
        zone,
    } = over;
    FlightSeries {
        since,
        until,
        bucket,
        timezone: zone,
        data: Vec::new(),
        truncated: false,
    }
}

/// Rates over time.
///
/// # Errors
/// When the database does not answer.
pub async fn hotels(
    conn: PoolConnection<Postgres>,
    tenant: TenantId,
    query: &HotelSeriesQuery,
    over: Over,
) -> sqlx::Result<HotelSeries> {
    let mut moment = db::snapshot(conn).await?;
    let (rows, next) = page(
        &mut moment,
        tenant,
        &query.into(),
        &over,
        None,
        MAX_PRODUCTS,
    )
    .await?;
    let mut shown = Shown::by_rates();
    let data = rows
        .into_iter()
        .flat_map(|seen| rates(seen, &mut shown))
        .collect();
    Ok(HotelSeries {
        data,
        truncated: next.is_some(),
        ..no_hotels(over)
    })
}

/// What there is of rates where nothing was ever seen.
#[must_use]
pub fn no_hotels(over: Over) -> HotelSeries {
    let Over {
        since,
        until,
        bucket,
        zone,
    } = over;
    HotelSeries {
        since,
        until,
        bucket,
        timezone: zone,
        data: Vec::new(),
        truncated: false,
    }
}

/// Fares over time, row by row, of any number of products.
pub fn all_flights(
    pool: &PgPool,
    tenant: TenantId,
    query: &FlightSeriesQuery,
    over: Over,
) -> impl Stream<Item = Result<FlightBucket, PageError>> + Send + use<> {
    let mut shown = Shown::by_fares();
    each(all(pool.clone(), tenant, query.into(), over).map_ok(move |seen| fares(seen, &mut shown)))
}

/// Rates over time, row by row, of any number of products.
pub fn all_hotels(
    pool: &PgPool,
    tenant: TenantId,
    query: &HotelSeriesQuery,
    over: Over,
) -> impl Stream<Item = Result<HotelBucket, PageError>> + Send + use<> {
    let mut shown = Shown::by_rates();
    each(all(pool.clone(), tenant, query.into(), over).map_ok(move |seen| rates(seen, &mut shown)))
}

/// The rows of products, one after the other.
fn each<Row>(
    products: impl Stream<Item = Result<Vec<Row>, PageError>>,
) -> impl Stream<Item = Result<Row, PageError>> {
    products
        .map_ok(|rows| futures::stream::iter(rows.into_iter().map(Ok)))
        .try_flatten()
}

fn all(
    pool: PgPool,
    tenant: TenantId,
    filter: Filter,
    over: Over,
) -> impl Stream<Item = Result<Seen, PageError>> + Send {
    paging::walk(None, move |after: Option<After>| {
        let (pool, filter, over) = (pool.clone(), filter.clone(), over.clone());
        async move {
            let mut moment = db::snapshot(pool.acquire().await?).await?;
            let (rows, next) = page(
                &mut moment,
                tenant,
                &filter,
                &over,
                after.as_ref(),
                EXPORT_PRODUCTS,
            )
            .await?;
            Ok((rows, next.map(Some)))
        }
    })
}

/// A product with its buckets.
struct Seen {
    product: ProductRow,
    sums: Vec<Sum>,
}

/// The next products with their buckets, at most so many, and the last of them if there are more.
async fn page(
    conn: &mut PgConnection,
    tenant: TenantId,
    filter: &Filter,
    over: &Over,
    after: Option<&After>,
    limit: usize,
) -> sqlx::Result<(Vec<Seen>, Option<After>)> {
    let mut found = products(
        &mut *conn,
        tenant,
        filter,
        after,
        paging::one_more_than(limit),
    )
    .await?;
    let next = paging::cut(&mut found, limit).map(|last| After {
        endpoint: last.endpoint.clone(),
        series: last.series.clone(),
    });
    let measure = over.measure(filter);
    let mut seen = Vec::new();
    for product in found {
        let sums = add_up(&mut *conn, tenant, &product, &measure).await?;
        seen.push(Seen { product, sums });
    }
    Ok((seen, next))
}

/// The buckets of a product. However much was seen of it, no more than a bucket's prices are held.
async fn add_up(
    conn: &mut PgConnection,
    tenant: TenantId,
    product: &ProductRow,
    measure: &Measure,
) -> sqlx::Result<Vec<Sum>> {
    let mut sums = Sums::new(measure);
    let unpacked_since = product
        .unpacked_since
        .map_or(measure.until, |since| since.to_jiff());
    {
        let packed = days::packed(
            conn,
            tenant,
            &product.series,
            midnight(measure.since),
            unpacked_since.min(measure.until),
        );
        pin_mut!(packed);
        while let Some(day) = packed.try_next().await? {
            for look in unpack(&day) {
                sums.add(&look.map_err(|error| sqlx::Error::Decode(error.into()))?);
            }
        }
    }
    if unpacked_since < measure.until {
        let looks = days::looks(
            conn,
            tenant,
            &product.series,
            unpacked_since.max(measure.since),
            measure.until,
            i64::MAX,
        );
        pin_mut!(looks);
        while let Some(look) = looks.try_next().await? {
            sums.add(&look);
        }
    }
    Ok(sums.finish())
}

fn fares(Seen { product: row, sums }: Seen, shown: &mut Shown) -> Vec<FlightBucket> {
    let Some(endpoint) = Endpoint::parse(&row.endpoint) else {
        return Vec::new();
    };
    let product = shown.product(endpoint, &row.product);
    let bucket = |sum: Sum| FlightBucket {
        bucket: sum.bucket,
        endpoint,
        from_airport: row.origin.clone().unwrap_or_default(),
        to_airport: row.place.clone(),
        product: product.clone(),
        currency: row.currency.clone(),
        observations: sum.observations,
        prices: sum.prices,
        minimum: sum.range.map(|range| range.lowest),
        median: sum.range.map(|range| range.middle),
        maximum: sum.range.map(|range| range.highest),
        price_insights_low: sum.band_low.map(Decimal::from),
        price_insights_high: sum.band_high.map(Decimal::from),
        empty: sum.empty,
        degraded: sum.degraded,
        degraded_share: sum.degraded_share(),
    };
    sums.into_iter().map(bucket).collect()
}

fn rates(Seen { product: row, sums }: Seen, shown: &mut Shown) -> Vec<HotelBucket> {
    let Some(endpoint) = Endpoint::parse(&row.endpoint) else {
        return Vec::new();
    };
    let product = shown.product(endpoint, &row.product);
    let bucket = |sum: Sum| HotelBucket {
        bucket: sum.bucket,
        endpoint,
        place: row.place.clone(),
        proxy_country: row.market.clone(),
        product: product.clone(),
        currency: row.currency.clone(),
        observations: sum.observations,
        prices: sum.prices,
        minimum: sum.range.map(|range| range.lowest),
        median: sum.range.map(|range| range.middle),
        maximum: sum.range.map(|range| range.highest),
        empty: sum.empty,
        degraded: sum.degraded,
        degraded_share: sum.degraded_share(),
    };
    sums.into_iter().map(bucket).collect()
}
