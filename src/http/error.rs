//! Every error answer of this service: type, status, headers, form (specification 2.14, 7).
//!
//! Which type means which status is `contract::ErrorType`'s table; here is how it is answered. When to use which constructor:
//!
//! ```text
//!  the caller must mend the request   invalid_request, missing and invalid key, not_found, invalid_state, idempotency_mismatch
//!  the caller should try later        unavailable, too_many_requests, search_incomplete
//!  we must mend it                    internal (logged, its cause is not shown)
//! ```

use std::time::Duration;

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::layers;
use crate::contract::{Api, ErrorBody, ErrorType, Fault, Faults};
use crate::db;
use crate::monitors::MonitorError;
use crate::monitors::deliveries::DeliveryError;
use crate::paging::PageError;
use crate::scans::ScanError;
use crate::scans::watch::WatchError;
use crate::tenants::acceptance::NotAccepted;
use crate::tenants::rotate::RotateError;
use crate::webhooks::WebhookError;

/// What a caller hears when the database is away: it may be back soon.
const DATABASE_RETRY: Duration = Duration::from_secs(5);
/// What a caller waits when a row lock is held by somebody else, or the process has too much to do.
const BUSY_RETRY: Duration = Duration::from_secs(1);
/// What a client hears that cannot watch now: places come free as scans end.
const WATCH_RETRY: Duration = Duration::from_secs(5);

/// One error answer.
#[derive(Debug)]
pub struct ApiError {
    /// Boxed: most answers are none.
    body: Box<ErrorBody>,
    /// Another status than its type's: a hotel search keeps the marketplace's own 5xx, and there is no type for 406 alone.
    status: Option<StatusCode>,
    retry_after: Option<Duration>,
}

impl ApiError {
    /// An error of this type, with its type's status.
    #[must_use]
    pub fn new(error_type: ErrorType, message: impl Into<String>) -> Self {
        Self {
            body: Box::new(ErrorBody::new(error_type, message)),
            status: None,
            retry_after: None,
        }
    }

    /// 400: `message` names each field, what it holds and what is allowed.
    #[must_use]
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(ErrorType::InvalidRequest, message)
    }

    /// 401: where a key goes (specification 5).
    #[must_use]
    pub fn missing_api_key() -> Self {
        let message = "no API key: send your marketplace key in the header `x-api-key` (or `x-marketplace-key`, `x-marketplace-token`, \
                       or `Authorization: Bearer <API_KEY>`)";
        Self::new(ErrorType::MissingApiKey, message)
    }

    /// 401: malformed, a placeholder, or unknown to the marketplace.
    #[must_use]
    pub fn invalid_api_key(message: impl Into<String>) -> Self {
        Self::new(ErrorType::InvalidApiKey, message)
    }

    /// 403: names the API to subscribe to.
    #[must_use]
    pub fn not_subscribed(api: Api, message: &str) -> Self {
        let message = format!(
            "this key has no subscription to the {api} API: subscribe to it on the marketplace ({message})"
        );
        Self::new(ErrorType::NotSubscribed, message)
    }

    /// 404: what is not there. Another caller's id is answered the same as an unknown one.
    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorType::NotFound, message)
    }

    /// 406: none of the forms that this answer can have. The specified types are a closed list, so its type is `invalid_request`.
    #[must_use]
    pub fn not_acceptable(fault: Fault) -> Self {
        Self::from(fault).with_status(StatusCode::NOT_ACCEPTABLE)
    }

    /// 409: the resource is not in a state that allows this; `message` says which it is in.
    #[must_use]
    pub fn invalid_state(message: impl Into<String>) -> Self {
        Self::new(ErrorType::InvalidState, message)
    }

    /// 413.
    #[must_use]
    pub fn payload_too_large(limit_bytes: usize) -> Self {
        Self::new(
            ErrorType::PayloadTooLarge,
            format!(
                "`body` holds more than is allowed: at most {} KiB",
                limit_bytes / 1024
            ),
        )
    }

    /// 422: the `Idempotency-Key` was used with another body; `message` says which key.
    #[must_use]
    pub fn idempotency_mismatch(message: impl Into<String>) -> Self {
        Self::new(ErrorType::IdempotencyMismatch, message)
    }

    /// 429 of our own, to be tried again after `wait`.
    #[must_use]
    pub fn too_many_requests(message: impl Into<String>, wait: Duration) -> Self {
        Self::new(ErrorType::TooManyRequests, message).retry_after(wait)
    }

    /// 503: this process has as much to do as it takes; `message` says of what.
    #[must_use]
    pub fn overloaded(message: impl Into<String>, wait: Duration) -> Self {
        Self::new(ErrorType::Unavailable, message).retry_after(wait)
    }

    /// 500: a defect of this service. The cause is logged and not shown.
    #[must_use]
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        tracing::error!(%cause, "internal error");
        Self::new(
            ErrorType::Internal,
            "the service made a mistake; the log has the details under this answer's X-Request-Id",
        )
    }

    /// 503: the database is away; the gateway works without it.
    #[must_use]
    pub fn unavailable() -> Self {
        let message = "the database is away or has too much to do, so stored work is not available; try again soon (searches under \
                       /v1/flights and /v1/hotels work without it)";
        Self::new(ErrorType::Unavailable, message).retry_after(DATABASE_RETRY)
    }

    /// 503: there is too much to do. Nothing was changed.
    #[must_use]
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(ErrorType::Unavailable, message).retry_after(BUSY_RETRY)
    }

    /// 409: another request changed the same at the same moment, and this one was rolled back whole.
    fn conflict() -> Self {
        let message = "another request changed the same thing at the same moment, and nothing of this one was stored; send it again";
        Self::invalid_state(message).retry_after(BUSY_RETRY)
    }

    /// A transaction that met another is 409; a database that is away is 503 and passes by itself, and so does a lock; anything else is a
    /// defect of ours.
    fn database(error: &sqlx::Error) -> Self {
        if db::is_conflict(error) {
            tracing::warn!(%error, "a request was rolled back because of another");
            return Self::conflict();
        }
        if db::is_locked(error) {
            tracing::info!(%error, "a request gave up waiting for a row lock");
            return Self::busy(
                "another request or a worker holds a lock on the same scans; nothing was changed. Wait as Retry-After says, and send it again",
            );
        }
        if db::is_away(error) {
            tracing::warn!(%error, "the database is away");
            return Self::unavailable();
        }
        Self::internal(error)
    }

    /// 503: there is no master key, so no caller's key can be held for ordered work.
    #[must_use]
    pub fn key_custody_disabled() -> Self {
        let message = "this service holds no keys: its operator has to set FARESCAN_MASTER_KEY_FILE (or FARESCAN_MASTER_KEY) to switch \
                       scans on";
        Self::new(ErrorType::KeyCustodyDisabled, message)
    }

    /// 503: the search did not complete and the caller wanted to be told (contract 16).
    #[must_use]
    pub fn search_incomplete(reason: &str) -> Self {
        let message = format!(
            "the search did not complete ({reason}), so whether there is anything to find is unknown; a retry is safe"
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

    /// The kind of error.
    #[must_use]
    pub fn error_type(&self) -> ErrorType {
        self.body.error.error_type
    }

    /// Its HTTP status.
    #[must_use]
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
        body.error.request_id = layers::current_request_id();
        let mut response = (status, Json(&body)).into_response();
        if let Some(wait) = self.retry_after {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        }
        response
    }
}

