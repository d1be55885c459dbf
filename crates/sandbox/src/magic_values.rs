//! Magic values: words in a request that select its outcome, on the first and on later calls.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// Searches with a call count, for outcomes that change with the second call. Beyond it all counts
/// are reset.
const MAX_COUNTED_CALLS: usize = 200_000;

/// The outcome that a magic value selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MagicOutcome {
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

/// The outcome of one request.
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

/// All magic words; the front page says what they mean.
pub(super) const MAGIC_VALUES: [(&str, MagicOutcome); 9] = [
    ("ZZE", MagicOutcome::Empty),
    ("ZZP", MagicOutcome::Partial),
    ("ZZD", MagicOutcome::Degraded),
    ("ZZR", MagicOutcome::DegradedOnce),
    ("ZZS", MagicOutcome::FailedOnce),
    ("ZZX", MagicOutcome::Failed),
    ("ZZT", MagicOutcome::Hangs),
    ("ZZG", MagicOutcome::Garbage),
    ("ZZQ", MagicOutcome::Throttled),
];

impl MagicOutcome {
    /// The outcome that a body selects by its destination airport, or by the first word of its
    /// destination, hotel name or hotel id.
    pub(super) fn requested_by(body: &Value) -> Option<Self> {
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
        MAGIC_VALUES
            .iter()
            .find(|(known, _)| ends && known.eq_ignore_ascii_case(word))
            .map(|(_, outcome)| *outcome)
    }

    /// The outcome of a call, given how often this key has sent exactly this body before.
    pub(super) fn effect(self, earlier_calls: u64) -> Effect {
        let first = earlier_calls == 0;
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

/// Whether the stay or flight begins on a 13th, which the demo key degrades.
pub(super) fn begins_on_13th(body: &Value) -> bool {
    ["departure_date", "checkin_date"]
        .into_iter()
        .filter_map(|field| body.get(field).and_then(Value::as_str))
        .any(|date| date.ends_with("-13"))
}

/// Calls per key, path and exact body.
#[derive(Debug, Default)]
pub(super) struct CallCounts {
    counts: Mutex<HashMap<u64, u64>>,
}

impl CallCounts {
    /// Counts this call and returns how many came before it.
    pub(super) fn count_call(&self, key: &str, path: &str, body: &Value) -> u64 {
        let mut hasher = DefaultHasher::new();
        (key, path, body.to_string()).hash(&mut hasher);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MAX_COUNTED_CALLS {
            counts.clear();
        }
        let count = counts.entry(hasher.finish()).or_default();
        *count += 1;
        *count - 1
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_word_of_the_target_selects_the_outcome() {
        for (body, outcome) in [
            (json!({"to_airport": "ZZE"}), Some(MagicOutcome::Empty)),
            (json!({"to_airport": "zzp"}), Some(MagicOutcome::Partial)),
            (json!({"from_airport": "ZZD", "to_airport": "LHR"}), None),
            (
                json!({"destination": "ZZT City"}),
                Some(MagicOutcome::Hangs),
            ),
            (
                json!({"hotel_name": "ZZX Hotel"}),
                Some(MagicOutcome::Failed),
            ),
            (json!({"hotel_name": "ZZXenia"}), None),
            (json!({"hotel_name": "Hotel ZZX"}), None),
            (
                json!({"hotel_booking_id": "xx/zzg-hotel"}),
                Some(MagicOutcome::Garbage),
            ),
            (json!({"hotel_name": "é"}), None),
            (json!({"to_airport": 7}), None),
            (json!([]), None),
        ] {
            assert_eq!(MagicOutcome::requested_by(&body), outcome, "{body}");
        }
    }

    #[test]
    fn only_once_outcomes_change_with_the_second_call() {
        for (word, outcome) in MAGIC_VALUES {
            let changes = matches!(
                outcome,
                MagicOutcome::DegradedOnce | MagicOutcome::FailedOnce
            );
            assert_eq!(outcome.effect(0) != outcome.effect(1), changes, "{word}");
            assert_eq!(outcome.effect(1), outcome.effect(9), "{word}");
        }
    }

    #[test]
    fn calls_are_counted_per_key_path_and_exact_body() {
        let call_counts = CallCounts::default();
        let body = json!({"to_airport": "ZZR", "limit": 1});
        assert_eq!(call_counts.count_call("a", "/x", &body), 0);
        assert_eq!(call_counts.count_call("a", "/x", &body), 1);
        assert_eq!(call_counts.count_call("b", "/x", &body), 0);
        assert_eq!(call_counts.count_call("a", "/y", &body), 0);
        assert_eq!(
            call_counts.count_call("a", "/x", &json!({"to_airport": "ZZR", "limit": 2})),
            0
        );
    }

    #[test]
    fn a_13th_counts_for_departure_and_check_in_only() {
        assert!(begins_on_13th(&json!({"departure_date": "2027-01-13"})));
        assert!(begins_on_13th(&json!({"checkin_date": "2027-01-13"})));
        assert!(!begins_on_13th(
            &json!({"return_date": "2027-01-13", "departure_date": "2027-01-03"})
        ));
    }
}
