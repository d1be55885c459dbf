//! Commands on a monitor: run, pause, resume, delete.

use axum::Json;
use axum::http::StatusCode;

use crate::openapi::{CommandErrors, IdempotencyHeader, MonitorErrors, ReadErrors};
use farescan_core::app::api_request::{ApiRequest, accepted_response, replayable_response};
use farescan_core::app::error::ApiResult;
use farescan_core::app::extract::NoBody;
use farescan_core::contract::monitors::Monitor;
use farescan_core::contract::scans::Scan;
use farescan_core::ids::MonitorId;
use farescan_core::monitors::control;

/// Run a monitor now
///
/// Submits its scan with the key of this request, regardless of the schedule, also while the
/// monitor is paused. Rejected while a run has not ended.
#[utoipa::path(
    post, path = "/v1/monitors/{id}/run", operation_id = "run_monitor", tag = "Monitors",
    params(
        ("id" = MonitorId, Path, description = "The monitor"),
        IdempotencyHeader
    ),
    responses((status = 202, description = "The scan; `Location` names it", body = Scan), MonitorErrors)
)]
pub(crate) async fn run(request: ApiRequest, _: NoBody) -> ApiResult {
    let context = request.context()?;
    let key = request.idempotency_key()?;
    let pace = request.pace()?;
    let answered = control::run::run(context, pace, request.id()?, key.as_ref()).await?;
    Ok(accepted_response(answered.response.id, &answered))
}

/// Pause a monitor
///
/// No slot starts a scan after this response, and the monitor's key is destroyed; a current run
/// continues. Idempotent.
#[utoipa::path(
    post, path = "/v1/monitors/{id}/pause", operation_id = "pause_monitor", tag = "Monitors", params(("id" = MonitorId, Path, description = "The monitor")),
    responses((status = 200, description = "The monitor", body = Monitor), CommandErrors)
)]
pub(crate) async fn pause(request: ApiRequest, _: NoBody) -> ApiResult<Json<Monitor>> {
    let context = request.context()?;
    Ok(Json(control::pause::pause(context, request.id()?).await?))
}

/// Resume a monitor
///
/// It continues with the key of this request, from its next slot on; slots skipped by the pause are
/// not made up. A lane that stopped because its key was rejected, not subscribed or out of quota
/// resumes too. Idempotent.
#[utoipa::path(
    post, path = "/v1/monitors/{id}/resume", operation_id = "resume_monitor", tag = "Monitors",
    params(
        ("id" = MonitorId, Path, description = "The monitor"),
        IdempotencyHeader
    ),
    responses((status = 200, description = "The monitor", body = Monitor), MonitorErrors)
)]
pub(crate) async fn resume(request: ApiRequest, _: NoBody) -> ApiResult {
    let context = request.context()?;
    let key = request.idempotency_key()?;
    let pace = request.pace()?;
    let answered = control::resume::resume(context, pace, request.id()?, key.as_ref()).await?;
    Ok(replayable_response(&answered))
}

/// Delete a monitor
///
/// With its slots and its key. Its scans stay, and a current one continues.
#[utoipa::path(
    delete, path = "/v1/monitors/{id}", operation_id = "delete_monitor", tag = "Monitors", params(("id" = MonitorId, Path, description = "The monitor")),
    responses((status = 204, description = "Deleted"), ReadErrors)
)]
pub(crate) async fn delete(request: ApiRequest) -> ApiResult<StatusCode> {
    control::delete::delete(request.context()?, request.id()?).await?;
    Ok(StatusCode::NO_CONTENT)
}
