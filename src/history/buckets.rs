//! Price history in daily or weekly buckets, per product.
//!
//! Past days are read from `observed_days` (see `daily_pack`), later ones from `observations`. Both
//! reads run in one snapshot, so a concurrent delete affects all of an answer or none of it. An
//! export takes a new snapshot for each page.

use futures::{Stream, TryStreamExt as _, pin_mut};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres};

use super::aggregate::{BucketAggregator, BucketSpec, BucketStats};
use super::daily_pack::midnight;
use super::filter::Filter;
use super::presenter::ProductPresenter;
use super::sample::unpack;
use super::store::daily_pack;
use super::store::products::{ProductRow, products};
use crate::contract::Endpoint;
use crate::contract::series::{
    Bucket, FlightBucket, FlightSeries, FlightSeriesQuery, HotelBucket, HotelSeries,
    HotelSeriesQuery,
};
use crate::db;
use crate::ids::TenantId;
use crate::paging::{self, PageError};

/// Products in one answer: with daily buckets over the longest range, about 5,000 rows.
const MAX_PRODUCTS: usize = 12;

/// Products that an export aggregates at a time.
const PRODUCTS_PER_EXPORT_PAGE: usize = 2;

/// The time range and its division into buckets.
#[derive(Debug, Clone)]
pub struct BucketRange {
    /// Start of the range, inclusive.
    pub since: Timestamp,
    /// End of the range, exclusive.
    pub until: Timestamp,
    /// Length of a bucket.
    pub bucket: Bucket,
    /// Buckets begin at midnight in this time zone.
    pub zone: String,
}

impl BucketRange {
    /// The range of a flight query. `since` and `until` have been validated.
    #[must_use]
    pub fn for_flights(query: &FlightSeriesQuery, (since, until): (Timestamp, Timestamp)) -> Self {
        let zone = query.timezone_or_default().as_str().to_owned();
        Self {
            since,
            until,
            bucket: query.bucket_or_default(),
            zone,
        }
    }

    /// The range of a hotel query. `since` and `until` have been validated.
    #[must_use]
    pub fn for_hotels(query: &HotelSeriesQuery, (since, until): (Timestamp, Timestamp)) -> Self {
        let zone = query.timezone_or_default().as_str().to_owned();
        Self {
            since,
            until,
            bucket: query.bucket_or_default(),
            zone,
        }
    }

    fn spec(&self, filter: &Filter) -> BucketSpec {
        // The contract accepts only zones of the time zone database.
        let zone = TimeZone::get(&self.zone).unwrap_or(TimeZone::UTC);
        BucketSpec {
            since: self.since,
            until: self.until,
            bucket: self.bucket,
            zone,
            dates: filter.dates(),
        }
    }
}

/// Last product of the previous page.
#[derive(Debug, Clone)]
pub(super) struct ProductCursor {
    pub(super) endpoint: Endpoint,
    pub(super) series: Vec<u8>,
}

/// Fares in buckets.
pub async fn flights(
    conn: PoolConnection<Postgres>,
    tenant: TenantId,
    query: &FlightSeriesQuery,
    range: BucketRange,
) -> sqlx::Result<FlightSeries> {
    let mut snapshot = db::snapshot(conn).await?;
    let (rows, next) = page(
        &mut snapshot,
        tenant,
        &query.into(),
        &range,
        None,
        MAX_PRODUCTS,
    )
    .await?;
    let mut presenter = ProductPresenter::for_fares();
    let data = rows
        .into_iter()
        .flat_map(|entry| fare_buckets(entry, &mut presenter))
        .collect();
    Ok(FlightSeries {
        data,
        truncated: next.is_some(),
        ..empty_flights(range)
    })
}

/// The answer for a tenant without observations.
#[must_use]
pub fn empty_flights(range: BucketRange) -> FlightSeries {
    let BucketRange {
        since,
        until,
        bucket,
        zone,
    } = range;
    FlightSeries {
        since,
        until,
        bucket,
        timezone: zone,
        data: Vec::new(),
        truncated: false,
    }
}

/// Rates in buckets.
pub async fn hotels(
    conn: PoolConnection<Postgres>,
    tenant: TenantId,
    query: &HotelSeriesQuery,
    range: BucketRange,
) -> sqlx::Result<HotelSeries> {
    let mut snapshot = db::snapshot(conn).await?;
    let (rows, next) = page(
        &mut snapshot,
        tenant,
        &query.into(),
        &range,
        None,
        MAX_PRODUCTS,
    )
    .await?;
    let mut presenter = ProductPresenter::for_rates();
    let data = rows
        .into_iter()
        .flat_map(|entry| rate_buckets(entry, &mut presenter))
        .collect();
    Ok(HotelSeries {
        data,
        truncated: next.is_some(),
        ..empty_hotels(range)
    })
}

/// The answer for a tenant without observations.
#[must_use]
pub fn empty_hotels(range: BucketRange) -> HotelSeries {
    let BucketRange {
        since,
        until,
        bucket,
        zone,
    } = range;
    HotelSeries {
        since,
        until,
        bucket,
        timezone: zone,
        data: Vec::new(),
        truncated: false,
    }
}

