//! `GET /v1/verify` on the wire (specification 2.13, 4.5; contract 20).

use super::endpoint::Api;
use super::words::words;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

words! {
    /// What `?api=` asks verify to look at. Without it: flights, and hotels only if flights is not subscribed.
    pub enum VerifyScope {
        /// Flights alone.
        Flights = "flights",
        /// Hotels alone.
        Hotels = "hotels",
        /// Both APIs.
        Both = "both",
    }
}

words! {
    /// What one check found.
    pub enum VerifyReason {
        /// The subscription is good.
        Subscribed = "subscribed",
        /// The key is known, but has no subscription to this API.
        NotSubscribed = "not_subscribed",
        /// The marketplace does not know the key.
        InvalidKey = "invalid_key",
        /// The subscription is good, its quota is used up.
        QuotaExhausted = "quota_exhausted",
    }
}

impl VerifyReason {
    /// Whether the key can be used for the API, be it that its quota is used up.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Subscribed | Self::QuotaExhausted)
    }
}

/// What is known of the caller's key. Also the body of the 401 when no checked API is subscribed.
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
    /// Whether at least one checked API is subscribed.
    pub valid: bool,
    /// One entry per checked API.
    pub checks: Vec<VerifyCheck>,
    /// The plan quota of each checked API, as far as it is known.
    pub api_usage: ApiUsage,
    /// Which header or query parameter supplied the key (`x-api-key`, `query:api_key`); never the key.
    pub key_source: String,
}

/// One API that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerifyCheck {
    /// The API.
    pub api: Api,
    /// Whether the key is subscribed to it.
    pub ok: bool,
    /// What was asked, in words.
    pub checked: String,
    /// What was found.
    pub reason: VerifyReason,
}

impl VerifyCheck {
    /// The entry for what was found.
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
    /// Notes the plan of one API.
    pub fn set(&mut self, api: Api, usage: PlanUsage) {
        match api {
            Api::Flights => self.flights = Some(usage),
            Api::Hotels => self.hotels = Some(usage),
        }
    }
}

/// The counters of one plan, those that the marketplace told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanUsage {
    /// Requests per month.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub plan_requests_limit: Option<u64>,
    /// Requests left of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub plan_requests_remaining: Option<u64>,
    /// Seconds until the month starts anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub plan_seconds_until_reset: Option<u64>,
}
