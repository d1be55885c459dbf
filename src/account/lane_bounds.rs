//! The caller's own limits of a lane. They cap the pace that the lane learns, in every process from
//! the next claim on.

use super::quota;
use super::store;
use crate::commands::{CommandError, RequestContext};
use crate::config::PaceConfig;
use crate::contract::Api;
use crate::contract::plans::MarketplacePlan;
use crate::contract::quota::{LaneBounds, LaneQuota};
use crate::db;
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
    store::ensure_lane(&mut tx, tenant, api, pace).await?;
    store::set_lane_bounds(&mut tx, tenant, api, bounds, plan).await?;
    let lane = quota::lane(&mut *tx, tenant, api, pace).await?;
    tx.commit().await?;
    Ok(lane)
}