impl From<Faults> for ApiError {
    fn from(faults: Faults) -> Self {
        Self {
            body: Box::new(ErrorBody::of_fields(ErrorType::InvalidRequest, &faults)),
            status: None,
            retry_after: None,
        }
    }
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        Faults::from(fault).into()
    }
}

impl From<ScanError> for ApiError {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Faults(faults) => faults.into(),
            ScanError::NotFound => Self::not_found("there is no such scan"),
            ScanError::InvalidState(message) => Self::invalid_state(message),
            ScanError::IdempotencyMismatch(_) => Self::idempotency_mismatch(error.to_string()),
            ScanError::TooMuch { message, wait } => Self::too_many_requests(message, wait),
            ScanError::Busy => Self::busy(error.to_string()),
            ScanError::NotAccepted(refused) => refused.into(),
            ScanError::Database(error) => error.into(),
        }
    }
}

impl From<NotAccepted> for ApiError {
    fn from(refused: NotAccepted) -> Self {
        let message = refused.to_string();
        match refused {
            NotAccepted::Required | NotAccepted::TooLarge(_) => Self::invalid_state(message),
            NotAccepted::Refused { .. } => Self::invalid_api_key(message),
            NotAccepted::Later { wait, .. } => Self::too_many_requests(message, wait),
        }
    }
}

impl From<MonitorError> for ApiError {
    fn from(error: MonitorError) -> Self {
        match error {
            MonitorError::NotFound => Self::not_found("there is no such monitor"),
            MonitorError::Order(error) => error.into(),
        }
    }
}

impl From<RotateError> for ApiError {
    fn from(error: RotateError) -> Self {
        match error {
            RotateError::NothingOwned => Self::not_found(
                "the key of this request owns nothing here: nothing was ever ordered with it, or all of it has passed to another key",
            ),
            RotateError::Taken => Self::invalid_state(
                "the new key owns something here already, and two callers are not made one: use a key of its own",
            ),
            RotateError::Database(error) => error.into(),
        }
    }
}

impl From<WebhookError> for ApiError {
    fn from(error: WebhookError) -> Self {
        match error {
            WebhookError::NoEndpoint | WebhookError::NoDelivery => {
                Self::not_found(error.to_string())
            }
            WebhookError::InvalidState(message) => Self::invalid_state(message),
            WebhookError::TooSoon(wait) => Self::too_many_requests(error.to_string(), wait),
            WebhookError::Database(error) => error.into(),
            WebhookError::TooLarge(_) | WebhookError::Secret(_) => Self::internal(error),
        }
    }
}

impl From<DeliveryError> for ApiError {
    fn from(error: DeliveryError) -> Self {
        match error {
            DeliveryError::Webhook(error) => error.into(),
            DeliveryError::Order(error) => error.into(),
        }
    }
}

impl From<PageError> for ApiError {
    fn from(error: PageError) -> Self {
        match error {
            PageError::Faults(faults) => faults.into(),
            PageError::Gone => Self::not_found("it was deleted while it was read"),
            PageError::Database(error) => error.into(),
        }
    }
}

impl From<WatchError> for ApiError {
    fn from(error: WatchError) -> Self {
        match &error {
            WatchError::NotFound => ScanError::NotFound.into(),
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
    fn a_database_that_is_away_says_when_to_come_back() {
        let away = [
            sqlx::Error::PoolTimedOut,
            sqlx::Error::PoolClosed,
            sqlx::Error::Io(std::io::ErrorKind::ConnectionRefused.into()),
            sqlx::Error::Protocol("unexpected end".into()),
        ];
        for error in away {
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
    fn a_wait_is_at_least_a_second() {
        let response =
            ApiError::too_many_requests("slow down", Duration::from_millis(20)).into_response();
        assert_eq!(response.headers()[RETRY_AFTER], "1");
    }
}
