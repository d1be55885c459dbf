//! The preview of a scan: its searches and cost.

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::search_fields::SearchFields;
use crate::endpoint::Endpoint;
use crate::plans::PlanName;
use crate::string_enum::string_enum;

/// The scan that `POST /v1/scans` would create from the same body. Nothing was searched or stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "endpoint": "flights/oneway", "items": 18, "requests": {"least": 18, "most": 36},
    "first": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-01"},
    "last": {"from_airport": "TLV", "to_airport": "CDG", "departure_date": "2027-01-29"},
    "searches_per_minute": 60, "seconds": 18, "plan_requests_remaining": 2400,
    "plans": [
        {"plan": "basic", "current": false, "usd_per_month": 0, "requests_left": 10, "fit": "not_possible",
         "overage_requests": {"least": 8, "most": 26}, "overage_usd": null},
        {"plan": "pro", "current": true, "usd_per_month": 10, "requests_left": 2400, "fit": "included",
         "overage_requests": {"least": 0, "most": 0}, "overage_usd": {"least": 0, "most": 0}}
    ],
    "warnings": []
})))]
pub struct ScanPreview {
    /// The endpoint that its searches are for.
    pub endpoint: Endpoint,
    /// Number of searches; with a strategy not all of them run.
    pub items: u32,
    /// Their billed requests.
    pub requests: RequestRange,
    /// The age of answers that its searches would take: that of the body, else the account's; only if
    /// there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_age_seconds: Option<u32>,
    /// Searches that would take an earlier answer now, and are not in `requests`; only with
    /// `max_age_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reused: Option<u32>,
    /// The complete body of the first search.
    #[schema(value_type = SearchFields)]
    pub first: Map<String, Value>,
    /// The complete body of the last search.
    #[schema(value_type = SearchFields)]
    pub last: Map<String, Value>,
    /// The pace of the caller's lane, or of a new one.
    pub searches_per_minute: f64,
    /// Seconds for all searches at that pace, each once; with a strategy the maximum.
    pub seconds: u64,
    /// The remaining requests of the caller's plan, as last reported; null if never reported, or if
    /// a new month of the plan began since.
    pub plan_requests_remaining: Option<u64>,
    /// Its cost on each of the marketplace's plans.
    pub plans: Vec<PlanCost>,
    /// Warnings about the scan.
    pub warnings: Vec<Warning>,
}

/// The minimum and maximum requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestRange {
    /// If every search completes at the first attempt; with `find`, those of the first decision.
    pub least: u64,
    /// Only with `find`, and if every search has a stored answer: the requests if those were still
    /// true. Changed prices need more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub expected: Option<u64>,
    /// If every search takes all its attempts, each with the retry of a server error; never above
    /// `max_requests`.
    pub most: u64,
}

/// The minimum and maximum cost in dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsdRange {
    /// For the fewest requests.
    #[serde(serialize_with = "crate::money::price")]
    pub least: Decimal,
    /// For the most requests.
    #[serde(serialize_with = "crate::money::price")]
    pub most: Decimal,
}

/// A scan on one plan of the marketplace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanCost {
    /// The plan.
    pub plan: PlanName,
    /// Whether it is the caller's plan, as far as its quota shows.
    pub current: bool,
    /// The monthly price in US dollars.
    pub usd_per_month: u32,
    /// Remaining requests: of the caller's own plan as last reported, of any other a full month.
    pub requests_left: u64,
    /// Whether they suffice.
    pub fit: PlanFit,
    /// Requests beyond them.
    pub overage_requests: RequestRange,
    /// Their price; null if the plan stops at its quota.
    pub overage_usd: Option<UsdRange>,
}

string_enum! {
    /// Whether the remaining requests suffice.
    pub enum PlanFit {
        /// Enough for the most requests.
        Included = "included",
        /// Some may be beyond the quota, each at a price.
        Overage = "overage",
        /// Enough without retries; else the plan stops before the end.
        MayStop = "may_stop",
        /// The plan stops before the end.
        NotPossible = "not_possible",
    }
}

/// A warning of a preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Warning {
    /// The kind of warning.
    pub kind: WarningKind,
    /// The cause, and what to do.
    pub message: String,
}

string_enum! {
    /// The kind of a warning.
    pub enum WarningKind {
        /// The dates are so far ahead that few fares or rates are on sale.
        DatesNotOnSale = "dates_not_on_sale",
        /// `upstream_filters` with a filter that removes the price band.
        BandLost = "band_lost",
        /// Markets of hotels/search: each may list other hotels.
        MarketsNotComparable = "markets_not_comparable",
        /// Prices in several currencies have no common lowest price.
        CurrenciesNotComparable = "currencies_not_comparable",
        /// The scan has more searches than the plan has requests left.
        OverQuota = "over_quota",
        /// `max_requests` may be reached before the end.
        BudgetMayBeSpent = "budget_may_be_spent",
        /// The scan takes longer than a day at the lane's pace.
        LongerThanADay = "longer_than_a_day",
        /// The caller's lane is paused now.
        LanePaused = "lane_paused",
        /// The caller has too many unfinished items: the scan would be refused now.
        TooMuchUnderway = "too_much_underway",
    }
}
