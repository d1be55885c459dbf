//! Held alerts: those of a monitor that wait for its quiet hours to end or for its digest.

use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx as _};
use serde_json::Value;
use sqlx::PgPool;

use crate::contract::FieldValue as _;
use crate::contract::monitors::NotifySettings;
use crate::ids::{DeliveryId, MonitorId, TenantId};
use crate::notify::NotifyPlan;
use crate::webhooks::MonitorLock;

/// When a monitor's alerts are sent, and those that are held.
#[derive(Debug)]
pub(in crate::monitors) struct NotifyState {
    pub(in crate::monitors) name: String,
    pub(in crate::monitors) plan: Option<NotifyPlan>,
    pub(in crate::monitors) has_webhook: bool,
    /// When the held alerts are sent; `None` if there are none.
    pub(in crate::monitors) notify_at: Option<Timestamp>,
    /// How often rules fired for them.
    pub(in crate::monitors) fired: i64,
    /// The time for which held alerts were sent last.
    pub(in crate::monitors) last: Option<Timestamp>,
}

/// The state of a locked monitor.
pub(in crate::monitors) async fn notify_state(
    lock: &mut MonitorLock<'_>,
) -> sqlx::Result<NotifyState> {
    let row = sqlx::query!(
        r#"select m.name, m.timezone, m.notify, m.notify_at, m.held_fired, m.notified_for,
                  exists (select from webhook_endpoints w where w.tenant_id = $1 and w.monitor_id = $2) as "has_webhook!"
           from monitors m where m.tenant_id = $1 and m.monitor_id = $2"#,
        lock.tenant().uuid(),
        lock.monitor().uuid(),
    );
    let row = row.fetch_one(lock.conn()).await?;
    Ok(NotifyState {
        name: row.name,
        plan: NotifyPlan::new(settings(row.notify).as_ref(), &row.timezone),
        has_webhook: row.has_webhook,
        notify_at: row.notify_at.map(SqlTimestamp::to_jiff),
        fired: row.held_fired,
        last: row.notified_for.map(SqlTimestamp::to_jiff),
    })
}

/// The stored settings. They were validated when they were stored.
pub(in crate::monitors) fn settings(stored: Option<Value>) -> Option<NotifySettings> {
    NotifySettings::read(&stored?).ok()
}

/// Holds the alerts of a run, whose rows are inserted as held, until a time.
pub(in crate::monitors) async fn hold(
    lock: &mut MonitorLock<'_>,
    until: Timestamp,
    fired: u32,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update monitors set notify_at = $3, held_fired = held_fired + $4 where tenant_id = $1 and monitor_id = $2",
        lock.tenant().uuid(),
        lock.monitor().uuid(),
        until.to_sqlx() as _,
        i64::from(fired),
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Moves the time of the held alerts.
pub(in crate::monitors) async fn postpone(
    lock: &mut MonitorLock<'_>,
    until: Timestamp,
) -> sqlx::Result<()> {
    hold(lock, until, 0).await
}

/// The newest held alerts, as recorded, and when the oldest of all fired.
pub(in crate::monitors) async fn held_alerts(
    lock: &mut MonitorLock<'_>,
    limit: i64,
) -> sqlx::Result<(Vec<Value>, Option<Timestamp>)> {
    let (tenant, id) = (lock.tenant().uuid(), lock.monitor().uuid());
    let newest = sqlx::query_scalar!(
        "select alert from alerts where tenant_id = $1 and monitor_id = $2 and is_held
         order by fired_at desc, alert_id desc limit $3",
        tenant,
        id,
        limit,
    );
    let newest = newest.fetch_all(lock.conn()).await?;
    let since = sqlx::query_scalar!(
        r#"select min(fired_at) as "since: SqlTimestamp" from alerts where tenant_id = $1 and monitor_id = $2 and is_held"#,
        tenant,
        id,
    );
    let since = since.fetch_one(lock.conn()).await?;
    Ok((newest, since.map(SqlTimestamp::to_jiff)))
}

/// Records that the held alerts are in a delivery; `None`: the monitor has no webhook. `sent_for` is
/// the time for which they were held.
pub(in crate::monitors) async fn record_release(
    lock: &mut MonitorLock<'_>,
    delivery: Option<DeliveryId>,
    sent_for: Timestamp,
) -> sqlx::Result<()> {
    let (tenant, id) = (lock.tenant().uuid(), lock.monitor().uuid());
    sqlx::query!(
        "update alerts set is_held = false, delivery_id = $3 where tenant_id = $1 and monitor_id = $2 and is_held",
        tenant,
        id,
        delivery.map(DeliveryId::uuid),
    )
    .execute(lock.conn())
    .await?;
    sqlx::query!(
        "update monitors set notify_at = null, held_fired = 0, notified_for = greatest(notified_for, $3)
         where tenant_id = $1 and monitor_id = $2",
        tenant,
        id,
        sent_for.to_sqlx() as _,
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Monitors whose held alerts are due, the longest waiting first. Those of a caller that is being
/// moved to another database wait for the end of the move.
pub(in crate::monitors) async fn due(
    pool: &PgPool,
    now: Timestamp,
    limit: i64,
) -> sqlx::Result<Vec<(TenantId, MonitorId)>> {
    let rows = sqlx::query!(
        "select tenant_id, monitor_id from monitors
         where notify_at <= $1 and not_before is distinct from '9999-01-01 00:00:00+00'
         order by notify_at limit $2",
        now.to_sqlx() as _,
        limit
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.tenant_id.into(), row.monitor_id.into()))
        .collect())
}

/// When the next held alerts are due.
pub(in crate::monitors) async fn next_due_at(pool: &PgPool) -> sqlx::Result<Option<Timestamp>> {
    let next = sqlx::query_scalar!(
        r#"select min(notify_at) as "next: SqlTimestamp" from monitors
           where notify_at is not null and not_before is distinct from '9999-01-01 00:00:00+00'"#
    );
    Ok(next.fetch_one(pool).await?.map(SqlTimestamp::to_jiff))
}