/// Fares in buckets as a stream of rows, without a limit on products.
pub fn stream_flights(
    pool: &PgPool,
    tenant: TenantId,
    query: &FlightSeriesQuery,
    range: BucketRange,
) -> impl Stream<Item = Result<FlightBucket, PageError>> + Send + use<> {
    let mut presenter = ProductPresenter::for_fares();
    flatten_rows(
        stream(pool.clone(), tenant, query.into(), range)
            .map_ok(move |entry| fare_buckets(entry, &mut presenter)),
    )
}

/// Rates in buckets as a stream of rows, without a limit on products.
pub fn stream_hotels(
    pool: &PgPool,
    tenant: TenantId,
    query: &HotelSeriesQuery,
    range: BucketRange,
) -> impl Stream<Item = Result<HotelBucket, PageError>> + Send + use<> {
    let mut presenter = ProductPresenter::for_rates();
    flatten_rows(
        stream(pool.clone(), tenant, query.into(), range)
            .map_ok(move |entry| rate_buckets(entry, &mut presenter)),
    )
}

fn flatten_rows<Row>(
    products: impl Stream<Item = Result<Vec<Row>, PageError>>,
) -> impl Stream<Item = Result<Row, PageError>> {
    products
        .map_ok(|rows| futures::stream::iter(rows.into_iter().map(Ok)))
        .try_flatten()
}

fn stream(
    pool: PgPool,
    tenant: TenantId,
    filter: Filter,
    range: BucketRange,
) -> impl Stream<Item = Result<ProductBuckets, PageError>> + Send {
    paging::stream_rows(None, move |after: Option<ProductCursor>| {
        let (pool, filter, range) = (pool.clone(), filter.clone(), range.clone());
        async move {
            let mut snapshot = db::snapshot(pool.acquire().await?).await?;
            let (rows, next) = page(
                &mut snapshot,
                tenant,
                &filter,
                &range,
                after.as_ref(),
                PRODUCTS_PER_EXPORT_PAGE,
            )
            .await?;
            Ok((rows, next.map(Some)))
        }
    })
}

/// A product and its buckets.
struct ProductBuckets {
    product: ProductRow,
    buckets: Vec<BucketStats>,
}

/// At most `limit` products with their buckets, and a cursor if there are more.
async fn page(
    conn: &mut PgConnection,
    tenant: TenantId,
    filter: &Filter,
    range: &BucketRange,
    after: Option<&ProductCursor>,
    limit: usize,
) -> sqlx::Result<(Vec<ProductBuckets>, Option<ProductCursor>)> {
    let mut found = products(
        &mut *conn,
        tenant,
        filter,
        after,
        paging::limit_plus_one(limit),
    )
    .await?;
    let next = paging::truncate_page(&mut found, limit).map(|last| ProductCursor {
        endpoint: last.endpoint,
        series: last.series.clone(),
    });
    let spec = range.spec(filter);
    let mut entry = Vec::new();
    for product in found {
        let buckets = aggregate(&mut *conn, tenant, &product, &spec).await?;
        entry.push(ProductBuckets { product, buckets });
    }
    Ok((entry, next))
}

/// The buckets of a product. Memory use is bounded by the prices of one bucket.
async fn aggregate(
    conn: &mut PgConnection,
    tenant: TenantId,
    product: &ProductRow,
    spec: &BucketSpec,
) -> sqlx::Result<Vec<BucketStats>> {
    let mut buckets = BucketAggregator::new(spec);
    let unpacked_since = product
        .unpacked_since
        .map_or(spec.until, |since| since.to_jiff());
    {
        let packed = daily_pack::packed(
            conn,
            tenant,
            &product.series,
            midnight(spec.since),
            unpacked_since.min(spec.until),
        );
        pin_mut!(packed);
        while let Some(day) = packed.try_next().await? {
            for sample in unpack(&day) {
                buckets.add(&sample.map_err(|error| sqlx::Error::Decode(error.into()))?);
            }
        }
    }
    if unpacked_since < spec.until {
        let samples = daily_pack::samples(
            conn,
            tenant,
            &product.series,
            unpacked_since.max(spec.since),
            spec.until,
            i64::MAX,
        );
        pin_mut!(samples);
        while let Some(sample) = samples.try_next().await? {
            buckets.add(&sample);
        }
    }
    Ok(buckets.finish())
}

fn fare_buckets(
    ProductBuckets {
        product: row,
        buckets,
    }: ProductBuckets,
    presenter: &mut ProductPresenter,
) -> Vec<FlightBucket> {
    let endpoint = row.endpoint;
    let product = presenter.product(endpoint, &row.product);
    let bucket = |sum: BucketStats| FlightBucket {
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
    buckets.into_iter().map(bucket).collect()
}

fn rate_buckets(
    ProductBuckets {
        product: row,
        buckets,
    }: ProductBuckets,
    presenter: &mut ProductPresenter,
) -> Vec<HotelBucket> {
    let endpoint = row.endpoint;
    let product = presenter.product(endpoint, &row.product);
    let bucket = |sum: BucketStats| HotelBucket {
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
    buckets.into_iter().map(bucket).collect()
}
