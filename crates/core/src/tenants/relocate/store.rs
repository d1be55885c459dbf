//! The statements of a move. Those that copy and delete are built for each table of [`TABLES`].

use futures::TryStreamExt as _;
use sqlx::{AssertSqlSafe, PgConnection, PgExecutor, PgPool};

use crate::ids::TenantId;

/// Every table with a `tenant_id`, referenced tables first; `tests/scaling` compares it with the
/// catalogue.
pub const TABLES: &[&str] = &[
    "tenants",
    "tenant_keys",
    "passed_keys",
    "key_grants",
    "idempotency_keys",
    "lanes",
    "scans",
    "dismissed_scans",
    "scan_strategies",
    "scan_decisions",
    "unexpanded_scans",
    "due_replays",
    "scan_items",
    "scan_events",
    "attempts",
    "item_offers",
    "shared_searches",
    "search_outcomes",
    "answers",
    "series",
    "observations",
    "observed_days",
    "latest_prices",
    "daily_usage",
    "saved_views",
    "account_settings",
    "question_counts",
    "channels",
    "monitors",
    "monitor_slots",
    "monitor_channels",
    "webhook_endpoints",
    "deliveries",
    "delivery_tries",
    "rule_states",
    "alerts",
];

/// Tables with monthly partitions, and their partition column.
const PARTITIONED: [(&str, &str); 3] = [
    ("answers", "observed_at"),
    ("observations", "observed_at"),
    ("observed_days", "begins_at"),
];

pub(super) async fn exists(pool: &PgPool, tenant: TenantId) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select from tenants where tenant_id = $1) as "exists!""#,
        tenant.uuid()
    )
    .fetch_one(pool)
    .await
}

/// The master key entries that this caller's fingerprints and sealed keys need.
pub(super) async fn master_keys(pool: &PgPool, tenant: TenantId) -> sqlx::Result<Vec<String>> {
    let ids = sqlx::query_scalar!(
        r#"select key_id as "key_id!" from tenant_keys where tenant_id = $1
           union select key_id from key_grants where tenant_id = $1 and wiped_at is null"#,
        tenant.uuid()
    );
    ids.fetch_all(pool).await
}

/// Pauses the lanes that may call. A lane that waits for its caller's resume stays as it is;
/// [`release`] restores a pause after a 429.
pub(super) async fn pause(pool: &PgPool, tenant: TenantId) -> sqlx::Result<()> {
    let paused = sqlx::query!(
        "update lanes set paused_until = 'infinity', pause_reason = 'moving', next_at = null
         where tenant_id = $1 and paused_until is distinct from 'infinity'",
        tenant.uuid()
    );
    paused.execute(pool).await?;
    Ok(())
}

/// Counts calls in flight, unrecorded answers and running deliveries.
pub(super) async fn in_flight(conn: impl PgExecutor<'_>, tenant: TenantId) -> sqlx::Result<i64> {
    let counted = sqlx::query_scalar!(
        r#"select (select count(*) from scan_items where tenant_id = $1 and worker_id is not null)
                + (select count(*) from attempts a join scans s on s.tenant_id = $1 and s.scan_id = a.scan_id
                   where a.tenant_id = $1 and s.finished_at is null and a.ended_at is null)
                + (select count(*) from webhook_endpoints where tenant_id = $1 and taken_until > clock_timestamp()) as "count!""#,
        tenant.uuid()
    );
    counted.fetch_one(conn).await
}

