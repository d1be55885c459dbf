//! `/v1/alerts`: alerts of monitors (monitors.md, rules 47 to 49).

use axum::Json;
use serde_json::Value;

use super::openapi::ReadErrors;
use farescan_core::app::api_request::{ApiRequest, find_tenant};
use farescan_core::app::error::ApiResult;
use farescan_core::contract::monitors::{
    Alert, AlertPage, AlertQuery, AlertsQuery, MonitorAlertsQuery,
};
use farescan_core::ids::{AlertId, Kind, MonitorId, TenantId};
use farescan_core::monitors::alerts::read as alerts;

/// List alerts
///
/// Alerts of all monitors, newest first; those of one run strongest first. Deleting a monitor
/// deletes its alerts.
#[utoipa::path(
    get, path = "/v1/alerts", operation_id = "list_alerts", tag = "Monitors", params(AlertsQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = AlertPage), ReadErrors)
)]
pub(super) async fn list(request: ApiRequest) -> ApiResult {
    let context = request.context()?;
    let query = AlertsQuery::from_query(request.pairs.iter())?;
    let page = match find_tenant(context).await? {
        Some(tenant) => {
            let page = alerts::alerts(context.pool, tenant, &query)
                .await?
                .ok_or(Kind::Monitor)?;
            judged(&request, tenant, page, query.history_verdict_or_default()).await?
        }
        None if query.monitor_id.is_some() => return Err(Kind::Monitor.into()),
        None => AlertPage::default(),
    };
    Ok(request.page(&page, page.next_cursor.as_deref()))
}

/// The page with the verdicts on its prices, if they are asked for.
async fn judged(
    request: &ApiRequest,
    tenant: TenantId,
    mut page: AlertPage,
    is_judged: bool,
) -> ApiResult<AlertPage> {
    if is_judged {
        let _permits = request.heavy_permits().await?;
        let (pool, history) = (request.context()?.pool, request.app.history_pool()?);
        alerts::judge(pool, history, tenant, &mut page.data).await?;
    }
    Ok(page)
}

/// List the alerts of a monitor
///
/// Newest first; those of one run strongest first.
#[utoipa::path(
    get, path = "/v1/monitors/{id}/alerts", operation_id = "list_monitor_alerts", tag = "Monitors",
    params(("id" = MonitorId, Path, description = "The monitor"), MonitorAlertsQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = AlertPage), ReadErrors)
)]
pub(super) async fn of_monitor(request: ApiRequest) -> ApiResult {
    let context = request.context()?;
    let query = MonitorAlertsQuery::from_query(request.pairs.iter())?;
    let (tenant, id) = request.owned::<MonitorId>().await?;
    let is_judged = query.history_verdict_or_default();
    let page = alerts::of_monitor(context.pool, tenant, id, query)
        .await?
        .ok_or(Kind::Monitor)?;
    let page = judged(&request, tenant, page, is_judged).await?;
    Ok(request.page(&page, page.next_cursor.as_deref()))
}

/// Read an alert
///
/// With the values by which its rule fired.
#[utoipa::path(
    get, path = "/v1/alerts/{id}", operation_id = "get_alert", tag = "Monitors", params(("id" = AlertId, Path, description = "The alert"), AlertQuery),
    responses((status = 200, description = "The alert", body = Alert), ReadErrors)
)]
pub(super) async fn read(request: ApiRequest) -> ApiResult<Json<Value>> {
    let context = request.context()?;
    let query = AlertQuery::from_query(request.pairs.iter())?;
    let (tenant, id) = request.owned::<AlertId>().await?;
    let alert = alerts::alert(context.pool, tenant, id)
        .await?
        .ok_or(Kind::Alert)?;
    let page = AlertPage {
        data: vec![alert],
        next_cursor: None,
    };
    let is_judged = query.history_verdict_or_default();
    let mut page = judged(&request, tenant, page, is_judged).await?;
    page.data.pop().map(Json).ok_or_else(|| Kind::Alert.into())
}
