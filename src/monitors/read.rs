//! Monitors and their slots as their caller sees them. An id of another caller is the same as one that never was.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff_sqlx::Timestamp as SqlTimestamp;
use serde_json::{Map, Value};
use sqlx::{PgConnection, PgPool};

use super::order::order;
use super::passed::without_passed;
use super::schedule::{Schedule, warn};
use super::store::{self, LastSlot, MonitorRow, SlotRow, Which};
use super::{alerts, forecast};
use crate::contract::monitors::{
    Monitor, MonitorForecast, MonitorKey, MonitorPage, MonitorPause, MonitorRequests,
    MonitorSchedule, MonitorSlot, MonitorStatus, MonitorsQuery, SlotJudgement, SlotKind,
    SlotOutcome, SlotPage, SlotsQuery,
};
use crate::contract::webhooks::Webhook;
use crate::ids::{MonitorId, TenantId};
use crate::paging::{self, PageError, one_more_than};
use crate::scans::ScanError;
use crate::scans::plan::earliest_today;
use crate::scans::submit::planned;
use crate::webhooks::endpoint;

const MONITORS: &str = "monitors";
const SLOTS: &str = "slots";

/// One monitor; `None`: there is none.
///
/// # Errors
/// When the database does not answer.
pub async fn monitor(
    pool: &PgPool,
    tenant: TenantId,
    id: MonitorId,
    now: Timestamp,
) -> sqlx::Result<Option<Monitor>> {
    let found = one(&mut *pool.acquire().await?, tenant, id, now).await?;
    let Some(mut monitor) = found else {
        return Ok(None);
    };
    monitor.forecast = forecast_of(pool, tenant, &monitor, now).await?;
    Ok(Some(monitor))
}

