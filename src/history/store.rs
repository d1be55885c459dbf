//! Observations and latest prices in the database.

use jiff_sqlx::{Date, Timestamp, ToSqlx as _};
use rust_decimal::Decimal;
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::forget::SeenBy;
use super::latest::LatestRow;
use super::query::Place;
use super::record::{Observation, SeenPrice};
use super::series::Series;
use crate::contract::Endpoint;
use crate::contract::history::{FlightHistoryQuery, HotelHistoryQuery};
use crate::contract::latest::{FlightLatestQuery, HotelLatestQuery};
use crate::ids::TenantId;

/// The columns of a batch: one vector for each, because UNNEST takes them so.
macro_rules! column {
    ($rows:expr, |$row:pat_param| $value:expr) => {
        &$rows.iter().map(|$row| $value).collect::<Vec<_>>()
    };
}

/// Series that are known already are left alone.
pub(super) async fn insert_series(conn: &mut PgConnection, series: &[(TenantId, &Series)]) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into series (tenant_id, series, endpoint, product, origin, place, currency, market)
         select * from unnest($1::uuid[], $2::bytea[], $3::text[], $4::jsonb[], $5::text[], $6::text[], $7::text[], $8::text[])
         on conflict do nothing",
        column!(series, |(tenant, _)| tenant.uuid()),
        column!(series, |(_, series)| series.key.0.to_vec()),
        column!(series, |(_, series)| series.endpoint.as_str().to_owned()),
        column!(series, |(_, series)| series.product.clone().into()),
        column!(series, |(_, series)| series.origin.clone()) as _,
        column!(series, |(_, series)| series.place.clone()),
        column!(series, |(_, series)| series.currency.clone()),
        column!(series, |(_, series)| series.market.clone()) as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// An observation that is there already is left alone.
pub(super) async fn insert_observations(conn: &mut PgConnection, rows: &[Observation]) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into observations (tenant_id, series, first_date, last_date, observed_at, price, seller, results, band_low, band_high,
                                   verdict, search_status, reason, item_id, number)
         select * from unnest($1::uuid[], $2::bytea[], $3::date[], $4::date[], $5::timestamptz[], $6::numeric[], $7::text[], $8::int[],
                              $9::numeric[], $10::numeric[], $11::text[], $12::text[], $13::text[], $14::uuid[], $15::int[])
         on conflict do nothing",
        column!(rows, |seen| seen.tenant.uuid()),
        column!(rows, |seen| seen.subject.series.key.0.to_vec()),
        column!(rows, |seen| seen.subject.first_date.to_sqlx()) as &[Date],
        column!(rows, |seen| seen.subject.last_date.map(|date| date.to_sqlx())) as _,
        column!(rows, |seen| seen.observed_at.to_sqlx()) as &[Timestamp],
        column!(rows, |seen| seen.best.as_ref().map(|best| best.price)) as _,
        column!(rows, |seen| seen.best.as_ref().and_then(|best| best.seller.clone())) as _,
        column!(rows, |seen| seen.results) as _,
        column!(rows, |seen| seen.best.as_ref().and_then(|best| best.band_low)) as _,
        column!(rows, |seen| seen.best.as_ref().and_then(|best| best.band_high)) as _,
        column!(rows, |seen| seen.best.as_ref().and_then(|best| best.verdict.map(|verdict| verdict.as_str().to_owned()))) as _,
        column!(rows, |seen| seen.status.as_str().to_owned()),
        column!(rows, |seen| seen.reason.clone()) as _,
        column!(rows, |seen| seen.item.uuid()),
        column!(rows, |seen| seen.number),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// An older price never takes the place of a newer one.
