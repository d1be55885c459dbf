//! The error response (gateway.md, rules 35 and 36).
//!
//! Here: every error type with its HTTP status, and the body. Not here: which failure has which
//! type (`app::error`).

use super::reason::SearchReason;
use super::string_enum::string_enum;
use super::validation::{ValidationError, ValidationErrors};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

string_enum! {
    /// The type of an error: correct the request, retry later, or report the problem.
    pub enum ErrorType {
        /// 400: the request is invalid; the message names every invalid field.
        InvalidRequest = "invalid_request",
        /// 401: no key; the message names the header for it.
        MissingApiKey = "missing_api_key",
        /// 401: a malformed, unknown or placeholder key.
        InvalidApiKey = "invalid_api_key",
        /// 403: the key is not subscribed to the API that the endpoint needs.
        NotSubscribed = "not_subscribed",
        /// 404: the path or the resource does not exist, or nothing matched.
        NotFound = "not_found",
        /// 503: the search did not complete and the request was `strict`. A retry is safe.
        SearchIncomplete = "search_incomplete",
        /// 405: the path does not support the method; `Allow` lists those that it does.
        MethodNotAllowed = "method_not_allowed",
        /// 409: not possible in the current state.
        InvalidState = "invalid_state",
        /// 409: the marketplace has not accepted the key yet; `GET /v1/verify` has it accept it.
        KeyNotAccepted = "key_not_accepted",
        /// 413: the body is too large.
        PayloadTooLarge = "payload_too_large",
        /// 422: the `Idempotency-Key` was used with another body.
        IdempotencyMismatch = "idempotency_mismatch",
        /// 429: too many requests to this service itself; retry after `Retry-After`.
        TooManyRequests = "too_many_requests",
        /// 500: an internal error of this service.
        Internal = "internal",
        /// 502: the marketplace answered with an error.
        UpstreamError = "upstream_error",
        /// 502: the marketplace could not be reached.
        UpstreamUnreachable = "upstream_unreachable",
        /// 502: the marketplace's response could not be parsed.
        UpstreamInvalidResponse = "upstream_invalid_response",
        /// 503: the database is unavailable or the service is overloaded; retry after
        /// `Retry-After`.
        Unavailable = "unavailable",
        /// 503: the service has no master key, so it cannot store a caller's key for scans.
        KeyCustodyDisabled = "key_custody_disabled",
        /// 504: the request asked for a stored answer alone (`Cache-Control: only-if-cached`), and none
        /// is young enough.
        NotCached = "not_cached",
        /// 504: the marketplace did not respond within the time budget.
        UpstreamTimeout = "upstream_timeout",
    }
}

impl ErrorType {
    /// Its HTTP status. (A hotel search's `upstream_error` keeps the marketplace's own 5xx:
    /// gateway.md, rule 45.)
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::MissingApiKey | Self::InvalidApiKey => 401,
            Self::NotSubscribed => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::InvalidState | Self::KeyNotAccepted => 409,
            Self::PayloadTooLarge => 413,
            Self::IdempotencyMismatch => 422,
            Self::TooManyRequests => 429,
            Self::Internal => 500,
            Self::UpstreamError | Self::UpstreamUnreachable | Self::UpstreamInvalidResponse => 502,
            Self::SearchIncomplete | Self::Unavailable | Self::KeyCustodyDisabled => 503,
            Self::NotCached | Self::UpstreamTimeout => 504,
        }
    }
}

/// The body of every error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!(ErrorBody::example(ErrorType::InvalidRequest))))]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorDetail,
}

/// An error, for programs (`type`, `reason`, `details`) and for people (`message`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// The type of the error.
    #[serde(rename = "type")]
    pub error_type: ErrorType,
    /// Why the search did not complete; only on `search_incomplete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SearchReason>, nullable = false)]
    pub reason: Option<String>,
    /// What happened and what to do, in words.
    pub message: String,
    /// Each invalid field, as in `message`; empty for other errors. At most 100.
    #[serde(default)]
    #[schema(required, max_items = 100)]
    pub details: Vec<FieldError>,
    /// The id of this request, as in the header `X-Request-Id`; include it when you report a
    /// problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub request_id: Option<String>,
}

