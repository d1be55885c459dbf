//! The moves of deliveries in the database; those of a try are functions of the migration `webhooks`, whose head draws their states.
//!
//! Here too: endpoints ([`endpoints`]), lists ([`lists`]) and the order of locks ([`lock`]).

pub(super) mod endpoints;
pub(super) mod lists;
pub(super) mod lock;

use std::time::Duration;

use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx as _};
use sqlx::{PgConnection, PgPool};

use self::lock::MonitorLock;
use super::schedule::{Fate, PATIENCE};
use super::send::Ended;
use crate::contract::webhooks::{OffReason, TryError};
use crate::ids::{DeliveryId, GrantId, MonitorId, TenantId};

/// A delivery that is not there yet.
pub(super) struct NewDelivery<'a> {
    pub(super) id: DeliveryId,
    pub(super) event_type: &'a str,
    pub(super) body: &'a str,
    pub(super) most_tries: u16,
}

/// A delivery that is this process's to try, until its lease has run out.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) tenant: TenantId,
    pub(super) monitor: MonitorId,
    pub(super) delivery: DeliveryId,
    /// The number of this try, never used again.
    pub(super) number: i32,
    /// Before it.
    pub(super) failures: u16,
    pub(super) most_tries: u16,
    pub(super) body: String,
    pub(super) url: String,
    /// The newest first.
    pub(super) secrets: Vec<GrantId>,
}

/// Puts a delivery on record, to be sent when the transaction is committed; `false`: the monitor has no webhook.
pub(super) async fn enqueue(
    lock: &mut MonitorLock<'_>,
    new: &NewDelivery<'_>,
    now: Timestamp,
) -> sqlx::Result<bool> {
    arm(lock).await?;
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

/// Has an endpoint looked at when the transaction is committed, and holds its row until then.
pub(super) async fn arm(lock: &mut MonitorLock<'_>) -> sqlx::Result<()> {
    let arm = sqlx::query!(
        "select from arm_endpoint($1, $2)",
        lock.tenant().uuid(),
        lock.monitor().uuid()
    );
    arm.execute(lock.conn()).await?;
    Ok(())
}

/// Takes one delivery of each due endpoint; and how long until one is due.
pub(super) async fn take(
    pool: &PgPool,
    now: Timestamp,
    slots: i32,
    of_one_caller: i32,
    of_one_host: i32,
    lease: Duration,
) -> sqlx::Result<(Vec<Taken>, Option<Duration>)> {
    let rows = sqlx::query!(
        r#"select tenant_id as "tenant_id!", monitor_id as "monitor_id!", delivery_id as "delivery_id!", number as "number!",
                  failures as "failures!", most_tries as "most_tries!", body as "body!", url as "url!", secret_ids as "secret_ids!"
           from take_deliveries($1, $2, $3, $4, make_interval(secs => $5))"#,
        now.to_sqlx() as _,
        slots,
        of_one_caller,
        of_one_host,
        lease.as_secs_f64(),
    )
    .fetch_all(pool)
    .await?;
    let taken = rows.into_iter().map(|row| Taken {
        tenant: row.tenant_id.into(),
        monitor: row.monitor_id.into(),
        delivery: row.delivery_id.into(),
        number: row.number,
        failures: row.failures.unsigned_abs(),
        most_tries: row.most_tries.unsigned_abs(),
        body: row.body,
        url: row.url,
        secrets: row.secret_ids.into_iter().map(GrantId::from).collect(),
    });
    let wait = sqlx::query_scalar!(
        r#"select extract(epoch from min(next_at) - clock_timestamp())::double precision
           from webhook_endpoints where next_at is not null"#
    );
    let taken = taken.collect();
    let wait = wait
        .fetch_one(pool)
        .await?
        .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
    Ok((taken, wait))
}

/// Puts the end of a try on record; `false`: another has taken its place, so it is evidence only.
pub(super) async fn end(
    pool: &PgPool,
    taken: &Taken,
    ended: &Ended,
    fate: Fate,
    now: Timestamp,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select end_try($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, make_interval(secs => $12), make_interval(secs => $13)) as "ours!""#,
        now.to_sqlx() as _,
        taken.tenant.uuid(),
        taken.monitor.uuid(),
        taken.delivery.uuid(),
        taken.number,
        i16::try_from(taken.failures).unwrap_or(i16::MAX),
        ended.http_status.and_then(|status| i16::try_from(status).ok()),
        ended.error.map(TryError::as_str),
        ended.response,
        i32::try_from(ended.latency.as_millis()).unwrap_or(i32::MAX),
        fate.word(),
        fate.after().map(|after| after.as_secs_f64()),
        PATIENCE.as_secs_f64(),
    )
    .fetch_one(pool)
    .await
}

/// Whose event a delivery is; `None`: there is no such delivery.
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

/// Whether an endpoint is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off(OffReason),
}

/// How an endpoint is switched; its row is locked. `None`: there is none.
pub(super) async fn switch(lock: &mut MonitorLock<'_>) -> sqlx::Result<Option<Switch>> {
    let reason = sqlx::query_scalar!(
        "select off_reason from webhook_endpoints where tenant_id = $1 and monitor_id = $2 for no key update",
        lock.tenant().uuid(),
        lock.monitor().uuid(),
    );
    let switch = |reason: Option<String>| match reason {
        None => Switch::On,
        Some(reason) => Switch::Off(OffReason::parse(&reason).unwrap_or(OffReason::Failing)),
    };
    Ok(reason.fetch_optional(lock.conn()).await?.map(switch))
}

/// When a monitor was last tested: when the newest test was ordered, or its last try ended. The endpoint is locked, so no other is.
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

/// Makes a delivery pending, due now, with all of its tries before it.
pub(super) async fn begin_again(lock: &mut MonitorLock<'_>, id: DeliveryId) -> sqlx::Result<()> {
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

/// Removes deliveries that ended before this, whoever's they are; gives how many. Waits for no lock: a deletion of a monitor takes its
/// deliveries in another order.
pub(super) async fn remove_ended(pool: &PgPool, before: Timestamp, most: i64) -> sqlx::Result<u64> {
    let removed = sqlx::query!(
        "delete from deliveries
         where ctid = any (array(select ctid from deliveries where ended_at < $1 limit $2 for update skip locked))",
        before.to_sqlx() as _,
        most,
    );
    Ok(removed.execute(pool).await?.rows_affected())
}
