//! `/v1/quota`: what the caller's lanes allow (jobs-api, "Account").

use axum::Json;
use axum::extract::State;

use super::AppState;
use super::auth::Caller;
use super::docs::AccountErrors;
use super::error::ApiError;
use super::scans::{desk, tenant};
use crate::account::quota;
use crate::contract::quota::Quota;

/// Read the quota of both lanes
///
/// The pace of scans, what is in flight, what is left of the plans as the marketplace last said, and what stops a lane. Asks nobody.
#[utoipa::path(
    get, path = "/v1/quota", tag = "Account",
    responses((status = 200, description = "Both lanes", body = Quota), AccountErrors)
)]
pub(super) async fn read(State(app): State<AppState>, caller: Caller) -> Result<Json<Quota>, ApiError> {
    let desk = desk(&app, &caller)?;
    Ok(Json(quota::quota(desk.pool, tenant(desk).await?, &app.custody()?.pace).await?))
}
