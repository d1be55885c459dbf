//! `GET /v1/verify` (gateway.md, rules 20 and 34).

use super::endpoint::Api;
use super::string_enum::string_enum;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

string_enum! {
    /// Which APIs `?api=` selects. Without it: flights, and hotels only if flights is not
    /// subscribed.
    pub enum VerifyScope {
        /// Flights alone.
        Flights = "flights",
        /// Hotels alone.
        Hotels = "hotels",
        /// Both APIs.
        Both = "both",
    }
}

string_enum! {
    /// The result of one check.
    pub enum VerifyReason {
        /// The key is subscribed.
        Subscribed = "subscribed",
        /// The key is known, but has no subscription to this API.
        NotSubscribed = "not_subscribed",
        /// The marketplace does not know the key.
        InvalidKey = "invalid_key",
        /// The key is subscribed, but its quota is used up.
        QuotaExhausted = "quota_exhausted",
    }
}

impl VerifyReason {
    /// Whether the key is subscribed to the API, even with its quota used up.
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Subscribed | Self::QuotaExhausted)
    }
}

/// The subscriptions of the caller's key. Also the body of the 401 when the key is subscribed to
/// none of the checked APIs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "valid": true,
    "checks": [{"api": "flights", "ok": true, "checked": "flights/oneway, empty body", "reason": "subscribed"}],
    "api_usage": {"flights": {
        "plan_requests_limit": 2500, "plan_requests_remaining": 2412, "plan_seconds_until_reset": 1_209_600
    }},
    "key_source": "x-api-key"
})))]
pub struct VerifyResponse {
    /// Whether the key is subscribed to at least one checked API.
    pub valid: bool,
    /// One entry per checked API.
    pub checks: Vec<VerifyCheck>,
    /// The plan quota of each checked API, as far as the marketplace reported it.
    pub api_usage: ApiUsage,
    /// Which header or query parameter supplied the key (`x-api-key`, `query:api_key`); never the
    /// key.
    pub key_source: String,
}

/// The check of one API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerifyCheck {
    /// The API.
    pub api: Api,
    /// Whether the key is subscribed to it.
    pub ok: bool,
    /// Which request was sent, in words.
    pub checked: String,
    /// The result.
    pub reason: VerifyReason,
}

impl VerifyCheck {
    /// The entry for a result.
    pub fn new(api: Api, checked: impl Into<String>, reason: VerifyReason) -> Self {
        Self {
            api,
            ok: reason.is_ok(),
            checked: checked.into(),
            reason,
        }
    }
}

/// The plan quota of each checked API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiUsage {
    /// The flights plan, if it was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub flights: Option<PlanUsage>,
    /// The hotels plan, if it was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub hotels: Option<PlanUsage>,
}

impl ApiUsage {
    /// Sets the plan quota of one API.
    pub fn set(&mut self, api: Api, usage: PlanUsage) {
        match api {
            Api::Flights => self.flights = Some(usage),
            Api::Hotels => self.hotels = Some(usage),
        }
    }
}

/// The counters of one plan, as far as the marketplace reported them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanUsage {
    /// Requests per month.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub plan_requests_limit: Option<u64>,
    /// Requests left in the month.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub plan_requests_remaining: Option<u64>,
    /// Seconds until the next month of the plan begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub plan_seconds_until_reset: Option<u64>,
}
