//! `POST /v1/scans/preview`: the items and cost of a scan before it is submitted.

use axum::Json;
use axum::extract::State;

use crate::contract::scans::{ScanPreview, ScanRequest};
use crate::http::AppState;
use crate::http::auth::ApiKey;
use crate::http::error::ApiError;
use crate::http::extract::SubmissionBody;
use crate::http::openapi::PreviewErrors;
use crate::scans;

/// Preview a scan
///
/// Takes the body of a submission. Makes no call and stores nothing.
#[utoipa::path(
    post, path = "/v1/scans/preview", operation_id = "preview_scan", tag = "Scans", request_body = ScanRequest,
    responses((status = 200, description = "The items and cost of the scan", body = ScanPreview), PreviewErrors)
)]
pub(in crate::http) async fn preview(
    State(app): State<AppState>,
    caller: ApiKey,
    SubmissionBody { body, .. }: SubmissionBody,
) -> Result<Json<ScanPreview>, ApiError> {
    let context = super::request_context(&app, &caller)?;
    Ok(Json(
        scans::preview::preview(context, &app.custody()?.pace, &body).await?,
    ))
}
