//! Responses with a scan.

use super::search_fields::SearchFields;
use super::state::{PauseReason, ScanStatus};
use super::strategy::StrategyProgress;
use super::sweep::Sweep;
use crate::endpoint::Endpoint;
use crate::history_verdict::UsualPrice;
use crate::ids::{ItemId, MonitorId, ScanId};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// One request with some fields swept, and its progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "id": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
    "endpoint": "flights/oneway",
    "request": {"from_airport": "TLV", "to_airport": "LHR"},
    "sweep": {"departure_date": {"from": "2027-01-01", "to": "2027-01-31"}},
    "label": "January", "tags": ["demo"],
    "status": "running", "status_reason": null,
    "items": {
        "total": 31, "pending": 10, "running": 2, "ok": 17, "empty": 1, "partial": 0, "degraded": 1, "failed": 0, "cancelled": 0
    },
    "requests": {"planned": 31, "spent": 21, "max": 40},
    "strategy": null,
    "best": {"price": 164, "currency": "USD", "item": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c"},
    "progress": 0.61, "eta_seconds": 12, "monitor_id": null,
    "key_custody": {"until": "2027-01-05T08:00:00Z"},
    "created_at": "2026-12-01T08:00:00Z", "started_at": "2026-12-01T08:00:01Z", "finished_at": null
})))]
pub struct Scan {
    /// Its id.
    pub id: ScanId,
    /// The endpoint that its searches are for.
    pub endpoint: Endpoint,
    /// The fields that all its searches share, as given.
    #[schema(value_type = SearchFields)]
    pub request: Map<String, Value>,
    /// The swept fields, as given.
    #[schema(value_type = Sweep)]
    pub sweep: Map<String, Value>,
    /// Its name.
    pub label: Option<String>,
    /// Tags for filtering.
    pub tags: Vec<String>,
    /// Its status.
    pub status: ScanStatus,
    /// Why it is paused.
    pub status_reason: Option<PauseReason>,
    /// Its items by state.
    pub items: ItemCounts,
    /// Its billed requests.
    pub requests: RequestCounts,
    /// The age up to which its items take answers; absent if they take none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_age_seconds: Option<u32>,
    /// The progress of its strategy, if it has one.
    pub strategy: Option<StrategyProgress>,
    /// The lowest price seen so far; once it has ended, the lowest plausible one.
    pub best: Option<BestPrice>,
    /// Once it has ended: the prices below `best`, or all, that are left out because they are far
    /// off their own history; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub implausible: Vec<ImplausiblePrice>,
    /// The share of its items that have ended, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub progress: f64,
    /// Seconds until it ends at the lane's pace, if known.
    pub eta_seconds: Option<u64>,
    /// The monitor that created it.
    pub monitor_id: Option<MonitorId>,
    /// How long the caller's sealed key is stored; null once it is destroyed.
    pub key_custody: Option<KeyCustody>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When its first search began.
    pub started_at: Option<Timestamp>,
    /// When its last item ended.
    pub finished_at: Option<Timestamp>,
}

/// A scan's items by state; `total` is the sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ItemCounts {
    /// All of them.
    pub total: u32,
    /// Waiting.
    pub pending: u32,
    /// Being searched.
    pub running: u32,
    /// Done: complete.
    pub ok: u32,
    /// Done: complete, and nothing exists.
    pub empty: u32,
    /// Done: part of the search failed.
    pub partial: u32,
    /// Done: the search did not complete.
    pub degraded: u32,
    /// Refused by the marketplace.
    pub failed: u32,
    /// Cancelled before their search.
    pub cancelled: u32,
}

/// A scan's requests to the marketplace, each of them billed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestCounts {
    /// One per item.
    pub planned: u32,
    /// Sent so far, retries included.
    pub spent: u32,
    /// The caller's limit.
    pub max: Option<u32>,
    /// Those that were not needed; only of a scan with `max_age_seconds` or `find`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub avoided: Option<AvoidedRequests>,
}

/// The requests that a scan saved: each is one item that has its answer, or does not need one,
/// without a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AvoidedRequests {
    /// Items that took an earlier answer.
    pub reused: u32,
    /// Items that took the answer of an equal search that was in flight.
    pub joined: u32,
    /// Items that the strategy left out. `planned` does not include them.
    pub not_needed: u32,
}

/// The lowest price of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BestPrice {
    /// In major units.
    #[serde(serialize_with = "crate::money::price")]
    pub price: Decimal,
    /// ISO currency code.
    pub currency: String,
    /// The item that found it.
    pub item: ItemId,
}

/// A price far off its own history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImplausiblePrice {
    /// In major units.
    #[serde(serialize_with = "crate::money::price")]
    pub price: Decimal,
    /// ISO currency code.
    pub currency: String,
    /// The item that found it.
    pub item: ItemId,
    /// What its departure or stay cost lately.
    pub usual: UsualPrice,
}

/// The caller's marketplace key is stored, sealed, and destroyed when the scan ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyCustody {
    /// The latest time at which it is destroyed.
    pub until: Timestamp,
}

/// A page of scans, newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScanPage {
    /// The scans.
    pub data: Vec<Scan>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}

/// Response of a retry: which items will be searched again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RetryAccepted {
    /// Items that are pending again.
    pub items_retried: u32,
    /// Items not retried because their date has passed.
    pub items_skipped: u32,
    /// The scan, which continues.
    pub scan: Scan,
}
