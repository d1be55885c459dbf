//! The events of a scan: `text/event-stream` (scans.md, rules 63 and 64; the HTML standard,
//! "Server-sent events").
//!
//! Here: the query, and the text of one event. Not here: which events occur, and when
//! (`scans::watch`).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::primitives::bounded_integer;
use crate::query_string::query_string;
use crate::request_body::request_body;
use crate::string_enum::string_enum;

bounded_integer! {
    /// The id of an event. The ids of a scan increase; 0 is before the first.
    pub struct EventId(u64): 0..=9_007_199_254_740_991, means "the id of an event of this scan";
}

impl EventId {
    /// Reads the header `Last-Event-ID`.
    pub fn parse(text: &str) -> Option<Self> {
        // `u64` also parses a plus sign, which no id has.
        text.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse().ok().and_then(Self::new))
            .flatten()
    }
}

request_body! {
    /// The query of `GET /v1/scans/{id}/events`.
    pub struct EventsQuery for "the query of events" {
        required {}
        optional {
            /// Continue after this event, for clients that cannot set the header `Last-Event-ID`,
            /// which has precedence. 0: from the first.
            last_event_id: EventId;
        }
        example { "last_event_id": 42 }
    }
}

query_string!(EventsQuery);

string_enum! {
    /// The type of a scan event.
    pub enum EventKind {
        /// The scan, as it is now.
        Scan = "scan",
        /// An item that changed, as it is now, without its answer.
        Item = "item",
        /// The events after the client's last one are deleted: the stream restarts with the current
        /// state.
        Reset = "reset",
    }
}

/// Data of the event `reset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"last_event_id": 17})))]
pub struct EventsReset {
    /// The id that the client sent.
    pub last_event_id: u64,
}

impl EventKind {
    /// One event in the format `text/event-stream`, with `data` as one line of JSON. Without an id,
    /// the client keeps its last one.
    pub fn to_event_stream(self, id: Option<u64>, data: &impl Serialize) -> String {
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        // Serialization of our own structs cannot fail.
        let data = serde_json::to_string(data).unwrap_or_default();
        format!("{id}event: {self}\ndata: {data}\n\n")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_ends_with_a_blank_line() {
        assert_eq!(
            EventKind::Item.to_event_stream(Some(7), &json!({"a": "x\ny"})),
            "id: 7\nevent: item\ndata: {\"a\":\"x\\ny\"}\n\n"
        );
        assert_eq!(
            EventKind::Reset.to_event_stream(None, &EventsReset { last_event_id: 3 }),
            "event: reset\ndata: {\"last_event_id\":3}\n\n"
        );
    }

    #[test]
    fn an_event_id_consists_of_digits() {
        assert_eq!(EventId::parse("0").map(EventId::get), Some(0));
        assert_eq!(
            EventId::parse("9007199254740991").map(EventId::get),
            Some(EventId::MAX)
        );
        for text in [
            "",
            "+1",
            "-1",
            " 1",
            "1.0",
            "x",
            "9007199254740992",
            "99999999999999999999999",
        ] {
            assert_eq!(EventId::parse(text), None, "{text}");
        }
    }
}
