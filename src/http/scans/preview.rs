//! `POST /v1/scans/preview`: the items and cost of a scan before it is submitted.

use axum::Json;

use crate::contract::scans::{ScanPreview, ScanRequest};
use crate::http::api_request::ApiRequest;
use crate::http::error::ApiResult;
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
    request: ApiRequest,
    SubmissionBody { body, .. }: SubmissionBody,
) -> ApiResult<Json<ScanPreview>> {
    Ok(Json(
        scans::preview::preview(request.context()?, request.pace()?, &body).await?,
    ))
}
