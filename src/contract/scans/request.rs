//! What orders a scan or a retry. Only the shape is checked here: the searches themselves are checked by the plan, each
//! as the body of its endpoint.

use super::fields::SearchFields;
use super::state::Priority;
use super::strategy::Strategy;
use super::sweep::Sweep;
use crate::contract::declare::request;
use crate::contract::endpoint::Endpoint;
use crate::contract::fault::Faults;
use crate::contract::field::{FieldValue, refused};
use crate::contract::primitives::{List, NonEmpty, text, whole_number};
use crate::contract::words::{listed, words};
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

request! {
    /// Body of `POST /v1/scans`: one request with some fields swept.
    pub struct ScanRequest for "scans" {
        required {
            /// The endpoint that every search of the scan is for.
            endpoint: ScanEndpoint;
            /// The fields that all searches share. With one value from each swept field it is exactly the body that
            /// `POST /v1/<endpoint>` takes.
            request: SearchFields;
        }
        optional {
            /// The fields that differ, each with its values. Without it the scan is one search.
            sweep: Sweep;
            /// What people call the scan.
            label: Label;
            /// Words to find it by.
            tags: List<Tag, 0, 20>;
            /// A hard ceiling on billed requests, second tries included; at least the number of items (in two phases: of those that may be searched).
            max_requests: MaxRequests;
            /// What may be asked again by itself: degraded items only. Without it every item is asked once.
            retry: RetryPolicy;
            /// Search in two phases, so that fewer requests find the cheapest dates.
            strategy: Strategy;
            /// Whether somebody waits for it.
            priority: Priority = Priority::Interactive => priority_or_default;
            /// Send `max_price` and `sort_type: "Price"` upstream instead of applying them here. The engine then gives
            /// no price band.
            upstream_filters: bool = false => upstream_filters_or_default;
            /// How many rows a flight scan asks upstream for.
            upstream_limit: UpstreamLimit = UpstreamLimit::FIFTY => upstream_limit_or_default;
        }
        example {
            "endpoint": "flights/oneway",
            "request": {"from_airport": "TLV", "currency": "USD"},
            "sweep": {
                "departure_date": {"from": "2027-01-01", "to": "2027-01-31", "weekdays": ["thu", "fri"]},
                "to_airport": ["LHR", "CDG"]
            },
            "label": "January weekends",
            "tags": ["demo"],
            "max_requests": 40,
            "retry": {"max_attempts": 1, "delay_seconds": 60},
            "priority": "interactive"
        }
    }
}

request! {
    /// How often a degraded item may be asked by itself. Nothing is spent that was not asked for.
    pub struct RetryPolicy for "retry" {
        required {}
        optional {
            /// Searches per item; 1 means that nothing is asked twice.
            max_attempts: MaxAttempts = MaxAttempts::ONE => max_attempts_or_default;
            /// Seconds between two of them.
            delay_seconds: DelaySeconds = DelaySeconds::MINUTE => delay_seconds_or_default;
        }
        example { "max_attempts": 1, "delay_seconds": 60 }
    }
}

request! {
    /// Body of `POST /v1/scans/{id}/retry`: which ended items are to be asked again.
    pub struct RetryRequest for "retry" {
        required {
            /// What became of them.
            search_status: NonEmpty<RetryStatus>;
        }
        optional {
            /// Of those, only items with one of these reasons.
            reasons: NonEmpty<ReasonWord>;
            /// A new ceiling on the scan's billed requests.
            max_requests: MaxRequests;
        }
        example { "search_status": ["degraded"], "reasons": ["upstream_timeout", "worker_lost"] }
    }
}

request! {
    /// Body of `POST /v1/scans/{id}/resume`; it may be left out.
    pub struct ResumeRequest for "resume" {
        required {}
        optional {
            /// A new ceiling on the scan's billed requests, above what is spent: what a scan needs whose budget is spent.
            max_requests: MaxRequests;
        }
        example { "max_requests": 80 }
    }
}

