//! A caller's word over a scan: retry, pause, resume, cancel, delete.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::{accepted, desk, idempotency_key, once, scan_id};
use crate::contract::scans::{DeleteQuery, ResumeRequest, RetryAccepted, RetryRequest, Scan};
use crate::http::AppState;
use crate::http::auth::Caller;
use crate::http::docs::{DeleteErrors, IdempotencyHeader, OrderErrors, StopErrors};
use crate::http::error::ApiError;
use crate::http::extract::{JsonObject, MaybeObject, NoBody, Pairs, SEARCH_BODY};
use crate::ids::ScanId;
use crate::scans;
use crate::scans::control;

/// Ask degraded, partial or failed items again
///
/// Those items become pending again, and the scan runs on; their old attempts stay on record. Items whose date has passed are left alone
/// and counted.
#[utoipa::path(
    post, path = "/v1/scans/{id}/retry", operation_id = "retry_scan", tag = "Scans", request_body = RetryRequest,
    params(
        ("id" = ScanId, Path, description = "The scan"),
        IdempotencyHeader
    ),
    responses((status = 202, description = "What will be asked again; `Location` names the scan", body = RetryAccepted), OrderErrors)
)]
pub(in crate::http) async fn retry(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    JsonObject(body): JsonObject<SEARCH_BODY>,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let key = idempotency_key(&headers)?;
    let id = scan_id(&id)?;
    let answered = scans::retry::retry(desk, id, &body, key.as_ref()).await?;
    Ok(accepted(id, &answered))
}

/// Cancel a scan
///
/// After this answer no call of it begins. Calls in flight are paid for, so their answers are kept. Again is fine.
#[utoipa::path(
    post, path = "/v1/scans/{id}/cancel", operation_id = "cancel_scan", tag = "Scans", params(("id" = ScanId, Path, description = "The scan")),
    responses((status = 200, description = "The scan", body = Scan), StopErrors)
)]
pub(in crate::http) async fn cancel(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    NoBody: NoBody,
) -> Result<Json<Scan>, ApiError> {
    let desk = desk(&app, &caller)?;
    Ok(Json(scans::cancel::cancel(desk, scan_id(&id)?).await?))
}

/// Pause a scan
///
/// After this answer no call of it begins. Calls in flight are paid for, so their answers are kept. Again is fine.
#[utoipa::path(
    post, path = "/v1/scans/{id}/pause", operation_id = "pause_scan", tag = "Scans", params(("id" = ScanId, Path, description = "The scan")),
    responses((status = 200, description = "The scan", body = Scan), StopErrors)
)]
pub(in crate::http) async fn pause(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    NoBody: NoBody,
) -> Result<Json<Scan>, ApiError> {
    let desk = desk(&app, &caller)?;
    Ok(Json(control::pause::pause(desk, scan_id(&id)?).await?))
}

/// Resume a scan
///
/// It goes on with the key of this request. A scan whose budget is spent needs a higher `max_requests`. A lane that was stopped because
/// its key was rejected, not subscribed or out of quota goes on too. Again is fine.
#[utoipa::path(
    post, path = "/v1/scans/{id}/resume", operation_id = "resume_scan", tag = "Scans", request_body = Option<ResumeRequest>,
    params(
        ("id" = ScanId, Path, description = "The scan"),
        IdempotencyHeader
    ),
    responses((status = 200, description = "The scan", body = Scan), OrderErrors)
)]
pub(in crate::http) async fn resume(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    MaybeObject(body): MaybeObject<SEARCH_BODY>,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let key = idempotency_key(&headers)?;
    let answered = control::resume::resume(desk, scan_id(&id)?, &body, key.as_ref()).await?;
    Ok(once(&answered).into_response())
}

/// Delete a scan
///
/// One that has ended, with all that belongs to it. What it saw stays in the history, unless `history` is true.
#[utoipa::path(
    delete, path = "/v1/scans/{id}", operation_id = "delete_scan", tag = "Scans", params(("id" = ScanId, Path, description = "The scan"), DeleteQuery),
    responses((status = 204, description = "It is gone"), DeleteErrors)
)]
pub(in crate::http) async fn delete(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    pairs: Pairs,
) -> Result<StatusCode, ApiError> {
    let desk = desk(&app, &caller)?;
    let query = DeleteQuery::from_query(pairs.iter())?;
    control::delete::delete(desk, scan_id(&id)?, query.history_or_default()).await?;
    Ok(StatusCode::NO_CONTENT)
}
