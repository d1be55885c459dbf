//! Queries over observations and latest prices. Flights and hotels share them; unused filters are
//! null.

use jiff_sqlx::{Date, Timestamp, ToSqlx as _};
use rust_decimal::Decimal;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::RawProduct;
use crate::contract::{Endpoint, SearchStatus, Verdict};
use crate::history::query::PriceQuery;
use crate::ids::TenantId;

/// Last observation of the previous page.
#[derive(Debug, Clone, Copy)]
pub(in crate::history) struct ObservationCursor {
    pub(in crate::history) observed_at: jiff::Timestamp,
    pub(in crate::history) item: Uuid,
    pub(in crate::history) number: i32,
}

/// Last row of the previous page.
#[derive(Debug, Clone)]
pub(in crate::history) struct LatestCursor {
    pub(in crate::history) first_date: jiff::civil::Date,
    pub(in crate::history) stay: jiff::civil::Date,
    pub(in crate::history) endpoint: Endpoint,
    pub(in crate::history) series: Vec<u8>,
}

/// An observation with its series.
pub struct ObservationRow {
    pub(in crate::history) endpoint: Endpoint,
    pub(in crate::history) origin: Option<String>,
    pub(in crate::history) place: String,
    pub(in crate::history) product: Json<RawProduct>,
    pub(in crate::history) currency: String,
    pub(in crate::history) market: Option<String>,
    pub(in crate::history) first_date: Date,
    pub(in crate::history) last_date: Option<Date>,
    pub(in crate::history) observed_at: Timestamp,
    pub(in crate::history) price: Option<Decimal>,
    pub(in crate::history) seller: Option<String>,
    pub(in crate::history) results: Option<i32>,
    pub(in crate::history) band_low: Option<Decimal>,
    pub(in crate::history) band_high: Option<Decimal>,
    pub(in crate::history) verdict: Option<Verdict>,
    pub(in crate::history) search_status: SearchStatus,
    pub(in crate::history) reason: Option<String>,
    pub(in crate::history) item_id: Uuid,
    pub(in crate::history) number: i32,
}

/// A latest price with its series.
pub struct LatestRow {
    pub(in crate::history) series: Vec<u8>,
    pub(in crate::history) endpoint: Endpoint,
    pub(in crate::history) origin: Option<String>,
    pub(in crate::history) place: String,
    pub(in crate::history) product: Json<RawProduct>,
    pub(in crate::history) currency: String,
    pub(in crate::history) market: Option<String>,
    pub(in crate::history) first_date: Date,
    /// `first_date` for subjects with one date.
    pub(in crate::history) last_date: Date,
    /// Distinguishes lengths of stay: the last date of a hotel stay, the first date of a flight.
    pub(in crate::history) stay: Date,
    pub(in crate::history) observed_at: Timestamp,
    pub(in crate::history) price: Decimal,
    pub(in crate::history) seller: Option<String>,
    pub(in crate::history) band_low: Option<Decimal>,
    pub(in crate::history) band_high: Option<Decimal>,
    pub(in crate::history) verdict: Option<Verdict>,
    pub(in crate::history) item_id: Uuid,
    /// First day of the series that is not packed; `None` if all days are.
    pub(in crate::history) unpacked_since: Option<Timestamp>,
}

