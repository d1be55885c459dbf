//! Statements on the stored responses of idempotent requests.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use serde_json::Value;
use sqlx::PgConnection;

use crate::ids::TenantId;

/// The stored response of an idempotency key.
pub(super) struct StoredResponse {
    pub(super) body_digest: Vec<u8>,
    pub(super) response: Option<Value>,
}

pub(super) async fn stored_response(
    conn: &mut PgConnection,
    tenant: TenantId,
    path: &str,
    key: &str,
    since: Timestamp,
) -> sqlx::Result<Option<StoredResponse>> {
    sqlx::query_as!(
        StoredResponse,
        "select body_digest, response from idempotency_keys where tenant_id = $1 and path = $2 and key = $3 and created_at >= $4",
        tenant.uuid(),
        path,
        key,
        since.to_sqlx(),
    )
    .fetch_optional(conn)
    .await
}

/// Reserves a key that is unused or whose response has expired. Waits for a concurrent transaction
/// that reserves it. Returns whether the key was reserved.
pub(super) async fn reserve_key(
    conn: &mut PgConnection,
    tenant: TenantId,
    path: &str,
    key: &str,
    digest: &[u8],
    now: Timestamp,
    since: Timestamp,
) -> sqlx::Result<bool> {
    let inserted = sqlx::query!(
        "insert into idempotency_keys (tenant_id, path, key, body_digest, created_at) values ($1, $2, $3, $4, $5)
         on conflict (tenant_id, path, key) do update
            set body_digest = excluded.body_digest, response = null, created_at = excluded.created_at
          where idempotency_keys.created_at < $6",
        tenant.uuid(),
        path,
        key,
        digest,
        now.to_sqlx(),
        since.to_sqlx(),
    )
    .execute(conn)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// `response` is JSON; it is stored as it is, including the order of its fields.
pub(super) async fn store_response(
    conn: &mut PgConnection,
    tenant: TenantId,
    path: &str,
    key: &str,
    response: &str,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update idempotency_keys set response = $4::text::json where tenant_id = $1 and path = $2 and key = $3",
        tenant.uuid(),
        path,
        key,
        response,
    )
    .execute(conn)
    .await?;
    Ok(())
}
