//! Statements of undecided scans. Every condition begins with the tenant.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::PgPool;

use super::UndecidedScan;
use crate::ids::{ScanId, TenantId};

pub(super) async fn list(
    pool: &PgPool,
    tenant: TenantId,
    created_from: Timestamp,
    limit: i64,
) -> sqlx::Result<Vec<UndecidedScan>> {
    let rows = sqlx::query!(
        r#"select s.scan_id, s.partial + s.degraded as "searches!", s.requests_spent
           from scans s
           where s.tenant_id = $1 and s.status = 'incomplete' and s.created_at >= $2
             and not exists (select from dismissed_scans d
                             where d.tenant_id = s.tenant_id and d.scan_id = s.scan_id and d.dismissed_at >= s.finished_at)
           order by s.scan_id desc limit $3"#,
        tenant.uuid(),
        created_from.to_sqlx() as _,
        limit,
    );
    let rows = rows.fetch_all(pool).await?.into_iter();
    Ok(rows
        .map(|row| UndecidedScan {
            id: row.scan_id.into(),
            searches: u64::try_from(row.searches).unwrap_or_default(),
            requests_spent: u64::try_from(row.requests_spent).unwrap_or_default(),
        })
        .collect())
}

pub(super) async fn dismiss(
    pool: &PgPool,
    tenant: TenantId,
    scans: &[ScanId],
    now: Timestamp,
) -> sqlx::Result<()> {
    let ids: Vec<_> = scans.iter().map(|scan| scan.uuid()).collect();
    sqlx::query!(
        "insert into dismissed_scans (tenant_id, scan_id, dismissed_at)
         select tenant_id, scan_id, $3 from scans
         where tenant_id = $1 and scan_id = any ($2) and status = 'incomplete'
         on conflict (tenant_id, scan_id) do update set dismissed_at = excluded.dismissed_at",
        tenant.uuid(),
        &ids,
        now.to_sqlx() as _,
    )
    .execute(pool)
    .await?;
    Ok(())
}
