//! Commands on a scan: retry, pause, resume, cancel, delete.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::{accepted_response, idempotency_key, replayable_response, request_context, scan_id};
use crate::contract::scans::{DeleteQuery, ResumeRequest, RetryAccepted, RetryRequest, Scan};
use crate::http::AppState;
use crate::http::auth::ApiKey;
use crate::http::error::ApiError;
use crate::http::extract::{JsonObject, NoBody, OptionalJsonObject, QueryPairs, SEARCH_BODY};
use crate::http::openapi::{DeleteErrors, IdempotencyHeader, StopErrors, SubmissionErrors};
use crate::ids::ScanId;
use crate::scans;
use crate::scans::control;

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
pub(in crate::http) async fn retry(
    State(app): State<AppState>,
    caller: ApiKey,
    Path(id): Path<String>,
    headers: HeaderMap,
    JsonObject(body): JsonObject<SEARCH_BODY>,
) -> Result<Response, ApiError> {
    let context = request_context(&app, &caller)?;
    let key = idempotency_key(&headers)?;
    let id = scan_id(&id)?;
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
pub(in crate::http) async fn cancel(
    State(app): State<AppState>,
    caller: ApiKey,
    Path(id): Path<String>,
    NoBody: NoBody,
) -> Result<Json<Scan>, ApiError> {
    let context = request_context(&app, &caller)?;
    Ok(Json(scans::cancel::cancel(context, scan_id(&id)?).await?))
}

/// Pause a scan
///
/// No upstream call of this scan starts after this response. Calls in flight are billed, so their
/// answers are stored. Idempotent.
#[utoipa::path(
    post, path = "/v1/scans/{id}/pause", operation_id = "pause_scan", tag = "Scans", params(("id" = ScanId, Path, description = "The scan")),
    responses((status = 200, description = "The scan", body = Scan), StopErrors)
)]
pub(in crate::http) async fn pause(
    State(app): State<AppState>,
    caller: ApiKey,
    Path(id): Path<String>,
    NoBody: NoBody,
) -> Result<Json<Scan>, ApiError> {
    let context = request_context(&app, &caller)?;
    Ok(Json(control::pause::pause(context, scan_id(&id)?).await?))
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
pub(in crate::http) async fn resume(
    State(app): State<AppState>,
    caller: ApiKey,
    Path(id): Path<String>,
    headers: HeaderMap,
    OptionalJsonObject(body): OptionalJsonObject<SEARCH_BODY>,
) -> Result<Response, ApiError> {
    let context = request_context(&app, &caller)?;
    let key = idempotency_key(&headers)?;
    let answered = control::resume::resume(context, scan_id(&id)?, &body, key.as_ref()).await?;
    Ok(replayable_response(&answered).into_response())
}

/// Delete a scan
///
/// Deletes an ended scan with its items. Its observations stay in the history, unless `history` is
/// true.
#[utoipa::path(
    delete, path = "/v1/scans/{id}", operation_id = "delete_scan", tag = "Scans", params(("id" = ScanId, Path, description = "The scan"), DeleteQuery),
    responses((status = 204, description = "Deleted"), DeleteErrors)
)]
pub(in crate::http) async fn delete(
    State(app): State<AppState>,
    caller: ApiKey,
    Path(id): Path<String>,
    pairs: QueryPairs,
) -> Result<StatusCode, ApiError> {
    let context = request_context(&app, &caller)?;
    let query = DeleteQuery::from_query(pairs.iter())?;
    control::delete::delete(context, scan_id(&id)?, query.history_or_default()).await?;
    Ok(StatusCode::NO_CONTENT)
}