pub(super) async fn upsert_latest(conn: &mut PgConnection, rows: &[(&Observation, &SeenPrice)]) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "insert into latest_prices (tenant_id, series, first_date, last_date, observed_at, price, seller, band_low, band_high, verdict,
                                    item_id)
         select * from unnest($1::uuid[], $2::bytea[], $3::date[], $4::date[], $5::timestamptz[], $6::numeric[], $7::text[],
                              $8::numeric[], $9::numeric[], $10::text[], $11::uuid[])
         on conflict (tenant_id, series, first_date, last_date) do update
            set observed_at = excluded.observed_at, price = excluded.price, seller = excluded.seller, band_low = excluded.band_low,
                band_high = excluded.band_high, verdict = excluded.verdict, item_id = excluded.item_id
          where latest_prices.observed_at < excluded.observed_at",
        column!(rows, |(seen, _)| seen.tenant.uuid()),
        column!(rows, |(seen, _)| seen.subject.series.key.0.to_vec()),
        column!(rows, |(seen, _)| seen.subject.first_date.to_sqlx()) as &[Date],
        column!(rows, |(seen, _)| seen.subject.last_date.unwrap_or(seen.subject.first_date).to_sqlx()) as &[Date],
        column!(rows, |(seen, _)| seen.observed_at.to_sqlx()) as &[Timestamp],
        column!(rows, |(_, best)| best.price),
        column!(rows, |(_, best)| best.seller.clone()) as _,
        column!(rows, |(_, best)| best.band_low) as _,
        column!(rows, |(_, best)| best.band_high) as _,
        column!(rows, |(_, best)| best.verdict.map(|verdict| verdict.as_str().to_owned())) as _,
        column!(rows, |(seen, _)| seen.item.uuid()),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes observations out.
pub(super) async fn delete_observations(conn: &mut PgConnection, tenant: TenantId, seen: &[SeenBy]) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from observations o using unnest($2::bytea[], $3::date[], $4::uuid[]) as x (series, first_date, item_id)
         where o.tenant_id = $1 and o.series = x.series and o.first_date = x.first_date and o.item_id = x.item_id",
        tenant.uuid(),
        column!(seen, |seen| seen.series.0.to_vec()),
        column!(seen, |seen| seen.first_date.to_sqlx()) as &[Date],
        column!(seen, |seen| seen.item.uuid()),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Latest prices that came from these items become the newest price that is left, or go. Their rows are locked in the order in which
