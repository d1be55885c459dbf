//! The last price and the newest search of each date of a product.

use jiff_sqlx::{Date, Timestamp, ToSqlx as _};
use rust_decimal::Decimal;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::contract::{Endpoint, SearchStatus, Verdict};
use crate::history::query::PriceQuery;
use crate::history::series_key::SeriesKey;
use crate::ids::TenantId;

/// A row of `latest_prices` with its series.
pub(in crate::history) struct HistoryGridRow {
    pub(in crate::history) series: Vec<u8>,
    pub(in crate::history) endpoint: Endpoint,
    pub(in crate::history) origin: Option<String>,
    pub(in crate::history) place: String,
    pub(in crate::history) product: Value,
    pub(in crate::history) currency: String,
    pub(in crate::history) market: Option<String>,
    pub(in crate::history) first_date: Date,
    /// `first_date` for subjects with one date.
    pub(in crate::history) last_date: Date,
    pub(in crate::history) observed_at: Option<Timestamp>,
    pub(in crate::history) price: Option<Decimal>,
    pub(in crate::history) seller: Option<String>,
    pub(in crate::history) band_low: Option<Decimal>,
    pub(in crate::history) band_high: Option<Decimal>,
    pub(in crate::history) verdict: Option<Verdict>,
    pub(in crate::history) item_id: Option<Uuid>,
    pub(in crate::history) sampled_at: Option<Timestamp>,
    pub(in crate::history) sample_status: Option<SearchStatus>,
    pub(in crate::history) sample_reason: Option<String>,
}

/// Ordered by product, then dates. Reads one range of the primary key's index per product.
pub(in crate::history) async fn latest_by_date(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &PriceQuery,
    limit: i64,
) -> sqlx::Result<Vec<HistoryGridRow>> {
    sqlx::query_as!(
        HistoryGridRow,
        "select s.series, s.endpoint, s.origin, s.place, s.product, s.currency, s.market, l.first_date, l.last_date, l.observed_at, l.price,
                l.seller, l.band_low, l.band_high, l.verdict, l.item_id, l.sampled_at, l.sample_status, l.sample_reason
         from series s
         join latest_prices l on l.tenant_id = s.tenant_id and l.series = s.series
         where s.tenant_id = $1 and s.endpoint = any ($2) and place_key(s.endpoint, s.place) = $3 and ($4::text is null or s.origin = $4)
           and ($5::text is null or s.currency = upper($5)) and ($6::text is null or s.market = lower($6))
           and ($7::bigint is null or (s.product ->> 'adults')::bigint = $7)
           and ($8::bigint is null or (s.product ->> 'children')::bigint = $8)
           and l.first_date between $9 and $10 and ($11::int is null or l.last_date - l.first_date = $11)
         order by s.endpoint, s.series, l.first_date, l.last_date limit $12",
        tenant.uuid(),
        &query.endpoints(),
        query.place(),
        query.origin,
        query.currency,
        query.market,
        query.adults,
        query.children,
        query.first_from().map(|date| date.to_sqlx()) as _,
        query.first_to().map(|date| date.to_sqlx()) as _,
        query.nights,
        limit,
    )
    .fetch_all(conn)
    .await
}

/// The same of these products. `nights` are the wanted lengths; empty: all.
pub(in crate::history) async fn latest_of_products(
    conn: &mut PgConnection,
    tenant: TenantId,
    products: &[SeriesKey],
    dates: (jiff::civil::Date, jiff::civil::Date),
    nights: &[i32],
    limit: i64,
) -> sqlx::Result<Vec<HistoryGridRow>> {
    let products: Vec<_> = products.iter().map(|key| key.0.to_vec()).collect();
    sqlx::query_as!(
        HistoryGridRow,
        "select s.series, s.endpoint, s.origin, s.place, s.product, s.currency, s.market, l.first_date, l.last_date, l.observed_at, l.price,
                l.seller, l.band_low, l.band_high, l.verdict, l.item_id, l.sampled_at, l.sample_status, l.sample_reason
         from series s
         join latest_prices l on l.tenant_id = s.tenant_id and l.series = s.series
         where s.tenant_id = $1 and s.series = any ($2) and l.first_date between $3 and $4
           and (cardinality($5::int[]) = 0 or l.last_date - l.first_date = any ($5))
         order by s.endpoint, s.series, l.first_date, l.last_date limit $6",
        tenant.uuid(),
        &products,
        dates.0.to_sqlx() as _,
        dates.1.to_sqlx() as _,
        nights,
        limit,
    )
    .fetch_all(conn)
    .await
}
