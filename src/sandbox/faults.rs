//! Magic values: the words that order an outcome, and what each does on the first and on later asks.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// Searches remembered for the outcomes that change with the second ask. Past it all are forgotten.
const MAX_REMEMBERED: usize = 200_000;

/// An outcome that was ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Empty,
    Partial,
    Degraded,
    DegradedOnce,
    FailedOnce,
    Failed,
    Hangs,
    Garbage,
    Throttled,
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The ordinary answer.
    None,
    Empty,
    Partial,
    Degraded,
    Failed,
    Hangs,
    Garbage,
    /// Refused by the marketplace, so not counted.
    Throttled,
}

/// One magic word with its meanings, as the front page lists it.
pub(super) struct Magic {
    pub(super) word: &'static str,
    pub(super) fault: Fault,
    pub(super) flights: &'static str,
    pub(super) hotels: &'static str,
}

const fn magic(
    word: &'static str,
    fault: Fault,
    flights: &'static str,
    hotels: &'static str,
) -> Magic {
    Magic {
        word,
        fault,
        flights,
        hotels,
    }
}

/// All magic words.
pub(super) const MAGIC: [Magic; 9] = [
    magic(
        "ZZE",
        Fault::Empty,
        "empty: 200 [], nothing flies there",
        "search, by-name and resolve 404; rooms 200 with an empty list",
    ),
    magic(
        "ZZP",
        Fault::Partial,
        "partial: half of the rows, upstream_timeout",
        "half of the properties or rooms; by-name is sold out (available false)",
    ),
    magic(
        "ZZD",
        Fault::Degraded,
        "degraded always: 200 [] (strict: 503 search_incomplete), blocked_page",
        "503 search_incomplete always",
    ),
    magic(
        "ZZR",
        Fault::DegradedOnce,
        "degraded on the first ask of a search, fine on the next",
        "503 search_incomplete on the first ask, fine on the next",
    ),
    magic(
        "ZZS",
        Fault::FailedOnce,
        "503 on the first ask, fine on the next",
        "the same",
    ),
    magic("ZZX", Fault::Failed, "503 always", "the same"),
    magic("ZZT", Fault::Hangs, "never answers", "the same"),
    magic(
        "ZZG",
        Fault::Garbage,
        "200 with a web page instead of JSON",
        "the same",
    ),
    magic(
        "ZZQ",
        Fault::Throttled,
        "429 with Retry-After: 1, not counted",
        "the same",
    ),
];

impl Fault {
    /// The outcome that a body orders: by its destination airport, or by the words that its destination, hotel name
    /// or hotel id begins with.
    pub(super) fn ordered_by(body: &Value) -> Option<Self> {
        let text = |field: &str| body.get(field).and_then(Value::as_str);
        let id = || text("hotel_booking_id").map(|id| id.rsplit('/').next().unwrap_or(id));
        text("to_airport")
            .or_else(|| text("destination"))
            .or_else(|| text("hotel_name"))
            .or_else(id)
            .and_then(Self::in_text)
    }

    fn in_text(text: &str) -> Option<Self> {
        let text = text.trim_start();
        let (word, rest) = text.split_at_checked(3)?;
        let ends = !rest.starts_with(|next: char| next.is_alphanumeric());
        MAGIC
            .iter()
            .find(|magic| ends && magic.word.eq_ignore_ascii_case(word))
            .map(|magic| magic.fault)
    }

    /// What happens on an ask, by how often this caller has asked exactly this before.
    pub(super) fn effect(self, asked_before: u64) -> Effect {
        let first = asked_before == 0;
        match self {
            Self::Empty => Effect::Empty,
            Self::Partial => Effect::Partial,
            Self::Degraded => Effect::Degraded,
            Self::DegradedOnce if first => Effect::Degraded,
            Self::FailedOnce if first => Effect::Failed,
            Self::DegradedOnce | Self::FailedOnce => Effect::None,
            Self::Failed => Effect::Failed,
            Self::Hangs => Effect::Hangs,
            Self::Garbage => Effect::Garbage,
            Self::Throttled => Effect::Throttled,
        }
    }
}

/// Whether the stay or flight begins on a 13th, which trips the demonstration key.
pub(super) fn begins_on_13th(body: &Value) -> bool {
    ["departure_date", "checkin_date"]
        .into_iter()
        .filter_map(|field| body.get(field).and_then(Value::as_str))
        .any(|date| date.ends_with("-13"))
}

/// How often each exact search was asked by each key.
#[derive(Debug, Default)]
pub(super) struct Memory {
    asks: Mutex<HashMap<u64, u64>>,
}

impl Memory {
    /// How often `key` has asked this of this path before; remembers this ask.
    pub(super) fn asked_before(&self, key: &str, path: &str, body: &Value) -> u64 {
        let mut hasher = DefaultHasher::new();
        (key, path, body.to_string()).hash(&mut hasher);
        let mut asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        if asks.len() >= MAX_REMEMBERED {
            asks.clear();
        }
        let count = asks.entry(hasher.finish()).or_default();
        *count += 1;
        *count - 1
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_body_orders_a_fault_by_the_word_that_its_target_begins_with() {
        for (body, fault) in [
            (json!({"to_airport": "ZZE"}), Some(Fault::Empty)),
            (json!({"to_airport": "zzp"}), Some(Fault::Partial)),
            (json!({"from_airport": "ZZD", "to_airport": "LHR"}), None),
            (json!({"destination": "ZZT City"}), Some(Fault::Hangs)),
            (json!({"hotel_name": "ZZX Hotel"}), Some(Fault::Failed)),
            (json!({"hotel_name": "ZZXenia"}), None),
            (json!({"hotel_name": "Hotel ZZX"}), None),
            (
                json!({"hotel_booking_id": "xx/zzg-hotel"}),
                Some(Fault::Garbage),
            ),
            (json!({"hotel_name": "é"}), None),
            (json!({"to_airport": 7}), None),
            (json!([]), None),
        ] {
            assert_eq!(Fault::ordered_by(&body), fault, "{body}");
        }
    }

    #[test]
    fn only_the_outcomes_of_the_first_ask_change() {
        for magic in MAGIC {
            let changes = matches!(magic.fault, Fault::DegradedOnce | Fault::FailedOnce);
            assert_eq!(
                magic.fault.effect(0) != magic.fault.effect(1),
                changes,
                "{}",
                magic.word
            );
            assert_eq!(
                magic.fault.effect(1),
                magic.fault.effect(9),
                "{}",
                magic.word
            );
        }
    }

    #[test]
    fn memory_is_for_each_key_path_and_exact_body() {
        let memory = Memory::default();
        let body = json!({"to_airport": "ZZR", "limit": 1});
        assert_eq!(memory.asked_before("a", "/x", &body), 0);
        assert_eq!(memory.asked_before("a", "/x", &body), 1);
        assert_eq!(memory.asked_before("b", "/x", &body), 0);
        assert_eq!(memory.asked_before("a", "/y", &body), 0);
        assert_eq!(
            memory.asked_before("a", "/x", &json!({"to_airport": "ZZR", "limit": 2})),
            0
        );
    }

    #[test]
    fn the_13th_is_that_of_a_departure_or_a_check_in() {
        assert!(begins_on_13th(&json!({"departure_date": "2027-01-13"})));
        assert!(begins_on_13th(&json!({"checkin_date": "2027-01-13"})));
        assert!(!begins_on_13th(
            &json!({"return_date": "2027-01-13", "departure_date": "2027-01-03"})
        ));
    }
}