/// One invalid field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// Its path from the top of the body (`sweep.nights[0]`), or the name of the parameter or
    /// header.
    pub field: String,
    /// The found value as JSON, shortened; null where it is missing. The value of a secret is not
    /// shown.
    pub found: Option<String>,
    /// The accepted values, in words.
    pub expected: String,
}

impl From<&ValidationError> for FieldError {
    fn from(error: &ValidationError) -> Self {
        Self {
            field: error.path.clone(),
            found: error.found.clone(),
            expected: error.expected.clone(),
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

    /// An error of fields: message and details have the same content.
    pub fn from_validation(error_type: ErrorType, errors: &ValidationErrors) -> Self {
        let mut body = Self::new(error_type, errors.to_string());
        body.error.details = errors.iter().map(FieldError::from).collect();
        body
    }

    /// 503 `search_incomplete`, the only type with a `reason`.
    pub fn search_incomplete(reason: impl Into<String>, message: impl Into<String>) -> Self {
        let mut body = Self::new(ErrorType::SearchIncomplete, message);
        body.error.reason = Some(reason.into());
        body
    }

    /// An example of this type, for the OpenAPI document.
    pub fn example(error_type: ErrorType) -> Self {
        let mut body = match error_type {
            ErrorType::InvalidRequest => {
                let error = ValidationError::new(
                    "departure_date",
                    &"tomorrow".into(),
                    "a date that exists, as YYYY-MM-DD",
                );
                Self::from_validation(error_type, &error.into())
            }
            ErrorType::SearchIncomplete => {
                let message = "the search did not complete (blocked_page), so it is unknown whether there are results; a retry is safe";
                Self::search_incomplete("blocked_page", message)
            }
            _ => Self::new(error_type, error_type.example()),
        };
        body.error.request_id = Some("01970a1b-2c3d-7e4f-8a9b-0c1d2e3f4a5b".to_owned());
        body
    }
}

impl ErrorType {
    /// An example message of this type.
    const fn example(self) -> &'static str {
        match self {
            Self::InvalidRequest | Self::SearchIncomplete => "",
            Self::MissingApiKey => {
                "missing API key: send your marketplace key in the header `x-api-key`"
            }
            Self::InvalidApiKey => "the marketplace does not know this key",
            Self::NotSubscribed => {
                "this key has no subscription to the flights API: subscribe to it on the marketplace"
            }
            Self::NotFound => "there is no such scan",
            Self::MethodNotAllowed => {
                "/v1/scans does not support PUT; the header Allow lists its methods"
            }
            Self::InvalidState => "the scan is cancelled",
            Self::KeyNotAccepted => {
                "the marketplace has not accepted this key yet: call GET /v1/verify, which has the marketplace accept the key at once"
            }
            Self::PayloadTooLarge => "`body` is too large; expected at most 64 KiB",
            Self::IdempotencyMismatch => {
                "the Idempotency-Key `order-1` was used with another body; use a new key for a new request"
            }
            Self::TooManyRequests => {
                "rate limit exceeded: 50 requests/s sustained, burst 1000; retry after 3 s"
            }
            Self::Internal => {
                "internal error of the service; its log has the details under this response's X-Request-Id"
            }
            Self::UpstreamError => "the marketplace answered 502",
            Self::UpstreamUnreachable => "the marketplace cannot be reached",
            Self::UpstreamInvalidResponse => "the marketplace's response cannot be parsed",
            Self::Unavailable => {
                "the database is unavailable, so stored work is unavailable; try again soon"
            }
            Self::KeyCustodyDisabled => {
                "this service has no master key; its operator has to set FARESCAN_MASTER_KEY_FILE"
            }
            Self::NotCached => {
                "no stored answer to this search is as young as `Cache-Control` asks for; send it without `only-if-cached` to search"
            }
            Self::UpstreamTimeout => "the marketplace did not answer within 180 seconds",
        }
    }
}
