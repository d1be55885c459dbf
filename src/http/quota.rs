//! `/v1/quota`: what the caller's lanes allow (jobs-api, "Account").

use axum::Json;
use axum::extract::{Path, State};

use super::AppState;
use super::auth::Caller;
use super::docs::{AccountErrors, BoundErrors};
use super::error::ApiError;
use super::extract::{JsonObject, SEARCH_BODY};
use super::scans::{desk, order_desk, tenant};
use crate::account::{bound, quota};
use crate::contract::quota::{LaneBounds, LaneQuota, Quota};
use crate::contract::{Api, FieldValue as _, shorten};

/// Read the quota of both lanes
///
/// The pace of scans, what is in flight, what is left of the plans as the marketplace last said, and what stops a lane. Asks nobody.
#[utoipa::path(
    get, path = "/v1/quota", operation_id = "get_quota", tag = "Account",
    responses((status = 200, description = "Both lanes", body = Quota), AccountErrors)
)]
pub(super) async fn read(
    State(app): State<AppState>,
    caller: Caller,
) -> Result<Json<Quota>, ApiError> {
    let desk = desk(&app, &caller)?;
    Ok(Json(
        quota::quota(desk.pool, tenant(desk).await?, &app.custody()?.pace).await?,
    ))
}

/// Set your own bounds of a lane
///
/// Ceilings on the pace that the lane learns, and what scans leave of the plan to your own calls. All bounds are set: what is absent or
/// null is no bound. They hold from the next search on.
#[utoipa::path(
    put, path = "/v1/quota/{api}", operation_id = "set_lane_bounds", tag = "Account", request_body = LaneBounds,
    params(("api" = Api, Path, description = "Which lane")),
    responses((status = 200, description = "The lane as it stands now", body = LaneQuota), BoundErrors)
)]
pub(super) async fn bound(
    State(app): State<AppState>,
    caller: Caller,
    Path(api): Path<String>,
    JsonObject(body): JsonObject<SEARCH_BODY>,
) -> Result<Json<LaneQuota>, ApiError> {
    let desk = order_desk(&app, &caller).await?;
    let api = Api::parse(&api).ok_or_else(|| {
        ApiError::not_found(format!(
            "there is no lane `{}`; allowed: {}",
            shorten(&api),
            Api::allowed()
        ))
    })?;
    let bounds = LaneBounds::from_body(&body)?;
    Ok(Json(
        bound::bound(desk, api, &bounds, &app.custody()?.pace).await?,
    ))
}
