//! Queries of monitors and slots.

use super::resource::MonitorStatus;
use super::slot::SlotOutcome;
use crate::primitives::{Cursor, PageLimit};
use crate::query_string::query_string;
use crate::request_body::request_body;
use crate::scans::SoughtText;

request_body! {
    /// The query of `GET /v1/monitors`.
    pub struct MonitorsQuery for "the query of monitors" {
        required {}
        optional {
            /// Only monitors in this status.
            status: MonitorStatus;
            /// Only monitors whose name, airports, or hotel or place contain each word of this text, in any case.
            text: SoughtText;
            /// The maximum monitors of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the previous page.
            cursor: Cursor;
        }
        example { "status": "active" }
    }
}

request_body! {
    /// The query of `GET /v1/monitors/{id}/slots`.
    pub struct SlotsQuery for "the query of slots" {
        required {}
        optional {
            /// Only slots with this outcome.
            outcome: SlotOutcome;
            /// The maximum slots of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the previous page.
            cursor: Cursor;
        }
        example { "outcome": "missed" }
    }
}

query_string!(MonitorsQuery, SlotsQuery);
