//! `POST /v1/scans/preview`: the items and cost of a scan before it is submitted.

use axum::Json;

use crate::openapi::PreviewErrors;
use farescan_core::app::api_request::ApiRequest;
use farescan_core::app::error::ApiResult;
use farescan_core::app::extract::SubmissionBody;
use farescan_core::contract::scans::{ScanPreview, ScanRequest};
use farescan_core::scans;

/// Preview a scan
///
/// Takes the body of a submission. Makes no call and stores nothing.
#[utoipa::path(
    post, path = "/v1/scans/preview", operation_id = "preview_scan", tag = "Scans", request_body = ScanRequest,
    responses((status = 200, description = "The items and cost of the scan", body = ScanPreview), PreviewErrors)
)]
pub(crate) async fn preview(
    request: ApiRequest,
    SubmissionBody { body, .. }: SubmissionBody,
) -> ApiResult<Json<ScanPreview>> {
    Ok(Json(
        scans::preview::preview(request.context()?, request.pace()?, &body).await?,
    ))
}
