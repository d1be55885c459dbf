//! Adding up what was seen, bucket by bucket.

use jiff_sqlx::{Date, ToSqlx as _};
use rust_decimal::Decimal;
use serde_json::Value;
use sqlx::PgPool;

use crate::history::buckets::{After, Over};
use crate::history::filter::Filter;
use crate::ids::TenantId;

/// A bucket with its series.
pub(in crate::history) struct BucketRow {
    pub(in crate::history) series: Vec<u8>,
    pub(in crate::history) endpoint: String,
    pub(in crate::history) origin: Option<String>,
    pub(in crate::history) place: String,
    pub(in crate::history) product: Value,
    pub(in crate::history) currency: String,
    pub(in crate::history) market: Option<String>,
    /// Null in the row of a product that was not looked at in the whole range: the only one that it has.
    pub(in crate::history) bucket: Option<Date>,
    pub(in crate::history) observations: Option<i64>,
    pub(in crate::history) prices: Option<i64>,
    pub(in crate::history) empty: Option<i64>,
    pub(in crate::history) degraded: Option<i64>,
    pub(in crate::history) minimum: Option<Decimal>,
    pub(in crate::history) median: Option<Decimal>,
    pub(in crate::history) maximum: Option<Decimal>,
    pub(in crate::history) band_low: Option<Decimal>,
    pub(in crate::history) band_high: Option<Decimal>,
}

/// The buckets of the next `products` products: by product, and by time within one. Every product has a row, so that the last says where
/// the next page begins. What is a price is what is one in the latest prices: of an answer that is `ok` or `partial`.
///
/// In UTC the buckets are cut by arithmetic, which costs a twentieth of what a zone's rules do. The median is the mean of the two in the
/// middle, which are one and the same where their number is odd.
pub(in crate::history) async fn buckets(
    pool: &PgPool,
    tenant: TenantId,
    filter: &Filter,
    over: &Over,
    after: Option<&After>,
    products: i64,
) -> sqlx::Result<Vec<BucketRow>> {
    sqlx::query_as!(
        BucketRow,
        r#"select s.series, s.endpoint, s.origin, s.place, s.product, s.currency, s.market,
                  (b.begins at time zone $14::text)::date as bucket, b.observations, b.prices, b.empty, b.degraded, b.minimum,
                  (b.middle[1] + b.middle[2]) / 2 as median, b.maximum, b.band_low, b.band_high
           from (
               select * from series p
               where p.tenant_id = $1 and p.endpoint = any ($2) and p.place = $3 and ($4::text is null or p.origin = $4)
                 and ($5::text is null or p.currency = upper($5)) and ($6::text is null or p.market = lower($6))
                 and ($7::bigint is null or (p.product ->> 'adults')::bigint = $7)
                 and ($8::bigint is null or (p.product ->> 'children')::bigint = $8)
                 and ($16::text is null or (p.endpoint, p.series) > ($16, $17::bytea))
               order by p.endpoint, p.series limit $18) s
           left join lateral (
               select seen.begins, count(*) as observations, count(seen.price) as prices,
                      count(*) filter (where seen.search_status = 'empty') as empty,
                      count(*) filter (where seen.search_status = 'degraded') as degraded,
                      min(seen.price) as minimum, max(seen.price) as maximum,
                      percentile_disc(array[0.5, 0.500000001]) within group (order by seen.price) as middle,
                      min(seen.band_low) as band_low, max(seen.band_high) as band_high
               from (
                   select case when $14::text = 'UTC' then date_bin($15::text::interval, o.observed_at, '2000-01-03 00:00:00+00')
                               else date_trunc(case when $15::text = '7 days' then 'week' else 'day' end, o.observed_at, $14::text)
                          end as begins,
                          case when o.search_status in ('ok', 'partial') then o.price end as price,
                          o.search_status, o.band_low, o.band_high
                   from observations o
                   where o.tenant_id = s.tenant_id and o.series = s.series
                     and o.first_date >= coalesce($9::date, '-infinity') and o.first_date <= coalesce($10::date, 'infinity')
                     and ($11::date is null or o.last_date = $11)
                     and o.observed_at >= $12 and o.observed_at < $13) seen
               group by seen.begins) b on true
           order by s.endpoint, s.series, b.begins"#,
        tenant.uuid(),
        &filter.endpoints(),
        filter.place,
        filter.origin,
        filter.currency,
        filter.market,
        filter.adults,
        filter.children,
        filter.first_from.map(|date| date.to_sqlx()) as _,
        filter.first_to.map(|date| date.to_sqlx()) as _,
        filter.last_date.map(|date| date.to_sqlx()) as _,
        over.since.to_sqlx() as _,
        over.until.to_sqlx() as _,
        over.zone,
        over.step(),
        after.map(|after| after.endpoint.as_str()),
        after.map(|after| after.series.as_slice()),
        products,
    )
    .fetch_all(pool)
    .await
}
