//! Every error response of this service: type, status, headers, form (gateway.md, rules 35 and 36).
//!
//! `contract::ErrorType` defines the status of each type. When to use which constructor:
//!
//! ```text
//!  the caller must correct the request  invalid_request, missing and invalid key, not_found,
//!                                       invalid_state, key_not_accepted, idempotency_mismatch
//!  the caller should retry later        unavailable, too_many_requests, search_incomplete
//!  a defect of this service             internal (the cause is logged, not shown)
//! ```

use std::time::Duration;

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::request_id;
use crate::commands::CommandError;
use crate::contract::{Api, ErrorBody, ErrorType, FieldError, ValidationError, ValidationErrors};
use crate::db;
use crate::ids::Kind;
use crate::paging::PageError;
use crate::scans::watch::WatchError;
use crate::tenants::acceptance::NotAccepted;
use crate::tenants::rotate::RotateError;

/// `Retry-After` while the database is unavailable.
const DATABASE_RETRY: Duration = Duration::from_secs(5);
/// `Retry-After` when another session holds a row lock, or the process is at a limit.
const BUSY_RETRY: Duration = Duration::from_secs(1);
/// `Retry-After` when no watch is free: they become free as scans end.
const WATCH_RETRY: Duration = Duration::from_secs(5);

/// The result of a handler.
pub type ApiResult<T = Response> = Result<T, ApiError>;

/// An error response.
#[derive(Debug)]
pub struct ApiError {
    /// Boxed, because most responses are no errors.
    body: Box<ErrorBody>,
    /// Overrides the status of the type: a hotel search keeps the marketplace's own 5xx, and 406
    /// has no type of its own.
    status: Option<StatusCode>,
    retry_after: Option<Duration>,
}

impl ApiError {
    /// An error of this type, with its type's status.
    pub fn new(error_type: ErrorType, message: impl Into<String>) -> Self {
        Self {
            body: Box::new(ErrorBody::new(error_type, message)),
            status: None,
            retry_after: None,
        }
    }

