//! The caller's own limits of a lane. They cap the pace that the lane learns, in every process from
//! the next claim on.

use serde_json::{Map, Value, json};

use super::quota;
use super::store;
use crate::commands::{CommandError, RequestContext};
use crate::config::PaceConfig;
use crate::contract::Api;
use crate::contract::plans::MarketplacePlan;
use crate::contract::quota::{LaneBounds, LaneBoundsPatch, LaneQuota, OwnBounds};
use crate::db;
use crate::scans::{ensure_and_wake_lane, ensure_lane};
use crate::tenants::acceptance::NotAccepted;
use crate::tenants::store::acceptance::find_accepted;

/// Replaces all limits of a lane; an absent one is removed. A caller without a lane gets the one
/// that its first submission would create. Returns the lane with its new limits.
///
/// # Errors
/// `NotAccepted` if the marketplace has not accepted the caller's key yet.
pub async fn set_lane_bounds(
    context: RequestContext<'_>,
    api: Api,
    bounds: &LaneBounds,
    pace: &PaceConfig,
) -> Result<LaneQuota, CommandError> {
    let plan = bounds.plan.map(|name| MarketplacePlan::by_name(api, name));
    let mut tx = db::begin(context.pool).await?;
    let tenant = find_accepted(&mut tx, context.ring, context.key, context.now)
        .await?
        .ok_or(NotAccepted::Required)?;
    ensure_lane(&mut tx, tenant, api, pace).await?;
    store::set_lane_bounds(&mut tx, tenant, api, bounds, plan).await?;
    let lane = quota::lane(&mut *tx, tenant, api, pace).await?;
    tx.commit().await?;
    Ok(lane)
}

/// Changes the limits of a lane that `patch` names; null removes one. The others stay, also those
/// that another request changes at the same time. Otherwise as [`set_lane_bounds`].
///
/// # Errors
/// `ValidationErrors`; `NotAccepted` if the marketplace has not accepted the caller's key yet.
pub async fn update_lane_bounds(
    context: RequestContext<'_>,
    api: Api,
    patch: &Map<String, Value>,
    pace: &PaceConfig,
) -> Result<LaneQuota, CommandError> {
    LaneBoundsPatch::from_body(patch)?;
    let mut tx = db::begin(context.pool).await?;
    let tenant = find_accepted(&mut tx, context.ring, context.key, context.now)
        .await?
        .ok_or(NotAccepted::Required)?;
    // Locks the lane: what is read stays until the commit.
    ensure_and_wake_lane(&mut tx, tenant, api, pace).await?;
    let stored = quota::lane(&mut *tx, tenant, api, pace).await?.bounds;
    let bounds = LaneBounds::from_body(&merged(&stored, patch))?;
    let plan = bounds.plan.map(|name| MarketplacePlan::by_name(api, name));
    store::set_lane_bounds(&mut tx, tenant, api, &bounds, plan).await?;
    let lane = quota::lane(&mut *tx, tenant, api, pace).await?;
    tx.commit().await?;
    Ok(lane)
}

/// The stored limits with those of the patch.
fn merged(stored: &OwnBounds, patch: &Map<String, Value>) -> Map<String, Value> {
    let mut body = Map::from_iter([
        ("plan".to_owned(), json!(stored.plan)),
        (
            "requests_per_minute".to_owned(),
            json!(stored.requests_per_minute),
        ),
        ("max_in_flight".to_owned(), json!(stored.max_in_flight)),
        ("keep_in_reserve".to_owned(), json!(stored.keep_in_reserve)),
    ]);
    body.extend(patch.clone());
    body
}
