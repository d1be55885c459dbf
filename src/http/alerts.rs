//! `/v1/alerts`: alerts of monitors (monitors.md, rules 47 to 49).

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};

use serde_json::Value;

use super::AppState;
use super::auth::ApiKey;
use super::error::ApiError;
use super::extract::{self, QueryPairs};
use super::monitors::{monitor_id, no_such_monitor};
use super::openapi::ReadErrors;
use super::scans::{find_tenant, next_page_link, request_context};
use crate::contract::monitors::{Alert, AlertPage, AlertQuery, AlertsQuery, MonitorAlertsQuery};
use crate::ids::{AlertId, MonitorId, TenantId};
use crate::monitors::alerts::read as alerts;

fn no_such_alert() -> ApiError {
    ApiError::not_found("there is no such alert")
}

/// List alerts
///
/// Alerts of all monitors, newest first; those of one run strongest first. Deleting a monitor
/// deletes its alerts.
#[utoipa::path(
    get, path = "/v1/alerts", operation_id = "list_alerts", tag = "Monitors", params(AlertsQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = AlertPage), ReadErrors)
)]
pub(super) async fn list(
    State(app): State<AppState>,
    caller: ApiKey,
    pairs: QueryPairs,
) -> Result<Response, ApiError> {
    let context = request_context(&app, &caller)?;
    let query = AlertsQuery::from_query(pairs.iter())?;
    let page = match find_tenant(context).await? {
        Some(tenant) => {
            let page = alerts::alerts(context.pool, tenant, &query)
                .await?
                .ok_or_else(no_such_monitor)?;
            judged(
                &app,
                &caller,
                tenant,
                page,
                query.history_verdict_or_default(),
            )
            .await?
        }
        None if query.monitor_id.is_some() => return Err(no_such_monitor()),
        None => AlertPage::default(),
    };
    Ok((
        next_page_link("/v1/alerts", &pairs, page.next_cursor.as_deref()),
        Json(page),
    )
        .into_response())
}

/// The page with the verdicts on its prices, if they are asked for.
async fn judged(
    app: &AppState,
    caller: &ApiKey,
    tenant: TenantId,
    mut page: AlertPage,
    is_judged: bool,
) -> Result<AlertPage, ApiError> {
    if is_judged {
        let _permits = app.concurrency.heavy(&caller.key).await?;
        let pool = request_context(app, caller)?.pool;
        alerts::judge(pool, app.history_pool()?, tenant, &mut page.data).await?;
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
pub(super) async fn of_monitor(
    State(app): State<AppState>,
    caller: ApiKey,
    Path(id): Path<String>,
    pairs: QueryPairs,
) -> Result<Response, ApiError> {
    let context = request_context(&app, &caller)?;
    let query = MonitorAlertsQuery::from_query(pairs.iter())?;
    let id = monitor_id(&id)?;
    let tenant = find_tenant(context).await?.ok_or_else(no_such_monitor)?;
    let is_judged = query.history_verdict_or_default();
    let page = alerts::of_monitor(context.pool, tenant, id, query)
        .await?
        .ok_or_else(no_such_monitor)?;
    let page = judged(&app, &caller, tenant, page, is_judged).await?;
    Ok((
        next_page_link(
            &format!("/v1/monitors/{id}/alerts"),
            &pairs,
            page.next_cursor.as_deref(),
        ),
        Json(page),
    )
        .into_response())
}

/// Read an alert
///
/// With the values by which its rule fired.
#[utoipa::path(
    get, path = "/v1/alerts/{id}", operation_id = "get_alert", tag = "Monitors", params(("id" = AlertId, Path, description = "The alert"), AlertQuery),
    responses((status = 200, description = "The alert", body = Alert), ReadErrors)
)]
pub(super) async fn read(
    State(app): State<AppState>,
    caller: ApiKey,
    Path(id): Path<String>,
    pairs: QueryPairs,
) -> Result<Json<Value>, ApiError> {
    let context = request_context(&app, &caller)?;
    let query = AlertQuery::from_query(pairs.iter())?;
    let id = extract::parse_id("alert", &id)?;
    let tenant = find_tenant(context).await?.ok_or_else(no_such_alert)?;
    let alert = alerts::alert(context.pool, tenant, id)
        .await?
        .ok_or_else(no_such_alert)?;
    let page = AlertPage {
        data: vec![alert],
        next_cursor: None,
    };
    let is_judged = query.history_verdict_or_default();
    let mut page = judged(&app, &caller, tenant, page, is_judged).await?;
    page.data.pop().map(Json).ok_or_else(no_such_alert)
}
