//! Monitors and their slots in the database. Every statement filters by tenant first, except the
//! tick's queries for due monitors. Here: a monitor's own row. Its slots are in `slots`, its held
//! alerts in `held`, the rows of API lists in `lists`.

pub(super) mod held;
mod lists;
mod slots;

use std::time::Duration;

use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx as _};
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

pub use lists::{MonitorConditions, Pauses, pauses};
pub(super) use lists::{
    MonitorFilter, MonitorRow, RunPriceRow, SlotRow, failing, ids_containing, monitor_exists,
    monitor_rows, run_prices, slot_rows,
};
pub(super) use slots::{
    Decision, FirstPrice, StoredConfirmation, UnevaluatedSlot, active_runs, has_later_run,
    last_decided, last_manual_slot, lock_unevaluated, record_confirmation, record_decisions,
    requests_spent, unevaluated_slots,
};

use crate::commands::CommandError;
use crate::contract::monitors::MonitorRequest;
use crate::contract::{Api, FieldValue};
use crate::ids::{GrantId, Kind, MonitorId, TenantId};
use crate::webhooks::{LockFor, MonitorLock};

/// The columns of a monitor to insert or update.
pub(super) struct MonitorColumns<'a> {
    name: &'a str,
    cron: &'a str,
    timezone: &'a str,
    scan: Value,
    api: Api,
    rules: Value,
    pub(super) notify: Option<Value>,
    max_requests_per_month: Option<i32>,
    next_slot: Option<Timestamp>,
}

impl<'a> MonitorColumns<'a> {
    /// Without `next_slot` the schedule has no more slots.
    pub(super) fn new(request: &'a MonitorRequest, api: Api, next_slot: Option<Timestamp>) -> Self {
        let rules = request.rules().iter().map(FieldValue::to_value);
        let ceiling = request.max_requests_per_month;
        Self {
            name: request.name.as_str(),
            cron: request.schedule.cron.as_str(),
            timezone: request.schedule.timezone.as_str(),
            scan: request.scan.to_value(),
            api,
            rules: rules.collect(),
            notify: request.notify.as_ref().map(FieldValue::to_value),
            max_requests_per_month: ceiling.and_then(|max| i32::try_from(max.get()).ok()),
            next_slot,
        }
    }
}

pub(super) async fn count(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select count(*) as "count!" from monitors where tenant_id = $1"#,
        tenant.uuid()
    )
    .fetch_one(conn)
    .await
}

