//! `POST /v1/scans/preview`: what an order would be and cost.

use axum::Json;
use axum::extract::State;

use crate::contract::scans::{ScanPreview, ScanRequest};
use crate::http::AppState;
use crate::http::auth::Caller;
use crate::http::docs::PreviewErrors;
use crate::http::error::ApiError;
use crate::http::extract::OrderBody;
use crate::scans;

/// Preview a scan
///
/// The same body as an order. Nothing is asked and nothing stored.
#[utoipa::path(
    post, path = "/v1/scans/preview", operation_id = "preview_scan", tag = "Scans", request_body = ScanRequest,
    responses((status = 200, description = "What the order would be", body = ScanPreview), PreviewErrors)
)]
pub(in crate::http) async fn preview(
    State(app): State<AppState>,
    caller: Caller,
    OrderBody { body, .. }: OrderBody,
) -> Result<Json<ScanPreview>, ApiError> {
    let desk = super::desk(&app, &caller)?;
    Ok(Json(
        scans::preview::preview(desk, &app.custody()?.pace, &body).await?,
    ))
}
