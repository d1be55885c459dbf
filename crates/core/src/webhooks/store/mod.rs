//! Deliveries in the database. The SQL functions of `functions/deliveries.sql` lease tries and
//! record their results; the head of that file shows the states.
//!
//! Also here: endpoints ([`endpoints`]), lists ([`lists`]) and the lock order ([`lock`]).

pub(super) mod endpoints;
pub(super) mod lists;
pub(super) mod lock;

use std::time::Duration;

use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx as _};
use sqlx::{PgConnection, PgPool};

use self::lock::MonitorLock;
use super::retry_schedule::{SWITCH_OFF_AFTER, TryOutcome};
use super::send::TryResult;
use crate::contract::monitors::OffReason;
use crate::contract::webhooks::TryError;
use crate::ids::{DeliveryId, GrantId, MonitorId, TenantId};

/// A delivery to insert.
pub(super) struct NewDelivery<'a> {
    pub(super) id: DeliveryId,
    pub(super) event_type: &'a str,
    pub(super) body: &'a str,
    pub(super) most_tries: u16,
}

/// A delivery that this process may try until its lease expires.
#[derive(Debug)]
pub(super) struct LeasedDelivery {
    pub(super) tenant: TenantId,
    pub(super) monitor: MonitorId,
    pub(super) delivery: DeliveryId,
    /// The number of this try, never reused.
    pub(super) number: i32,
    /// The failures before this try.
    pub(super) failures: u16,
    pub(super) most_tries: u16,
    pub(super) body: String,
    pub(super) url: GrantId,
    /// The newest first.
    pub(super) secrets: Vec<GrantId>,
}

/// Inserts a delivery, to be sent after the commit. `false`: the monitor has no webhook.
pub(super) async fn enqueue(
    lock: &mut MonitorLock<'_>,
    new: &NewDelivery<'_>,
    now: Timestamp,
) -> sqlx::Result<bool> {
    wake(lock).await?;
    let inserted = sqlx::query!(
        "insert into deliveries (tenant_id, delivery_id, monitor_id, event_type, body, most_tries, created_at,
                                 status, reason, due_at, ended_at)
         select $1, $2, $3, $4, $5, $6, $7,
                case when w.off_at is null then 'pending' else 'failed' end,
                case when w.off_at is not null then 'endpoint_off' end,
                case when w.off_at is null then clock_timestamp() end,
                case when w.off_at is not null then $7::timestamptz end
         from webhook_endpoints w where w.tenant_id = $1 and w.monitor_id = $3",
        lock.tenant().uuid(),
        new.id.uuid(),
        lock.monitor().uuid(),
        new.event_type,
        new.body,
        i16::try_from(new.most_tries).unwrap_or(i16::MAX),
        now.to_sqlx() as _,
    )
    .execute(lock.conn())
    .await?;
    Ok(inserted.rows_affected() > 0)
}

/// Wakes the deliverer for an endpoint after the commit, and locks its row until then.
pub(super) async fn wake(lock: &mut MonitorLock<'_>) -> sqlx::Result<()> {
    let arm = sqlx::query!(
        "select from wake_endpoint($1, $2)",
        lock.tenant().uuid(),
        lock.monitor().uuid()
    );
    arm.execute(lock.conn()).await?;
    Ok(())
}

/// Leases one delivery of each due endpoint. Also returns the time until the next one is due.
pub(super) async fn lease_due(
    pool: &PgPool,
    now: Timestamp,
    slots: i32,
    per_tenant: i32,
    per_host: i32,
    lease: Duration,
) -> sqlx::Result<(Vec<LeasedDelivery>, Option<Duration>)> {
    let rows = sqlx::query!(
        r#"select tenant_id as "tenant_id!", monitor_id as "monitor_id!", delivery_id as "delivery_id!", number as "number!",
                  failures as "failures!", most_tries as "most_tries!", body as "body!", url_id as "url_id!", secret_ids as "secret_ids!"
           from lease_deliveries($1, $2, $3, $4, make_interval(secs => $5))"#,
        now.to_sqlx() as _,
        slots,
        per_tenant,
        per_host,
        lease.as_secs_f64(),
    )
    .fetch_all(pool)
    .await?;
    let leased = rows.into_iter().map(|row| LeasedDelivery {
        tenant: row.tenant_id.into(),
        monitor: row.monitor_id.into(),
        delivery: row.delivery_id.into(),
        number: row.number,
        failures: row.failures.unsigned_abs(),
        most_tries: row.most_tries.unsigned_abs(),
        body: row.body,
        url: row.url_id.into(),
        secrets: row.secret_ids.into_iter().map(GrantId::from).collect(),
    });
    let wait = sqlx::query_scalar!(
        r#"select extract(epoch from min(next_at) - clock_timestamp())::double precision
           from webhook_endpoints where next_at is not null"#
    );
    let leased = leased.collect();
    let wait = wait
        .fetch_one(pool)
        .await?
        .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
    Ok((leased, wait))
}

