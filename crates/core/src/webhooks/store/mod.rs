//! Deliveries in the database. The SQL functions of `functions/deliveries.sql` lease tries and
//! record their results; the head of that file shows the states.
//!
//! Also here: endpoints ([`endpoints`]), confirmations of addresses ([`consent`]), codes of an address ([`mailed`]), lists ([`lists`]) and the lock order ([`lock`]).

pub(super) mod consent;
pub(super) mod endpoints;
pub(super) mod lists;
pub(super) mod lock;
pub(super) mod mailed;

use std::time::Duration;

use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx as _};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use self::lock::{EndpointLock, EndpointOwner};
use super::retry_schedule::TryOutcome;
use super::send::TryResult;
use crate::contract::FieldValue as _;
use crate::contract::channels::ChannelKind;
use crate::contract::monitors::NotifySettings;
use crate::contract::webhooks::TryError;
use crate::ids::{ChannelId, DeliveryId, GrantId, MonitorId, TenantId};
use crate::notify::NotifyPlan;

/// The type of the mail with a code.
pub(super) const CONFIRM_EVENT: &str = "channel.confirm";
/// The types of tests.
pub(super) const TEST_EVENTS: [&str; 2] = ["monitor.test", "channel.test"];

/// A delivery to insert.
pub(super) struct NewDelivery<'a> {
    pub(super) id: DeliveryId,
    pub(super) event_type: &'a str,
    pub(super) body: &'a str,
    pub(super) most_tries: u16,
    /// Of a message to a channel: the monitor that it is about, if it is about one.
    pub(super) monitor: Option<MonitorId>,
    /// It is not sent before this time, and later alerts join it until then; `None`: it is sent at
    /// once.
    pub(super) held_until: Option<Timestamp>,
}

/// What the receiver of an endpoint understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndpointKind {
    /// Signed events.
    Webhook,
    /// Messages to a person.
    Channel(ChannelKind),
}

/// A delivery that this process may try until its lease expires.
#[derive(Debug)]
pub(super) struct LeasedDelivery {
    pub(super) tenant: TenantId,
    pub(super) owner: EndpointOwner,
    pub(super) kind: EndpointKind,
    pub(super) delivery: DeliveryId,
    /// The number of this try, never reused.
    pub(super) number: i32,
    /// The failures before this try.
    pub(super) failures: u16,
    pub(super) most_tries: u16,
    pub(super) body: String,
    pub(super) url: GrantId,
    /// Of a webhook, the newest first; of a channel, its token.
    pub(super) secrets: Vec<GrantId>,
    pub(super) is_test: bool,
    /// The mail with a code.
    pub(super) is_confirmation: bool,
    /// When the channel wants no message.
    pub(super) quiet: Option<NotifyPlan>,
}

/// Inserts a delivery, to be sent after the commit. `false`: the monitor has no webhook. The mail with a
/// code is sent though the channel is off until it is confirmed.
pub(super) async fn enqueue(
    lock: &mut EndpointLock<'_>,
    new: &NewDelivery<'_>,
    now: Timestamp,
) -> sqlx::Result<bool> {
    wake(lock).await?;
    let (monitor, channel) = match lock.owner() {
        EndpointOwner::Monitor(id) => (Some(id), None),
        EndpointOwner::Channel(id) => (new.monitor, Some(id)),
    };
    let inserted = sqlx::query!(
        "insert into deliveries (tenant_id, delivery_id, monitor_id, channel_id, event_type, body, most_tries, created_at,
                                 status, reason, due_at, ended_at, is_held)
         select $1, $2, $3, $4, $5, $6, $7, $8,
                case when s.is_on then 'pending' else 'failed' end,
                case when not s.is_on then 'endpoint_off' end,
                case when s.is_on then coalesce($9, clock_timestamp()) end,
                case when not s.is_on then $8::timestamptz end,
                s.is_on and $9::timestamptz is not null
         from webhook_endpoints w, lateral (select w.off_at is null or $5 = 'channel.confirm' as is_on) s
         where w.tenant_id = $1 and w.endpoint_id = $10",
        lock.tenant().uuid(),
        new.id.uuid(),
        monitor.map(MonitorId::uuid),
        channel.map(ChannelId::uuid),
        new.event_type,
        new.body,
        i16::try_from(new.most_tries).unwrap_or(i16::MAX),
        now.to_sqlx() as _,
        new.held_until.map(|until| until.to_sqlx()) as _,
        lock.owner().uuid(),
    )
    .execute(lock.conn())
    .await?;
    Ok(inserted.rows_affected() > 0)
}

