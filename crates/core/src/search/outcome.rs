//! The result of one search. Only `upstream` decides it, and never guesses a search status
//! (gateway.md, rule 15).

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::body::{self, AnswerBody};
use crate::contract::{Api, SearchStatus};

/// The marketplace's answer, or the reason why there is none.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// The classified result.
    pub finding: Finding,
    /// Status of the last response; `None` if there was none.
    pub http_status: Option<u16>,
    /// The `x-search-*` response headers in order, with lower-case names.
    pub search_headers: Vec<(String, String)>,
    /// The quota headers as forwarded to the caller: `x-plan-*` (gateway.md, rule 1).
    pub plan_headers: Vec<(String, String)>,
    /// The parsed quota headers.
    pub plan: PlanQuota,
    /// Requests that the marketplace will bill: each whose first byte may have been sent.
    pub billed_requests: u16,
    /// From the first byte sent to the last byte received, including the retry.
    pub latency: Duration,
}

/// A classified result. The variants are the rows of gateway.md, rule 45.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Finding {
    /// A usable answer, possibly without results.
    Answer(Answer),
    /// The engine answered 404: no such property or hotel (hotels only).
    Nothing { message: String },
    /// The search did not complete; results may exist.
    Incomplete(Incomplete),
    /// 429. Forwarded unchanged, never retried (gateway.md, rule 17).
    RateLimited(RateLimit),
    /// 401: unknown key.
    KeyRejected { message: String },
    /// 403: the key has no subscription to this API.
    NotSubscribed { api: Api, message: String },
    /// 400 or 422: the engine rejected the request.
    Refused { message: String },
}

impl Finding {
    /// The metrics label, one of a fixed set. An answer without a stated status is `unstated`.
    pub const fn label(&self) -> &'static str {
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

/// A usable answer: an array of objects for flights, an object for hotels (gateway.md, rule 14).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    /// The body, capped and cleaned as in gateway.md, rule 14; otherwise the received text.
    #[serde(with = "body::stored_separately")]
    pub body: AnswerBody,
    /// Itineraries, properties or rooms in the body; 1 for a hotel that is available by name.
    pub results: usize,
    /// The status in the marketplace's header, if any.
    pub stated: Option<SearchStatus>,
    /// The reason in the marketplace's header; `ok` answers may have one too (gateway.md, rule 3).
    pub reason: Option<String>,
}

/// Why there is no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Incomplete {
    /// No answer within the time budget.
    Timeout,
    /// Two server errors, or an unexpected status. Holds the status.
    Status(u16),
    /// Connecting failed, or the connection broke.
    Connection,
    /// Invalid answer: not JSON, wrong shape, too large or nested too deeply.
    Unreadable,
    /// The engine reports an incomplete search (503 `search_incomplete`) and its reason.
    Stated { reason: String },
}

impl Incomplete {
    /// The value of `X-Search-Reason`, of the error's `reason` and of the item's.
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

/// A 429 response, complete, so that the gateway can forward it unchanged.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RateLimit {
    /// The received body. Stored as text; invalid UTF-8 is replaced.
    #[serde(with = "text")]
    pub body: Bytes,
    /// `Content-Type` as received.
    pub content_type: Option<String>,
    /// `Retry-After` as received.
    pub retry_after: Option<String>,
}

impl RateLimit {
    /// `Retry-After` in seconds. The marketplace does not use the date form.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.as_deref()?.trim().parse().ok()
    }
}

/// Length of a rate window.
const WINDOW_SECONDS: u64 = 60;

/// The caller's plan by the quota headers; `None` where a header is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanQuota {
    /// Requests per month.
    pub limit: Option<u64>,
    /// Remaining requests.
    pub remaining: Option<u64>,
    /// Seconds until the next month of the plan.
    pub reset_seconds: Option<u64>,
    /// The rate window, if the plan has one.
    pub window: Option<RateWindow>,
}

/// `limit` requests per 60 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateWindow {
    pub limit: u64,
    pub remaining: Option<u64>,
    pub reset_seconds: Option<u64>,
}

impl PlanQuota {
    /// The marketplace reports no remaining requests.
    pub fn is_used_up(&self) -> bool {
        self.remaining == Some(0)
    }

    /// The plan `seconds` later. Counts of a period that has ended since become unknown.
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

/// Serializes bytes as text.
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
    fn counts_of_an_ended_plan_period_become_unknown() {
        let window = RateWindow {
            limit: 150,
            remaining: Some(9),
            reset_seconds: Some(30),
        };
        let plan = PlanQuota {
            limit: Some(5_000),
            remaining: Some(7),
            reset_seconds: Some(600),
            window: Some(window),
        };
        let left = RateWindow {
            reset_seconds: Some(1),
            ..window
        };
        assert_eq!(plan.after(0), plan);
        assert_eq!(
            plan.after(29),
            PlanQuota {
                reset_seconds: Some(571),
                window: Some(left),
                ..plan
            }
        );
        assert_eq!(
            plan.after(30),
            PlanQuota {
                reset_seconds: Some(570),
                window: None,
                ..plan
            }
        );
        assert_eq!(
            plan.after(600),
            PlanQuota {
                limit: Some(5_000),
                ..PlanQuota::default()
            }
        );
        let unknown = PlanQuota {
            reset_seconds: None,
            window: None,
            ..plan
        };
        assert_eq!(
            unknown.after(1),
            PlanQuota {
                limit: Some(5_000),
                ..PlanQuota::default()
            },
            "the end of the period is unknown"
        );
    }
}