    /// 400: `message` names each field, its value and the allowed values.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(ErrorType::InvalidRequest, message)
    }

    /// 401: the message names the carriers of a key (gateway.md, rules 11 and 12).
    pub fn missing_api_key() -> Self {
        let message = "missing API key: send your marketplace key in the header `x-api-key` (or `x-marketplace-key`, `x-marketplace-token`, \
                       or `Authorization: Bearer <API_KEY>`)";
        Self::new(ErrorType::MissingApiKey, message)
    }

    /// 401: malformed, a placeholder, or unknown to the marketplace.
    pub fn invalid_api_key(message: impl Into<String>) -> Self {
        Self::new(ErrorType::InvalidApiKey, message)
    }

    /// 403: names the API to subscribe to.
    pub fn not_subscribed(api: Api, message: &str) -> Self {
        let message = format!(
            "this key has no subscription to the {api} API: subscribe to it on the marketplace ({message})"
        );
        Self::new(ErrorType::NotSubscribed, message)
    }

    /// 404. Another caller's id gets the same response as an unknown one.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorType::NotFound, message)
    }

    /// 406: none of the available formats. The specified types are a closed list, so the type is
    /// `invalid_request`.
    pub fn not_acceptable(fault: ValidationError) -> Self {
        Self::from(fault).with_status(StatusCode::NOT_ACCEPTABLE)
    }

    /// 409: the resource's state does not allow this; `message` names the state.
    pub fn invalid_state(message: impl Into<String>) -> Self {
        Self::new(ErrorType::InvalidState, message)
    }

    /// 413.
    pub fn payload_too_large(limit_bytes: usize) -> Self {
        Self::new(
            ErrorType::PayloadTooLarge,
            format!(
                "`body` is too large; expected at most {} KiB",
                limit_bytes / 1024
            ),
        )
    }

    /// 422: the `Idempotency-Key` was used with another body; `message` names the key.
    pub fn idempotency_mismatch(message: impl Into<String>) -> Self {
        Self::new(ErrorType::IdempotencyMismatch, message)
    }

    /// This service's own 429, to be retried after `wait`.
    pub fn too_many_requests(message: impl Into<String>, wait: Duration) -> Self {
        Self::new(ErrorType::TooManyRequests, message).retry_after(wait)
    }

    /// 503: this process is at a limit; `message` names it.
    pub fn overloaded(message: impl Into<String>, wait: Duration) -> Self {
        Self::new(ErrorType::Unavailable, message).retry_after(wait)
    }

    /// 500: a defect of this service. The cause is logged, not shown.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        tracing::error!(%cause, "internal error");
        Self::new(
            ErrorType::Internal,
            "internal error of the service; its log has the details under this response's X-Request-Id",
        )
    }

    /// 503: the database is unavailable; searches work without it.
    pub fn unavailable() -> Self {
        let message = "the database is unavailable or overloaded, so stored work is unavailable; try again soon (searches under \
                       /v1/flights and /v1/hotels work without it)";
        Self::new(ErrorType::Unavailable, message).retry_after(DATABASE_RETRY)
    }

    /// 503: too many concurrent requests. Nothing was changed.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(ErrorType::Unavailable, message).retry_after(BUSY_RETRY)
    }

    /// 409: another request changed the same rows; this one was rolled back.
    fn conflict() -> Self {
        let message = "a concurrent request changed the same resource; nothing of this request was stored; send it again";
        Self::invalid_state(message).retry_after(BUSY_RETRY)
    }

    /// A serialization conflict is 409. An unavailable database and a held row lock are temporary:
    /// 503. Anything else is a defect.
    fn database(error: &sqlx::Error) -> Self {
        if db::is_conflict(error) {
            tracing::warn!(%error, "transaction conflict; request rolled back");
            return Self::conflict();
        }
        if db::is_locked(error) {
            tracing::info!(%error, "lock timeout; request refused");
            return Self::busy(
                "another request or a worker holds a lock on the same scans; nothing was changed. Retry after the time in Retry-After",
            );
        }
        if db::is_unavailable(error) {
            tracing::warn!(%error, "database unavailable; request refused");
            return Self::unavailable();
        }
        Self::internal(error)
    }

    /// 503: there is no master key, so this service cannot store callers' keys.
    pub fn key_custody_disabled() -> Self {
        let message = "this service has no master key, so it cannot store scans; its operator has to set FARESCAN_MASTER_KEY_FILE \
                       (or FARESCAN_MASTER_KEY)";
        Self::new(ErrorType::KeyCustodyDisabled, message)
    }

    /// 503: the search did not complete and the caller set `strict` (gateway.md, rule 16).
    pub fn search_incomplete(reason: &str) -> Self {
        let message = format!(
            "the search did not complete ({reason}), so it is unknown whether there are results; a retry is safe"
        );
        Self {
            body: Box::new(ErrorBody::search_incomplete(reason, message)),
            status: None,
            retry_after: None,
        }
    }

    /// The same error under another status.
    #[must_use]
    pub fn with_status(self, status: StatusCode) -> Self {
        Self {
            status: Some(status),
            ..self
        }
    }

    /// The same error with a `Retry-After`.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..self
        }
    }

    /// What happened and what to do, in words.
    pub fn message(&self) -> &str {
        &self.body.error.message
    }

    /// Each invalid field; empty for other errors.
    pub fn details(&self) -> &[FieldError] {
        &self.body.error.details
    }

    /// When to try again.
    pub fn wait(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The kind of error.
    pub fn error_type(&self) -> ErrorType {
        self.body.error.error_type
    }

    /// Its HTTP status.
    pub fn status(&self) -> StatusCode {
        let of_type = || {
            StatusCode::from_u16(self.error_type().status())
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        };
        self.status.unwrap_or_else(of_type)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut body = self.body;
        body.error.request_id = request_id::current_request_id();
        let mut response = (status, Json(&body)).into_response();
        if let Some(wait) = self.retry_after {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        }
        response
    }
}

impl From<ValidationErrors> for ApiError {
    fn from(errors: ValidationErrors) -> Self {
        Self {
            body: Box::new(ErrorBody::from_validation(
                ErrorType::InvalidRequest,
                &errors,
            )),
            status: None,
            retry_after: None,
        }
    }
}

impl From<ValidationError> for ApiError {
    fn from(fault: ValidationError) -> Self {
        ValidationErrors::from(fault).into()
    }
}

