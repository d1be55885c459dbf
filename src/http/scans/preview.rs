//! `POST /v1/scans/preview`: what an order would be and cost.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;

use crate::config::PaceConfig;
use crate::contract::scans::{ScanPreview, ScanRequest};
use crate::http::AppState;
use crate::http::auth::Caller;
use crate::http::docs::PreviewErrors;
use crate::http::error::ApiError;
use crate::http::extract::{JsonObject, SCAN_BODY};
use crate::scans;

/// Preview a scan
///
/// The same body as an order. Nothing is asked and nothing stored. A service that holds no keys previews too, without the caller's lane.
#[utoipa::path(
    post, path = "/v1/scans/preview", tag = "Scans", request_body = ScanRequest,
    responses((status = 200, description = "What the order would be", body = ScanPreview), PreviewErrors)
)]
pub(in crate::http) async fn preview(
    State(app): State<AppState>,
    caller: Caller,
    JsonObject(body): JsonObject<SCAN_BODY>,
) -> Result<Json<ScanPreview>, ApiError> {
    let Ok(desk) = super::desk(&app, &caller) else {
        return Ok(Json(scans::preview::of_anyone(&PaceConfig::default(), &body, Timestamp::now()).await?));
    };
    Ok(Json(scans::preview::preview(desk, &app.custody()?.pace, &body).await?))
}
