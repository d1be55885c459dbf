//! The error form (specification 2.14, 7; contract.md, "Error types").
//!
//! Here: every error type with its HTTP status, and the body. Not here: which failure is which type (`http::error`).

use super::fault::{Fault, Faults};
use super::reason::SearchReason;
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

/// The body of every error answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!(ErrorBody::example(ErrorType::InvalidRequest))))]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorDetail,
}

/// What went wrong, for programs (`type`, `reason`, `details`) and for people (`message`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// The kind of error.
    #[serde(rename = "type")]
    pub error_type: ErrorType,
    /// Why the search did not complete; only on `search_incomplete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SearchReason>, nullable = false)]
    pub reason: Option<String>,
    /// What happened and what to do, in words.
    pub message: String,
    /// What is wrong with each field, as `message` says it; empty where no field is at fault. At most 100.
    #[serde(default)]
    #[schema(required, max_items = 100)]
    pub details: Vec<FieldError>,
    /// The id of this request, as in the header `X-Request-Id`: name it when you report a problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub request_id: Option<String>,
}

/// One field that cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// Its path from the top of the body (`sweep.nights[0]`), or the name of the parameter or header.
    pub field: String,
    /// What it holds, as JSON, shortened; null where it is missing. The value of a secret is not shown.
    pub found: Option<String>,
    /// What is accepted there, in words.
    pub expected: String,
}

impl From<&Fault> for FieldError {
    fn from(fault: &Fault) -> Self {
        Self {
            field: fault.path.clone(),
            found: fault.held.clone(),
            expected: fault.allowed.clone(),
        }
    }
}

impl ErrorBody {
    /// An error without a `reason`.
    pub fn new(error_type: ErrorType, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            error: ErrorDetail {
                error_type,
                reason: None,
                message,
                details: Vec::new(),
                request_id: None,
            },
        }
    }

    /// An error of fields: the message says the same as the details.
    #[must_use]
    pub fn of_fields(error_type: ErrorType, faults: &Faults) -> Self {
        let mut body = Self::new(error_type, faults.to_string());
        body.error.details = faults.iter().map(FieldError::from).collect();
        body
    }

    /// 503 `search_incomplete`, the one type with a `reason`.
    pub fn search_incomplete(reason: impl Into<String>, message: impl Into<String>) -> Self {
        let mut body = Self::new(ErrorType::SearchIncomplete, message);
        body.error.reason = Some(reason.into());
        body
    }

    /// An error of this type, for the interface description.
    #[must_use]
    pub fn example(error_type: ErrorType) -> Self {
        let mut body = match error_type {
            ErrorType::InvalidRequest => {
                let fault = Fault::new(
                    "departure_date",
                    &"tomorrow".into(),
                    "a date that exists, as YYYY-MM-DD",
                );
                Self::of_fields(error_type, &fault.into())
            }
            ErrorType::SearchIncomplete => {
                let message = "the search did not complete (blocked_page), so whether there is anything to find is unknown; a retry is safe";
                Self::search_incomplete("blocked_page", message)
            }
            _ => Self::new(error_type, error_type.example()),
        };
        body.error.request_id = Some("01970a1b-2c3d-7e4f-8a9b-0c1d2e3f4a5b".to_owned());
        body
    }
}

impl ErrorType {
    /// A message of this type, for the interface description.
    const fn example(self) -> &'static str {
        match self {
            Self::InvalidRequest | Self::SearchIncomplete => "",
            Self::MissingApiKey => {
                "no API key: send your marketplace key in the header `x-api-key`"
            }
            Self::InvalidApiKey => "the marketplace does not know this key",
            Self::NotSubscribed => {
                "this key has no subscription to the flights API: subscribe to it on the marketplace"
            }
            Self::NotFound => "there is no such scan",
            Self::MethodNotAllowed => {
                "/v1/scans does not take PUT; the header Allow says what it takes"
            }
            Self::InvalidState => "the scan is cancelled",
            Self::PayloadTooLarge => "`body` holds more than is allowed: at most 64 KiB",
            Self::IdempotencyMismatch => {
                "the Idempotency-Key `order-1` was used with another body; use a new key for a new request"
            }
            Self::TooManyRequests => "too many requests with this key; wait as Retry-After says",
            Self::Internal => {
                "the service made a mistake; the log has the details under this answer's X-Request-Id"
            }
            Self::UpstreamError => "the marketplace answered 502",
            Self::UpstreamUnreachable => "the marketplace cannot be reached",
            Self::UpstreamInvalidResponse => "the marketplace's answer cannot be read",
            Self::Unavailable => {
                "the database is away, so stored work is not available; try again soon"
            }
            Self::KeyCustodyDisabled => {
                "this service holds no keys: its operator has to set FARESCAN_MASTER_KEY_FILE"
            }
            Self::UpstreamTimeout => "the marketplace did not answer within 180 seconds",
        }
    }
}