/// What a month of it takes as it stands; `None` where its next run could not be made. No connection waits while the run is planned.
async fn forecast_of(
    pool: &PgPool,
    tenant: TenantId,
    monitor: &Monitor,
    now: Timestamp,
) -> sqlx::Result<Option<MonitorForecast>> {
    let Some(schedule) = Schedule::read(&monitor.schedule.cron, &monitor.schedule.timezone) else {
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
    let order = without_passed(order(&scan, &schedule, slot), earliest_today(slot));
    let plan = match planned(order, slot).await {
        Ok(plan) => plan,
        Err(ScanError::Database(error)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let ceiling = monitor.requests.max_per_month;
    forecast::forecast(
        &mut *pool.acquire().await?,
        Some(tenant),
        &schedule,
        &plan,
        ceiling,
        now,
    )
    .await
    .map(Some)
}

/// The monitor that was stored just now.
pub(super) async fn stored(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    now: Timestamp,
) -> sqlx::Result<Monitor> {
    one(conn, tenant, id, now)
        .await?
        .ok_or(sqlx::Error::RowNotFound)
}

async fn one(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    now: Timestamp,
) -> sqlx::Result<Option<Monitor>> {
    let rows = store::shown(conn, tenant, &Which::One(id)).await?;
    let Some(mut monitor) = monitors_of(conn, tenant, rows, now).await?.pop() else {
        return Ok(None);
    };
    monitor.rule_standings = Some(alerts::standing(conn, tenant, id, &monitor.alerts).await?);
    Ok(Some(monitor))
}

/// A page of a caller's monitors, newest first.
///
/// # Errors
/// When the cursor is none of this list's, or the database does not answer.
pub async fn monitors(
    pool: &PgPool,
    tenant: TenantId,
    query: &MonitorsQuery,
    now: Timestamp,
) -> Result<MonitorPage, PageError> {
    let limit = usize::from(query.limit_or_default().get());
    let before = match &query.cursor {
        None => None,
        Some(cursor) => {
            let [id] = paging::read(MONITORS, cursor)?;
            Some(
                id.parse::<MonitorId>()
                    .map_err(|_| paging::refused(cursor))?,
            )
        }
    };
    let mut conn = pool.acquire().await?;
    let mut rows = store::shown(
        &mut conn,
        tenant,
        &Which::List {
            query,
            before,
            most: one_more_than(limit),
        },
    )
    .await?;
    let next_cursor = paging::cut(&mut rows, limit)
        .map(|last| paging::after(MONITORS, [MonitorId::from(last.monitor_id).to_string()]));
    Ok(MonitorPage {
        data: monitors_of(&mut conn, tenant, rows, now).await?,
        next_cursor,
    })
}

/// A page of a monitor's slots, newest first; `None`: there is no such monitor.
///
/// # Errors
/// When the cursor is none of this list's, or the database does not answer.
pub async fn slots(
    pool: &PgPool,
    tenant: TenantId,
    id: MonitorId,
    query: &SlotsQuery,
) -> Result<Option<SlotPage>, PageError> {
    let limit = usize::from(query.limit_or_default().get());
    let before = match &query.cursor {
        None => None,
        Some(cursor) => {
            let refused = || paging::refused(cursor);
            let [slot, kind] = paging::read(SLOTS, cursor)?;
            let slot = slot
                .parse()
                .ok()
                .and_then(|micros| Timestamp::from_microsecond(micros).ok())
                .ok_or_else(refused)?;
            Some((slot, SlotKind::parse(&kind).ok_or_else(refused)?))
        }
    };
    let mut conn = pool.acquire().await?;
    if !store::is_there(&mut conn, tenant, id).await? {
        return Ok(None);
    }
    let mut rows = store::slots(&mut conn, tenant, id, query, before, one_more_than(limit)).await?;
    let next_cursor = paging::cut(&mut rows, limit).map(|last| {
        paging::after(
            SLOTS,
            [
                last.slot.to_jiff().as_microsecond().to_string(),
                last.kind.clone(),
            ],
        )
    });
    Ok(Some(SlotPage {
        data: rows.into_iter().map(MonitorSlot::from).collect(),
        next_cursor,
    }))
}

/// What each has spent this month is added up for all of them at once.
async fn monitors_of(
    conn: &mut PgConnection,
    tenant: TenantId,
    rows: Vec<MonitorRow>,
    now: Timestamp,
) -> sqlx::Result<Vec<Monitor>> {
    let month = |row: &MonitorRow| {
        let (begin, end) = Schedule::read(&row.cron, &row.timezone)?.month(now);
        Some((row.monitor_id.into(), begin, end))
    };
    let months: Vec<_> = rows.iter().filter_map(month).collect();
    let spent: HashMap<_, _> = store::spent(conn, tenant, &months)
        .await?
        .into_iter()
        .collect();
    let ids: Vec<_> = rows.iter().map(|row| row.monitor_id.into()).collect();
    let mut webhooks = endpoint::show_all(conn, tenant, &ids).await?;
    Ok(rows
        .into_iter()
        .map(|row| shown(row, &spent, &mut webhooks, now))
        .collect())
}

fn shown(
    row: MonitorRow,
    spent: &HashMap<MonitorId, i64>,
    webhooks: &mut HashMap<MonitorId, Webhook>,
    now: Timestamp,
) -> Monitor {
    let id = MonitorId::from(row.monitor_id);
    let webhook = webhooks.remove(&id);
    let pause = row.pause.as_deref().and_then(MonitorPause::parse);
    Monitor {
        id,
        name: row.name,
        schedule_warnings: warn::warnings(&row.cron, &row.timezone, now),
        schedule: MonitorSchedule {
            cron: row.cron,
            timezone: row.timezone,
        },
        scan: row.scan.0.into(),
        // They were read when they were stored.
        alerts: serde_json::from_value(row.rules).unwrap_or_default(),
        rule_standings: None,
        webhook_url: webhook.as_ref().map(|webhook| webhook.url.clone()),
        webhook,
        webhook_secret: None,
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

impl From<LastSlot> for MonitorSlot {
    fn from(slot: LastSlot) -> Self {
        Self {
            slot: slot.slot,
            kind: SlotKind::parse(&slot.kind).unwrap_or(SlotKind::Schedule),
            outcome: SlotOutcome::parse(&slot.outcome).unwrap_or(SlotOutcome::Failed),
            reason: slot.reason,
            scan_id: slot.scan_id.map(Into::into),
            decided_at: slot.decided_at,
            judged: slot.judged_at.map(|at| SlotJudgement {
                at,
                fired: slot.fired.unsigned_abs(),
                alerts: slot.alerts.unsigned_abs(),
                not_comparable: slot.not_comparable.unsigned_abs(),
            }),
        }
    }
}

impl From<SlotRow> for MonitorSlot {
    fn from(row: SlotRow) -> Self {
        let SlotRow {
            slot,
            kind,
            outcome,
            reason,
            scan_id,
            decided_at,
            judged_at,
            fired,
            alerts,
            not_comparable,
        } = row;
        let (slot, decided_at, judged_at) = (
            slot.to_jiff(),
            decided_at.to_jiff(),
            judged_at.map(SqlTimestamp::to_jiff),
        );
        LastSlot {
            slot,
            kind,
            outcome,
            reason,
            scan_id,
            decided_at,
            judged_at,
            fired,
            alerts,
            not_comparable,
        }
        .into()
    }
}
