//! `/v1/quota` on the wire (jobs-api, "Account"): what a caller's lanes allow, what is left of the plans, and the caller's own bounds.

use super::declare::request;
use super::plans::PlanName;
use super::primitives::whole_number;
use super::scans::PauseReason;
use super::words::words;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Both lanes of a caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "flights": {
        "searches_per_minute": 100, "pace_source": "caller", "burst": 3, "max_in_flight": 12, "in_flight": 3,
        "plan_requests_limit": 2500, "plan_requests_remaining": 2412, "plan_resets_at": "2026-12-15T00:00:00Z",
        "plan_seen_at": "2026-12-01T08:00:03Z", "paused": {"reason": "rate_limited", "until": "2026-12-01T08:01:00Z"},
        "bounds": {"plan": null, "requests_per_minute": 100, "max_in_flight": null, "keep_in_reserve": 200}
    },
    "hotels": {
        "searches_per_minute": 20, "pace_source": "start", "burst": 1, "max_in_flight": 8, "in_flight": 0,
        "plan_requests_limit": null, "plan_requests_remaining": null, "plan_resets_at": null, "plan_seen_at": null, "paused": null,
        "bounds": {"plan": null, "requests_per_minute": null, "max_in_flight": null, "keep_in_reserve": 0}
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
    /// Where that pace comes from.
    pub pace_source: PaceSource,
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
    /// The caller's own bounds.
    pub bounds: OwnBounds,
}

words! {
    /// Where a lane's pace comes from.
    pub enum PaceSource {
        /// Nothing is known of the plan yet.
        Start = "start",
        /// From the plan's rate window, as the marketplace says it.
        Headers = "headers",
        /// The marketplace answered 429: half of before, and 5 % more each minute.
        After429 = "after_429",
        /// The caller's own bound, or the plan that the caller named.
        Caller = "caller",
    }
}

/// What a caller has set with `PUT /v1/quota/{api}`; null: no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnBounds {
    /// The plan, whose rate and quota count until the marketplace says what they are.
    pub plan: Option<PlanName>,
    /// Searches of scans a minute, at most.
    pub requests_per_minute: Option<u32>,
    /// Searches of scans at the same time, at most.
    pub max_in_flight: Option<u32>,
    /// Requests of the plan that scans leave over.
    pub keep_in_reserve: u64,
}

whole_number! {
    /// The most searches of scans a minute.
    pub struct RequestsPerMinute(u32): 1..=60_000;
}

whole_number! {
    /// The most searches of scans at the same time.
    pub struct MaxInFlight(u32): 1..=1_000;
}

whole_number! {
    /// Requests of the plan that scans leave over.
    pub struct KeepInReserve(u64): 0..=9_007_199_254_740_991;
}

request! {
    /// Body of `PUT /v1/quota/{api}`: all of the caller's own bounds of a lane. What is absent or null is no bound.
    pub struct LaneBounds for "quota" {
        required {}
        optional {
            /// The plan, whose rate and quota count until the marketplace says what they are.
            plan: PlanName;
            /// Searches of scans a minute, at most.
            requests_per_minute: RequestsPerMinute;
            /// Searches of scans at the same time, at most.
            max_in_flight: MaxInFlight;
            /// Requests of the plan that scans leave to the caller's own calls.
            keep_in_reserve: KeepInReserve;
        }
        example { "requests_per_minute": 100, "keep_in_reserve": 200 }
    }
}

/// Why nothing of a lane begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LanePaused {
    /// Why.
    pub reason: PauseReason,
    /// Until when; null: until a scan of the lane is resumed.
    pub until: Option<Timestamp>,
}