/// Locks what every submission, tick and delivery of this caller locks or refers to, in the same
/// order.
pub(in crate::tenants) async fn lock(
    conn: &mut PgConnection,
    tenant: TenantId,
) -> sqlx::Result<()> {
    let id = tenant.uuid();
    sqlx::query!(
        "select from tenant_keys where tenant_id = $1 order by key_id for update",
        id
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "select from monitors where tenant_id = $1 order by monitor_id for update",
        id
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "select from channels where tenant_id = $1 order by channel_id for update",
        id
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "select from webhook_endpoints where tenant_id = $1 order by endpoint_id for update",
        id
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "select from lanes where tenant_id = $1 order by api for update",
        id
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!("select from tenants where tenant_id = $1 for update", id)
        .execute(&mut *conn)
        .await?;
    Ok(())
}

/// Creates the partitions that the rows need at the target.
pub(super) async fn make_partitions(
    from: &mut PgConnection,
    to: &mut PgConnection,
    tenant: TenantId,
) -> sqlx::Result<()> {
    for (table, column) in PARTITIONED {
        let months = format!(
            "select distinct date_trunc('month', {column}, 'UTC') from {table} where tenant_id = $1"
        );
        let make = "select create_partitions(month, 0) from unnest($1::timestamptz[]) as m (month)";
        let months: Vec<jiff_sqlx::Timestamp> = sqlx::query_scalar(AssertSqlSafe(months))
            .bind(tenant.uuid())
            .fetch_all(&mut *from)
            .await?;
        sqlx::query(make).bind(months).execute(&mut *to).await?;
    }
    Ok(())
}

/// Copies one table's rows of a caller; returns how many. It names the columns, because their order
/// may differ between two databases.
pub(super) async fn copy_table(
    from: &mut PgConnection,
    to: &mut PgConnection,
    table: &'static str,
    tenant: TenantId,
) -> sqlx::Result<u64> {
    let columns: String = sqlx::query_scalar(
        "select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
         where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''",
    )
    .bind(table)
    .fetch_one(&mut *from)
    .await?;
    let id = tenant.uuid();
    let out = format!(
        "copy (select {columns} from {table} where tenant_id = '{id}') to stdout (format binary)"
    );
    let mut rows = from.copy_out_raw(&out).await?;
    let mut sink = to
        .copy_in_raw(&format!(
            "copy {table} ({columns}) from stdin (format binary)"
        ))
        .await?;
    loop {
        match rows.try_next().await {
            Ok(Some(bytes)) => _ = sink.send(bytes).await?,
            Ok(None) => return sink.finish().await,
            Err(error) => {
                // The abort reports the same error.
                let _ = sink.abort("the source stopped").await;
                return Err(error);
            }
        }
    }
}

/// Parks the copy: its lanes are copied as paused, its monitors, held alerts and deliveries are not
/// due.
pub(super) async fn park(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<()> {
    sqlx::query!(
        "update monitors set not_before = '9999-01-01 00:00:00+00' where tenant_id = $1",
        tenant.uuid()
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update webhook_endpoints set next_at = null where tenant_id = $1",
        tenant.uuid()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Whether nothing of this caller can be called or sent, as after [`park`].
pub(super) async fn is_parked(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<bool> {
    let parked = sqlx::query_scalar!(
        r#"select not exists (select from lanes where tenant_id = $1 and paused_until is distinct from 'infinity')
              and not exists (select from monitors where tenant_id = $1 and (next_slot is not null or notify_at is not null)
                              and not_before is distinct from '9999-01-01 00:00:00+00')
              and not exists (select from webhook_endpoints where tenant_id = $1 and next_at is not null) as "parked!""#,
        tenant.uuid()
    );
    parked.fetch_one(conn).await
}

/// Resumes lanes that [`pause`] paused, and monitors and deliveries that [`park`] parked.
/// Idempotent.
pub(super) async fn release(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<()> {
    let id = tenant.uuid();
    sqlx::query!(
        "update lanes set paused_until = case when slowed_at > clock_timestamp() then slowed_at end,
                          pause_reason = case when slowed_at > clock_timestamp() then 'rate_limited' end,
                          next_at = greatest(clock_timestamp(), slowed_at)
         where tenant_id = $1 and pause_reason = 'moving'",
        id
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!("update monitors set not_before = null where tenant_id = $1 and not_before = '9999-01-01 00:00:00+00'", id)
        .execute(&mut *conn)
        .await?;
    sqlx::query!(
        "update webhook_endpoints w set next_at = clock_timestamp()
         where w.tenant_id = $1 and w.next_at is null and (w.off_at is null or w.off_reason = 'unconfirmed')
           and exists (select from deliveries d where d.tenant_id = $1 and coalesce(d.channel_id, d.monitor_id) = w.endpoint_id and d.due_at is not null)",
        id
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!("select pg_notify('farescan_lane', ''), pg_notify('farescan_monitor', '')")
        .execute(conn)
        .await?;
    Ok(())
}

/// Deletes every row of a caller, referring tables first.
pub(in crate::tenants) async fn delete(
    conn: &mut PgConnection,
    tenant: TenantId,
) -> sqlx::Result<()> {
    for table in TABLES.iter().rev() {
        let delete = format!("delete from {table} where tenant_id = $1");
        sqlx::query(AssertSqlSafe(delete))
            .bind(tenant.uuid())
            .execute(&mut *conn)
            .await?;
    }
    Ok(())
}

/// Copying a year of history takes longer than the statement timeout of a request.
pub(super) async fn lift_time_limits(conn: &mut PgConnection) -> sqlx::Result<()> {
    let lift = "select set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)";
    sqlx::query(lift).execute(conn).await?;
    Ok(())
}
