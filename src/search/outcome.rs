//! What became of one search. Decided in `upstream` alone; a search status is never guessed (contract 15).

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::body::{self, AnswerBody};
use crate::contract::{Api, SearchStatus};

/// One answer of the marketplace, or the lack of one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// What was found.
    pub finding: Finding,
    /// The status that the marketplace answered with last; `None` when there was no answer.
    pub http_status: Option<u16>,
    /// The `x-search-*` headers that came back, names in lower case, in their order.
    pub search_headers: Vec<(String, String)>,
    /// The quota headers that came back under the names they go out with: `x-plan-*` (contract 1).
    pub plan_headers: Vec<(String, String)>,
    /// The same headers, read.
    pub plan: PlanQuota,
    /// How many requests the marketplace will bill for this: every request whose first byte may have been sent.
    pub billed_requests: u16,
    /// From the first byte out to the last byte in, the second try included.
    pub latency: Duration,
}

/// What was found. The variants are the rows of contract.md's outcome table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Finding {
    /// A usable answer, which may hold nothing.
    Answer(Answer),
    /// The engine says with a 404 that there is nothing: no property, no such hotel (hotels only).
    Nothing { message: String },
    /// The search did not complete: whether there is anything to find is unknown.
    Incomplete(Incomplete),
    /// 429. Passed on unchanged, never tried again (contract 17).
    RateLimited(RateLimit),
    /// 401: the marketplace does not know the key.
    KeyRejected { message: String },
    /// 403: the key has no subscription to this API.
    NotSubscribed { api: Api, message: String },
    /// 400 or 422: the engine refuses the question itself.
    Refused { message: String },
}

impl Finding {
    /// One word for it, of a fixed few: for metrics. A status is never guessed, so an answer that states none is `unstated`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Answer(answer) => match answer.stated {
                Some(status) => status.as_str(),
                None => "unstated",
            },
            Self::Nothing { .. } => "nothing",
            Self::Incomplete(Incomplete::Timeout) => "upstream_timeout",
            Self::Incomplete(Incomplete::Status(_)) => "upstream_status",
            Self::Incomplete(Incomplete::Connection) => "upstream_connection",
            Self::Incomplete(Incomplete::Unreadable) => "unreadable_response",
            Self::Incomplete(Incomplete::Stated { .. }) => "search_incomplete",
            Self::RateLimited(_) => "rate_limited",
            Self::KeyRejected { .. } => "key_rejected",
            Self::NotSubscribed { .. } => "not_subscribed",
            Self::Refused { .. } => "refused",
        }
    }
}

/// A usable answer: an array of objects for flights, an object for hotels (contract 14).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    /// The body, capped and cleaned as contract 14 says; otherwise the text that came.
    #[serde(with = "body::apart")]
    pub body: AnswerBody,
    /// Itineraries, properties or rooms in the body; 1 for a hotel that is available by name.
    pub results: usize,
    /// The status that the marketplace stated; `None` where it stated none.
    pub stated: Option<SearchStatus>,
    /// The reason that the marketplace stated; it may ride on an `ok` answer too (contract 3).
    pub reason: Option<String>,
}

/// Why there is no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Incomplete {
    /// No answer within the time budget.
    Timeout,
    /// A server error twice, or a status that means nothing here. Holds the status.
    Status(u16),
    /// No connection, or it broke.
    Connection,
    /// An answer that cannot be read: not JSON, the wrong kind, too large or too deep.
    Unreadable,
    /// The engine itself says that its search did not complete (503 `search_incomplete`), with its reason.
    Stated { reason: String },
}

impl Incomplete {
    /// The word for it in `X-Search-Reason`, in the error's `reason` and on the item.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Timeout => "upstream_timeout",
            Self::Status(_) => "upstream_status",
            Self::Connection => "upstream_connection",
            Self::Unreadable => "unreadable_response",
            Self::Stated { reason } => reason,
        }
    }
}

/// A 429, kept whole so that the gateway can pass it on unchanged.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RateLimit {
    /// The body as it came. Kept as text: what is no UTF-8 is replaced in it.
    #[serde(with = "text")]
    pub body: Bytes,
    /// Its content type as it came.
    pub content_type: Option<String>,
    /// `Retry-After` as it came.
    pub retry_after: Option<String>,
}

impl RateLimit {
    /// `Retry-After` in seconds, where it is a number of seconds; the date form is not used by the marketplace.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.as_deref()?.trim().parse().ok()
    }
}

/// The length of a rate window.
const WINDOW_SECONDS: u64 = 60;

/// What the quota headers say of the caller's plan; each `None` where the marketplace did not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanQuota {
    /// Requests a month.
    pub limit: Option<u64>,
    /// Requests left of them.
    pub remaining: Option<u64>,
    /// Seconds until the month starts anew.
    pub reset_seconds: Option<u64>,
    /// The rate window, on plans that have one.
    pub window: Option<RateWindow>,
}

/// A rate window: `limit` requests in each 60 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateWindow {
    pub limit: u64,
    pub remaining: Option<u64>,
    pub reset_seconds: Option<u64>,
}

impl PlanQuota {
    /// The plan's requests are used up, by the marketplace's own word.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.remaining == Some(0)
    }

    /// What of it holds still so many seconds after it was said: a period that has begun anew has more left, nobody knows how much.
    #[must_use]
    pub fn after(self, seconds: u64) -> Self {
        let left = |reset: Option<u64>| {
            reset
                .and_then(|reset| reset.checked_sub(seconds))
                .filter(|left| *left > 0)
        };
        let reset_seconds = left(self.reset_seconds);
        let window = self.window.and_then(|window| {
            let reset = left(Some(window.reset_seconds.unwrap_or(WINDOW_SECONDS)))?;
            Some(RateWindow {
                reset_seconds: Some(reset),
                ..window
            })
        });
        Self {
            limit: self.limit,
            remaining: self.remaining.filter(|_| reset_seconds.is_some()),
            reset_seconds,
            window,
        }
    }
}

/// Bytes that are kept as text.
mod text {
    use bytes::Bytes;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        bytes: &Bytes,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Bytes, D::Error> {
        String::deserialize(deserializer).map(Bytes::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_plan_headers_holds_later_what_has_not_begun_anew() {
        let window = RateWindow {
            limit: 150,
            remaining: Some(9),
            reset_seconds: Some(30),
        };
        let said = PlanQuota {
            limit: Some(5_000),
            remaining: Some(7),
            reset_seconds: Some(600),
            window: Some(window),
        };
        let left = RateWindow {
            reset_seconds: Some(1),
            ..window
        };
        assert_eq!(said.after(0), said);
        assert_eq!(
            said.after(29),
            PlanQuota {
                reset_seconds: Some(571),
                window: Some(left),
                ..said
            }
        );
        assert_eq!(
            said.after(30),
            PlanQuota {
                reset_seconds: Some(570),
                window: None,
                ..said
            }
        );
        assert_eq!(
            said.after(600),
            PlanQuota {
                limit: Some(5_000),
                ..PlanQuota::default()
            }
        );
        let unknown = PlanQuota {
            reset_seconds: None,
            window: None,
            ..said
        };
        assert_eq!(
            unknown.after(1),
            PlanQuota {
                limit: Some(5_000),
                ..PlanQuota::default()
            },
            "nobody knows until when"
        );
    }
}
