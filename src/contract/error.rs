//! The error form (specification 2.14, 7; contract.md, "Error types").
//!
//! Here: every error type with its HTTP status, and the body. Not here: which failure is which type (`http::error`).

use super::words::words;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

words! {
    /// What kind of error it is. Tells its reader what to do: mend the request, try later, or call us.
    pub enum ErrorType {
        /// 400: the request cannot be valid; the message names every fault.
        InvalidRequest = "invalid_request",
        /// 401: no key; the message tells where to send it.
        MissingApiKey = "missing_api_key",
        /// 401: a malformed, unknown or placeholder key.
        InvalidApiKey = "invalid_api_key",
        /// 403: the key is not subscribed to the API that the endpoint needs.
        NotSubscribed = "not_subscribed",
        /// 404: no such thing, or nothing matched.
        NotFound = "not_found",
        /// 503: the search did not complete and the request was `strict`. Nothing was changed; a retry is safe.
        SearchIncomplete = "search_incomplete",
        /// 405: the path exists, the method does not; `Allow` says which do.
        MethodNotAllowed = "method_not_allowed",
        /// 409: not in this state.
        InvalidState = "invalid_state",
        /// 413: the body is too large.
        PayloadTooLarge = "payload_too_large",
        /// 422: the `Idempotency-Key` was used with another body.
        IdempotencyMismatch = "idempotency_mismatch",
        /// 429: too many requests to this service itself; `Retry-After` says when to come back.
        TooManyRequests = "too_many_requests",
        /// 500: a defect of this service.
        Internal = "internal",
        /// 502: the marketplace answered with an error.
        UpstreamError = "upstream_error",
        /// 502: the marketplace could not be reached.
        UpstreamUnreachable = "upstream_unreachable",
        /// 502: the marketplace's answer could not be read.
        UpstreamInvalidResponse = "upstream_invalid_response",
        /// 503: the database is away or the service is overloaded; `Retry-After` says when to come back.
        Unavailable = "unavailable",
        /// 503: the service has no master key, so it cannot hold a caller's key for scans.
        KeyCustodyDisabled = "key_custody_disabled",
        /// 504: the marketplace did not answer in the time budget.
        UpstreamTimeout = "upstream_timeout",
    }
}

impl ErrorType {
    /// The HTTP status that it is sent with. (A hotel search's `upstream_error` keeps the marketplace's own 5xx instead:
    /// contract.md, outcome table.)
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::MissingApiKey | Self::InvalidApiKey => 401,
            Self::NotSubscribed => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::InvalidState => 409,
            Self::PayloadTooLarge => 413,
            Self::IdempotencyMismatch => 422,
            Self::TooManyRequests => 429,
            Self::Internal => 500,
            Self::UpstreamError | Self::UpstreamUnreachable | Self::UpstreamInvalidResponse => 502,
            Self::SearchIncomplete | Self::Unavailable | Self::KeyCustodyDisabled => 503,
            Self::UpstreamTimeout => 504,
        }
    }
}

/// The body of every error answer (specification 2.14).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"error": {
    "type": "invalid_request",
    "message": "`departure_date` holds \"tomorrow\"; allowed: a date that exists, as YYYY-MM-DD"
}})))]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorDetail,
}

/// What went wrong, for programs (`type`, `reason`) and for people (`message`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// The kind of error.
    #[serde(rename = "type")]
    pub error_type: ErrorType,
    /// Why the search did not complete; only on `search_incomplete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
    /// What happened and what to do, in words.
    pub message: String,
}

impl ErrorBody {
    /// An error without a `reason`.
    pub fn new(error_type: ErrorType, message: impl Into<String>) -> Self {
        Self { error: ErrorDetail { error_type, reason: None, message: message.into() } }
    }

    /// 503 `search_incomplete`, the one type with a `reason`.
    pub fn search_incomplete(reason: impl Into<String>, message: impl Into<String>) -> Self {
        let reason = Some(reason.into());
        Self { error: ErrorDetail { error_type: ErrorType::SearchIncomplete, reason, message: message.into() } }
    }
}
