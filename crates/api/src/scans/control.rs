//! Commands on a scan: retry, pause, resume, cancel, delete.

use axum::Json;
use axum::http::StatusCode;

use crate::openapi::{DeleteErrors, IdempotencyHeader, StopErrors, SubmissionErrors};
use farescan_core::app::api_request::{ApiRequest, accepted_response, replayable_response};
use farescan_core::app::error::ApiResult;
use farescan_core::app::extract::{JsonObject, NoBody, OptionalJsonObject, SEARCH_BODY};
use farescan_core::contract::scans::{
    DeleteQuery, ResumeRequest, RetryAccepted, RetryRequest, Scan,
};
use farescan_core::ids::ScanId;
use farescan_core::scans;
use farescan_core::scans::control;

/// Retry degraded, partial or failed items
///
/// Those items become pending again, and the scan continues; their old attempts stay on record.
/// Items with a past date are skipped and counted.
#[utoipa::path(
    post, path = "/v1/scans/{id}/retry", operation_id = "retry_scan", tag = "Scans", request_body = RetryRequest,
    params(
        ("id" = ScanId, Path, description = "The scan"),
        IdempotencyHeader
    ),
    responses((status = 202, description = "The retried items; `Location` names the scan", body = RetryAccepted), SubmissionErrors)
)]
pub(crate) async fn retry(
    request: ApiRequest,
    JsonObject(body): JsonObject<SEARCH_BODY>,
) -> ApiResult {
    let context = request.context()?;
    let key = request.idempotency_key()?;
    let id = request.id()?;
    let answered = scans::retry::retry(context, id, &body, key.as_ref()).await?;
    Ok(accepted_response(id, &answered))
}

/// Cancel a scan
///
/// No upstream call of this scan starts after this response. Calls in flight are billed, so their
/// answers are stored. Idempotent.
#[utoipa::path(
    post, path = "/v1/scans/{id}/cancel", operation_id = "cancel_scan", tag = "Scans", params(("id" = ScanId, Path, description = "The scan")),
    responses((status = 200, description = "The scan", body = Scan), StopErrors)
)]
pub(crate) async fn cancel(request: ApiRequest, _: NoBody) -> ApiResult<Json<Scan>> {
    let context = request.context()?;
    Ok(Json(scans::cancel::cancel(context, request.id()?).await?))
}

/// Pause a scan
///
/// No upstream call of this scan starts after this response. Calls in flight are billed, so their
/// answers are stored. Idempotent.
#[utoipa::path(
    post, path = "/v1/scans/{id}/pause", operation_id = "pause_scan", tag = "Scans", params(("id" = ScanId, Path, description = "The scan")),
    responses((status = 200, description = "The scan", body = Scan), StopErrors)
)]
pub(crate) async fn pause(request: ApiRequest, _: NoBody) -> ApiResult<Json<Scan>> {
    let context = request.context()?;
    Ok(Json(control::pause::pause(context, request.id()?).await?))
}

/// Resume a scan
///
/// It continues with the key of this request. A scan whose budget is used up needs a higher
/// `max_requests`. A lane that stopped because its key was rejected, not subscribed or out of quota
/// resumes too. Idempotent.
#[utoipa::path(
    post, path = "/v1/scans/{id}/resume", operation_id = "resume_scan", tag = "Scans", request_body = Option<ResumeRequest>,
    params(
        ("id" = ScanId, Path, description = "The scan"),
        IdempotencyHeader
    ),
    responses((status = 200, description = "The scan", body = Scan), SubmissionErrors)
)]
pub(crate) async fn resume(
    request: ApiRequest,
    OptionalJsonObject(body): OptionalJsonObject<SEARCH_BODY>,
) -> ApiResult {
    let context = request.context()?;
    let key = request.idempotency_key()?;
    let answered = control::resume::resume(context, request.id()?, &body, key.as_ref()).await?;
    Ok(replayable_response(&answered))
}

/// Delete a scan
///
/// Deletes an ended scan with its items. Its observations stay in the history, unless `history` is
/// true.
#[utoipa::path(
    delete, path = "/v1/scans/{id}", operation_id = "delete_scan", tag = "Scans", params(("id" = ScanId, Path, description = "The scan"), DeleteQuery),
    responses((status = 204, description = "Deleted"), DeleteErrors)
)]
pub(crate) async fn delete(request: ApiRequest) -> ApiResult<StatusCode> {
    let context = request.context()?;
    let query = DeleteQuery::from_query(request.pairs.iter())?;
    control::delete::delete(context, request.id()?, query.history_or_default()).await?;
    Ok(StatusCode::NO_CONTENT)
}