words! {
    /// What can be asked again: the two search statuses that are not a whole answer, and items that failed.
    pub enum RetryStatus {
        /// Done, but part of the search failed.
        Partial = "partial",
        /// Done, but the search did not complete.
        Degraded = "degraded",
        /// The marketplace refused the question.
        Failed = "failed",
    }
}

/// One of the five endpoints that a scan can sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScanEndpoint(Endpoint);

impl ScanEndpoint {
    /// The endpoint; never resolve, which has no prices.
    #[must_use]
    pub const fn get(self) -> Endpoint {
        self.0
    }
}

impl FieldValue for ScanEndpoint {
    fn allowed() -> Cow<'static, str> {
        format!(
            "one of {}",
            listed(Endpoint::SEARCHES.iter().map(|endpoint| endpoint.as_str()))
        )
        .into()
    }

    fn read(value: &Value) -> Result<Self, Faults> {
        value
            .as_str()
            .and_then(Endpoint::parse)
            .filter(|endpoint| Endpoint::SEARCHES.contains(endpoint))
            .map(Self)
            .ok_or_else(|| refused::<Self>(value))
    }

    fn to_value(&self) -> Value {
        self.0.to_value()
    }

    fn schema() -> Schema {
        let words = Endpoint::SEARCHES.iter().map(|endpoint| endpoint.as_str());
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(words))
            .into()
    }
}

/// The longest label, in characters.
const MAX_LABEL_CHARS: usize = 200;
/// The longest tag, in characters.
const MAX_TAG_CHARS: usize = 50;
/// The longest reason, in characters.
const MAX_REASON_CHARS: usize = 100;

text! {
    /// What people call a scan.
    pub struct Label {
        allowed: "text of at most 200 characters without control characters",
        accepts: |text| text.chars().count() <= MAX_LABEL_CHARS && !text.chars().any(char::is_control),
        forwards: str::to_owned,
        examples: ["January weekends"],
        schema: { max_length: MAX_LABEL_CHARS, pattern: r"^[^\u0000-\u001F\u007F-\u009F]*$" },
    }
}

text! {
    /// A word to find scans by.
    pub struct Tag {
        allowed: "text of 1 to 50 characters without control characters",
        accepts: |text| (1..=MAX_TAG_CHARS).contains(&text.chars().count()) && !text.chars().any(char::is_control),
        forwards: str::to_owned,
        examples: ["demo"],
        schema: { min_length: 1, max_length: MAX_TAG_CHARS, pattern: r"^[^\u0000-\u001F\u007F-\u009F]*$" },
    }
}

text! {
    /// A reason as items state it.
    pub struct ReasonWord {
        allowed: "a reason as items state it, such as \"upstream_timeout\": 1 to 100 letters, digits and underscores",
        accepts: |text| {
            (1..=MAX_REASON_CHARS).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        },
        forwards: str::to_owned,
        examples: ["upstream_timeout"],
        schema: { min_length: 1, max_length: MAX_REASON_CHARS, pattern: "^[A-Za-z0-9_]+$" },
    }
}

whole_number! {
    /// A ceiling on billed requests.
    pub struct MaxRequests(u32): 1..=2_147_483_647;
}

whole_number! {
    /// Searches per item.
    pub struct MaxAttempts(u8): 1..=10;
}

impl MaxAttempts {
    /// The documented default: nothing is asked twice.
    pub const ONE: Self = Self(1);
}

whole_number! {
    /// Seconds between two attempts of an item; up to a day.
    pub struct DelaySeconds(u32): 0..=86_400;
}

impl DelaySeconds {
    /// The documented default.
    pub const MINUTE: Self = Self(60);
}

whole_number! {
    /// Rows that a flight scan asks upstream for.
    pub struct UpstreamLimit(u32): 1..=200;
}

impl UpstreamLimit {
    /// The documented default.
    pub const FIFTY: Self = Self(50);
}
