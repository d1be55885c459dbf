//! `/v1/alerts`: what the rules of monitors have told (jobs-api, "Monitors").

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};

use serde_json::Value;

use super::AppState;
use super::auth::Caller;
use super::docs::ReadErrors;
use super::error::ApiError;
use super::extract::{self, Pairs};
use super::monitors::{monitor_id, no_such_monitor};
use super::scans::{desk, next_page, tenant};
use crate::contract::monitors::{Alert, AlertPage, AlertsQuery, MonitorAlertsQuery};
use crate::ids::{AlertId, MonitorId};
use crate::monitors::alerts::read as look;

fn no_such_alert() -> ApiError {
    ApiError::not_found("there is no such alert")
}

/// List alerts
///
/// Of all monitors, newest first; those of one run the strongest first. An alert goes with its monitor.
#[utoipa::path(
    get, path = "/v1/alerts", operation_id = "list_alerts", tag = "Monitors", params(AlertsQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = AlertPage), ReadErrors)
)]
pub(super) async fn list(
    State(app): State<AppState>,
    caller: Caller,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let query = AlertsQuery::from_query(pairs.iter())?;
    let page = match tenant(desk).await? {
        Some(tenant) => look::alerts(desk.pool, tenant, &query)
            .await?
            .ok_or_else(no_such_monitor)?,
        None if query.monitor_id.is_some() => return Err(no_such_monitor()),
        None => AlertPage {
            data: Vec::new(),
            next_cursor: None,
        },
    };
    Ok((
        next_page("/v1/alerts", &pairs, page.next_cursor.as_deref()),
        Json(page),
    )
        .into_response())
}

/// List the alerts of a monitor
///
/// Newest first; those of one run the strongest first.
#[utoipa::path(
    get, path = "/v1/monitors/{id}/alerts", operation_id = "list_monitor_alerts", tag = "Monitors",
    params(("id" = MonitorId, Path, description = "The monitor"), MonitorAlertsQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = AlertPage), ReadErrors)
)]
pub(super) async fn of_monitor(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let query = MonitorAlertsQuery::from_query(pairs.iter())?;
    let id = monitor_id(&id)?;
    let tenant = tenant(desk).await?.ok_or_else(no_such_monitor)?;
    let page = look::of_monitor(desk.pool, tenant, id, query)
        .await?
        .ok_or_else(no_such_monitor)?;
    Ok((
        next_page(
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
/// What its rule went by when it fired.
#[utoipa::path(
    get, path = "/v1/alerts/{id}", operation_id = "get_alert", tag = "Monitors", params(("id" = AlertId, Path, description = "The alert")),
    responses((status = 200, description = "The alert", body = Alert), ReadErrors)
)]
pub(super) async fn read(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let desk = desk(&app, &caller)?;
    let id = extract::id("alert", &id)?;
    let tenant = tenant(desk).await?.ok_or_else(no_such_alert)?;
    look::alert(desk.pool, tenant, id)
        .await?
        .map(Json)
        .ok_or_else(no_such_alert)
}
