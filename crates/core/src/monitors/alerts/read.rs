//! Alerts in the API. The alert or monitor of another tenant counts as not found: `None`.

use jiff::Timestamp;
use serde_json::Value;
use sqlx::PgPool;

use super::store;
use crate::contract::ValidationErrors;
use crate::contract::monitors::{Alert, AlertPage, AlertsQuery, MonitorAlertsQuery};
use crate::contract::primitives::Cursor;
use crate::ids::{AlertId, Kind, MonitorId, TenantId};
use crate::monitors::store::monitor_exists;
use crate::paging::{self, PageError, limit_plus_one};
use crate::scans::read::{FoundPrice, judge_prices};

const ALERTS: &str = Kind::Alert.plural();

/// A page of a tenant's alerts, newest first, those of one run the strongest first. `None` if the
/// monitor does not exist.
///
/// # Errors
/// When the cursor belongs to another list, or the database fails.
pub async fn alerts(
    pool: &PgPool,
    tenant: TenantId,
    query: &AlertsQuery,
) -> Result<Option<AlertPage>, PageError> {
    let limit = usize::from(query.limit_or_default().get());
    let before = query.cursor.as_ref().map(decode_cursor).transpose()?;
    let mut rows =
        store::list_alerts(pool, tenant, query, None, before, limit_plus_one(limit)).await?;
    // Alerts are deleted with their monitor.
    if rows.is_empty()
        && let Some(monitor) = query.monitor_id
        && !monitor_exists(&mut *pool.acquire().await?, tenant, monitor).await?
    {
        return Ok(None);
    }
    let next_cursor = paging::truncate_page(&mut rows, limit)
        .map(|(fired_at, id, _)| encode_cursor(*fired_at, *id));
    Ok(Some(AlertPage {
        data: rows.into_iter().map(|(.., alert)| alert).collect(),
        next_cursor,
    }))
}

/// The newest alerts of all monitors or of some, before one: for a list that has other rows as well.
pub async fn alerts_before(
    pool: &PgPool,
    tenant: TenantId,
    query: &AlertsQuery,
    of: Option<&[MonitorId]>,
    before: Option<(Timestamp, AlertId)>,
    limit: i64,
) -> sqlx::Result<Vec<(Timestamp, AlertId, Value)>> {
    store::list_alerts(pool, tenant, query, of, before, limit).await
}

/// Adds the verdict from the caller's own history to alerts about a price that lack it
/// (monitors.md, rule 79). The history is read from `history`, the primary database or its replica.
pub async fn judge(
    pool: &PgPool,
    history: &PgPool,
    tenant: TenantId,
    alerts: &mut [Value],
) -> sqlx::Result<()> {
    let found = |alert: &Value| {
        let alert = serde_json::from_value::<Alert>(alert.clone()).ok()?;
        let is_known = alert.history_verdict.is_some();
        (!is_known).then_some(FoundPrice {
            item: alert.item_id?,
            price: alert.price?,
            currency: alert.currency?,
            at: alert.observed_at?,
        })
    };
    let found: Vec<_> = alerts.iter().map(found).collect();
    let prices: Vec<_> = found.iter().flatten().cloned().collect();
    let verdicts = judge_prices(pool, history, tenant, &prices).await?;
    for (alert, found) in alerts.iter_mut().zip(found) {
        let verdict = found.and_then(|found| verdicts.get(&found.item));
        if let (Some(verdict), Some(alert)) = (verdict, alert.as_object_mut()) {
            let verdict = serde_json::to_value(verdict);
            let verdict = verdict.map_err(|error| sqlx::Error::Encode(error.into()))?;
            alert.insert("history_verdict".to_owned(), verdict);
        }
    }
    Ok(())
}

/// A page of one monitor's alerts; `None` if the monitor does not exist.
///
/// # Errors
/// When the cursor belongs to another list, or the database fails.
pub async fn of_monitor(
    pool: &PgPool,
    tenant: TenantId,
    monitor: MonitorId,
    query: MonitorAlertsQuery,
) -> Result<Option<AlertPage>, PageError> {
    alerts(pool, tenant, &query.for_monitor(monitor)).await
}

fn encode_cursor(fired_at: Timestamp, id: AlertId) -> String {
    paging::encode_cursor(
        ALERTS,
        [fired_at.as_microsecond().to_string(), id.to_string()],
    )
}

fn decode_cursor(cursor: &Cursor) -> Result<(Timestamp, AlertId), ValidationErrors> {
    let [fired_at, id] = paging::decode_cursor(ALERTS, cursor)?;
    paging::cursor_time(&fired_at)
        .zip(id.parse().ok())
        .ok_or_else(|| paging::invalid_cursor(cursor))
}

/// One alert, a stored [`contract::monitors::Alert`](crate::contract::monitors::Alert).
pub async fn alert(pool: &PgPool, tenant: TenantId, id: AlertId) -> sqlx::Result<Option<Value>> {
    store::find_alert(pool, tenant, id).await
}
