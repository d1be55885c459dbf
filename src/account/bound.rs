//! The caller's own bounds of a lane: ceilings on what the lane learns, for every process from the next claim on.

use super::quota;
use super::store;
use crate::config::PaceConfig;
use crate::contract::Api;
use crate::contract::plans::Plan;
use crate::contract::quota::{LaneBounds, LaneQuota};
use crate::db;
use crate::scans::Desk;
use crate::tenants;

/// Sets all bounds of a lane; what `bounds` does not name is no bound any more. A caller who never ordered anything gets the lane that the
/// first submit would make. Gives the lane as it stands then.
///
/// # Errors
/// When the database does not answer.
pub async fn bound(desk: Desk<'_>, api: Api, bounds: &LaneBounds, pace: &PaceConfig) -> sqlx::Result<LaneQuota> {
    let plan = bounds.plan.map(|name| Plan::of(api, name));
    let mut tx = db::begin(desk.pool).await?;
    let tenant = tenants::store::find_or_make(&mut tx, desk.ring, desk.key, desk.now).await?;
    store::make_lane(&mut tx, tenant, api, pace).await?;
    store::bound_lane(&mut tx, tenant, api, bounds, plan).await?;
    tx.commit().await?;
    quota::lane(desk.pool, Some(tenant), api, pace).await
}
