//! Requests that create, retry or resume a scan. Only their shape is checked here: the plan checks
//! each search as the body of its endpoint.

use super::search_fields::SearchFields;
use super::state::Priority;
use super::strategy::Strategy;
use super::sweep::Sweep;
use crate::endpoint::Endpoint;
use crate::field::{FieldValue, invalid_value};
use crate::primitives::{BoundedList, NonEmpty, bounded_integer, is_name, text_type};
use crate::request_body::request_body;
use crate::string_enum::{quoted_list, string_enum};
use crate::validation::ValidationErrors;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

request_body! {
    /// Body of `POST /v1/scans`: one request with some fields swept.
    pub struct ScanRequest for "scans" {
        required {
            /// The endpoint that every search of the scan is for.
            endpoint: ScanEndpoint;
            /// The fields that all searches share. Together with one value of each swept field it
            /// is a body of `POST /v1/<endpoint>`.
            request: SearchFields;
        }
        optional {
            /// The fields that differ, each with its values. Without it the scan is one search.
            sweep: Sweep;
            /// A name of the scan.
            label: Label;
            /// Tags for filtering.
            tags: BoundedList<Tag, 0, 20>;
            /// A hard limit of billed requests, retries included; at least the number of items (in
            /// `watch` the budget; with `find` and `max_age_seconds` any).
            max_requests: MaxRequests;
            /// Automatic retries of degraded items. Without it every item is searched once.
            retry: RetryPolicy;
            /// Search only what can still be the answer, with fewer requests.
            strategy: Strategy;
            /// Take a complete answer to an equal search that is at most this old, instead of buying
            /// it again, and buy equal searches in flight once. Without it a submitted scan has the
            /// account's `max_age_seconds`, unless it has samples; 0 reuses nothing.
            max_age_seconds: MaxAgeSeconds;
            /// The priority of its searches.
            priority: Priority = Priority::Interactive => priority_or_default;
            /// Send `max_price` and `sort_type: "Price"` upstream instead of applying them here.
            /// The engine then gives no price band.
            upstream_filters: bool = false => upstream_filters_or_default;
            /// The maximum rows of each flight search.
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

request_body! {
    /// Automatic retries of degraded items. By default there are none.
    pub struct RetryPolicy for "retry" {
        required {}
        optional {
            /// Maximum attempts per item; 1 means no retries.
            max_attempts: MaxAttempts = MaxAttempts::ONE => max_attempts_or_default;
            /// Seconds between two attempts.
            delay_seconds: DelaySeconds = DelaySeconds::MINUTE => delay_seconds_or_default;
        }
        example { "max_attempts": 1, "delay_seconds": 60 }
    }
}

request_body! {
    /// Body of `POST /v1/scans/{id}/retry`: which ended items to search again.
    pub struct RetryRequest for "retry" {
        required {
            /// Items with one of these results.
            search_status: NonEmpty<RetryStatus>;
        }
        optional {
            /// Only items with one of these reasons.
            reasons: NonEmpty<ReasonWord>;
            /// A new limit of the scan's billed requests.
            max_requests: MaxRequests;
        }
        example { "search_status": ["degraded"], "reasons": ["upstream_timeout", "worker_lost"] }
    }
}

request_body! {
    /// Body of `POST /v1/scans/{id}/resume`; it may be omitted.
    pub struct ResumeRequest for "resume" {
        required {}
        optional {
            /// A new limit of the scan's billed requests, above the spent ones. Required if the
            /// budget is spent.
            max_requests: MaxRequests;
        }
        example { "max_requests": 80 }
    }
}

string_enum! {
    /// The results that can be retried: the two incomplete search statuses, and failed items.
    pub enum RetryStatus {
        /// Done, but part of the search failed.
        Partial = "partial",
        /// Done, but the search did not complete.
        Degraded = "degraded",
        /// The marketplace refused the request.
        Failed = "failed",
    }
}

/// One of the five endpoints that a scan can sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScanEndpoint(Endpoint);

impl ScanEndpoint {
    /// The endpoint; never resolve, which has no prices.
    pub const fn get(self) -> Endpoint {
        self.0
    }
}

impl FieldValue for ScanEndpoint {
    fn expected() -> Cow<'static, str> {
        format!(
            "one of {}",
            quoted_list(Endpoint::SEARCHES.iter().map(|endpoint| endpoint.as_str()))
        )
        .into()
    }

    fn read(value: &Value) -> Result<Self, ValidationErrors> {
        value
            .as_str()
            .and_then(Endpoint::parse)
            .filter(|endpoint| Endpoint::SEARCHES.contains(endpoint))
            .map(Self)
            .ok_or_else(|| invalid_value::<Self>(value))
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

text_type! {
    /// The name of a scan.
    pub struct Label {
        expected: "text of at most 200 characters without control characters",
        accepts: |text| text.chars().count() <= MAX_LABEL_CHARS && !text.chars().any(char::is_control),
        normalize: str::to_owned,
        examples: ["January weekends"],
        schema: { max_length: MAX_LABEL_CHARS, pattern: r"^[^\u0000-\u001F\u007F-\u009F]*$" },
    }
}

text_type! {
    /// A tag for filtering scans.
    pub struct Tag {
        expected: "text of 1 to 50 characters without control characters",
        accepts: |text| (1..=MAX_TAG_CHARS).contains(&text.chars().count()) && !text.chars().any(char::is_control),
        normalize: str::to_owned,
        examples: ["demo"],
        schema: { min_length: 1, max_length: MAX_TAG_CHARS, pattern: r"^[^\u0000-\u001F\u007F-\u009F]*$" },
    }
}

/// The longest text that is looked for, in characters.
const MAX_SOUGHT_CHARS: usize = 200;

text_type! {
    /// Words that lists are searched for.
    pub struct SoughtText {
        expected: "text of 1 to 200 characters without control characters, not spaces alone",
        accepts: |text| is_name(text, MAX_SOUGHT_CHARS),
        normalize: |text: &str| text.trim().to_owned(),
        examples: ["lhr"],
        schema: { min_length: 1, max_length: MAX_SOUGHT_CHARS, pattern: r"^(?=.*\S)[^\u0000-\u001F\u007F-\u009F]*$" },
    }
}

/// The most words that are looked for: each is compared with every row.
const MAX_SOUGHT_WORDS: usize = 10;

impl SoughtText {
    /// Each of them is looked for.
    pub fn words(&self) -> Vec<String> {
        Self::words_of(self.as_str())
    }

    /// The words of a text that a list is searched for: the first ten different ones.
    pub fn words_of(text: &str) -> Vec<String> {
        let mut words = Vec::<String>::new();
        for word in text.split_whitespace() {
            if words.len() < MAX_SOUGHT_WORDS && !words.iter().any(|known| known == word) {
                words.push(word.to_owned());
            }
        }
        words
    }
}

text_type! {
    /// A `reason` of items.
    pub struct ReasonWord {
        expected: "a `reason` of items, such as \"upstream_timeout\": 1 to 100 letters, digits and underscores",
        accepts: |text| {
            (1..=MAX_REASON_CHARS).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        },
        normalize: str::to_owned,
        examples: ["upstream_timeout"],
        schema: { min_length: 1, max_length: MAX_REASON_CHARS, pattern: "^[A-Za-z0-9_]+$" },
    }
}

bounded_integer! {
    /// A limit of billed requests.
    pub struct MaxRequests(u32): 1..=2_147_483_647;
}

bounded_integer! {
    /// Maximum attempts per item.
    pub struct MaxAttempts(u8): 1..=10;
}

impl MaxAttempts {
    /// The documented default: no retries.
    pub const ONE: Self = Self(1);
}

bounded_integer! {
    /// Seconds between two attempts of an item; up to a day.
    pub struct DelaySeconds(u32): 0..=86_400;
}

impl DelaySeconds {
    /// The documented default.
    pub const MINUTE: Self = Self(60);
}

bounded_integer! {
    /// The age of an answer that may be reused; up to 31 days. 0: no answer may.
    pub struct MaxAgeSeconds(u32): 0..=2_678_400;
}

impl MaxAgeSeconds {
    /// `None` for 0.
    pub fn nonzero(self) -> Option<Self> {
        (self.0 > 0).then_some(self)
    }
}

bounded_integer! {
    /// The maximum rows of each flight search.
    pub struct UpstreamLimit(u32): 1..=200;
}

impl UpstreamLimit {
    /// The documented default.
    pub const FIFTY: Self = Self(50);
}
