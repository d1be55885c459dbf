//! The current quota of a caller's lanes.

use sqlx::{PgExecutor, PgPool};

use super::store::{self, LaneRow};
use crate::config::PaceConfig;
use crate::contract::Api;
use crate::contract::plans::PlanName;
use crate::contract::quota::{LanePaused, LaneQuota, OwnBounds, PaceSource, Quota};
use crate::ids::TenantId;
use crate::scans::per_minute;

/// Both lanes. A lane that does not exist yet is shown as the first submission would create it.
pub async fn quota(
    pool: &PgPool,
    tenant: Option<TenantId>,
    pace: &PaceConfig,
) -> sqlx::Result<Quota> {
    let lanes = stored_lanes(pool, tenant).await?;
    Ok(Quota {
        known_key: tenant.is_some(),
        flights: lane_quota(&lanes, Api::Flights, pace),
        hotels: lane_quota(&lanes, Api::Hotels, pace),
    })
}

/// A tenant's lane, as in [`quota`].
pub(super) async fn lane(
    conn: impl PgExecutor<'_>,
    tenant: TenantId,
    api: Api,
    pace: &PaceConfig,
) -> sqlx::Result<LaneQuota> {
    Ok(lane_quota(&store::lanes(conn, tenant).await?, api, pace))
}

async fn stored_lanes(pool: &PgPool, tenant: Option<TenantId>) -> sqlx::Result<Vec<LaneRow>> {
    match tenant {
        Some(tenant) => store::lanes(pool, tenant).await,
        None => Ok(Vec::new()),
    }
}

fn lane_quota(lanes: &[LaneRow], api: Api, pace: &PaceConfig) -> LaneQuota {
    let known = lanes.iter().find(|lane| lane.api == api);
    known.map_or_else(|| new_lane(api, pace), LaneQuota::from)
}

/// The lane that the first submission creates.
fn new_lane(api: Api, pace: &PaceConfig) -> LaneQuota {
    let searches_per_minute = per_minute(pace, api);
    LaneQuota {
        searches_per_minute: searches_per_minute.into(),
        pace_source: PaceSource::Start,
        burst: (searches_per_minute / 30).max(1),
        max_in_flight: pace.max_in_flight,
        in_flight: 0,
        plan_requests_limit: None,
        plan_requests_remaining: None,
        plan_resets_at: None,
        plan_seen_at: None,
        paused: None,
        bounds: OwnBounds::default(),
    }
}

impl From<&LaneRow> for LaneQuota {
    fn from(lane: &LaneRow) -> Self {
        let count = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
        let reason = lane.paused;
        Self {
            searches_per_minute: (6_000.0 / lane.seconds_per_search).round() / 100.0,
            pace_source: lane.pace_source,
            burst: u32::try_from(lane.burst).unwrap_or(1),
            max_in_flight: u32::try_from(lane.max_in_flight).unwrap_or(1),
            in_flight: u32::try_from(lane.in_flight).unwrap_or_default(),
            plan_requests_limit: count(lane.plan_limit),
            plan_requests_remaining: count(lane.plan_remaining),
            plan_resets_at: lane.plan_reset_at.map(jiff_sqlx::Timestamp::to_jiff),
            plan_seen_at: lane.plan_seen_at.map(jiff_sqlx::Timestamp::to_jiff),
            paused: reason.map(|reason| LanePaused {
                reason,
                until: lane.paused_until.map(jiff_sqlx::Timestamp::to_jiff),
            }),
            bounds: OwnBounds {
                plan: lane.own_plan.as_deref().and_then(PlanName::parse),
                requests_per_minute: lane
                    .own_per_minute
                    .and_then(|number| u32::try_from(number).ok()),
                max_in_flight: lane
                    .own_in_flight
                    .and_then(|number| u32::try_from(number).ok()),
                keep_in_reserve: u64::try_from(lane.keep_in_reserve).unwrap_or_default(),
            },
        }
    }
}