/// Records the result of a try. `false`: another try has replaced it, so the result has no effect.
pub(super) async fn record_try(
    pool: &PgPool,
    leased: &LeasedDelivery,
    result: &TryResult,
    outcome: TryOutcome,
    now: Timestamp,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select end_try($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, make_interval(secs => $12), make_interval(secs => $13)) as "ours!""#,
        now.to_sqlx() as _,
        leased.tenant.uuid(),
        leased.monitor.uuid(),
        leased.delivery.uuid(),
        leased.number,
        i16::try_from(leased.failures).unwrap_or(i16::MAX),
        result.http_status.and_then(|status| i16::try_from(status).ok()),
        result.error.map(TryError::as_str),
        result.response,
        i32::try_from(result.latency.as_millis()).unwrap_or(i32::MAX),
        outcome.as_str(),
        outcome.after().map(|after| after.as_secs_f64()),
        SWITCH_OFF_AFTER.as_secs_f64(),
    )
    .fetch_one(pool)
    .await
}

/// The monitor of a delivery; `None` if the delivery does not exist.
pub(super) async fn monitor_of(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: DeliveryId,
) -> sqlx::Result<Option<MonitorId>> {
    let monitor = sqlx::query_scalar!(
        "select monitor_id from deliveries where tenant_id = $1 and delivery_id = $2",
        tenant.uuid(),
        id.uuid(),
    );
    Ok(monitor.fetch_optional(conn).await?.map(MonitorId::from))
}

/// Whether an endpoint is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndpointSwitch {
    On,
    Off(OffReason),
}

/// Locks an endpoint and reads its switch; `None` if it does not exist.
pub(super) async fn endpoint_switch(
    lock: &mut MonitorLock<'_>,
) -> sqlx::Result<Option<EndpointSwitch>> {
    let reason = sqlx::query_scalar!(
        "select off_reason from webhook_endpoints where tenant_id = $1 and monitor_id = $2 for no key update",
        lock.tenant().uuid(),
        lock.monitor().uuid(),
    );
    let switch = |reason: Option<OffReason>| match reason {
        None => EndpointSwitch::On,
        Some(reason) => EndpointSwitch::Off(reason),
    };
    Ok(reason.fetch_optional(lock.conn()).await?.map(switch))
}

/// When a monitor was last tested: the newest creation or end of a test. The lock of the endpoint
/// prevents a concurrent test.
pub(super) async fn last_test(lock: &mut MonitorLock<'_>) -> sqlx::Result<Option<Timestamp>> {
    let last = sqlx::query_scalar!(
        r#"select max(greatest(created_at, ended_at)) as "last: SqlTimestamp" from deliveries
           where tenant_id = $1 and monitor_id = $2 and event_type = 'monitor.test'"#,
        lock.tenant().uuid(),
        lock.monitor().uuid(),
    );
    Ok(last
        .fetch_one(lock.conn())
        .await?
        .map(SqlTimestamp::to_jiff))
}

/// Whether a delivery is a test.
pub(super) async fn is_test(lock: &mut MonitorLock<'_>, id: DeliveryId) -> sqlx::Result<bool> {
    let is_test = sqlx::query_scalar!(
        r#"select exists (select from deliveries where tenant_id = $1 and delivery_id = $2 and event_type = 'monitor.test') as "is_test!""#,
        lock.tenant().uuid(),
        id.uuid(),
    );
    is_test.fetch_one(lock.conn()).await
}

/// Resets a delivery: pending, due now, with all tries left.
pub(super) async fn reset(lock: &mut MonitorLock<'_>, id: DeliveryId) -> sqlx::Result<()> {
    sqlx::query!(
        "update deliveries
         set status = 'pending', reason = null, failures = 0, lost = 0, due_at = clock_timestamp(), ended_at = null
         where tenant_id = $1 and delivery_id = $2",
        lock.tenant().uuid(),
        id.uuid(),
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}
