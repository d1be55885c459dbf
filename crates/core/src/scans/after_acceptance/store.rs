//! Statements on unexpanded scans.

use jiff::Timestamp;
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::contract::Endpoint;
use crate::ids::{ScanId, TenantId};
use crate::scans::store::lock::LockedScan;

/// Records that only the first item of a scan is stored.
pub(in crate::scans) async fn insert(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    strategy: Option<&Value>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into unexpanded_scans (tenant_id, scan_id, stored, strategy) values ($1, $2, 1, $3::text::json)",
        tenant.uuid(),
        scan.uuid(),
        strategy.map(Value::to_string),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A scan whose next items are due.
pub(super) struct UnexpandedScan {
    pub(super) tenant: TenantId,
    pub(super) id: ScanId,
    pub(super) endpoint: Endpoint,
    pub(super) request: Value,
    pub(super) sweep: Value,
    pub(super) strategy: Option<Value>,
    pub(super) max_age_seconds: Option<i64>,
    pub(super) max_requests: Option<i32>,
    pub(super) total: usize,
    pub(super) created_at: Timestamp,
}

/// Unexpanded scans whose caller is accepted by now, or whose stored items have all ended.
pub(super) async fn find_due(
    pool: &PgPool,
    of: Option<&[TenantId]>,
    limit: i64,
) -> sqlx::Result<Vec<UnexpandedScan>> {
    let tenants: Option<Vec<Uuid>> =
        of.map(|tenants| tenants.iter().map(|tenant| tenant.uuid()).collect());
    let rows = sqlx::query!(
        r#"select u.tenant_id, u.scan_id, u.strategy, s.endpoint, s.request, s.sweep, s.total,
                  extract(epoch from s.max_age)::bigint as max_age_seconds, s.max_requests,
                  s.created_at as "created_at: jiff_sqlx::Timestamp"
           from unexpanded_scans u
           join scans s on s.tenant_id = u.tenant_id and s.scan_id = u.scan_id
           join tenants t on t.tenant_id = u.tenant_id
           where ($1::uuid[] is null or u.tenant_id = any ($1)) and s.finished_at is null
             and (t.accepted_at is not null
                  or not exists (select from scan_items i
                                 where i.tenant_id = u.tenant_id and i.scan_id = u.scan_id
                                   and i.state in ('pending', 'claimed', 'calling', 'delayed', 'held')))
           order by u.tenant_id, u.scan_id limit $2"#,
        tenants.as_deref(),
        limit,
    )
    .fetch_all(pool)
    .await?;
    let due = rows.into_iter().map(|row| UnexpandedScan {
        tenant: row.tenant_id.into(),
        id: row.scan_id.into(),
        endpoint: row.endpoint,
        request: row.request,
        sweep: row.sweep,
        strategy: row.strategy,
        max_age_seconds: row.max_age_seconds,
        max_requests: row.max_requests,
        total: usize::try_from(row.total).unwrap_or_default(),
        created_at: row.created_at.to_jiff(),
    });
    Ok(due.collect())
}

/// An unexpanded scan that is still due.
pub(super) struct ReadyScan {
    pub(super) stored: usize,
    pub(super) accepted: bool,
}

/// Whether the next items of the scan are still due: another process or a cancel may have come
/// first.
pub(super) async fn find_if_due(lock: &mut LockedScan<'_>) -> sqlx::Result<Option<ReadyScan>> {
    let row = sqlx::query!(
        r#"select u.stored, t.accepted_at is not null as "accepted!"
           from unexpanded_scans u
           join scans s on s.tenant_id = u.tenant_id and s.scan_id = u.scan_id
           join tenants t on t.tenant_id = u.tenant_id
           where u.tenant_id = $1 and u.scan_id = $2 and s.finished_at is null
             and (t.accepted_at is not null
                  or not exists (select from scan_items i
                                 where i.tenant_id = u.tenant_id and i.scan_id = u.scan_id
                                   and i.state in ('pending', 'claimed', 'calling', 'delayed', 'held')))"#,
        lock.tenant().uuid(),
        lock.id().uuid(),
    );
    Ok(row.fetch_optional(lock.conn()).await?.map(|row| ReadyScan {
        stored: usize::try_from(row.stored).unwrap_or_default(),
        accepted: row.accepted,
    }))
}

/// Records how many items are stored now; a complete scan loses its record.
pub(super) async fn set_stored(
    lock: &mut LockedScan<'_>,
    stored: usize,
    total: usize,
) -> sqlx::Result<()> {
    let (tenant, id) = (lock.tenant(), lock.id());
    if stored < total {
        sqlx::query!(
            "update unexpanded_scans set stored = $3 where tenant_id = $1 and scan_id = $2",
            tenant.uuid(),
            id.uuid(),
            i32::try_from(stored).unwrap_or(i32::MAX),
        )
        .execute(lock.conn())
        .await?;
    } else {
        sqlx::query!(
            "delete from unexpanded_scans where tenant_id = $1 and scan_id = $2",
            tenant.uuid(),
            id.uuid()
        )
        .execute(lock.conn())
        .await?;
    }
    Ok(())
}