/// Wakes the deliverer for an endpoint after the commit, and locks its row until then.
pub(super) async fn wake(lock: &mut EndpointLock<'_>) -> sqlx::Result<()> {
    let arm = sqlx::query!(
        "select from wake_endpoint($1, $2)",
        lock.tenant().uuid(),
        lock.owner().uuid()
    );
    arm.execute(lock.conn()).await?;
    Ok(())
}

/// Leases one delivery of each due endpoint. Also returns the time until the next one is due.
pub(super) async fn lease_due(
    pool: &PgPool,
    now: Timestamp,
    slots: i32,
    most: MostTries,
    lease: Duration,
) -> sqlx::Result<(Vec<LeasedDelivery>, Option<Duration>)> {
    let rows = sqlx::query!(
        r#"select tenant_id as "tenant_id!", monitor_id, channel_id, kind as "kind!", delivery_id as "delivery_id!", event_type as "event_type!", number as "number!",
                  failures as "failures!", most_tries as "most_tries!", body as "body!", url_id as "url_id!", secret_ids as "secret_ids!", notify, timezone
           from lease_messages($1, $2, $3, $4, $5, make_interval(secs => $6), true)"#,
        now.to_sqlx() as _,
        slots,
        most.of_tenant,
        most.at_host,
        most.of_channel_in_hour,
        lease.as_secs_f64(),
    )
    .fetch_all(pool)
    .await?;
    let leased = rows.into_iter().map(|row| LeasedDelivery {
        tenant: row.tenant_id.into(),
        owner: owner(row.monitor_id, row.channel_id),
        kind: ChannelKind::parse(&row.kind).map_or(EndpointKind::Webhook, EndpointKind::Channel),
        delivery: row.delivery_id.into(),
        number: row.number,
        failures: row.failures.unsigned_abs(),
        most_tries: row.most_tries.unsigned_abs(),
        body: row.body,
        url: row.url_id.into(),
        secrets: row.secret_ids.into_iter().map(GrantId::from).collect(),
        is_test: TEST_EVENTS.contains(&row.event_type.as_str()),
        is_confirmation: row.event_type == CONFIRM_EVENT,
        quiet: row.timezone.and_then(|zone| {
            let settings = NotifySettings::read(&row.notify?).ok();
            NotifyPlan::new(settings.as_ref(), &zone)
        }),
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

/// Takes back a try that has not begun, until a later time.
pub(super) async fn postpone(
    pool: &PgPool,
    leased: &LeasedDelivery,
    until: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "select from postpone_try($1, $2, $3, $4, $5)",
        leased.tenant.uuid(),
        leased.owner.uuid(),
        leased.delivery.uuid(),
        leased.number,
        until.to_sqlx() as _,
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// The most tries of the leasing process and of all.
#[derive(Debug, Clone, Copy)]
pub(super) struct MostTries {
    /// Concurrent tries of a tenant, over all processes.
    pub(super) of_tenant: i32,
    /// Concurrent tries at a host, over all processes.
    pub(super) at_host: i32,
    /// Tries of a channel within an hour.
    pub(super) of_channel_in_hour: i32,
}

/// The owner of an endpoint or a delivery: its channel, if it has one.
fn owner(monitor: Option<Uuid>, channel: Option<Uuid>) -> EndpointOwner {
    match channel {
        Some(id) => EndpointOwner::Channel(id.into()),
        // A check of the tables excludes that both are null.
        None => EndpointOwner::Monitor(monitor.unwrap_or_default().into()),
    }
}

/// Records the result of a try. `false`: another try has replaced it, so the result has no effect.
pub(super) async fn record_try(
    pool: &PgPool,
    leased: &LeasedDelivery,
    result: &TryResult,
    outcome: TryOutcome,
    patience: Duration,
    now: Timestamp,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select end_try($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, make_interval(secs => $12), make_interval(secs => $13)) as "ours!""#,
        now.to_sqlx() as _,
        leased.tenant.uuid(),
        leased.owner.uuid(),
        leased.delivery.uuid(),
        leased.number,
        i16::try_from(leased.failures).unwrap_or(i16::MAX),
        result.http_status.and_then(|status| i16::try_from(status).ok()),
        result.error.map(TryError::as_str),
        result.response,
        i32::try_from(result.latency.as_millis()).unwrap_or(i32::MAX),
        outcome.as_str(),
        outcome.after().map(|after| after.as_secs_f64()),
        patience.as_secs_f64(),
    )
    .fetch_one(pool)
    .await
}

/// Where a delivery goes; `None` if it does not exist.
pub(super) async fn owner_of(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: DeliveryId,
) -> sqlx::Result<Option<EndpointOwner>> {
    let row = sqlx::query!(
        "select monitor_id, channel_id from deliveries where tenant_id = $1 and delivery_id = $2",
        tenant.uuid(),
        id.uuid(),
    );
    let row = row.fetch_optional(conn).await?;
    Ok(row.map(|row| owner(row.monitor_id, row.channel_id)))
}

/// Whether an endpoint is switched on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EndpointSwitch {
    On,
    /// With the reason.
    Off(String),
}

/// Locks an endpoint and reads its switch; `None` if it does not exist.
pub(super) async fn endpoint_switch(
    lock: &mut EndpointLock<'_>,
) -> sqlx::Result<Option<EndpointSwitch>> {
    let reason = sqlx::query_scalar!(
        r#"select off_reason as "off_reason: String" from webhook_endpoints
           where tenant_id = $1 and endpoint_id = $2 for no key update"#,
        lock.tenant().uuid(),
        lock.owner().uuid(),
    );
    let switch = |reason: Option<String>| reason.map_or(EndpointSwitch::On, EndpointSwitch::Off);
    Ok(reason.fetch_optional(lock.conn()).await?.map(switch))
}

/// When an endpoint was last tested: the newest creation or end of a test. The lock of the endpoint
/// prevents a concurrent test.
pub(super) async fn last_test(lock: &mut EndpointLock<'_>) -> sqlx::Result<Option<Timestamp>> {
    let (tenant, owner) = (lock.tenant().uuid(), lock.owner());
    let last = match owner {
        EndpointOwner::Monitor(id) => sqlx::query_scalar!(
            r#"select max(greatest(created_at, ended_at)) as "last: SqlTimestamp" from deliveries
                   where tenant_id = $1 and monitor_id = $2 and event_type = 'monitor.test'"#,
            tenant,
            id.uuid(),
        )
        .fetch_one(lock.conn())
        .await?,
        EndpointOwner::Channel(id) => sqlx::query_scalar!(
            r#"select max(greatest(created_at, ended_at)) as "last: SqlTimestamp" from deliveries
                   where tenant_id = $1 and channel_id = $2 and event_type = 'channel.test'"#,
            tenant,
            id.uuid(),
        )
        .fetch_one(lock.conn())
        .await?,
    };
    Ok(last.map(SqlTimestamp::to_jiff))
}

/// The type of a delivery; `None` if it does not exist.
pub(super) async fn event_type(
    lock: &mut EndpointLock<'_>,
    id: DeliveryId,
) -> sqlx::Result<Option<String>> {
    let event_type = sqlx::query_scalar!(
        "select event_type from deliveries where tenant_id = $1 and delivery_id = $2",
        lock.tenant().uuid(),
        id.uuid(),
    );
    event_type.fetch_optional(lock.conn()).await
}

/// Resets a delivery: pending, due now, with all tries left.
pub(super) async fn reset(lock: &mut EndpointLock<'_>, id: DeliveryId) -> sqlx::Result<()> {
    sqlx::query!(
        "update deliveries
         set status = 'pending', reason = null, failures = 0, lost = 0, due_at = clock_timestamp(), ended_at = null,
             is_held = false
         where tenant_id = $1 and delivery_id = $2",
        lock.tenant().uuid(),
        id.uuid(),
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}
