//! The events of a scan on the wire: `text/event-stream` (jobs-api, "Scans"; the HTML standard, "Server-sent events").
//!
//! Here: what a client may ask for, and the text of one event. Not here: which events there are, and when (`scans::watch`).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::contract::declare::request;
use crate::contract::primitives::whole_number;
use crate::contract::query::query;
use crate::contract::words::words;

whole_number! {
    /// The id of an event. Ids of a scan grow; 0 is before the first.
    pub struct EventId(u64): 0..=9_007_199_254_740_991, means "the id of an event of this scan";
}

impl EventId {
    /// Reads the header `Last-Event-ID`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // `u64` reads a plus sign too, which no id has.
        text.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse().ok().and_then(Self::new))
            .flatten()
    }
}

request! {
    /// The query of `GET /v1/scans/{id}/events`.
    pub struct EventsQuery for "the query of events" {
        required {}
        optional {
            /// Go on after this event, for clients that cannot set the header `Last-Event-ID`, which goes before it. 0: from the first.
            last_event_id: EventId;
        }
        example { "last_event_id": 42 }
    }
}

query!(EventsQuery);

words! {
    /// What an event of a scan is about.
    pub enum EventKind {
        /// The scan, as it is now.
        Scan = "scan",
        /// An item that changed, as it is now, without its answer.
        Item = "item",
        /// The events after the client's last are not kept any more: what follows begins anew.
        Reset = "reset",
    }
}

/// Data of the event `reset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"last_event_id": 17})))]
pub struct EventsReset {
    /// The id that the client named, which nothing can be told after.
    pub last_event_id: u64,
}

impl EventKind {
    /// One event in the form of `text/event-stream`: `data` on one line, as JSON writes it. Without an id the client keeps the one that
    /// it has.
    pub fn text(self, id: Option<u64>, data: &impl Serialize) -> String {
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        // Our own structs of texts and numbers: there is nothing in them that JSON cannot say.
        let data = serde_json::to_string(data).unwrap_or_default();
        format!("{id}event: {self}\ndata: {data}\n\n")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_its_lines_and_a_blank_one() {
        assert_eq!(
            EventKind::Item.text(Some(7), &json!({"a": "x\ny"})),
            "id: 7\nevent: item\ndata: {\"a\":\"x\\ny\"}\n\n"
        );
        assert_eq!(
            EventKind::Reset.text(None, &EventsReset { last_event_id: 3 }),
            "event: reset\ndata: {\"last_event_id\":3}\n\n"
        );
    }

    #[test]
    fn an_id_is_digits() {
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
