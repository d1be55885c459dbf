//! Price history in daily or weekly buckets, per product.
//!
//! Past days are read from `observed_days` (see `daily_pack`), later ones from `observations`. Both
//! reads run in one snapshot, so a concurrent delete affects all of an answer or none of it. An
//! export takes a new snapshot for each page.

use std::sync::Arc;

use futures::{Stream, TryStreamExt as _, pin_mut};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres};

pub use super::aggregate::BucketStats;
use super::aggregate::{BucketAggregator, BucketSpec};
use super::compute::compute;
use super::marked_samples::{MarkedSample, MarkedSamples};
use super::presenter::{Product, ProductPresenter};
use super::query::PriceQuery;
use super::sample::{Sample, midnight, unpack};
use super::store::daily_pack;
use super::store::products::{ProductCursor, ProductRow, products};
use super::verdict::{self, JudgedPrice, PlausiblePrices};
use crate::contract::ValidationErrors;
use crate::contract::history_verdict::HistoryVerdict;
use crate::contract::series::{Bucket, time_range};
use crate::db;
use crate::ids::TenantId;
use crate::paging::{self, PageError};

/// Products in one answer: with daily buckets over the longest range, about 5,000 rows.
pub(super) const MAX_PRODUCTS: usize = 12;

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
    /// The range of a query and its buckets, at the time `now`.
    ///
    /// # Errors
    /// The range is too long, or ends before it begins.
    pub fn of(query: &PriceQuery, now: Timestamp) -> Result<Self, ValidationErrors> {
        let (since, until) = time_range(query.since, query.until, now)?;
        Ok(Self {
            since,
            until,
            bucket: query.bucket.unwrap_or(Bucket::Day),
            zone: query.timezone.clone(),
        })
    }

    pub(super) fn spec(&self, query: &PriceQuery) -> BucketSpec {
        // The contract accepts only zones of the time zone database.
        let zone = TimeZone::get(&self.zone).unwrap_or(TimeZone::UTC);
        BucketSpec {
            since: self.since,
            until: self.until,
            bucket: self.bucket,
            zone,
            dates: query.dates(),
        }
    }
}

/// A bucket of one product.
pub struct ProductBucket {
    /// The product; its buckets share it.
    pub product: Arc<Product>,
    /// What was found.
    pub stats: BucketStats,
    /// The verdict on the lowest price, if one is wanted and there is a price.
    pub(super) verdict: Option<HistoryVerdict>,
}

/// Prices in buckets, and whether there are more products.
pub async fn series(
    conn: PoolConnection<Postgres>,
    tenant: TenantId,
    query: &PriceQuery,
    range: &BucketRange,
) -> sqlx::Result<(Vec<ProductBucket>, bool)> {
    let mut snapshot = db::snapshot(conn).await?;
    let wanted = WantedBuckets {
        spec: range.spec(query),
        query: query.clone(),
    };
    let mut presenter = ProductPresenter::default();
    let (products, next) = page(&mut snapshot, tenant, &wanted, None, MAX_PRODUCTS).await?;
    let buckets = products
        .into_iter()
        .flat_map(|product| product.present(&mut presenter))
        .collect();
    Ok((buckets, next.is_some()))
}

/// Prices in buckets as a stream, without a limit on products.
pub fn stream(
    pool: PgPool,
    tenant: TenantId,
    query: PriceQuery,
    range: &BucketRange,
) -> impl Stream<Item = Result<ProductBucket, PageError>> + Send + use<> {
    let wanted = WantedBuckets {
        spec: range.spec(&query),
        query,
    };
    let products = paging::stream_rows(None, move |after: Option<ProductCursor>| {
        let (pool, wanted) = (pool.clone(), wanted.clone());
        async move {
            let mut snapshot = db::snapshot(pool.acquire().await?).await?;
            let after = after.as_ref();
            let (products, next) = page(
                &mut snapshot,
                tenant,
                &wanted,
                after,
                PRODUCTS_PER_EXPORT_PAGE,
            )
            .await?;
            Ok((products, next.map(Some)))
        }
    });
    let mut presenter = ProductPresenter::default();
    products
        .map_ok(move |product| {
            futures::stream::iter(product.present(&mut presenter).into_iter().map(Ok))
        })
        .try_flatten()
}

/// Which products are aggregated, and how.
#[derive(Clone)]
struct WantedBuckets {
    query: PriceQuery,
    spec: BucketSpec,
}

/// A product and its buckets, with the verdicts on their lowest prices.
struct BucketsOfProduct {
    product: ProductRow,
    buckets: Vec<(BucketStats, Option<HistoryVerdict>)>,
}

impl BucketsOfProduct {
    fn present(self, presenter: &mut ProductPresenter) -> Vec<ProductBucket> {
        let product = Arc::new(presenter.present(self.product));
        let bucket = |(stats, verdict)| ProductBucket {
            product: product.clone(),
            stats,
            verdict,
        };
        self.buckets.into_iter().map(bucket).collect()
    }
}

