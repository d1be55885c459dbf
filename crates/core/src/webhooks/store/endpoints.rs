//! The rows of endpoints, changed under the lock of their monitor. Their URLs and secrets are rows
//! of `key_grants`, which belong to `tenants`; a trigger removes them with the endpoint.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::PgConnection;

use super::lock::MonitorLock;
use crate::contract::monitors::Webhook;
use crate::ids::{GrantId, MonitorId, TenantId};

pub(in crate::webhooks) async fn insert(
    lock: &mut MonitorLock<'_>,
    url: GrantId,
    host: Option<&str>,
    secret: GrantId,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into webhook_endpoints (tenant_id, monitor_id, url_id, host, secret_ids, created_at)
         values ($1, $2, $3, $4, array[$5::uuid], $6)",
        lock.tenant().uuid(),
        lock.monitor().uuid(),
        url.uuid(),
        host,
        secret.uuid(),
        now.to_sqlx() as _,
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// The grant of the URL, which the caller of this replaces; `None`: the endpoint does not exist. The
/// new epoch ignores a failure of a try that is in flight to the old URL.
pub(in crate::webhooks) async fn change_url(
    lock: &mut MonitorLock<'_>,
    host: Option<&str>,
) -> sqlx::Result<Option<GrantId>> {
    let changed = sqlx::query_scalar!(
        "update webhook_endpoints set host = $3, epoch = epoch + 1, off_at = null, off_reason = null, failing_since = null
         where tenant_id = $1 and monitor_id = $2 returning url_id",
        lock.tenant().uuid(),
        lock.monitor().uuid(),
        host,
    );
    Ok(changed
        .fetch_optional(lock.conn())
        .await?
        .map(GrantId::from))
}

/// `false`: the endpoint does not exist. An endpoint that is on keeps its failures.
pub(in crate::webhooks) async fn enable(lock: &mut MonitorLock<'_>) -> sqlx::Result<bool> {
    let enabled = sqlx::query!(
        "update webhook_endpoints
         set off_at = null, off_reason = null, failing_since = case when off_at is null then failing_since end,
             epoch = epoch + (off_at is not null)::integer
         where tenant_id = $1 and monitor_id = $2",
        lock.tenant().uuid(),
        lock.monitor().uuid(),
    );
    Ok(enabled.execute(lock.conn()).await?.rows_affected() > 0)
}

pub(in crate::webhooks) async fn remove(lock: &mut MonitorLock<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from webhook_endpoints where tenant_id = $1 and monitor_id = $2",
        lock.tenant().uuid(),
        lock.monitor().uuid()
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Fails the pending deliveries of a closed endpoint.
pub(in crate::webhooks) async fn fail_pending(
    lock: &mut MonitorLock<'_>,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update deliveries set status = 'failed', reason = 'endpoint_closed', due_at = null, ended_at = $3
         where tenant_id = $1 and monitor_id = $2 and due_at is not null",
        lock.tenant().uuid(),
        lock.monitor().uuid(),
        now.to_sqlx() as _,
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Locks an endpoint and reads the grants of its secrets, newest first; `None` if it does not
/// exist.
pub(in crate::webhooks) async fn lock_secrets(
    lock: &mut MonitorLock<'_>,
) -> sqlx::Result<Option<Vec<GrantId>>> {
    let grants = sqlx::query_scalar!(
        "select secret_ids from webhook_endpoints where tenant_id = $1 and monitor_id = $2 for no key update",
        lock.tenant().uuid(),
        lock.monitor().uuid(),
    );
    Ok(grants
        .fetch_optional(lock.conn())
        .await?
        .map(|ids| ids.into_iter().map(GrantId::from).collect()))
}

pub(in crate::webhooks) async fn change_secrets(
    lock: &mut MonitorLock<'_>,
    secrets: &[GrantId],
) -> sqlx::Result<()> {
    let ids: Vec<_> = secrets.iter().map(|grant| grant.uuid()).collect();
    sqlx::query!(
        "update webhook_endpoints set secret_ids = $3 where tenant_id = $1 and monitor_id = $2",
        lock.tenant().uuid(),
        lock.monitor().uuid(),
        &ids,
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// The webhooks of these monitors with the grants of their URLs; `url` is still empty.
pub(in crate::webhooks) async fn sealed(
    conn: &mut PgConnection,
    tenant: TenantId,
    monitors: &[MonitorId],
) -> sqlx::Result<Vec<(MonitorId, GrantId, Webhook)>> {
    let monitors: Vec<_> = monitors.iter().map(|monitor| monitor.uuid()).collect();
    let rows = sqlx::query!(
        "select monitor_id, url_id, off_at, off_reason, delivered_at, failing_since from webhook_endpoints
         where tenant_id = $1 and monitor_id = any($2)",
        tenant.uuid(),
        &monitors,
    )
    .fetch_all(conn)
    .await?;
    let shown = rows.into_iter().map(|row| {
        let webhook = Webhook {
            url: String::new(),
            off_at: row.off_at.map(|time| time.to_jiff()),
            off_reason: row.off_reason,
            delivered_at: row.delivered_at.map(|time| time.to_jiff()),
            failing_since: row.failing_since.map(|time| time.to_jiff()),
        };
        (row.monitor_id.into(), row.url_id.into(), webhook)
    });
    Ok(shown.collect())
}
