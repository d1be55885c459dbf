//! A caller's word over a monitor: run, pause, resume, delete.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::monitor_id;
use crate::contract::monitors::Monitor;
use crate::contract::scans::Scan;
use crate::http::AppState;
use crate::http::auth::Caller;
use crate::http::docs::{IdempotencyHeader, MonitorErrors, ReadErrors, WordErrors};
use crate::http::error::ApiError;
use crate::http::extract::NoBody;
use crate::http::scans::{accepted, desk, idempotency_key, once};
use crate::ids::MonitorId;
use crate::monitors::control;

/// Run a monitor now
///
/// Its scan is made with the key of this request, whatever the schedule says, also while the monitor is paused. Refused while a run of it
/// has not ended.
#[utoipa::path(
    post, path = "/v1/monitors/{id}/run", operation_id = "run_monitor", tag = "Monitors",
    params(
        ("id" = MonitorId, Path, description = "The monitor"),
        IdempotencyHeader
    ),
    responses((status = 202, description = "The scan; `Location` names it", body = Scan), MonitorErrors)
)]
pub(in crate::http) async fn run(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    NoBody: NoBody,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let key = idempotency_key(&headers)?;
    let answered =
        control::run::run(desk, &app.custody()?.pace, monitor_id(&id)?, key.as_ref()).await?;
    Ok(accepted(answered.answer.id, &answered))
}

/// Pause a monitor
///
/// After this answer no slot of it makes a scan, and its key is destroyed; a run that is underway goes on. Again is fine.
#[utoipa::path(
    post, path = "/v1/monitors/{id}/pause", operation_id = "pause_monitor", tag = "Monitors", params(("id" = MonitorId, Path, description = "The monitor")),
    responses((status = 200, description = "The monitor", body = Monitor), WordErrors)
)]
pub(in crate::http) async fn pause(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    NoBody: NoBody,
) -> Result<Json<Monitor>, ApiError> {
    let desk = desk(&app, &caller)?;
    Ok(Json(control::pause::pause(desk, monitor_id(&id)?).await?))
}

/// Resume a monitor
///
/// It goes on with the key of this request, from its next slot on: what the pause skipped is not caught up. A lane that was stopped
/// because its key was rejected, not subscribed or out of quota goes on too. Again is fine.
#[utoipa::path(
    post, path = "/v1/monitors/{id}/resume", operation_id = "resume_monitor", tag = "Monitors",
    params(
        ("id" = MonitorId, Path, description = "The monitor"),
        IdempotencyHeader
    ),
    responses((status = 200, description = "The monitor", body = Monitor), MonitorErrors)
)]
pub(in crate::http) async fn resume(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    NoBody: NoBody,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let key = idempotency_key(&headers)?;
    let answered =
        control::resume::resume(desk, &app.custody()?.pace, monitor_id(&id)?, key.as_ref()).await?;
    Ok(once(&answered).into_response())
}

/// Delete a monitor
///
/// With its slots and its key. The scans that it made stay, and one that is underway goes on.
#[utoipa::path(
    delete, path = "/v1/monitors/{id}", operation_id = "delete_monitor", tag = "Monitors", params(("id" = MonitorId, Path, description = "The monitor")),
    responses((status = 204, description = "It is gone"), ReadErrors)
)]
pub(in crate::http) async fn delete(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let desk = desk(&app, &caller)?;
    control::delete::delete(desk, monitor_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
