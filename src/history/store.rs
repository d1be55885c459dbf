//! Observations and latest prices in the database.

use jiff_sqlx::{Date, Timestamp, ToSqlx as _};
use sqlx::PgConnection;

use super::record::{Observation, SeenPrice};
use super::series::Series;
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
