//! The statements of the bill of single searches.

use jiff::civil::Date;
use jiff_sqlx::ToSqlx as _;
use sqlx::PgPool;
use uuid::Uuid;

use super::usage::CallUsage;
use crate::db;
use crate::ids::TenantId;

/// Adds usage to the bill. `committing` names the transaction from when nobody knows any more
/// whether it was committed until this has ended well.
pub(super) async fn add_usage(
    pool: &PgPool,
    usage: &[(TenantId, CallUsage)],
    committing: &mut Option<String>,
) -> sqlx::Result<()> {
    let count = |of: fn(&CallUsage) -> u32| -> Vec<i64> {
        usage.iter().map(|(_, usage)| of(usage).into()).collect()
    };
    let tenants: Vec<Uuid> = usage.iter().map(|(tenant, _)| tenant.uuid()).collect();
    let days: Vec<Option<jiff_sqlx::Date>> = usage
        .iter()
        .map(|(_, usage)| usage.day().map(|day: Date| day.to_sqlx()))
        .collect();
    let endpoints: Vec<String> = usage
        .iter()
        .map(|(_, usage)| usage.endpoint.as_str().to_owned())
        .collect();
    let mut tx = db::begin(pool).await?;
    sqlx::query!(
        "select add_usage(array(
             select row (x.tenant_id, coalesce(x.day, (clock_timestamp() at time zone 'UTC')::date), x.endpoint, true, null, null, x.attempts,
                         x.billed, x.reused, 0, x.ok, x.empty, x.partial, x.degraded)::daily_usage
             from unnest($1::uuid[], $2::date[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
                         $9::bigint[], $10::bigint[])
                  as x (tenant_id, day, endpoint, attempts, billed, reused, ok, empty, partial, degraded)))",
        &tenants,
        &days as _,
        &endpoints,
        &count(|usage| usage.counts.attempts),
        &count(|usage| usage.counts.billed),
        &count(|usage| usage.counts.reused),
        &count(|usage| usage.counts.by_status[0]),
        &count(|usage| usage.counts.by_status[1]),
        &count(|usage| usage.counts.by_status[2]),
        &count(|usage| usage.counts.by_status[3]),
    )
    .execute(&mut *tx)
    .await?;
    let transaction = sqlx::query_scalar!(r#"select pg_current_xact_id()::text as "id!""#);
    *committing = Some(transaction.fetch_one(&mut *tx).await?);
    tx.commit().await?;
    *committing = None;
    Ok(())
}

/// Whether a transaction was committed; `None` while it runs.
pub(super) async fn was_committed(pool: &PgPool, transaction: &str) -> sqlx::Result<Option<bool>> {
    let status = sqlx::query_scalar!("select pg_xact_status($1::text::xid8)", transaction);
    match status.fetch_one(pool).await {
        Ok(Some(status)) if status == "in progress" => Ok(None),
        Ok(status) => Ok(Some(status.as_deref() == Some("committed"))),
        // A promoted standby may never have heard of it.
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("22023") => {
            Ok(Some(false))
        }
        Err(error) => Err(error),
    }
}
