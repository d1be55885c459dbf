//! Responses with an item of a scan and its attempts.

use super::search_fields::SearchFields;
use super::state::ItemState;
use crate::history_verdict::HistoryVerdict;
use crate::ids::{AttemptId, ItemId, ScanId};
use crate::status::SearchStatus;
use crate::{RawJson, SearchReason};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// One search of a scan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "id": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c",
    "scan_id": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
    "position": 0,
    "search": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-01"},
    "state": "done", "search_status": "ok", "reason": null,
    "attempts": 1, "requests_spent": 1, "results": 12,
    "best_price": 164, "currency": "USD",
    "observed_at": "2026-12-01T08:00:03Z", "latency_ms": 1610, "error": null
})))]
pub struct Item {
    /// Its id.
    pub id: ItemId,
    /// Its scan.
    pub scan_id: ScanId,
    /// Its position in the scan, from 0.
    pub position: u32,
    /// The complete body of the search.
    #[schema(value_type = SearchFields)]
    pub search: Map<String, Value>,
    /// Its state.
    pub state: ItemState,
    /// The search status; null until done.
    pub search_status: Option<SearchStatus>,
    /// Why the search failed or found nothing.
    #[schema(value_type = Option<SearchReason>)]
    pub reason: Option<String>,
    /// Number of attempts.
    pub attempts: u32,
    /// Billed requests of its attempts.
    pub requests_spent: u32,
    /// Itineraries, properties or rooms found.
    pub results: Option<u32>,
    /// The lowest price, in major units.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub best_price: Option<Decimal>,
    /// Its currency.
    pub currency: Option<String>,
    /// When the response arrived.
    pub observed_at: Option<Timestamp>,
    /// Time from the first byte sent to the last byte received.
    pub latency_ms: Option<u32>,
    /// The marketplace's message if it refused the request.
    pub error: Option<String>,
    /// The item whose answer it took instead of being searched; absent if it was searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reused_item: Option<ItemId>,
    /// The attempt of that item which got the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reused_from: Option<AttemptId>,
    /// How old that answer was when the item took it, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub age_seconds: Option<u64>,
    /// The price that its search is to confirm for a rule with `confirm`; absent before and
    /// after. Until that search has ended, the item is pending or running, without a price of its
    /// own. Files have no such column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub confirming: Option<ConfirmedPrice>,
    /// The verdict on the price from your own history, as of the day on which it was found; only
    /// with `history_verdict=true`, and absent without a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub history_verdict: Option<HistoryVerdict>,
    /// The complete upstream response; only with `?expand=answer`. By default it is stored for 90
    /// days and up to a month longer; the operator may change this. Without it, `search_status`
    /// `ok` or `partial` means that it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>, nullable = false)]
    pub answer: Option<RawJson>,
}

/// A price that one more search is to find again, as it was found first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfirmedPrice {
    /// The price, in major units.
    #[serde(serialize_with = "crate::money::price")]
    pub price: Decimal,
    /// Its currency.
    pub currency: String,
    /// When it was found.
    pub at: Timestamp,
}

/// A page of a scan's items.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ItemPage {
    /// The items.
    pub data: Vec<Item>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}

/// One attempt of an item. It can cost two billed requests: a 5xx is retried once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "id": "att_01970a1b2c3d7e4f8a9b0c1d2e3f4a5d",
    "item_id": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c",
    "number": 1,
    "started_at": "2026-12-01T08:00:01Z", "ended_at": "2026-12-01T08:00:03Z",
    "requests_spent": 1, "http_status": 200, "search_status": "ok", "reason": null,
    "search_headers": {"x-search-status": "ok", "x-search-results": "12"},
    "latency_ms": 1610, "error": null
})))]
pub struct Attempt {
    /// Its id.
    pub id: AttemptId,
    /// Its item.
    pub item_id: ItemId,
    /// Its number; later attempts have higher ones, with gaps where a claim was released unsent.
    pub number: u32,
    /// When it was recorded, before its first byte was sent.
    pub started_at: Timestamp,
    /// When its response was complete; null while it runs.
    pub ended_at: Option<Timestamp>,
    /// Its billed requests.
    pub requests_spent: u32,
    /// The marketplace's last HTTP status; null without a response.
    pub http_status: Option<u16>,
    /// The search status.
    pub search_status: Option<SearchStatus>,
    /// Why the search failed or found nothing.
    #[schema(value_type = Option<SearchReason>)]
    pub reason: Option<String>,
    /// The `x-search-*` headers of the response.
    pub search_headers: BTreeMap<String, String>,
    /// Time from the first byte sent to the last byte received.
    pub latency_ms: Option<u32>,
    /// The marketplace's message if it refused the request.
    pub error: Option<String>,
}

/// Every attempt of an item, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptPage {
    /// The attempts.
    pub data: Vec<Attempt>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}
