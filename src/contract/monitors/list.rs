//! What lists of monitors and of their slots can be asked for.

use super::resource::{MonitorStatus, SlotOutcome};
use crate::contract::declare::request;
use crate::contract::primitives::{Cursor, PageLimit};
use crate::contract::query::query;

request! {
    /// The query of `GET /v1/monitors`.
    pub struct MonitorsQuery for "the query of monitors" {
        required {}
        optional {
            /// Only monitors in this status.
            status: MonitorStatus;
            /// The most monitors of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the page before.
            cursor: Cursor;
        }
        example { "status": "active" }
    }
}

request! {
    /// The query of `GET /v1/monitors/{id}/slots`.
    pub struct SlotsQuery for "the query of slots" {
        required {}
        optional {
            /// Only slots of which this became.
            outcome: SlotOutcome;
            /// The most slots of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the page before.
            cursor: Cursor;
        }
        example { "outcome": "missed" }
    }
}

query!(MonitorsQuery, SlotsQuery);
