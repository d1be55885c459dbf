//! `/v1/quota` on the wire (jobs-api, "Account"): what a caller's lanes allow, and what is left of the plans.

use super::scans::PauseReason;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Both lanes of a caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "flights": {
        "searches_per_minute": 60, "burst": 2, "max_in_flight": 8, "in_flight": 3,
        "plan_requests_limit": 2500, "plan_requests_remaining": 2412, "plan_resets_at": "2026-12-15T00:00:00Z",
        "plan_seen_at": "2026-12-01T08:00:03Z", "paused": {"reason": "rate_limited", "until": "2026-12-01T08:01:00Z"}
    },
    "hotels": {
        "searches_per_minute": 20, "burst": 1, "max_in_flight": 8, "in_flight": 0,
        "plan_requests_limit": null, "plan_requests_remaining": null, "plan_resets_at": null, "plan_seen_at": null, "paused": null
    }
})))]
pub struct Quota {
    /// The flights lane.
    pub flights: LaneQuota,
    /// The hotels lane.
    pub hotels: LaneQuota,
}

/// A caller's subscription to one API. A lane that was never used has the pace of a new one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaneQuota {
    /// The pace of scans.
    pub searches_per_minute: f64,
    /// Searches that may begin at once after a rest.
    pub burst: u32,
    /// The most searches of scans at the same time.
    pub max_in_flight: u32,
    /// How many there are now.
    pub in_flight: u32,
    /// Requests of the plan's period; null where the marketplace has not said.
    pub plan_requests_limit: Option<u64>,
    /// What was left of them when the marketplace last said so.
    pub plan_requests_remaining: Option<u64>,
    /// When the period begins anew. Once that has passed, what was left says nothing.
    pub plan_resets_at: Option<Timestamp>,
    /// When the marketplace last said.
    pub plan_seen_at: Option<Timestamp>,
    /// The lane's pause; null while it goes on.
    pub paused: Option<LanePaused>,
}

/// Why nothing of a lane begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LanePaused {
    /// Why.
    pub reason: PauseReason,
    /// Until when; null: until a scan of the lane is resumed.
    pub until: Option<Timestamp>,
}