impl From<CommandError> for ApiError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::ValidationErrors(errors) => errors.into(),
            CommandError::NotFound(_) | CommandError::NoWebhook => {
                Self::not_found(error.to_string())
            }
            CommandError::InvalidState(message) => Self::invalid_state(message),
            CommandError::IdempotencyMismatch(_) => Self::idempotency_mismatch(error.to_string()),
            CommandError::LimitExceeded {
                message,
                retry_after,
            } => Self::too_many_requests(message, retry_after),
            CommandError::Busy => Self::busy(error.to_string()),
            CommandError::NotAccepted(refused) => refused.into(),
            CommandError::Internal(cause) => Self::internal(cause),
            CommandError::Database(error) | CommandError::CommitFailed(error) => error.into(),
        }
    }
}

impl From<Kind> for ApiError {
    /// There is no such one.
    fn from(kind: Kind) -> Self {
        CommandError::NotFound(kind).into()
    }
}

impl From<NotAccepted> for ApiError {
    fn from(refused: NotAccepted) -> Self {
        let message = refused.to_string();
        match refused {
            NotAccepted::Required | NotAccepted::TooLarge(_) => {
                Self::new(ErrorType::KeyNotAccepted, message)
            }
            NotAccepted::Refused { .. } => Self::invalid_api_key(message),
            NotAccepted::Later { wait, .. } => Self::too_many_requests(message, wait),
        }
    }
}

impl From<RotateError> for ApiError {
    fn from(error: RotateError) -> Self {
        match error {
            RotateError::NothingOwned => Self::not_found(
                "the key of this request owns nothing here: nothing was ever submitted with it, or its account has moved to another key",
            ),
            RotateError::NewKeyInUse => Self::invalid_state(
                "the new key already owns an account here, and accounts are not merged; use a key without one",
            ),
            RotateError::Database(error) => error.into(),
        }
    }
}

impl From<PageError> for ApiError {
    fn from(error: PageError) -> Self {
        match error {
            PageError::ValidationErrors(errors) => errors.into(),
            PageError::Gone => Self::not_found("the resource was deleted while it was read"),
            PageError::Database(error) => error.into(),
        }
    }
}

impl From<WatchError> for ApiError {
    fn from(error: WatchError) -> Self {
        match &error {
            WatchError::NotFound => Kind::Scan.into(),
            WatchError::TooMany(_) => Self::too_many_requests(error.to_string(), WATCH_RETRY),
            WatchError::Full | WatchError::Stopping => {
                Self::new(ErrorType::Unavailable, error.to_string()).retry_after(WATCH_RETRY)
            }
            WatchError::Database(error) => Self::database(error),
        }
    }
}

impl From<sqlx::Error> for ApiError {
    fn from(error: sqlx::Error) -> Self {
        Self::database(&error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_status() {
        for error_type in ErrorType::ALL {
            assert_eq!(
                ApiError::new(*error_type, "m").status().as_u16(),
                error_type.status()
            );
        }
        let kept = ApiError::new(ErrorType::UpstreamError, "m")
            .with_status(StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(
            kept.into_response().status(),
            StatusCode::SERVICE_UNAVAILABLE
        );
    }

    #[test]
    fn an_unavailable_database_sets_retry_after() {
        let unavailable = [
            sqlx::Error::PoolTimedOut,
            sqlx::Error::PoolClosed,
            sqlx::Error::Io(std::io::ErrorKind::ConnectionRefused.into()),
            sqlx::Error::Protocol("unexpected end".into()),
        ];
        for error in unavailable {
            let response = ApiError::from(error).into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers()[RETRY_AFTER], "5");
        }
        let ours = ApiError::from(sqlx::Error::RowNotFound);
        assert_eq!(ours.error_type(), ErrorType::Internal);
        assert!(
            !ours.body.error.message.contains("row"),
            "the cause is not shown: {}",
            ours.body.error.message
        );
    }

    #[test]
    fn retry_after_is_at_least_a_second() {
        let response =
            ApiError::too_many_requests("slow down", Duration::from_millis(20)).into_response();
        assert_eq!(response.headers()[RETRY_AFTER], "1");
    }
}
