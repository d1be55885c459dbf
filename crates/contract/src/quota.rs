//! `/v1/quota` (scans.md, rules 72 and 73): the pace of a caller's lanes, the remaining plan quota,
//! and the caller's own bounds.

use super::plans::PlanName;
use super::primitives::bounded_integer;
use super::request_body::request_body;
use super::scans::PauseReason;
use super::string_enum::string_enum;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Both lanes of a caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "known_key": true,
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
    /// Whether the service knows the key: the marketplace has accepted it, or a scan was submitted
    /// with it.
    #[serde(default = "known")]
    pub known_key: bool,
    /// The flights lane.
    pub flights: LaneQuota,
    /// The hotels lane.
    pub hotels: LaneQuota,
}

/// What a service of an earlier version, which does not say it, is taken to know.
fn known() -> bool {
    true
}

/// A caller's subscription to one API. A lane that was never used has the pace of a new one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaneQuota {
    /// The pace of scans.
    pub searches_per_minute: f64,
    /// The source of that pace.
    pub pace_source: PaceSource,
    /// Searches that may begin at once after an idle time.
    pub burst: u32,
    /// The maximum concurrent searches of scans.
    pub max_in_flight: u32,
    /// The current number of them.
    pub in_flight: u32,
    /// Requests of the plan's period; null if the marketplace has not reported them.
    pub plan_requests_limit: Option<u64>,
    /// The remaining requests, as last reported by the marketplace.
    pub plan_requests_remaining: Option<u64>,
    /// When the next period begins. After that time the remaining requests are outdated.
    pub plan_resets_at: Option<Timestamp>,
    /// When the marketplace last reported.
    pub plan_seen_at: Option<Timestamp>,
    /// The lane's pause; null if it is not paused.
    pub paused: Option<LanePaused>,
    /// The caller's own bounds.
    pub bounds: OwnBounds,
}

string_enum! {
    /// The source of a lane's pace.
    pub enum PaceSource {
        /// The start value: the plan is not known yet.
        Start = "start",
        /// The plan's rate limit in the marketplace's headers.
        Headers = "headers",
        /// After a 429: half of the previous pace, then 5 % more each minute.
        After429 = "after_429",
        /// The caller's own bound, or the plan that the caller named.
        Caller = "caller",
    }
}

/// The caller's own bounds (`PUT` and `PATCH /v1/quota/{api}`); null: no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnBounds {
    /// The plan, whose rate and quota apply until the marketplace reports them.
    pub plan: Option<PlanName>,
    /// Maximum searches of scans per minute.
    pub requests_per_minute: Option<u32>,
    /// Maximum concurrent searches of scans.
    pub max_in_flight: Option<u32>,
    /// Requests of the plan that scans leave unused.
    pub keep_in_reserve: u64,
}

bounded_integer! {
    /// The maximum searches of scans per minute.
    pub struct RequestsPerMinute(u32): 1..=60_000;
}

bounded_integer! {
    /// The maximum concurrent searches of scans.
    pub struct MaxInFlight(u32): 1..=1_000;
}

bounded_integer! {
    /// Requests of the plan that scans leave unused.
    pub struct KeepInReserve(u64): 0..=9_007_199_254_740_991;
}

request_body! {
    /// Body of `PUT /v1/quota/{api}`: all of the caller's own bounds of a lane. An absent or null
    /// field is no bound.
    pub struct LaneBounds for "quota" {
        required {}
        optional {
            /// The plan, whose rate and quota apply until the marketplace reports them.
            plan: PlanName;
            /// Maximum searches of scans per minute.
            requests_per_minute: RequestsPerMinute;
            /// Maximum concurrent searches of scans.
            max_in_flight: MaxInFlight;
            /// Requests of the plan that scans leave for the caller's own calls.
            keep_in_reserve: KeepInReserve;
        }
        example { "requests_per_minute": 100, "keep_in_reserve": 200 }
    }
}

request_body! {
    /// Body of `PATCH /v1/quota/{api}`: the bounds to change. An absent field stays; null removes
    /// its bound.
    pub struct LaneBoundsPatch for "quota" {
        required {}
        optional {
            /// The plan, whose rate and quota apply until the marketplace reports them.
            plan: PlanName;
            /// Maximum searches of scans per minute.
            requests_per_minute: RequestsPerMinute;
            /// Maximum concurrent searches of scans.
            max_in_flight: MaxInFlight;
            /// Requests of the plan that scans leave for the caller's own calls.
            keep_in_reserve: KeepInReserve;
        }
        example { "keep_in_reserve": 100 }
    }
}

/// Why a lane is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LanePaused {
    /// Why.
    pub reason: PauseReason,
    /// End of the pause; null: until a scan of the lane is resumed.
    pub until: Option<Timestamp>,
}
