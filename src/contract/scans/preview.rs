//! What a scan would be and cost, before it is ordered.

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::fields::SearchFields;
use crate::contract::endpoint::Endpoint;
use crate::contract::plans::PlanName;
use crate::contract::words::words;

/// What `POST /v1/scans` would make of the same body. Nothing was asked and nothing stored.
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
    /// How many searches there are; in two phases not all of them are made.
    pub items: u32,
    /// How many billed requests they take.
    pub requests: RequestRange,
    /// The complete body of the first search.
    #[schema(value_type = SearchFields)]
    pub first: Map<String, Value>,
    /// The complete body of the last search.
    #[schema(value_type = SearchFields)]
    pub last: Map<String, Value>,
    /// The pace of the caller's lane, or of a new one.
    pub searches_per_minute: f64,
    /// How long the searches take at that pace, each once; in two phases at most.
    pub seconds: u64,
    /// What the marketplace last said is left of the caller's plan; null where it has not, or since the plan's month began anew.
    pub plan_requests_remaining: Option<u64>,
    /// What it costs on each of the marketplace's plans.
    pub plans: Vec<PlanCost>,
    /// What the caller may want to know first.
    pub warnings: Vec<Warning>,
}

/// From the fewest to the most requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestRange {
    /// If every search is answered the first time.
    pub least: u64,
    /// If every search takes all its attempts, each with the second try of a server error; never over `max_requests`.
    pub most: u64,
}

/// From the least to the most dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsdRange {
    /// For the fewest requests.
    #[serde(serialize_with = "crate::contract::money::price")]
    #[schema(value_type = f64)]
    pub least: Decimal,
    /// For the most requests.
    #[serde(serialize_with = "crate::contract::money::price")]
    #[schema(value_type = f64)]
    pub most: Decimal,
}

/// A scan on one plan of the marketplace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanCost {
    /// The plan.
    pub plan: PlanName,
    /// The caller's own plan, as far as its quota tells.
    pub current: bool,
    /// What a month costs.
    pub usd_per_month: u32,
    /// Requests left: of the caller's own plan as last seen, of any other a whole month's.
    pub requests_left: u64,
    /// Whether they are enough.
    pub fit: PlanFit,
    /// Requests beyond them.
    pub overage_requests: RequestRange,
    /// What those cost; null where the plan stops instead.
    pub overage_usd: Option<UsdRange>,
}

words! {
    /// Whether the requests left are enough.
    pub enum PlanFit {
        /// Enough for the most requests.
        Included = "included",
        /// Some may be beyond the quota, each at a price.
        Overage = "overage",
        /// Enough if no search is asked twice; else the plan stops before the end.
        MayStop = "may_stop",
        /// The plan stops before the end.
        NotPossible = "not_possible",
    }
}

/// Something to know before ordering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Warning {
    /// What kind of thing.
    pub kind: WarningKind,
    /// What it is here, and what to do.
    pub message: String,
}

words! {
    /// What a preview warns of.
    pub enum WarningKind {
        /// Dates so far ahead that hardly anything is sold yet.
        DatesNotOnSale = "dates_not_on_sale",
        /// `upstream_filters` with a filter that costs the price band.
        BandLost = "band_lost",
        /// Markets of hotels/search: each may list other hotels.
        MarketsNotComparable = "markets_not_comparable",
        /// Prices in several currencies have no common best.
        CurrenciesNotComparable = "currencies_not_comparable",
        /// More searches than the plan has requests left.
        OverQuota = "over_quota",
        /// `max_requests` may be reached before the end.
        BudgetMayBeSpent = "budget_may_be_spent",
        /// It takes longer than a day at the lane's pace.
        LongerThanADay = "longer_than_a_day",
        /// The caller's lane is paused now.
        LanePaused = "lane_paused",
        /// The caller has so much underway that the order would be refused now.
        TooMuchUnderway = "too_much_underway",
    }
}
