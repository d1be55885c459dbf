//! The rows of endpoints, changed under the lock of their owner. Their URLs and secrets are rows
//! of `key_grants`, which belong to `tenants`; a trigger removes them with the endpoint.

use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx as _};
use sqlx::PgConnection;

use super::lock::{EndpointLock, EndpointOwner, MonitorLock};
use crate::contract::channels::ChannelKind;
use crate::contract::monitors::Webhook;
use crate::contract::webhooks::DeliveryReason;
use crate::ids::{DeliveryId, GrantId, MonitorId, TenantId};

/// Inserts the endpoint of a locked owner; without `kind` it is a webhook.
pub(in crate::webhooks) async fn insert(
    lock: &mut EndpointLock<'_>,
    kind: Option<ChannelKind>,
    url: GrantId,
    host: Option<&str>,
    secrets: &[GrantId],
    now: Timestamp,
) -> sqlx::Result<()> {
    let (monitor, channel) = match lock.owner() {
        EndpointOwner::Monitor(id) => (Some(id.uuid()), None),
        EndpointOwner::Channel(id) => (None, Some(id.uuid())),
    };
    let secrets: Vec<_> = secrets.iter().map(|grant| grant.uuid()).collect();
    sqlx::query!(
        "insert into webhook_endpoints (tenant_id, monitor_id, channel_id, kind, url_id, host, secret_ids, created_at)
         values ($1, $2, $3, coalesce($4, 'webhook'), $5, $6, $7, $8)",
        lock.tenant().uuid(),
        monitor,
        channel,
        kind.map(ChannelKind::as_str),
        url.uuid(),
        host,
        &secrets,
        now.to_sqlx() as _,
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// The grant of the URL, which the caller of this replaces; `None`: the endpoint does not exist. The
/// new epoch ignores a failure of a try that is in flight to the old URL.
pub(in crate::webhooks) async fn change_url(
    lock: &mut EndpointLock<'_>,
    host: Option<&str>,
) -> sqlx::Result<Option<GrantId>> {
    let changed = sqlx::query_scalar!(
        "update webhook_endpoints set host = $3, epoch = epoch + 1, off_at = null, off_reason = null, failing_since = null
         where tenant_id = $1 and endpoint_id = $2 returning url_id",
        lock.tenant().uuid(),
        lock.owner().uuid(),
        host,
    );
    Ok(changed
        .fetch_optional(lock.conn())
        .await?
        .map(GrantId::from))
}

/// `false`: the endpoint does not exist. An endpoint that is on keeps its failures.
pub(in crate::webhooks) async fn enable(lock: &mut EndpointLock<'_>) -> sqlx::Result<bool> {
    let enabled = sqlx::query!(
        "update webhook_endpoints
         set off_at = null, off_reason = null, failing_since = case when off_at is null then failing_since end,
             epoch = epoch + (off_at is not null)::integer
         where tenant_id = $1 and endpoint_id = $2",
        lock.tenant().uuid(),
        lock.owner().uuid(),
    );
    Ok(enabled.execute(lock.conn()).await?.rows_affected() > 0)
}

pub(in crate::webhooks) async fn remove(lock: &mut EndpointLock<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from webhook_endpoints where tenant_id = $1 and endpoint_id = $2",
        lock.tenant().uuid(),
        lock.owner().uuid()
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Locks the endpoints of the channels that have messages of a locked monitor, in the order of their ids: an
/// endpoint is locked before its deliveries everywhere.
pub(in crate::webhooks) async fn lock_channels_of(lock: &mut MonitorLock<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "select from webhook_endpoints w
         where w.tenant_id = $1 and w.channel_id in (
             select d.channel_id from deliveries d where d.tenant_id = $1 and d.monitor_id = $2 and d.channel_id is not null)
         order by w.endpoint_id for no key update",
        lock.tenant().uuid(),
        lock.monitor().uuid(),
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Fails the pending deliveries of an endpoint that is closed or switched off.
pub(in crate::webhooks) async fn fail_pending(
    lock: &mut EndpointLock<'_>,
    reason: DeliveryReason,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update deliveries set status = 'failed', reason = $4, due_at = null, ended_at = $3
         where tenant_id = $1 and coalesce(channel_id, monitor_id) = $2 and due_at is not null",
        lock.tenant().uuid(),
        lock.owner().uuid(),
        now.to_sqlx() as _,
        reason.as_str(),
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Switches an endpoint off at its caller's wish. One that is off keeps its reason.
pub(in crate::webhooks) async fn switch_off(
    lock: &mut EndpointLock<'_>,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update webhook_endpoints set off_at = $3, off_reason = 'by_caller', next_at = null
         where tenant_id = $1 and endpoint_id = $2 and off_at is null",
        lock.tenant().uuid(),
        lock.owner().uuid(),
        now.to_sqlx() as _,
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Locks an endpoint and reads the grants of its secrets, newest first; `None` if it does not
/// exist.
pub(in crate::webhooks) async fn lock_secrets(
    lock: &mut EndpointLock<'_>,
) -> sqlx::Result<Option<Vec<GrantId>>> {
    let grants = sqlx::query_scalar!(
        "select secret_ids from webhook_endpoints where tenant_id = $1 and endpoint_id = $2 for no key update",
        lock.tenant().uuid(),
        lock.owner().uuid(),
    );
    Ok(grants
        .fetch_optional(lock.conn())
        .await?
        .map(|ids| ids.into_iter().map(GrantId::from).collect()))
}

/// Locks an endpoint and reads the grant of its URL; `None` if it does not exist.
pub(in crate::webhooks) async fn url_grant(
    lock: &mut EndpointLock<'_>,
) -> sqlx::Result<Option<GrantId>> {
    let grant = sqlx::query_scalar!(
        "select url_id from webhook_endpoints where tenant_id = $1 and endpoint_id = $2 for no key update",
        lock.tenant().uuid(),
        lock.owner().uuid(),
    );
    let grant = grant.fetch_optional(lock.conn()).await?;
    Ok(grant.map(GrantId::from))
}

/// What waits at the endpoint of a channel.
#[derive(Debug)]
pub struct ChannelQueue {
    /// The time by the database's clock.
    pub clock: Timestamp,
    /// When its last messages were tried, the oldest first, by that clock.
    pub recent: Vec<Timestamp>,
    /// How many messages wait, but for the held one and the one that is being tried.
    pub waiting: i64,
    /// The message that later alerts join, with its body.
    pub held: Option<(DeliveryId, String)>,
    /// The time for which alerts were held last.
    pub held_for: Option<Timestamp>,
}

/// Locks the endpoint of a channel and reads what waits there; `None` if it does not exist.
pub(in crate::webhooks) async fn lock_queue(
    lock: &mut EndpointLock<'_>,
) -> sqlx::Result<Option<ChannelQueue>> {
    let (tenant, endpoint) = (lock.tenant().uuid(), lock.owner().uuid());
    let row = sqlx::query!(
        r#"select recent as "recent: Vec<SqlTimestamp>", held_for, taken_delivery, clock_timestamp() as "clock!: SqlTimestamp"
           from webhook_endpoints
           where tenant_id = $1 and endpoint_id = $2 for no key update"#,
        tenant,
        endpoint,
    );
    let Some(row) = row.fetch_optional(lock.conn()).await? else {
        return Ok(None);
    };
    // After the lock: what another transaction has made is visible only now.
    let waiting = sqlx::query_scalar!(
        r#"select count(*) as "waiting!" from deliveries
           where tenant_id = $1 and coalesce(channel_id, monitor_id) = $2 and due_at is not null and not is_held
             and delivery_id is distinct from $3"#,
        tenant,
        endpoint,
        row.taken_delivery,
    );
    let waiting = waiting.fetch_one(lock.conn()).await?;
    let held = sqlx::query!(
        "select delivery_id, body from deliveries
         where tenant_id = $1 and coalesce(channel_id, monitor_id) = $2 and due_at is not null and is_held
         order by due_at, delivery_id limit 1",
        tenant,
        endpoint,
    );
    let held = held.fetch_optional(lock.conn()).await?;
    Ok(Some(ChannelQueue {
        clock: row.clock.to_jiff(),
        recent: row.recent.into_iter().map(SqlTimestamp::to_jiff).collect(),
        waiting,
        held: held.map(|row| (row.delivery_id.into(), row.body)),
        held_for: row.held_for.map(SqlTimestamp::to_jiff),
    }))
}

/// Replaces the body of a held message; the endpoint is locked, so it is not being tried. `false`: it is
/// gone.
pub(in crate::webhooks) async fn replace_held(
    lock: &mut EndpointLock<'_>,
    id: DeliveryId,
    body: &str,
) -> sqlx::Result<bool> {
    let replaced = sqlx::query!(
        "update deliveries set body = $3, monitor_id = null where tenant_id = $1 and delivery_id = $2",
        lock.tenant().uuid(),
        id.uuid(),
        body,
    )
    .execute(lock.conn())
    .await?;
    Ok(replaced.rows_affected() == 1)
}

/// Moves the held message to another time; `None`: it is due now.
pub(in crate::webhooks) async fn move_held(
    lock: &mut EndpointLock<'_>,
    until: Option<Timestamp>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update deliveries set due_at = coalesce($3, clock_timestamp())
         where tenant_id = $1 and coalesce(channel_id, monitor_id) = $2 and due_at is not null and is_held",
        lock.tenant().uuid(),
        lock.owner().uuid(),
        until.map(|until| until.to_sqlx()) as _,
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Records the time for which alerts are held.
pub(in crate::webhooks) async fn set_held_for(
    lock: &mut EndpointLock<'_>,
    until: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update webhook_endpoints set held_for = greatest(held_for, $3) where tenant_id = $1 and endpoint_id = $2",
        lock.tenant().uuid(),
        lock.owner().uuid(),
        until.to_sqlx() as _,
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

pub(in crate::webhooks) async fn change_secrets(
    lock: &mut EndpointLock<'_>,
    secrets: &[GrantId],
) -> sqlx::Result<()> {
    let ids: Vec<_> = secrets.iter().map(|grant| grant.uuid()).collect();
    sqlx::query!(
        "update webhook_endpoints set secret_ids = $3 where tenant_id = $1 and endpoint_id = $2",
        lock.tenant().uuid(),
        lock.owner().uuid(),
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
        r#"select monitor_id as "monitor_id!", url_id, off_at, off_reason, delivered_at, failing_since from webhook_endpoints
         where tenant_id = $1 and monitor_id = any($2)"#,
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
