//! Alerts as their caller sees them. Another caller's id is the same as one that never was: `None`.

use jiff::Timestamp;
use serde_json::Value;
use sqlx::PgPool;

use super::store;
use crate::contract::Faults;
use crate::contract::monitors::{AlertPage, AlertsQuery, MonitorAlertsQuery};
use crate::contract::primitives::Cursor;
use crate::ids::{AlertId, MonitorId, TenantId};
use crate::monitors::store::is_there;
use crate::paging::{self, PageError, one_more_than};

const ALERTS: &str = "alerts";

/// A page of a caller's alerts, newest first; those of one run the strongest first. `None`: there is no such monitor.
///
/// # Errors
/// When the cursor is none of this list's, or the database does not answer.
pub async fn alerts(
    pool: &PgPool,
    tenant: TenantId,
    query: &AlertsQuery,
) -> Result<Option<AlertPage>, PageError> {
    if let Some(monitor) = query.monitor_id
        && !is_there(&mut *pool.acquire().await?, tenant, monitor).await?
    {
        return Ok(None);
    }
    let limit = usize::from(query.limit_or_default().get());
    let before = query.cursor.as_ref().map(place).transpose()?;
    let mut rows = store::list(pool, tenant, query, before, one_more_than(limit)).await?;
    let next_cursor = paging::cut(&mut rows, limit).map(|(fired_at, id, _)| cursor(*fired_at, *id));
    Ok(Some(AlertPage {
        data: rows.into_iter().map(|(.., alert)| alert).collect(),
        next_cursor,
    }))
}

/// The same of one monitor; `None`: there is no such monitor.
///
/// # Errors
/// When the cursor is none of this list's, or the database does not answer.
pub async fn of_monitor(
    pool: &PgPool,
    tenant: TenantId,
    monitor: MonitorId,
    query: MonitorAlertsQuery,
) -> Result<Option<AlertPage>, PageError> {
    alerts(pool, tenant, &query.of(monitor)).await
}

fn cursor(fired_at: Timestamp, id: AlertId) -> String {
    paging::after(
        ALERTS,
        [fired_at.as_microsecond().to_string(), id.to_string()],
    )
}

fn place(cursor: &Cursor) -> Result<(Timestamp, AlertId), Faults> {
    let [fired_at, id] = paging::read(ALERTS, cursor)?;
    let fired_at = fired_at
        .parse()
        .ok()
        .and_then(|micros| Timestamp::from_microsecond(micros).ok());
    fired_at
        .zip(id.parse().ok())
        .ok_or_else(|| paging::refused(cursor))
}

/// One alert, a [`contract::monitors::Alert`](crate::contract::monitors::Alert) as it was put on record.
///
/// # Errors
/// When the database does not answer.
pub async fn alert(pool: &PgPool, tenant: TenantId, id: AlertId) -> sqlx::Result<Option<Value>> {
    store::one(pool, tenant, id).await
}