/// recorders write them.
pub(super) async fn fall_back(conn: &mut PgConnection, tenant: TenantId, seen: &[SeenBy]) -> sqlx::Result<()> {
    let series: &Vec<_> = column!(seen, |seen| seen.series.0.to_vec());
    let first: &Vec<_> = column!(seen, |seen| seen.first_date.to_sqlx());
    let last: &Vec<_> = column!(seen, |seen| seen.last_date.to_sqlx());
    let items: &Vec<_> = column!(seen, |seen| seen.item.uuid());
    sqlx::query!(
        "select from latest_prices
         where tenant_id = $1 and (series, first_date, last_date) in (select * from unnest($2::bytea[], $3::date[], $4::date[]))
         order by series, first_date, last_date for no key update",
        tenant.uuid(),
        series,
        first as &[Date],
        last as &[Date],
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update latest_prices l
         set observed_at = o.observed_at, price = o.price, seller = o.seller, band_low = o.band_low, band_high = o.band_high,
             verdict = o.verdict, item_id = o.item_id
         from unnest($2::bytea[], $3::date[], $4::date[], $5::uuid[]) as x (series, first_date, last_date, item_id)
         cross join lateral (
             select * from observations o
             where o.tenant_id = $1 and o.series = x.series and o.first_date = x.first_date
               and coalesce(o.last_date, o.first_date) = x.last_date and o.price is not null and o.search_status in ('ok', 'partial')
             order by o.observed_at desc limit 1) o
         where l.tenant_id = $1 and l.series = x.series and l.first_date = x.first_date and l.last_date = x.last_date
           and l.item_id = x.item_id",
        tenant.uuid(),
        series,
        first as &[Date],
        last as &[Date],
        items,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from latest_prices l
         using unnest($2::bytea[], $3::date[], $4::date[], $5::uuid[]) as x (series, first_date, last_date, item_id)
         where l.tenant_id = $1 and l.series = x.series and l.first_date = x.first_date and l.last_date = x.last_date
           and l.item_id = x.item_id",
        tenant.uuid(),
        series,
        first as &[Date],
        last as &[Date],
        items,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// An observation with its series.
pub(super) struct ObservationRow {
    pub(super) endpoint: String,
    pub(super) origin: Option<String>,
    pub(super) place: String,
    pub(super) product: Value,
    pub(super) currency: String,
    pub(super) market: Option<String>,
    pub(super) first_date: Date,
    pub(super) last_date: Option<Date>,
    pub(super) observed_at: Timestamp,
    pub(super) price: Option<Decimal>,
    pub(super) seller: Option<String>,
    pub(super) results: Option<i32>,
    pub(super) band_low: Option<Decimal>,
    pub(super) band_high: Option<Decimal>,
    pub(super) verdict: Option<String>,
    pub(super) search_status: String,
    pub(super) reason: Option<String>,
    pub(super) item_id: Uuid,
    pub(super) number: i32,
}

pub(super) async fn flights(
    pool: &PgPool,
    tenant: TenantId,
    query: &FlightHistoryQuery,
    before: Option<Place>,
    limit: i64,
) -> sqlx::Result<Vec<ObservationRow>> {
    sqlx::query_as!(
        ObservationRow,
        "select s.endpoint, s.origin, s.place, s.product, s.currency, s.market, o.first_date, o.last_date, o.observed_at, o.price, o.seller,
                o.results, o.band_low, o.band_high, o.verdict, o.search_status, o.reason, o.item_id, o.number
         from series s
         join observations o on o.tenant_id = s.tenant_id and o.series = s.series
         where s.tenant_id = $1 and s.endpoint in ('flights/oneway', 'flights/roundtrip') and s.place = $3 and s.origin = $2
           and ($4::text is null or s.currency = upper($4))
           and ($5::date is null or o.first_date >= $5) and ($6::date is null or o.first_date <= $6)
           and ($7::date is null or o.last_date = $7)
           and ($8::timestamptz is null or o.observed_at >= $8) and ($9::timestamptz is null or o.observed_at < $9)
           and ($10::timestamptz is null or (o.observed_at, o.item_id, o.number) < ($10, $11::uuid, $12::int))
         order by o.observed_at desc, o.item_id desc, o.number desc limit $13",
        tenant.uuid(),
        query.from_airport.as_str(),
        query.to_airport.as_str(),
        query.currency.as_ref().map(|currency| currency.as_str()),
        query.departure_date.or(query.departure_from).map(|date| date.to_sqlx()) as _,
        query.departure_date.or(query.departure_to).map(|date| date.to_sqlx()) as _,
        query.return_date.map(|date| date.to_sqlx()) as _,
        query.since.map(|time| time.to_sqlx()) as _,
        query.until.map(|time| time.to_sqlx()) as _,
        before.map(|place| place.observed_at.to_sqlx()) as _,
        before.map(|place| place.item),
        before.map(|place| place.number),
        limit,
    )
    .fetch_all(pool)
    .await
}

pub(super) async fn hotels(
    pool: &PgPool,
    tenant: TenantId,
    (endpoint, place): (Endpoint, &str),
    query: &HotelHistoryQuery,
    before: Option<Place>,
    limit: i64,
) -> sqlx::Result<Vec<ObservationRow>> {
    sqlx::query_as!(
        ObservationRow,
        "select s.endpoint, s.origin, s.place, s.product, s.currency, s.market, o.first_date, o.last_date, o.observed_at, o.price, o.seller,
                o.results, o.band_low, o.band_high, o.verdict, o.search_status, o.reason, o.item_id, o.number
         from series s
         join observations o on o.tenant_id = s.tenant_id and o.series = s.series
         where s.tenant_id = $1 and s.endpoint = $2 and s.place = $3
           and ($4::text is null or s.currency = upper($4)) and ($5::text is null or s.market = lower($5))
           and ($6::bigint is null or (s.product ->> 'adults')::bigint = $6)
           and ($7::bigint is null or (s.product ->> 'children')::bigint = $7)
           and ($8::date is null or o.first_date >= $8) and ($9::date is null or o.first_date <= $9)
           and ($10::date is null or o.last_date = $10)
           and ($11::timestamptz is null or o.observed_at >= $11) and ($12::timestamptz is null or o.observed_at < $12)
           and ($13::timestamptz is null or (o.observed_at, o.item_id, o.number) < ($13, $14::uuid, $15::int))
         order by o.observed_at desc, o.item_id desc, o.number desc limit $16",
        tenant.uuid(),
        endpoint.as_str(),
        place,
        query.currency.as_ref().map(|currency| currency.as_str()),
        query.proxy_country.as_ref().map(|country| country.as_str()),
        query.adults.map(|adults| i64::from(adults.get())),
        query.children.map(|children| i64::from(children.get())),
        query.checkin_date.or(query.checkin_from).map(|date| date.to_sqlx()) as _,
        query.checkin_date.or(query.checkin_to).map(|date| date.to_sqlx()) as _,
        query.checkout_date.map(|date| date.to_sqlx()) as _,
        query.since.map(|time| time.to_sqlx()) as _,
        query.until.map(|time| time.to_sqlx()) as _,
        before.map(|place| place.observed_at.to_sqlx()) as _,
        before.map(|place| place.item),
        before.map(|place| place.number),
        limit,
    )
    .fetch_all(pool)
    .await
}

/// By day of departure; of a round trip the cheapest return. One range of the primary key's index for each product of the route.
pub(super) async fn latest_flights(
    pool: &PgPool,
    tenant: TenantId,
    query: &FlightLatestQuery,
    limit: i64,
) -> sqlx::Result<Vec<LatestRow>> {
    sqlx::query_as!(
        LatestRow,
        r#"select s.endpoint, s.origin, s.place, s.product, s.currency, s.market, l.first_date as "first_date!", l.last_date as "last_date!",
                  l.observed_at as "observed_at!", l.price as "price!", l.seller, l.band_low, l.band_high, l.verdict, l.item_id as "item_id!"
           from series s
           cross join lateral (
               select distinct on (p.first_date) p.* from latest_prices p
               where p.tenant_id = s.tenant_id and p.series = s.series and p.first_date between $4 and $5
                 and ($6::date is null or p.last_date = $6)
               order by p.first_date, p.price, p.last_date
           ) l
           where s.tenant_id = $1 and s.endpoint in ('flights/oneway', 'flights/roundtrip') and s.place = $3 and s.origin = $2
             and ($7::text is null or s.currency = upper($7)) and ($6::date is null or s.endpoint = 'flights/roundtrip')
           order by l.first_date, s.endpoint, s.series limit $8"#,
        tenant.uuid(),
        query.from_airport.as_str(),
        query.to_airport.as_str(),
        query.departure_from.to_sqlx() as _,
        query.departure_to.to_sqlx() as _,
        query.return_date.map(|date| date.to_sqlx()) as _,
        query.currency.as_ref().map(|currency| currency.as_str()),
        limit,
    )
    .fetch_all(pool)
    .await
}

/// By day of check-in and length of stay. One range of the primary key's index for each product of the place.
pub(super) async fn latest_hotels(
    pool: &PgPool,
    tenant: TenantId,
    (endpoint, place): (Endpoint, &str),
    query: &HotelLatestQuery,
    limit: i64,
) -> sqlx::Result<Vec<LatestRow>> {
    sqlx::query_as!(
        LatestRow,
        "select s.endpoint, s.origin, s.place, s.product, s.currency, s.market, l.first_date, l.last_date, l.observed_at, l.price,
                l.seller, l.band_low, l.band_high, l.verdict, l.item_id
         from series s
         join latest_prices l on l.tenant_id = s.tenant_id and l.series = s.series
         where s.tenant_id = $1 and s.endpoint = $2 and s.place = $3 and l.first_date between $4 and $5
           and ($6::date is null or l.last_date = $6)
           and ($7::text is null or s.currency = upper($7)) and ($8::text is null or s.market = lower($8))
           and ($9::bigint is null or (s.product ->> 'adults')::bigint = $9)
           and ($10::bigint is null or (s.product ->> 'children')::bigint = $10)
         order by l.first_date, l.last_date, s.series limit $11",
        tenant.uuid(),
        endpoint.as_str(),
        place,
        query.checkin_from.to_sqlx() as _,
        query.checkin_to.to_sqlx() as _,
        query.checkout_date.map(|date| date.to_sqlx()) as _,
        query.currency.as_ref().map(|currency| currency.as_str()),
        query.proxy_country.as_ref().map(|country| country.as_str()),
        query.adults.map(|adults| i64::from(adults.get())),
        query.children.map(|children| i64::from(children.get())),
        limit,
    )
    .fetch_all(pool)
    .await
}
