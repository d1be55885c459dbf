//! Inserts, updates and deletes of observations and latest prices.

use jiff_sqlx::{Date, Timestamp, ToSqlx as _};
use sqlx::PgConnection;

use crate::history::observation::{Observation, ObservedItem, ObservedPrice};
use crate::history::series_key::Series;
use crate::ids::TenantId;

/// The newest data of a batch for one row of `latest_prices`.
#[derive(Debug, Clone, Copy)]
pub(in crate::history) struct LatestUpdate<'a> {
    /// The newest observation, whatever its status.
    pub(in crate::history) observation: &'a Observation,
    /// The newest price of an `ok` or `partial` answer.
    pub(in crate::history) price: Option<(&'a Observation, &'a ObservedPrice)>,
}

/// The column vectors that UNNEST takes.
macro_rules! column {
    ($rows:expr, |$row:pat_param| $value:expr) => {
        &$rows.iter().map(|$row| $value).collect::<Vec<_>>()
    };
}

/// Existing series are left unchanged.
pub(in crate::history) async fn insert_series(
    conn: &mut PgConnection,
    series: &[(TenantId, &Series)],
) -> sqlx::Result<()> {
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

/// Existing observations are left unchanged.
pub(in crate::history) async fn insert_observations(
    conn: &mut PgConnection,
    rows: &[Observation],
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into observations (tenant_id, series, first_date, last_date, observed_at, price, seller, results, band_low, band_high,
                                   verdict, search_status, reason, item_id, number)
         select * from unnest($1::uuid[], $2::bytea[], $3::date[], $4::date[], $5::timestamptz[], $6::numeric[], $7::text[], $8::int[],
                              $9::numeric[], $10::numeric[], $11::text[], $12::text[], $13::text[], $14::uuid[], $15::int[])
         on conflict do nothing",
        column!(rows, |observation| observation.tenant.uuid()),
        column!(rows, |observation| observation.subject.series.key.0.to_vec()),
        column!(rows, |observation| observation.subject.first_date.to_sqlx()) as &[Date],
        column!(rows, |observation| observation.subject.last_date.map(|date| date.to_sqlx())) as _,
        column!(rows, |observation| observation.observed_at.to_sqlx()) as &[Timestamp],
        column!(rows, |observation| observation.best.as_ref().map(|best| best.price)) as _,
        column!(rows, |observation| observation.best.as_ref().and_then(|best| best.seller.clone())) as _,
        column!(rows, |observation| observation.results) as _,
        column!(rows, |observation| observation.best.as_ref().and_then(|best| best.band_low)) as _,
        column!(rows, |observation| observation.best.as_ref().and_then(|best| best.band_high)) as _,
        column!(rows, |observation| observation.best.as_ref().and_then(|best| best.verdict.map(|verdict| verdict.as_str().to_owned()))) as _,
        column!(rows, |observation| observation.status.as_str().to_owned()),
        column!(rows, |observation| observation.reason.clone()) as _,
        column!(rows, |observation| observation.item.uuid()),
        column!(rows, |observation| observation.number),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// An older price or search never replaces a newer one.
pub(in crate::history) async fn upsert_latest(
    conn: &mut PgConnection,
    rows: &[LatestUpdate<'_>],
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into latest_prices (tenant_id, series, first_date, last_date, observed_at, price, seller, band_low, band_high, verdict,
                                    item_id, sampled_at, sample_status, sample_reason, sample_item_id)
         select * from unnest($1::uuid[], $2::bytea[], $3::date[], $4::date[], $5::timestamptz[], $6::numeric[], $7::text[],
                              $8::numeric[], $9::numeric[], $10::text[], $11::uuid[], $12::timestamptz[], $13::text[], $14::text[],
                              $15::uuid[])
         on conflict (tenant_id, series, first_date, last_date) do update
            set observed_at = case when is_newer(excluded.observed_at, latest_prices.observed_at) then excluded.observed_at
                                   else latest_prices.observed_at end,
                price = case when is_newer(excluded.observed_at, latest_prices.observed_at) then excluded.price
                             else latest_prices.price end,
                seller = case when is_newer(excluded.observed_at, latest_prices.observed_at) then excluded.seller
                              else latest_prices.seller end,
                band_low = case when is_newer(excluded.observed_at, latest_prices.observed_at) then excluded.band_low
                                else latest_prices.band_low end,
                band_high = case when is_newer(excluded.observed_at, latest_prices.observed_at) then excluded.band_high
                                 else latest_prices.band_high end,
                verdict = case when is_newer(excluded.observed_at, latest_prices.observed_at) then excluded.verdict
                               else latest_prices.verdict end,
                item_id = case when is_newer(excluded.observed_at, latest_prices.observed_at) then excluded.item_id
                               else latest_prices.item_id end,
                sampled_at = case when is_newer(excluded.sampled_at, latest_prices.sampled_at) then excluded.sampled_at
                                  else latest_prices.sampled_at end,
                sample_status = case when is_newer(excluded.sampled_at, latest_prices.sampled_at) then excluded.sample_status
                                     else latest_prices.sample_status end,
                sample_reason = case when is_newer(excluded.sampled_at, latest_prices.sampled_at) then excluded.sample_reason
                                     else latest_prices.sample_reason end,
                sample_item_id = case when is_newer(excluded.sampled_at, latest_prices.sampled_at) then excluded.sample_item_id
                                      else latest_prices.sample_item_id end
          where is_newer(excluded.observed_at, latest_prices.observed_at) or is_newer(excluded.sampled_at, latest_prices.sampled_at)",
        column!(rows, |row| row.observation.tenant.uuid()),
        column!(rows, |row| row.observation.subject.series.key.0.to_vec()),
        column!(rows, |row| row.observation.subject.first_date.to_sqlx()) as &[Date],
        column!(rows, |row| row.observation.subject.last_date.unwrap_or(row.observation.subject.first_date).to_sqlx()) as &[Date],
        column!(rows, |row| row.price.map(|(observation, _)| observation.observed_at.to_sqlx())) as _,
        column!(rows, |row| row.price.map(|(_, best)| best.price)) as _,
        column!(rows, |row| row.price.and_then(|(_, best)| best.seller.clone())) as _,
        column!(rows, |row| row.price.and_then(|(_, best)| best.band_low)) as _,
        column!(rows, |row| row.price.and_then(|(_, best)| best.band_high)) as _,
        column!(rows, |row| row.price.and_then(|(_, best)| best.verdict.map(|verdict| verdict.as_str().to_owned()))) as _,
        column!(rows, |row| row.price.map(|(observation, _)| observation.item.uuid())) as _,
        column!(rows, |row| row.observation.observed_at.to_sqlx()) as &[Timestamp],
        column!(rows, |row| row.observation.status.as_str().to_owned()),
        column!(rows, |row| row.observation.reason.clone()) as _,
        column!(rows, |row| row.observation.item.uuid()),
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub(in crate::history) async fn delete_observations(
    conn: &mut PgConnection,
    tenant: TenantId,
    items: &[ObservedItem],
) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from observations o using unnest($2::bytea[], $3::date[], $4::uuid[]) as x (series, first_date, item_id)
         where o.tenant_id = $1 and o.series = x.series and o.first_date = x.first_date and o.item_id = x.item_id",
        tenant.uuid(),
        column!(items, |item| item.series.0.to_vec()),
        column!(items, |item| item.first_date.to_sqlx()) as &[Date],
        column!(items, |item| item.item.uuid()),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Replaces prices and searches of these items with the newest remaining ones; deletes rows with
/// neither. Locks rows in the order in which `insert` writes them.
pub(in crate::history) async fn fall_back(
    conn: &mut PgConnection,
    tenant: TenantId,
    items: &[ObservedItem],
) -> sqlx::Result<()> {
    let series: &Vec<_> = column!(items, |item| item.series.0.to_vec());
    let first: &Vec<_> = column!(items, |item| item.first_date.to_sqlx());
    let last: &Vec<_> = column!(items, |item| item.last_date.to_sqlx());
    let item_ids: &Vec<_> = column!(items, |item| item.item.uuid());
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
         set observed_at = case when l.item_id = any (x.items) then p.observed_at else l.observed_at end,
             price = case when l.item_id = any (x.items) then p.price else l.price end,
             seller = case when l.item_id = any (x.items) then p.seller else l.seller end,
             band_low = case when l.item_id = any (x.items) then p.band_low else l.band_low end,
             band_high = case when l.item_id = any (x.items) then p.band_high else l.band_high end,
             verdict = case when l.item_id = any (x.items) then p.verdict else l.verdict end,
             item_id = case when l.item_id = any (x.items) then p.item_id else l.item_id end,
             sampled_at = case when l.sample_item_id = any (x.items) then k.observed_at else l.sampled_at end,
             sample_status = case when l.sample_item_id = any (x.items) then k.search_status else l.sample_status end,
             sample_reason = case when l.sample_item_id = any (x.items) then k.reason else l.sample_reason end,
             sample_item_id = case when l.sample_item_id = any (x.items) then k.item_id else l.sample_item_id end
         from (select u.series, u.first_date, u.last_date, array_agg(u.item_id) as items
               from unnest($2::bytea[], $3::date[], $4::date[], $5::uuid[]) as u (series, first_date, last_date, item_id)
               group by 1, 2, 3) x
         left join lateral (
             select * from observations o
             where o.tenant_id = $1 and o.series = x.series and o.first_date = x.first_date
               and coalesce(o.last_date, o.first_date) = x.last_date and o.price is not null and o.search_status in ('ok', 'partial')
             order by o.observed_at desc limit 1) p on true
         left join lateral (
             select * from observations o
             where o.tenant_id = $1 and o.series = x.series and o.first_date = x.first_date
               and coalesce(o.last_date, o.first_date) = x.last_date
             order by o.observed_at desc limit 1) k on true
         where l.tenant_id = $1 and l.series = x.series and l.first_date = x.first_date and l.last_date = x.last_date
           and (l.item_id = any (x.items) or l.sample_item_id = any (x.items))",
        tenant.uuid(),
        series,
        first as &[Date],
        last as &[Date],
        item_ids,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from latest_prices l
         using unnest($2::bytea[], $3::date[], $4::date[]) as x (series, first_date, last_date)
         where l.tenant_id = $1 and l.series = x.series and l.first_date = x.first_date and l.last_date = x.last_date
           and l.price is null and l.sampled_at is null",
        tenant.uuid(),
        series,
        first as &[Date],
        last as &[Date],
    )
    .execute(conn)
    .await?;
    Ok(())
}
