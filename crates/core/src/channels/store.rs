//! Channels in the database. Their endpoints and messages are rows of `webhooks`.

use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx as _};
use serde_json::Value;
use sqlx::PgConnection;

use crate::commands::CommandError;
use crate::contract::FieldValue as _;
use crate::contract::channels::{
    Channel, ChannelKind, ChannelPause, ChannelStatus, NoticePriority,
};
use crate::contract::monitors::{HeldAlerts, NotifySettings};
use crate::ids::{ChannelId, Kind, MonitorId, TenantId};
use crate::webhooks::{EndpointLock, EndpointOwner, LockFor, MonitorLock};

/// The columns of a channel to insert or update.
pub(super) struct ChannelColumns<'a> {
    pub(super) name: &'a str,
    pub(super) shown_url: &'a str,
    pub(super) least_priority: NoticePriority,
    pub(super) notify: Option<Value>,
    pub(super) timezone: &'a str,
}

/// A locked channel.
pub(super) struct LockedChannel {
    pub(super) name: String,
    pub(super) kind: ChannelKind,
    pub(super) shown_url: String,
    pub(super) least_priority: NoticePriority,
    pub(super) notify: Option<Value>,
    pub(super) timezone: String,
}

/// A channel of a monitor, as a message needs it.
#[derive(Debug)]
pub struct ChannelTarget {
    pub(super) id: ChannelId,
    pub(super) least_priority: NoticePriority,
    pub(super) notify: Option<NotifySettings>,
    pub(super) timezone: String,
}

/// Makes creations of a tenant wait for each other, so that the count holds.
pub(super) async fn lock_count(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<()> {
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended($1, 0))",
        format!("farescan.channels {tenant}")
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub(super) async fn count(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select count(*) as "count!" from channels where tenant_id = $1"#,
        tenant.uuid()
    )
    .fetch_one(conn)
    .await
}

