//! What lists of scans and items can be asked for.

use super::request::{ReasonWord, ScanEndpoint, Tag};
use super::state::{Expand, ItemSort, ItemState, ScanStatus};
use crate::contract::declare::request;
use crate::contract::primitives::{Cursor, ListFormat, PageLimit, whole_number};
use crate::contract::query::query;
use crate::contract::status::SearchStatus;
use crate::ids::MonitorId;

request! {
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
            /// Only scans that this monitor made.
            monitor_id: MonitorId;
            /// The most scans of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the page before.
            cursor: Cursor;
        }
        example { "status": "running", "limit": 50 }
    }
}

request! {
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
            /// What to show the items with.
            expand: Expand;
            /// The most items of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the page before.
            cursor: Cursor;
            /// The form: a page of JSON, or all rows as a file. It goes before the header `Accept`; without both it is JSON.
            format: ListFormat;
        }
        example { "search_status": "degraded", "sort": "position" }
    }
}

request! {
    /// The query of `GET /v1/scans/{id}`.
    pub struct ScanQuery for "the query of a scan" {
        required {}
        optional {
            /// Answer when the scan has ended, or after this many seconds.
            wait: WaitSeconds = WaitSeconds::NONE => wait_or_default;
        }
        example { "wait": 30 }
    }
}

request! {
    /// The query of `DELETE /v1/scans/{id}`.
    pub struct DeleteQuery for "the query of a deletion" {
        required {}
        optional {
            /// Delete what the scan saw too: its observations, and the latest prices that came from it.
            history: bool = false => history_or_default;
        }
        example { "history": true }
    }
}

request! {
    /// The query of `GET /v1/scans/{id}/items`.
    pub struct ItemQuery for "the query of an item" {
        required {}
        optional {
            /// What to show the item with.
            expand: Expand;
        }
        example { "expand": "answer" }
    }
}

whole_number! {
    /// How long a read of a scan may wait for its end.
    pub struct WaitSeconds(u8): 0..=60;
}

impl WaitSeconds {
    /// Answer at once.
    pub const NONE: Self = Self(0);
}

query!(ScansQuery, ItemsQuery, ScanQuery, DeleteQuery, ItemQuery);
