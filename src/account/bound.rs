//! The caller's own bounds of a lane: ceilings on what the lane learns, for every process from the next claim on.

use super::quota;
use super::store;
use crate::config::PaceConfig;
use crate::contract::Api;
use crate::contract::plans::Plan;
use crate::contract::quota::{LaneBounds, LaneQuota};
use crate::db;
use crate::scans::{Desk, ScanError};
use crate::tenants::acceptance::NotAccepted;
use crate::tenants::store::acceptance::find_accepted;

/// Sets all bounds of a lane; what `bounds` does not name is no bound any more. A caller who never ordered anything gets the lane that the
/// first submit would make. Gives the lane as it stands then.
///
/// # Errors
/// `NotAccepted` for a caller whose key no marketplace has accepted yet; `Database`.
pub async fn bound(
    desk: Desk<'_>,
    api: Api,
    bounds: &LaneBounds,
    pace: &PaceConfig,
) -> Result<LaneQuota, ScanError> {
    let plan = bounds.plan.map(|name| Plan::of(api, name));
    let mut tx = db::begin(desk.pool).await?;
    let tenant = find_accepted(&mut tx, desk.ring, desk.key, desk.now)
        .await?
        .ok_or(NotAccepted::Required)?;
    store::make_lane(&mut tx, tenant, api, pace).await?;
    store::bound_lane(&mut tx, tenant, api, bounds, plan).await?;
    tx.commit().await?;
    Ok(quota::lane(desk.pool, Some(tenant), api, pace).await?)
}