pub(super) async fn insert(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ChannelId,
    kind: ChannelKind,
    columns: &ChannelColumns<'_>,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into channels (tenant_id, channel_id, name, kind, shown_url, least_priority, notify, timezone, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7::text::json, $8, $9, $9)",
        tenant.uuid(),
        id.uuid(),
        columns.name,
        kind.as_str(),
        columns.shown_url,
        columns.least_priority.as_str(),
        columns.notify.as_ref().map(Value::to_string),
        columns.timezone,
        now.to_sqlx() as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Updates a locked channel.
pub(super) async fn update(
    lock: &mut EndpointLock<'_>,
    id: ChannelId,
    columns: &ChannelColumns<'_>,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update channels
         set name = $3, shown_url = $4, least_priority = $5, notify = $6::text::json, timezone = $7, updated_at = $8
         where tenant_id = $1 and channel_id = $2",
        lock.tenant().uuid(),
        id.uuid(),
        columns.name,
        columns.shown_url,
        columns.least_priority.as_str(),
        columns.notify.as_ref().map(Value::to_string),
        columns.timezone,
        now.to_sqlx() as _,
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Locks a channel and reads its row; `NotFound` if there is none.
pub(super) async fn lock(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ChannelId,
    purpose: LockFor,
) -> Result<(EndpointLock<'_>, LockedChannel), CommandError> {
    let owner = EndpointOwner::Channel(id);
    let lock = EndpointLock::acquire(conn, tenant, owner, purpose).await?;
    let mut lock = lock.ok_or(Kind::Channel)?;
    let row = locked(&mut lock, id).await?;
    Ok((lock, row.ok_or(Kind::Channel)?))
}

async fn locked(lock: &mut EndpointLock<'_>, id: ChannelId) -> sqlx::Result<Option<LockedChannel>> {
    sqlx::query_as!(
        LockedChannel,
        r#"select name, kind as "kind: ChannelKind", shown_url, least_priority as "least_priority: NoticePriority", notify, timezone
           from channels where tenant_id = $1 and channel_id = $2"#,
        lock.tenant().uuid(),
        id.uuid(),
    )
    .fetch_optional(lock.conn())
    .await
}

/// Deletes a locked channel with its endpoint, its messages and its idempotency records.
pub(super) async fn delete(lock: &mut EndpointLock<'_>, id: ChannelId) -> sqlx::Result<()> {
    let tenant = lock.tenant().uuid();
    // The endpoint's row first: it is locked before its deliveries everywhere.
    sqlx::query!(
        "delete from webhook_endpoints where tenant_id = $1 and channel_id = $2",
        tenant,
        id.uuid()
    )
    .execute(lock.conn())
    .await?;
    sqlx::query!(
        "delete from channels where tenant_id = $1 and channel_id = $2",
        tenant,
        id.uuid()
    )
    .execute(lock.conn())
    .await?;
    sqlx::query!(
        "delete from idempotency_keys where tenant_id = $1 and starts_with(path, $2)",
        tenant,
        format!("/v1/channels/{id}/"),
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// The oldest monitors that name a locked channel.
pub(super) async fn monitors_of(
    lock: &mut EndpointLock<'_>,
    id: ChannelId,
    limit: i64,
) -> sqlx::Result<Vec<MonitorId>> {
    let monitors = sqlx::query_scalar!(
        "select monitor_id from monitor_channels where tenant_id = $1 and channel_id = $2 order by monitor_id limit $3",
        lock.tenant().uuid(),
        id.uuid(),
        limit,
    );
    let monitors = monitors.fetch_all(lock.conn()).await?;
    Ok(monitors.into_iter().map(MonitorId::from).collect())
}

/// Locks those of these channels that exist against their deletion, in the order of their ids.
pub(super) async fn lock_named(
    conn: &mut PgConnection,
    tenant: TenantId,
    channels: &[ChannelId],
) -> sqlx::Result<Vec<ChannelId>> {
    let ids: Vec<_> = channels.iter().map(|id| id.uuid()).collect();
    let known = sqlx::query_scalar!(
        "select channel_id from channels where tenant_id = $1 and channel_id = any ($2) order by channel_id for key share",
        tenant.uuid(),
        &ids,
    );
    let known = known.fetch_all(conn).await?;
    Ok(known.into_iter().map(ChannelId::from).collect())
}

/// Replaces the channels of a locked monitor; a repeated one keeps its first place.
pub(super) async fn replace_named(
    lock: &mut MonitorLock<'_>,
    channels: &[ChannelId],
) -> sqlx::Result<()> {
    let (tenant, monitor) = (lock.tenant().uuid(), lock.monitor().uuid());
    let ids: Vec<_> = channels.iter().map(|id| id.uuid()).collect();
    sqlx::query!(
        "delete from monitor_channels where tenant_id = $1 and monitor_id = $2",
        tenant,
        monitor
    )
    .execute(lock.conn())
    .await?;
    sqlx::query!(
        "insert into monitor_channels (tenant_id, monitor_id, channel_id, position)
         select $1, $2, x.id, min(x.position) from unnest($3::uuid[]) with ordinality as x (id, position) group by x.id",
        tenant,
        monitor,
        &ids,
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// The channels of each of these monitors, in the order of its list.
pub(super) async fn named_by(
    conn: &mut PgConnection,
    tenant: TenantId,
    monitors: &[MonitorId],
) -> sqlx::Result<Vec<(MonitorId, ChannelId)>> {
    let ids: Vec<_> = monitors.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query!(
        "select monitor_id, channel_id from monitor_channels
         where tenant_id = $1 and monitor_id = any ($2) order by monitor_id, position",
        tenant.uuid(),
        &ids,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.monitor_id.into(), row.channel_id.into()))
        .collect())
}

/// Locks the channels of a locked monitor against their deletion, in the order of their ids.
pub(super) async fn targets(lock: &mut MonitorLock<'_>) -> sqlx::Result<Vec<ChannelTarget>> {
    let rows = sqlx::query!(
        r#"select c.channel_id, c.least_priority as "least_priority: NoticePriority", c.notify, c.timezone
           from monitor_channels m
           join channels c on c.tenant_id = m.tenant_id and c.channel_id = m.channel_id
           where m.tenant_id = $1 and m.monitor_id = $2
           order by c.channel_id for key share of c"#,
        lock.tenant().uuid(),
        lock.monitor().uuid(),
    );
    let rows = rows.fetch_all(lock.conn()).await?;
    Ok(rows
        .into_iter()
        .map(|row| ChannelTarget {
            id: row.channel_id.into(),
            least_priority: row.least_priority,
            notify: settings(row.notify),
            timezone: row.timezone,
        })
        .collect())
}

/// A locked channel, as a message needs it.
pub(super) async fn target(
    lock: &mut EndpointLock<'_>,
    id: ChannelId,
) -> sqlx::Result<Option<ChannelTarget>> {
    let channel = locked(lock, id).await?;
    Ok(channel.map(|channel| ChannelTarget {
        id,
        least_priority: channel.least_priority,
        notify: settings(channel.notify),
        timezone: channel.timezone,
    }))
}

/// The stored settings. They were validated when they were stored.
fn settings(stored: Option<Value>) -> Option<NotifySettings> {
    NotifySettings::read(&stored?).ok()
}

/// One channel, or the newest before `before`.
pub(super) async fn list(
    conn: &mut PgConnection,
    tenant: TenantId,
    only: Option<ChannelId>,
    status: Option<ChannelStatus>,
    before: Option<ChannelId>,
    limit: i64,
) -> sqlx::Result<Vec<Channel>> {
    let rows = sqlx::query!(
        r#"select c.channel_id, c.name, c.kind as "kind: ChannelKind", c.shown_url, c.least_priority as "least_priority: NoticePriority",
                  c.notify, c.timezone, c.created_at, c.updated_at, w.off_reason as "off_reason: ChannelPause", w.delivered_at,
                  w.failing_since, cardinality(w.secret_ids) > 0 as "has_token!", h.due_at as "held_until?: SqlTimestamp", h.fired
           from channels c
           join webhook_endpoints w on w.tenant_id = c.tenant_id and w.channel_id = c.channel_id
           left join lateral (
               select d.due_at, (d.body::json -> 'data' ->> 'fired')::bigint as fired from deliveries d
               where d.tenant_id = $1 and coalesce(d.channel_id, d.monitor_id) = c.channel_id and d.due_at is not null and d.is_held
               order by d.due_at, d.delivery_id limit 1
           ) h on true
           where c.tenant_id = $1 and ($2::uuid is null or c.channel_id = $2) and ($3::uuid is null or c.channel_id < $3)
             and ($4::text is null or $4 = case when w.off_at is null then 'active' else 'paused' end)
           order by c.channel_id desc limit $5"#,
        tenant.uuid(),
        only.map(ChannelId::uuid),
        before.map(ChannelId::uuid),
        status.map(ChannelStatus::as_str),
        limit,
    );
    let rows = rows.fetch_all(conn).await?;
    let channels = rows.into_iter().map(|row| Channel {
        id: row.channel_id.into(),
        name: row.name,
        kind: row.kind,
        url: row.shown_url,
        has_token: row.has_token,
        least_priority: row.least_priority,
        notify: settings(row.notify),
        timezone: row.timezone,
        held: row.held_until.map(|until| HeldAlerts {
            fired: row.fired.unwrap_or_default().unsigned_abs(),
            notify_at: until.to_jiff(),
        }),
        status: if row.off_reason.is_some() {
            ChannelStatus::Paused
        } else {
            ChannelStatus::Active
        },
        status_reason: row.off_reason,
        last_success_at: row.delivered_at.map(|time| time.to_jiff()),
        failing_since: row.failing_since.map(|time| time.to_jiff()),
        created_at: row.created_at.to_jiff(),
        updated_at: row.updated_at.to_jiff(),
    });
    Ok(channels.collect())
}
