//! `/v1/quota`: the pace and limits of the caller's lanes (scans.md, rules 72 and 73).

use axum::Json;

use super::openapi::{AccountErrors, LaneBoundsErrors};
use farescan_core::account::{lane_bounds, quota};
use farescan_core::app::api_request::{ApiRequest, find_tenant};
use farescan_core::app::error::{ApiError, ApiResult};
use farescan_core::app::extract::{JsonObject, SEARCH_BODY};
use farescan_core::contract::quota::{LaneBounds, LaneBoundsPatch, LaneQuota, Quota};
use farescan_core::contract::{Api, FieldValue as _, shorten};

/// Read the quota of both lanes
///
/// The pace of scans, the requests in flight, what is left of the plans as last reported by the
/// marketplace, and what stops a lane. Makes no call.
#[utoipa::path(
    get, path = "/v1/quota", operation_id = "get_quota", tag = "Account",
    responses((status = 200, description = "Both lanes", body = Quota), AccountErrors)
)]
pub(super) async fn read(request: ApiRequest) -> ApiResult<Json<Quota>> {
    let context = request.context()?;
    let tenant = find_tenant(context).await?;
    Ok(Json(
        quota::quota(context.pool, tenant, request.pace()?).await?,
    ))
}

/// Set your own limits of a lane
///
/// Limits on the pace that the lane learns, and how much of the plan scans leave for your own
/// calls. All limits are replaced: an absent or null one is removed. They apply from the next
/// search on.
#[utoipa::path(
    put, path = "/v1/quota/{api}", operation_id = "set_lane_bounds", tag = "Account", request_body = LaneBounds,
    params(("api" = Api, Path, description = "Which lane")),
    responses((status = 200, description = "The lane with its new limits", body = LaneQuota), LaneBoundsErrors)
)]
pub(super) async fn set_lane_bounds(
    request: ApiRequest,
    JsonObject(body): JsonObject<SEARCH_BODY>,
) -> ApiResult<Json<LaneQuota>> {
    let context = request.submit_context().await?;
    let api = lane(&request)?;
    let bounds = LaneBounds::from_body(&body)?;
    Ok(Json(
        lane_bounds::set_lane_bounds(context, api, &bounds, request.pace()?).await?,
    ))
}

/// Change some of your own limits of a lane
///
/// Absent limits stay; null removes one. They apply from the next search on.
#[utoipa::path(
    patch, path = "/v1/quota/{api}", operation_id = "update_lane_bounds", tag = "Account", request_body = LaneBoundsPatch,
    params(("api" = Api, Path, description = "Which lane")),
    responses((status = 200, description = "The lane with its new limits", body = LaneQuota), LaneBoundsErrors)
)]
pub(super) async fn update_lane_bounds(
    request: ApiRequest,
    JsonObject(body): JsonObject<SEARCH_BODY>,
) -> ApiResult<Json<LaneQuota>> {
    let context = request.submit_context().await?;
    let api = lane(&request)?;
    Ok(Json(
        lane_bounds::update_lane_bounds(context, api, &body, request.pace()?).await?,
    ))
}

fn lane(request: &ApiRequest) -> ApiResult<Api> {
    let text = request.parameter("api");
    Api::parse(text).ok_or_else(|| {
        ApiError::not_found(format!(
            "there is no lane `{}`; expected {}",
            shorten(text),
            Api::expected()
        ))
    })
}
