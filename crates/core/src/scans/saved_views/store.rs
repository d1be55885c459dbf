//! Statements of saved views. Every condition begins with the tenant.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::{PgConnection, PgPool};

use super::SavedView;
use crate::ids::TenantId;

pub(super) async fn list(pool: &PgPool, tenant: TenantId) -> sqlx::Result<Vec<SavedView>> {
    sqlx::query_as!(
        SavedView,
        "select name, query from saved_views where tenant_id = $1 order by name",
        tenant.uuid()
    )
    .fetch_all(pool)
    .await
}

/// False: the caller has `max` other views.
pub(super) async fn save(
    conn: &mut PgConnection,
    tenant: TenantId,
    view: &SavedView,
    max: i64,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let saved = sqlx::query!(
        "insert into saved_views (tenant_id, name, query, created_at)
         select $1, $2, $3, $4 where (select count(*) from saved_views where tenant_id = $1 and name <> $2) < $5
         on conflict (tenant_id, name) do update set query = excluded.query",
        tenant.uuid(),
        view.name,
        view.query,
        now.to_sqlx() as _,
        max,
    );
    Ok(saved.execute(conn).await?.rows_affected() == 1)
}

pub(super) async fn delete(pool: &PgPool, tenant: TenantId, name: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from saved_views where tenant_id = $1 and name = $2",
        tenant.uuid(),
        name
    )
    .execute(pool)
    .await?;
    Ok(())
}
