//! Monitors and their slots in the API. The monitor of another tenant counts as not found.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff_sqlx::Timestamp as SqlTimestamp;
use serde_json::{Map, Value};
use sqlx::{PgConnection, PgPool};

use super::past_dates::without_past_dates;
use super::schedule::{Schedule, warnings};
use super::store::{self, MonitorFilter, MonitorRow, SlotRow, held};
pub use super::store::{MonitorConditions, Pauses, pauses};
use super::validate::run_request;
use super::{alerts, forecast};
use crate::channels;
use crate::commands::CommandError;
use crate::contract::monitors::Webhook;
use crate::contract::monitors::{
    HeldAlerts, Monitor, MonitorForecast, MonitorKey, MonitorPage, MonitorPause, MonitorRequests,
    MonitorSchedule, MonitorSlot, MonitorStatus, MonitorsQuery, SlotConfirmation, SlotJudgement,
    SlotKind, SlotPage, SlotsQuery,
};
use crate::ids::{MonitorId, TenantId};
use crate::notify::NotifyPlan;
use crate::paging::{self, PageError, limit_plus_one};
use crate::scans::plan::{earliest_today, plan, plan_blocking};
use crate::tenants::Keyring;
use crate::webhooks::endpoint;

const SLOTS: &str = "slots";

/// One monitor; `None` if it does not exist.
pub async fn monitor(
    pool: &PgPool,
    ring: &Keyring,
    tenant: TenantId,
    id: MonitorId,
    now: Timestamp,
) -> sqlx::Result<Option<Monitor>> {
    let found = find(&mut *pool.acquire().await?, ring, tenant, id, now).await?;
    let Some(mut monitor) = found else {
        return Ok(None);
    };
    monitor.forecast = current_forecast(pool, tenant, &monitor, now).await?;
    Ok(Some(monitor))
}

/// The webhook URL of a monitor; `None` if there is no such monitor, or it has none.
pub(super) async fn webhook_url(
    conn: &mut PgConnection,
    ring: &Keyring,
    tenant: TenantId,
    id: MonitorId,
    now: Timestamp,
) -> sqlx::Result<Option<String>> {
    let found = find(conn, ring, tenant, id, now).await?;
    Ok(found.and_then(|monitor| monitor.webhook_url))
}

/// Shows a monitor with this webhook URL. Stored responses have none: it may hold a secret.
pub(super) fn set_webhook_url(monitor: &mut Monitor, url: Option<&str>) {
    monitor.webhook_url = url.map(str::to_owned);
    if let Some(webhook) = &mut monitor.webhook {
        url.unwrap_or_default().clone_into(&mut webhook.url);
    }
}

