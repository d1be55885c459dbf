//! Packed days and the observations they are made from.

use futures::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use jiff_sqlx::{Date, ToSqlx as _};
use rust_decimal::Decimal;
use sqlx::PgConnection;

use crate::contract::SearchStatus;
use crate::history::sample::{RawSample, Sample};
use crate::ids::TenantId;

/// A product with unpacked days.
pub(in crate::history) struct UnpackedProduct {
    pub(in crate::history) tenant: TenantId,
    pub(in crate::history) series: Vec<u8>,
    /// First unpacked day.
    pub(in crate::history) since: Timestamp,
}

/// The samples of a product in one UTC day.
pub(in crate::history) struct PackedDay {
    pub(in crate::history) begins_at: Timestamp,
    pub(in crate::history) samples: Vec<u8>,
}

/// Locks the next product after `last` with unpacked days before `today`. Skips locked products: an
/// insert holds its products until commit, and waiting for it would block others.
pub(in crate::history) async fn next_unpacked(
    conn: &mut PgConnection,
    last: Option<&UnpackedProduct>,
    today: Timestamp,
) -> sqlx::Result<Option<UnpackedProduct>> {
    let row = sqlx::query!(
        r#"select tenant_id, series, unpacked_since as "since!: jiff_sqlx::Timestamp" from series
           where unpacked_since < $4
             and (unpacked_since, tenant_id, series)
                 > (coalesce($1::timestamptz, '-infinity'), coalesce($2::uuid, '00000000-0000-0000-0000-000000000000'), coalesce($3::bytea, ''))
           order by unpacked_since, tenant_id, series limit 1 for update skip locked"#,
        last.map(|last| last.since.to_sqlx()) as _,
        last.map(|last| last.tenant.uuid()),
        last.map(|last| last.series.as_slice()),
        today.to_sqlx() as _,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| UnpackedProduct {
        tenant: row.tenant_id.into(),
        series: row.series,
        since: row.since.to_jiff(),
    }))
}

/// Replaces the packed days before `until` and sets the first unpacked day.
pub(in crate::history) async fn replace(
    conn: &mut PgConnection,
    product: &UnpackedProduct,
    until: Timestamp,
    days: &[PackedDay],
) -> sqlx::Result<()> {
    let next = sqlx::query_scalar!(
        r#"update series s
           set unpacked_since = (select date_trunc('day', o.observed_at, 'UTC') from observations o
                                 where o.tenant_id = $1 and o.series = $2 and o.observed_at >= $3
                                 order by o.observed_at limit 1)
           where s.tenant_id = $1 and s.series = $2
           returning s.unpacked_since as "next: jiff_sqlx::Timestamp""#,
        product.tenant.uuid(),
        product.series,
        until.to_sqlx() as _,
    )
    .fetch_one(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from observed_days
         where tenant_id = $1 and series = $2 and begins_at >= $3 and begins_at < coalesce($4::timestamptz, 'infinity')",
        product.tenant.uuid(),
        product.series,
        product.since.to_sqlx() as _,
        next as _,
    )
    .execute(&mut *conn)
    .await?;
    let (begins, samples): (Vec<_>, Vec<_>) = days
        .iter()
        .map(|day| {
            (
                jiff_sqlx::Timestamp::from(day.begins_at),
                day.samples.clone(),
            )
        })
        .unzip();
    sqlx::query!(
        "insert into observed_days (tenant_id, series, begins_at, samples)
         select $1, $2, x.begins_at, x.samples from unnest($3::timestamptz[], $4::bytea[]) as x (begins_at, samples)",
        product.tenant.uuid(),
        product.series,
        &begins as &[jiff_sqlx::Timestamp],
        &samples,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The packed days of a product that begin within `since..until`, oldest first.
pub(in crate::history) fn packed<'a>(
    conn: &'a mut PgConnection,
    tenant: TenantId,
    series: &'a [u8],
    since: Timestamp,
    until: Timestamp,
) -> impl Stream<Item = sqlx::Result<Vec<u8>>> + Send + 'a {
    sqlx::query_scalar!(
        "select samples from observed_days
         where tenant_id = $1 and series = $2 and begins_at >= $3 and begins_at < $4 order by begins_at",
        tenant.uuid(),
        series,
        since.to_sqlx() as _,
        until.to_sqlx() as _,
    )
    .fetch(conn)
}

/// At most `limit` samples of a product within `since..until`, oldest first.
pub(in crate::history) fn samples<'a>(
    conn: &'a mut PgConnection,
    tenant: TenantId,
    series: &'a [u8],
    since: Timestamp,
    until: Timestamp,
    limit: i64,
) -> impl Stream<Item = sqlx::Result<Sample>> + Send + 'a {
    let rows = sqlx::query_as!(
        SampleRow,
        r#"select observed_at as "observed_at!", first_date as "first_date!", last_date, search_status as "search_status!", price,
                  band_low, band_high
           from observations
           where tenant_id = $1 and series = $2 and observed_at >= $3 and observed_at < $4
           order by observed_at limit $5"#,
        tenant.uuid(),
        series,
        since.to_sqlx() as _,
        until.to_sqlx() as _,
        limit,
    );
    rows.fetch(conn).map_ok(Sample::from)
}

struct SampleRow {
    observed_at: jiff_sqlx::Timestamp,
    first_date: Date,
    last_date: Option<Date>,
    search_status: SearchStatus,
    price: Option<Decimal>,
    band_low: Option<Decimal>,
    band_high: Option<Decimal>,
}

impl From<SampleRow> for Sample {
    fn from(row: SampleRow) -> Self {
        Self::of(&RawSample {
            observed_at: row.observed_at.to_jiff(),
            first_date: row.first_date.to_jiff(),
            last_date: row.last_date.map(Date::to_jiff),
            status: row.search_status,
            price: row.price,
            band_low: row.band_low,
            band_high: row.band_high,
        })
    }
}