/// At most `limit` products with their buckets, and a cursor if there are more.
async fn page(
    conn: &mut PgConnection,
    tenant: TenantId,
    wanted: &WantedBuckets,
    after: Option<&ProductCursor>,
    limit: usize,
) -> sqlx::Result<(Vec<BucketsOfProduct>, Option<ProductCursor>)> {
    let mut found = products(
        &mut *conn,
        tenant,
        &wanted.query,
        after,
        paging::limit_plus_one(limit),
    )
    .await?;
    let next = paging::truncate_page(&mut found, limit).map(|last| ProductCursor {
        endpoint: last.endpoint,
        series: last.series.clone(),
    });
    let mut entry = Vec::new();
    for product in found {
        let buckets = product_buckets(&mut *conn, tenant, &product, wanted).await?;
        entry.push(BucketsOfProduct { product, buckets });
    }
    Ok((entry, next))
}

/// The buckets of a product with the verdicts on their lowest prices, if these are wanted. Reads the
/// samples of all dates, and of days before the range: they say which prices are plausible, and what
/// the lowest ones are compared with. Memory use is bounded by the prices of one bucket, the samples
/// of one day, and for verdicts one price of each date and day.
async fn product_buckets(
    conn: &mut PgConnection,
    tenant: TenantId,
    product: &ProductRow,
    wanted: &WantedBuckets,
) -> sqlx::Result<Vec<(BucketStats, Option<HistoryVerdict>)>> {
    let spec = &wanted.spec;
    let since = if wanted.query.is_judged {
        verdict::compared_since(spec.since)
    } else {
        verdict::plausible_since(spec.since)
    };
    let until = verdict::end_of_day(spec.until);
    let (mut buckets, mut prices) = (BucketAggregator::new(spec), PlausiblePrices::default());
    for_each_marked_day(conn, tenant, product.stored(), since, until, |day| {
        for sample in day {
            buckets.add(sample);
        }
        if wanted.query.is_judged {
            prices.add_day(day);
        }
    })
    .await?;
    let buckets = buckets.finish();
    if !wanted.query.is_judged {
        return Ok(buckets.into_iter().map(|stats| (stats, None)).collect());
    }
    let lowest = |stats: &BucketStats| JudgedPrice::of(stats.lowest.as_ref()?);
    let judged: Vec<_> = buckets.iter().map(lowest).collect();
    let api = product.endpoint.api();
    let verdicts = compute(move || verdict::verdicts(api, &prices.sorted(), &judged)).await;
    Ok(buckets.into_iter().zip(verdicts).collect())
}

/// Where the samples of a product are: packed before a day, and from it on as observations.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredSeries<'a> {
    pub(super) series: &'a [u8],
    /// First day that is not packed; `None` if all days are.
    pub(super) unpacked_since: Option<Timestamp>,
}

impl ProductRow {
    pub(super) fn stored(&self) -> StoredSeries<'_> {
        StoredSeries {
            series: &self.series,
            unpacked_since: self.unpacked_since.map(|since| since.to_jiff()),
        }
    }
}

/// Reads the samples of a product, those of each day together, with marks on implausible prices. To
/// be complete, the marks need the days from [`verdict::plausible_since`] to [`verdict::end_of_day`].
pub(super) async fn for_each_marked_day(
    conn: &mut PgConnection,
    tenant: TenantId,
    stored: StoredSeries<'_>,
    since: Timestamp,
    until: Timestamp,
    mut take_day: impl FnMut(&[MarkedSample]),
) -> sqlx::Result<()> {
    let mut marked = MarkedSamples::default();
    for_each_sample(conn, tenant, stored, since, until, |sample| {
        marked.add(sample, &mut take_day);
    })
    .await?;
    marked.finish(take_day);
    Ok(())
}

/// Reads the samples of a product in chronological order, and perhaps some before and after the
/// range.
pub(super) async fn for_each_sample(
    conn: &mut PgConnection,
    tenant: TenantId,
    stored: StoredSeries<'_>,
    since: Timestamp,
    until: Timestamp,
    mut take: impl FnMut(&Sample),
) -> sqlx::Result<()> {
    let unpacked_since = stored.unpacked_since.unwrap_or(until);
    {
        let packed = daily_pack::packed(
            conn,
            tenant,
            stored.series,
            midnight(since),
            unpacked_since.min(until),
        );
        pin_mut!(packed);
        while let Some(day) = packed.try_next().await? {
            for sample in unpack(&day) {
                take(&sample.map_err(|error| sqlx::Error::Decode(error.into()))?);
            }
        }
    }
    if unpacked_since < until {
        let samples = daily_pack::samples(
            conn,
            tenant,
            stored.series,
            unpacked_since.max(since),
            until,
            i64::MAX,
        );
        pin_mut!(samples);
        while let Some(sample) = samples.try_next().await? {
            take(&sample);
        }
    }
    Ok(())
}