pub(super) async fn insert(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    columns: &MonitorColumns<'_>,
    grant: GrantId,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into monitors (tenant_id, monitor_id, name, cron, timezone, scan, api, rules, max_requests_per_month, next_slot, grant_id,
                               created_at, updated_at, notify)
         values ($1, $2, $3, $4, $5, $6::text::json, $7, $8::text::json, $9, $10, $11, $12, $12, $13::text::json)",
        tenant.uuid(),
        id.uuid(),
        columns.name,
        columns.cron,
        columns.timezone,
        columns.scan.to_string(),
        columns.api.as_str(),
        columns.rules.to_string(),
        columns.max_requests_per_month,
        columns.next_slot.map(|slot| slot.to_sqlx()) as _,
        grant.uuid(),
        now.to_sqlx() as _,
        columns.notify.as_ref().map(Value::to_string),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Updates a monitor, under its lock.
pub(super) async fn update(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    columns: &MonitorColumns<'_>,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update monitors
         set name = $3, cron = $4, timezone = $5, scan = $6::text::json, api = $7, rules = $8::text::json, max_requests_per_month = $9,
             next_slot = $10, updated_at = $11, notify = $12::text::json
         where tenant_id = $1 and monitor_id = $2",
        tenant.uuid(),
        id.uuid(),
        columns.name,
        columns.cron,
        columns.timezone,
        columns.scan.to_string(),
        columns.api.as_str(),
        columns.rules.to_string(),
        columns.max_requests_per_month,
        columns.next_slot.map(|slot| slot.to_sqlx()) as _,
        now.to_sqlx() as _,
        columns.notify.as_ref().map(Value::to_string),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The row of a locked monitor.
pub(super) struct LockedMonitor {
    pub(super) name: String,
    pub(super) cron: String,
    pub(super) timezone: String,
    pub(super) scan: Value,
    pub(super) api: Api,
    pub(super) rules: Value,
    pub(super) notify: Option<Value>,
    pub(super) max_requests_per_month: Option<i32>,
    pub(super) paused: bool,
    pub(super) next_slot: Option<SqlTimestamp>,
    /// What its due slot waits for, if a pass has deferred it.
    pub(super) waits_for: Option<String>,
    pub(super) grant_id: Uuid,
    pub(super) updated_at: SqlTimestamp,
}

/// Locks a monitor and reads its row; `NotFound` if there is none.
pub(super) async fn lock(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    purpose: LockFor,
) -> Result<(MonitorLock<'_>, LockedMonitor), CommandError> {
    let lock = MonitorLock::acquire(conn, tenant, id, purpose).await?;
    let mut lock = lock.ok_or(Kind::Monitor)?;
    let row = locked(&mut lock, None).await?;
    Ok((lock, row.ok_or(Kind::Monitor)?))
}

/// Locks a due monitor without waiting. `None` if its slot was decided meanwhile or another process
/// holds the lock.
pub(super) async fn lock_due(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    now: Timestamp,
) -> sqlx::Result<Option<(MonitorLock<'_>, LockedMonitor)>> {
    let Some(mut lock) = MonitorLock::try_acquire(conn, tenant, id).await? else {
        return Ok(None);
    };
    let row = locked(&mut lock, Some(now)).await?;
    Ok(row.map(|row| (lock, row)))
}

/// The row of a monitor that is locked already.
pub(super) async fn locked_row(lock: &mut MonitorLock<'_>) -> sqlx::Result<LockedMonitor> {
    locked(lock, None).await?.ok_or(sqlx::Error::RowNotFound)
}

/// The row; with `due_at`, only if its slot is due at that time.
async fn locked(
    lock: &mut MonitorLock<'_>,
    due_at: Option<Timestamp>,
) -> sqlx::Result<Option<LockedMonitor>> {
    sqlx::query_as!(
        LockedMonitor,
        r#"select name, cron, timezone, scan, api, rules, notify, max_requests_per_month, paused, next_slot,
                  case when not_before is not null then coalesce(waits_for, 'limit') end as waits_for, grant_id, updated_at
           from monitors
           where tenant_id = $1 and monitor_id = $2
             and ($3::timestamptz is null or next_slot is not null and greatest(next_slot, not_before) <= $3)"#,
        lock.tenant().uuid(),
        lock.monitor().uuid(),
        due_at.map(|time| time.to_sqlx()) as _,
    )
    .fetch_optional(lock.conn())
    .await
}

/// Monitors with a due slot, the longest waiting first.
pub(super) async fn due_monitors(
    pool: &PgPool,
    now: Timestamp,
    limit: i64,
) -> sqlx::Result<Vec<(TenantId, MonitorId)>> {
    let rows = sqlx::query!(
        "select tenant_id, monitor_id from monitors where next_slot is not null and greatest(next_slot, not_before) <= $1
         order by greatest(next_slot, not_before) limit $2",
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

/// When the next monitor is due.
pub(super) async fn next_due_at(pool: &PgPool) -> sqlx::Result<Option<Timestamp>> {
    let next = sqlx::query_scalar!(
        r#"select min(greatest(next_slot, not_before)) as "next: SqlTimestamp" from monitors where next_slot is not null"#
    );
    Ok(next.fetch_one(pool).await?.map(SqlTimestamp::to_jiff))
}

/// What a due slot waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// The tenant is at its limit of unfinished work.
    TenantLimit,
    /// The previous run, which was interrupted while the service was down.
    PreviousRun,
}

impl WaitsFor {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::TenantLimit => "limit",
            Self::PreviousRun => "run",
        }
    }

    pub(super) fn parse(word: &str) -> Self {
        if word == Self::PreviousRun.as_str() {
            Self::PreviousRun
        } else {
            Self::TenantLimit
        }
    }
}

/// Sets the next slot to decide; `waits` defers it until a later time.
pub(super) async fn set_next_slot(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    next: Option<Timestamp>,
    waits: Option<(WaitsFor, Timestamp)>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update monitors set next_slot = $3, not_before = $4, waits_for = $5 where tenant_id = $1 and monitor_id = $2",
        tenant.uuid(),
        id.uuid(),
        next.map(|slot| slot.to_sqlx()) as _,
        waits.map(|(_, until)| until.to_sqlx()) as _,
        waits.map(|(what, _)| what.as_str()),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Pauses or resumes a monitor.
pub(super) async fn set_paused(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    paused: bool,
    next: Option<Timestamp>,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update monitors set paused = $3, next_slot = $4, not_before = null, updated_at = $5 where tenant_id = $1 and monitor_id = $2",
        tenant.uuid(),
        id.uuid(),
        paused,
        next.map(|slot| slot.to_sqlx()) as _,
        now.to_sqlx() as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes a monitor with its slots, its key and its idempotency records. Its scans stay.
pub(super) async fn delete(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    grant: GrantId,
) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from monitors where tenant_id = $1 and monitor_id = $2",
        tenant.uuid(),
        id.uuid()
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from key_grants where tenant_id = $1 and grant_id = $2",
        tenant.uuid(),
        grant.uuid()
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from idempotency_keys where tenant_id = $1 and starts_with(path, $2)",
        tenant.uuid(),
        format!("/v1/monitors/{id}/"),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The requests that the tenant's plan leaves to scans, if more will be there only after `longest_wait`;
/// `None`: nothing is known that limits them.
pub(super) async fn plan_left(
    conn: &mut PgConnection,
    tenant: TenantId,
    api: Api,
    longest_wait: Duration,
) -> sqlx::Result<Option<u32>> {
    let left = sqlx::query_scalar!(
        r#"select plan_remaining - keep_in_reserve as "left!" from lanes
           where tenant_id = $1 and api = $2 and plan_remaining is not null
             and beyond_quota_until > clock_timestamp() is not true
             and coalesce(plan_reset_at, 'infinity') > clock_timestamp() + make_interval(secs => $3::float8)"#,
        tenant.uuid(),
        api.as_str(),
        longest_wait.as_secs_f64(),
    );
    let left = left.fetch_optional(conn).await?;
    Ok(left.map(|left| u32::try_from(left.max(0)).unwrap_or(u32::MAX)))
}

/// Why the tenant's lane waits, if it waits for a valid key, or for anything longer than
/// `longest_wait`.
pub(super) async fn lane_refusal(
    conn: &mut PgConnection,
    tenant: TenantId,
    api: Api,
    longest_wait: Option<Duration>,
) -> sqlx::Result<Option<String>> {
    let reason = sqlx::query_scalar!(
        "select pause_reason from lanes
         where tenant_id = $1 and api = $2 and paused_until > clock_timestamp()
           and (pause_reason in ('key_rejected', 'not_subscribed')
                or paused_until > clock_timestamp() + make_interval(secs => $3::float8))",
        tenant.uuid(),
        api.as_str(),
        longest_wait.map(|wait| wait.as_secs_f64()),
    );
    Ok(reason.fetch_optional(conn).await?.flatten())
}