/// Newest first. The lateral query reads at most one page per product by the time index, so the
/// cost depends on the page, not on the history. The bounds contain no `or`, so that the planner
/// can prune partitions and use the index.
pub(in crate::history) async fn observations(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &PriceQuery,
    before: Option<ObservationCursor>,
    limit: i64,
) -> sqlx::Result<Vec<ObservationRow>> {
    sqlx::query_as!(
        ObservationRow,
        r#"select s.endpoint, s.origin, s.place, s.product as "product: Json<RawProduct>", s.currency, s.market, o.first_date as "first_date!", o.last_date,
                  o.observed_at as "observed_at!", o.price, o.seller, o.results, o.band_low, o.band_high, o.verdict,
                  o.search_status as "search_status!", o.reason, o.item_id as "item_id!", o.number as "number!"
           from series s
           cross join lateral (
               select * from observations o
               where o.tenant_id = s.tenant_id and o.series = s.series
                 and o.first_date >= coalesce($9::date, '-infinity') and o.first_date <= coalesce($10::date, 'infinity')
                 and ($11::date is null or o.last_date = $11)
                 and o.observed_at >= coalesce($12::timestamptz, '-infinity') and o.observed_at < coalesce($13::timestamptz, 'infinity')
                 and o.observed_at <= coalesce($14::timestamptz, 'infinity')
                 and (o.observed_at, o.item_id, o.number)
                     < (coalesce($14::timestamptz, 'infinity'), coalesce($15::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
                        coalesce($16::int, 2147483647))
               order by o.observed_at desc, o.item_id desc, o.number desc limit $17) o
           where s.tenant_id = $1 and s.endpoint = any ($2) and place_key(s.endpoint, s.place) = $3 and ($4::text is null or s.origin = $4)
             and ($5::text is null or s.currency = upper($5)) and ($6::text is null or s.market = lower($6))
             and ($7::bigint is null or (s.product ->> 'adults')::bigint = $7)
             and ($8::bigint is null or (s.product ->> 'children')::bigint = $8)
           order by o.observed_at desc, o.item_id desc, o.number desc limit $17"#,
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
        query.last_date.map(|date| date.to_sqlx()) as _,
        query.since.map(|time| time.to_sqlx()) as _,
        query.until.map(|time| time.to_sqlx()) as _,
        before.map(|place| place.observed_at.to_sqlx()) as _,
        before.map(|place| place.item),
        before.map(|place| place.number),
        limit,
    )
    .fetch_all(conn)
    .await
}

/// Ordered by date. Return dates of one departure compete for the lowest price; lengths of a hotel
/// stay are separate rows. Reads one range of the primary key's index per product.
pub(in crate::history) async fn latest(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &PriceQuery,
    after: Option<&LatestCursor>,
    limit: i64,
) -> sqlx::Result<Vec<LatestRow>> {
    sqlx::query_as!(
        LatestRow,
        r#"select s.series, s.endpoint, s.origin, s.place, s.product as "product: Json<RawProduct>", s.currency, s.market, l.first_date as "first_date!",
                  l.last_date as "last_date!", l.stay as "stay!: Date", l.observed_at as "observed_at!", l.price as "price!", l.seller,
                  l.band_low, l.band_high, l.verdict, l.item_id as "item_id!", s.unpacked_since
           from series s
           cross join lateral (
               select distinct on (p.first_date, p.stay) p.* from (
                   select *, case when s.endpoint like 'flights/%' then first_date else last_date end as stay from latest_prices
                   where tenant_id = s.tenant_id and series = s.series and price is not null
                     and first_date between greatest($9::date, $12::date) and $10::date
                     and ($11::date is null or last_date = $11)) p
               order by p.first_date, p.stay, p.price, p.last_date
           ) l
           where s.tenant_id = $1 and s.endpoint = any ($2) and place_key(s.endpoint, s.place) = $3 and ($4::text is null or s.origin = $4)
             and ($5::text is null or s.currency = upper($5)) and ($6::text is null or s.market = lower($6))
             and ($7::bigint is null or (s.product ->> 'adults')::bigint = $7)
             and ($8::bigint is null or (s.product ->> 'children')::bigint = $8)
             and ($12::date is null or (l.first_date, l.stay, s.endpoint, s.series) > ($12, $13::date, $14::text, $15::bytea))
           order by l.first_date, l.stay, s.endpoint, s.series limit $16"#,
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
        query.last_date.map(|date| date.to_sqlx()) as _,
        after.map(|cursor| cursor.first_date.to_sqlx()) as _,
        after.map(|cursor| cursor.stay.to_sqlx()) as _,
        after.map(|cursor| cursor.endpoint.as_str()),
        after.map(|cursor| cursor.series.as_slice()),
        limit,
    )
    .fetch_all(conn)
    .await
}
