//! Queries of scans and items.

use super::request::{ReasonWord, ScanEndpoint, SoughtText, Tag};
use super::state::{Expand, ItemSort, ItemState, ScanStatus};
use crate::ids::MonitorId;
use crate::primitives::{Cursor, ListFormat, PageLimit, bounded_integer};
use crate::query_string::query_string;
use crate::request_body::request_body;
use crate::status::SearchStatus;

request_body! {
    /// The query of `GET /v1/scans`.
    pub struct ScansQuery for "the query of scans" {
        required {}
        optional {
            /// Only scans in this status.
            status: ScanStatus;
            /// Only scans of this endpoint.
            endpoint: ScanEndpoint;
            /// Only scans with this tag.
            tag: Tag;
            /// Only scans of this monitor.
            monitor_id: MonitorId;
            /// Only scans whose label, tags, airports, or hotel or place contain each word of this text, in any case.
            text: SoughtText;
            /// The maximum scans of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the previous page.
            cursor: Cursor;
        }
        example { "status": "running", "limit": 50 }
    }
}

request_body! {
    /// The query of `GET /v1/scans/{id}/items`.
    pub struct ItemsQuery for "the query of items" {
        required {}
        optional {
            /// Only items in this state.
            state: ItemState;
            /// Only items with this search status.
            search_status: SearchStatus;
            /// Only items with this reason.
            reason: ReasonWord;
            /// The order.
            sort: ItemSort = ItemSort::Position => sort_or_default;
            /// Additional content of the items.
            expand: Expand;
            /// Whether each price comes with `history_verdict`: how it compares with your own past
            /// prices. Of at most 100 products; only JSON has verdicts.
            history_verdict: bool = false => history_verdict_or_default;
            /// The maximum items of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the previous page.
            cursor: Cursor;
            /// The format: a page of JSON, or all rows as a file. It overrides the header `Accept`;
            /// without both it is JSON.
            format: ListFormat;
        }
        example { "search_status": "degraded", "sort": "position" }
    }
}

request_body! {
    /// The query of `GET /v1/scans/{id}/decisions`.
    pub struct DecisionsQuery for "the query of decisions" {
        required {}
        optional {
            /// The maximum decisions of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the previous page.
            cursor: Cursor;
        }
        example { "limit": 50 }
    }
}

request_body! {
    /// The query of `GET /v1/scans/{id}`.
    pub struct ScanQuery for "the query of a scan" {
        required {}
        optional {
            /// Respond when the scan has ended, or after this many seconds.
            wait: WaitSeconds = WaitSeconds::NONE => wait_or_default;
        }
        example { "wait": 30 }
    }
}

request_body! {
    /// The query of `DELETE /v1/scans/{id}`.
    pub struct DeleteQuery for "the query of a deletion" {
        required {}
        optional {
            /// Also delete the scan's observations and the latest prices that came from it.
            history: bool = false => history_or_default;
        }
        example { "history": true }
    }
}

request_body! {
    /// The query of `GET /v1/scans/{id}/items`.
    pub struct ItemQuery for "the query of an item" {
        required {}
        optional {
            /// Additional content of the item.
            expand: Expand;
            /// Whether the price comes with `history_verdict`: how it compares with your own past
            /// prices.
            history_verdict: bool = false => history_verdict_or_default;
        }
        example { "expand": "answer" }
    }
}

bounded_integer! {
    /// The maximum wait of a read for the end of a scan.
    pub struct WaitSeconds(u8): 0..=60;
}

impl WaitSeconds {
    /// Respond at once.
    pub const NONE: Self = Self(0);
}

query_string!(
    ScansQuery,
    ItemsQuery,
    DecisionsQuery,
    ScanQuery,
    DeleteQuery,
    ItemQuery
);
