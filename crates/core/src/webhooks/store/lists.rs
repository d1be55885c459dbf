//! Deliveries and tries in the API.

use jiff_sqlx::Timestamp;
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::contract::webhooks::{
    DeliveriesQuery, Delivery, DeliveryReason, DeliveryStatus, DeliveryTry, TryError,
};
use crate::ids::{ChannelId, DeliveryId, MonitorId, TenantId};

struct DeliveryRow {
    delivery_id: Uuid,
    monitor_id: Option<Uuid>,
    channel_id: Option<Uuid>,
    event_type: String,
    status: DeliveryStatus,
    reason: Option<DeliveryReason>,
    tries: i32,
    last_error: Option<TryError>,
    due_at: Option<Timestamp>,
    created_at: Timestamp,
    ended_at: Option<Timestamp>,
}

impl From<DeliveryRow> for Delivery {
    fn from(row: DeliveryRow) -> Self {
        Self {
            id: row.delivery_id.into(),
            monitor_id: row.monitor_id.map(MonitorId::from),
            channel_id: row.channel_id.map(ChannelId::from),
            event_type: row.event_type,
            status: row.status,
            reason: row.reason,
            try_count: row.tries.unsigned_abs(),
            last_error: row.last_error,
            next_try_at: row.due_at.map(Timestamp::to_jiff),
            created_at: row.created_at.to_jiff(),
            ended_at: row.ended_at.map(Timestamp::to_jiff),
        }
    }
}

/// The newest deliveries of the query, of some monitors or of all, before the delivery `before`.
pub(in crate::webhooks) async fn deliveries(
    pool: &PgPool,
    tenant: TenantId,
    query: &DeliveriesQuery,
    of: Option<&[MonitorId]>,
    before: Option<DeliveryId>,
    limit: i64,
) -> sqlx::Result<Vec<Delivery>> {
    let of: Option<Vec<_>> = of.map(|of| of.iter().map(|monitor| monitor.uuid()).collect());
    let rows = sqlx::query_as!(
        DeliveryRow,
        r#"select delivery_id, monitor_id, channel_id, event_type, status, reason, tries,
                  (select t.error from delivery_tries t
                   where t.tenant_id = d.tenant_id and t.delivery_id = d.delivery_id and t.ended_at is not null
                   order by t.number desc limit 1) as "last_error: TryError",
                  due_at, created_at, ended_at
           from deliveries d
           where d.tenant_id = $1 and ($2::uuid is null or delivery_id < $2) and ($3::uuid is null or monitor_id = $3)
             and ($4::text is null or status = $4) and ($6::uuid is null or channel_id = $6)
             and ($7::uuid[] is null or monitor_id = any ($7))
           order by delivery_id desc limit $5"#,
        tenant.uuid(),
        before.map(DeliveryId::uuid),
        query.monitor_id.map(MonitorId::uuid),
        query.status.map(DeliveryStatus::as_str),
        limit,
        query.channel_id.map(ChannelId::uuid),
        of.as_deref(),
    );
    Ok(rows
        .fetch_all(pool)
        .await?
        .into_iter()
        .map(Delivery::from)
        .collect())
}

/// Whether the monitor exists.
pub(in crate::webhooks) async fn is_monitor(
    pool: &PgPool,
    tenant: TenantId,
    monitor: MonitorId,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select from monitors where tenant_id = $1 and monitor_id = $2) as "is_there!""#,
        tenant.uuid(),
        monitor.uuid(),
    )
    .fetch_one(pool)
    .await
}

/// Whether the channel exists.
pub(in crate::webhooks) async fn is_channel(
    pool: &PgPool,
    tenant: TenantId,
    channel: ChannelId,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select from channels where tenant_id = $1 and channel_id = $2) as "is_there!""#,
        tenant.uuid(),
        channel.uuid(),
    )
    .fetch_one(pool)
    .await
}

/// One delivery and its body.
pub(in crate::webhooks) async fn delivery(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: DeliveryId,
) -> sqlx::Result<Option<(Delivery, Value)>> {
    let row = sqlx::query!(
        r#"select delivery_id, monitor_id, channel_id, event_type, status, reason, tries,
                  (select t.error from delivery_tries t
                   where t.tenant_id = d.tenant_id and t.delivery_id = d.delivery_id and t.ended_at is not null
                   order by t.number desc limit 1) as "last_error: TryError",
                  due_at, created_at, ended_at, body
           from deliveries d where d.tenant_id = $1 and delivery_id = $2"#,
        tenant.uuid(),
        id.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| {
        let delivery = DeliveryRow {
            delivery_id: row.delivery_id,
            monitor_id: row.monitor_id,
            channel_id: row.channel_id,
            event_type: row.event_type,
            status: row.status,
            reason: row.reason,
            tries: row.tries,
            last_error: row.last_error,
            due_at: row.due_at,
            created_at: row.created_at,
            ended_at: row.ended_at,
        };
        (
            delivery.into(),
            serde_json::from_str(&row.body).unwrap_or(Value::Null),
        )
    }))
}

/// The newest tries of a delivery.
pub(in crate::webhooks) async fn tries(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: DeliveryId,
    limit: i64,
) -> sqlx::Result<Vec<DeliveryTry>> {
    let rows = sqlx::query!(
        "select number, started_at, ended_at, http_status, error, response, latency_ms from delivery_tries
         where tenant_id = $1 and delivery_id = $2 order by number desc limit $3",
        tenant.uuid(),
        id.uuid(),
        limit,
    )
    .fetch_all(conn)
    .await?;
    let tries = rows.into_iter().map(|row| DeliveryTry {
        number: row.number.unsigned_abs(),
        started_at: row.started_at.to_jiff(),
        ended_at: row.ended_at.map(Timestamp::to_jiff),
        latency_ms: row.latency_ms.map(i32::unsigned_abs),
        http_status: row.http_status.map(i16::unsigned_abs),
        error: row.error,
        response: row.response,
    });
    Ok(tries.collect())
}