/// The forecast of a monitor; `None` if its next run cannot be planned. Planning holds no
/// connection.
async fn current_forecast(
    pool: &PgPool,
    tenant: TenantId,
    monitor: &Monitor,
    now: Timestamp,
) -> sqlx::Result<Option<MonitorForecast>> {
    let Some(schedule) = Schedule::parse(&monitor.schedule.cron, &monitor.schedule.timezone) else {
        return Ok(None);
    };
    let slot = monitor
        .next_slot
        .or_else(|| schedule.after(now))
        .unwrap_or(now)
        .max(now);
    let Ok(scan) = monitor.scan.read::<Map<String, Value>>() else {
        return Ok(None);
    };
    let request = without_past_dates(run_request(&scan, &schedule, slot), earliest_today(slot));
    let plan = match plan_blocking(plan, request, slot).await {
        Ok(plan) => plan,
        Err(CommandError::Database(error)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let ceiling = monitor.requests.max_per_month;
    forecast::forecast(
        &mut *pool.acquire().await?,
        Some(tenant),
        &schedule,
        &plan,
        &monitor.alerts,
        ceiling,
        now,
    )
    .await
    .map(Some)
}

/// A monitor that this transaction has stored.
pub(super) async fn read_back(
    conn: &mut PgConnection,
    ring: &Keyring,
    tenant: TenantId,
    id: MonitorId,
    now: Timestamp,
) -> sqlx::Result<Monitor> {
    find(conn, ring, tenant, id, now)
        .await?
        .ok_or(sqlx::Error::RowNotFound)
}

async fn find(
    conn: &mut PgConnection,
    ring: &Keyring,
    tenant: TenantId,
    id: MonitorId,
    now: Timestamp,
) -> sqlx::Result<Option<Monitor>> {
    let Some(mut monitor) = by_ids(conn, ring, tenant, &[id], now).await?.pop() else {
        return Ok(None);
    };
    monitor.rule_standings = Some(alerts::rule_standings(conn, tenant, id, &monitor.alerts).await?);
    Ok(Some(monitor))
}

/// A page of a tenant's monitors, newest first.
///
/// # Errors
/// When the cursor belongs to another list, or the database fails.
pub async fn monitors(
    pool: &PgPool,
    ring: &Keyring,
    tenant: TenantId,
    query: &MonitorsQuery,
    now: Timestamp,
) -> Result<MonitorPage, PageError> {
    let limit = usize::from(query.limit_or_default().get());
    let page = MonitorFilter::List {
        query,
        before: paging::decode_id(query.cursor.as_ref())?,
        limit: limit_plus_one(limit),
    };
    let mut conn = pool.acquire().await?;
    let mut rows = store::monitor_rows(&mut conn, tenant, &page).await?;
    let next_cursor = paging::truncate_page(&mut rows, limit)
        .map(|last| paging::encode_id(MonitorId::from(last.monitor_id)));
    Ok(MonitorPage {
        data: to_monitors(&mut conn, ring, tenant, rows, now).await?,
        next_cursor,
    })
}

/// The newest monitors under some conditions, at most `limit`.
pub async fn monitors_where(
    pool: &PgPool,
    ring: &Keyring,
    tenant: TenantId,
    conditions: &MonitorConditions,
    limit: u16,
    now: Timestamp,
) -> sqlx::Result<Vec<Monitor>> {
    let limit = limit.into();
    let which = MonitorFilter::Where { conditions, limit };
    let mut conn = pool.acquire().await?;
    let rows = store::monitor_rows(&mut conn, tenant, &which).await?;
    to_monitors(&mut conn, ring, tenant, rows, now).await
}

/// All monitors whose name, airports or hotel contain each word of a text, in any case.
pub async fn ids_containing(
    pool: &PgPool,
    tenant: TenantId,
    text: &str,
) -> sqlx::Result<Vec<MonitorId>> {
    store::ids_containing(pool, tenant, text).await
}

/// The newest monitors that do not do what they are for, at most `limit`, and the number of all of
/// them. Their caller has not paused them: the key is refused, the last slot failed or was over the
/// monthly limit, or the webhook is off.
pub async fn failing(
    pool: &PgPool,
    ring: &Keyring,
    tenant: TenantId,
    limit: u16,
    now: Timestamp,
) -> sqlx::Result<(Vec<Monitor>, u64)> {
    let mut conn = pool.acquire().await?;
    let (ids, total) = store::failing(&mut conn, tenant, limit.into()).await?;
    if ids.is_empty() {
        return Ok((Vec::new(), 0));
    }
    Ok((by_ids(&mut conn, ring, tenant, &ids, now).await?, total))
}

/// The monitors of these ids that exist, newest first.
pub async fn by_ids(
    conn: &mut PgConnection,
    ring: &Keyring,
    tenant: TenantId,
    ids: &[MonitorId],
    now: Timestamp,
) -> sqlx::Result<Vec<Monitor>> {
    let rows = store::monitor_rows(conn, tenant, &MonitorFilter::Ids(ids)).await?;
    to_monitors(conn, ring, tenant, rows, now).await
}

/// A page of a monitor's slots, newest first; `None` if the monitor does not exist.
///
/// # Errors
/// When the cursor belongs to another list, or the database fails.
pub async fn slots(
    pool: &PgPool,
    tenant: TenantId,
    id: MonitorId,
    query: &SlotsQuery,
) -> Result<Option<SlotPage>, PageError> {
    let limit = usize::from(query.limit_or_default().get());
    let decode = |cursor| {
        let [slot, kind] = paging::decode_cursor(SLOTS, cursor)?;
        paging::cursor_time(&slot)
            .zip(SlotKind::parse(&kind))
            .ok_or_else(|| paging::invalid_cursor(cursor))
    };
    let before = query.cursor.as_ref().map(decode).transpose()?;
    let mut conn = pool.acquire().await?;
    if !store::monitor_exists(&mut conn, tenant, id).await? {
        return Ok(None);
    }
    let mut rows =
        store::slot_rows(&mut conn, tenant, id, query, before, limit_plus_one(limit)).await?;
    let next_cursor = paging::truncate_page(&mut rows, limit).map(|last| {
        let slot = last.slot.as_microsecond().to_string();
        paging::encode_cursor(SLOTS, [slot, last.kind.to_string()])
    });
    Ok(Some(SlotPage {
        data: rows.into_iter().map(MonitorSlot::from).collect(),
        next_cursor,
    }))
}

/// Converts rows, with one query for the requests of all of them.
async fn to_monitors(
    conn: &mut PgConnection,
    ring: &Keyring,
    tenant: TenantId,
    rows: Vec<MonitorRow>,
    now: Timestamp,
) -> sqlx::Result<Vec<Monitor>> {
    let month = |row: &MonitorRow| {
        let (begin, end) = Schedule::parse(&row.cron, &row.timezone)?.month(now);
        Some((row.monitor_id.into(), begin, end))
    };
    let months: Vec<_> = rows.iter().filter_map(month).collect();
    let spent: HashMap<_, _> = store::requests_spent(conn, tenant, &months)
        .await?
        .into_iter()
        .collect();
    let ids: Vec<_> = rows.iter().map(|row| row.monitor_id.into()).collect();
    let mut webhooks = endpoint::show_all(conn, ring, tenant, &ids, now).await?;
    let mut channels = channels::named_by(conn, tenant, &ids).await?;
    let monitor = |row: MonitorRow| {
        let named = channels.remove(&row.monitor_id.into());
        let monitor = to_monitor(row, &spent, &mut webhooks, now);
        Monitor {
            channels: named.unwrap_or_default(),
            ..monitor
        }
    };
    Ok(rows.into_iter().map(monitor).collect())
}

fn to_monitor(
    row: MonitorRow,
    spent: &HashMap<MonitorId, i64>,
    webhooks: &mut HashMap<MonitorId, Webhook>,
    now: Timestamp,
) -> Monitor {
    let id = MonitorId::from(row.monitor_id);
    let webhook = webhooks.remove(&id);
    let notify = held::settings(row.notify);
    let notify_at = row.notify_at.map(SqlTimestamp::to_jiff);
    let last = row.notified_for.map(SqlTimestamp::to_jiff);
    let next_digest_at = NotifyPlan::new(notify.as_ref(), &row.timezone)
        .filter(|_| webhook.is_some())
        .and_then(|plan| plan.next_digest(now, last))
        .map(|next| notify_at.map_or(next, |held| held.min(next)));
    let pause = row.pause.as_deref().and_then(MonitorPause::parse);
    let mut schedule_warnings = warnings::warnings(&row.cron, &row.timezone, now);
    if let Ok(scan) = serde_json::from_str(row.scan.0.get()) {
        schedule_warnings.extend(warnings::unreported_watch(&scan, Some(&row.rules)));
    }
    Monitor {
        id,
        name: row.name,
        schedule_warnings,
        schedule: MonitorSchedule {
            cron: row.cron,
            timezone: row.timezone,
        },
        scan: row.scan.0.into(),
        // The rules were validated when they were stored.
        alerts: serde_json::from_value(row.rules).unwrap_or_default(),
        rule_standings: None,
        webhook_url: webhook.as_ref().map(|webhook| webhook.url.clone()),
        webhook,
        webhook_secret: None,
        notify,
        next_digest_at,
        held: notify_at.map(|notify_at| HeldAlerts {
            fired: row.held_fired.unsigned_abs(),
            notify_at,
        }),
        channels: Vec::new(),
        status: if pause.is_some() {
            MonitorStatus::Paused
        } else {
            MonitorStatus::Active
        },
        status_reason: pause,
        next_slot: row.next_slot.map(SqlTimestamp::to_jiff),
        last_slot: row.last_slot.map(|last| last.0.into()),
        requests: MonitorRequests {
            this_month: spent
                .get(&id)
                .and_then(|spent| u64::try_from(*spent).ok())
                .unwrap_or_default(),
            max_per_month: row
                .max_requests_per_month
                .and_then(|max| u32::try_from(max).ok()),
        },
        key_custody: row.holds_key.then_some(MonitorKey { until: None }),
        forecast: None,
        created_at: row.created_at.to_jiff(),
        updated_at: row.updated_at.to_jiff(),
    }
}

impl From<SlotRow> for MonitorSlot {
    fn from(slot: SlotRow) -> Self {
        Self {
            slot: slot.slot,
            kind: slot.kind,
            outcome: slot.outcome,
            reason: slot.reason,
            scan_id: slot.scan_id.map(Into::into),
            decided_at: slot.decided_at,
            judged: slot.evaluated_at.map(|at| SlotJudgement {
                at,
                fired: slot.fired.unsigned_abs(),
                alerts: slot.alerts.unsigned_abs(),
                not_comparable: slot.not_comparable.unsigned_abs(),
                implausible: slot.implausible.unsigned_abs(),
                unconfirmed: slot.unconfirmed.unsigned_abs(),
            }),
            confirmation: slot.confirmation.map(|confirmation| SlotConfirmation {
                began_at: confirmation.began_at,
                items: confirmation.items().collect(),
            }),
        }
    }
}
