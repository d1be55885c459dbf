//! The error responses of each kind of route.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::IntoResponses;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::{ContentBuilder, Ref, RefOr};

use crate::contract::{ErrorBody, ErrorType};

/// Error responses of flight searches.
pub(in crate::http) struct FlightErrors;
/// Error responses of hotel searches.
pub(in crate::http) struct HotelErrors;
/// Error responses of resolving a hotel's name.
pub(in crate::http) struct ResolveErrors;
/// Error responses of verify.
pub(in crate::http) struct VerifyErrors;

/// Error responses of submissions and retries.
pub(in crate::http) struct SubmissionErrors;
/// Error responses of creating or changing a monitor.
pub(in crate::http) struct MonitorErrors;
/// Error responses of pausing or cancelling a scan.
pub(in crate::http) struct StopErrors;
/// Error responses of other commands on one resource.
pub(in crate::http) struct CommandErrors;
/// Error responses of deleting a scan.
pub(in crate::http) struct DeleteErrors;
/// Error responses of a backtest.
pub(in crate::http) struct BacktestErrors;
/// Error responses of a preview.
pub(in crate::http) struct PreviewErrors;
/// Error responses of reading one resource.
pub(in crate::http) struct ReadErrors;
/// Error responses of watching a scan.
pub(in crate::http) struct WatchErrors;
/// Error responses of lists.
pub(in crate::http) struct ListErrors;
/// Error responses of a key rotation.
pub(in crate::http) struct RotationErrors;
/// Error responses of setting a lane's limits.
pub(in crate::http) struct LaneBoundsErrors;
/// Error responses of setting the account's settings.
pub(in crate::http) struct AccountSettingsErrors;
/// Error responses of sending to a webhook.
pub(in crate::http) struct WebhookErrors;
/// Error responses of account routes without parameters.
pub(in crate::http) struct AccountErrors;

/// The error response of lists with several formats.
pub(in crate::http) struct NotAcceptable;

/// The error responses of routes without key and parameters.
pub(in crate::http) struct PublicErrors;

impl IntoResponses for PublicErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let response = error_response(
            ErrorType::InvalidRequest,
            "The URL or the headers of the request are too long",
        );
        BTreeMap::from([("4XX".to_owned(), response.into())])
    }
}

const BAD_KEY: (ErrorType, &str) = (
    ErrorType::InvalidApiKey,
    "The key is missing, malformed, or rejected by the marketplace",
);
const NOT_ACCEPTED: (ErrorType, &str) = (
    ErrorType::KeyNotAccepted,
    "The marketplace has not accepted this key yet",
);
const NOT_FOUND: (ErrorType, &str) = (ErrorType::NotFound, "Unknown id, or one of another caller");
const INTERNAL: (ErrorType, &str) = (ErrorType::Internal, "A defect of this service");
const UNAVAILABLE: (ErrorType, &str) = (
    ErrorType::Unavailable,
    "The database is unavailable (`unavailable`, with Retry-After), or the service has no master key (`key_custody_disabled`)",
);
const TOO_LARGE: (ErrorType, &str) = (ErrorType::PayloadTooLarge, "The body is too large");
/// 429 of a search.
const NOT_CACHED: &str = "With `only-if-cached`: no stored answer is young enough (`not_cached`)";
const SEARCH_LIMITED: &str = "The plan's quota or rate limit is exhausted: the marketplace's own response, unchanged, whose body is not an `ErrorBody`. Or, as an `ErrorBody`: `Prefer` with `Idempotency-Key` meets a limit of this service, or it receives too many unknown keys";
/// 429 of resolving a name, which takes no `Prefer`.
const RESOLVE_LIMITED: &str = "The plan's quota or rate limit is exhausted: the marketplace's own response, unchanged, whose body is not an `ErrorBody`. Or, as an `ErrorBody`: this service receives too many unknown keys";
const INVALID_REQUEST: (ErrorType, &str) = (
    ErrorType::InvalidRequest,
    "The request is invalid; the message names every invalid field",
);

impl IntoResponses for SubmissionErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        error_responses(&[
            INVALID_REQUEST,
            BAD_KEY,
            NOT_FOUND,
            (
                ErrorType::InvalidState,
                "The scan was cancelled, or has ended and cannot be resumed (`invalid_state`); or the scan is too large for a key that the marketplace has not accepted yet (`key_not_accepted`)",
            ),
            TOO_LARGE,
            (
                ErrorType::IdempotencyMismatch,
                "The `Idempotency-Key` was used with another body",
            ),
            (
                ErrorType::TooManyRequests,
                "The caller is at its limit of live work, or exceeds its request rate",
            ),
            INTERNAL,
            UNAVAILABLE,
        ])
    }
}

impl IntoResponses for MonitorErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        error_responses(&[
            INVALID_REQUEST,
            BAD_KEY,
            NOT_FOUND,
            (
                ErrorType::InvalidState,
                "The marketplace has not accepted this key yet (`key_not_accepted`); the caller is at its limit of monitors, or a run has not ended, could exceed the monthly limit, or is no longer possible (`invalid_state`)",
            ),
            TOO_LARGE,
            (
                ErrorType::IdempotencyMismatch,
                "The `Idempotency-Key` was used with another body",
            ),
            (
                ErrorType::TooManyRequests,
                "The caller is at its limit of live work, or exceeds its request rate",
            ),
            INTERNAL,
            UNAVAILABLE,
        ])
    }
}

impl IntoResponses for StopErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        error_responses(&[
            INVALID_REQUEST,
            BAD_KEY,
            NOT_FOUND,
            (ErrorType::InvalidState, "The scan has ended"),
            TOO_LARGE,
            INTERNAL,
            UNAVAILABLE,
        ])
    }
}

impl IntoResponses for DeleteErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        error_responses(&[
            INVALID_REQUEST,
            BAD_KEY,
            NOT_FOUND,
            (ErrorType::InvalidState, "The scan has not ended"),
            INTERNAL,
            UNAVAILABLE,
        ])
    }
}

impl IntoResponses for PreviewErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        error_responses(&[INVALID_REQUEST, BAD_KEY, TOO_LARGE, INTERNAL, UNAVAILABLE])
    }
}

impl IntoResponses for BacktestErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let crowded = (
            ErrorType::TooManyRequests,
            "The caller's other backtest has not ended, or the caller exceeds its request rate",
        );
        error_responses(&[
            INVALID_REQUEST,
            BAD_KEY,
            NOT_ACCEPTED,
            TOO_LARGE,
            crowded,
            INTERNAL,
            UNAVAILABLE,
        ])
    }
}

impl IntoResponses for ReadErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        error_responses(&[INVALID_REQUEST, BAD_KEY, NOT_FOUND, INTERNAL, UNAVAILABLE])
    }
}

impl IntoResponses for CommandErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        error_responses(&[
            INVALID_REQUEST,
            BAD_KEY,
            NOT_FOUND,
            TOO_LARGE,
            INTERNAL,
            UNAVAILABLE,
        ])
    }
}

impl IntoResponses for WatchErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let too_many = (
            ErrorType::TooManyRequests,
            "The caller is at its limit of watched scans, or exceeds its request rate",
        );
        error_responses(&[
            INVALID_REQUEST,
            BAD_KEY,
            NOT_FOUND,
            too_many,
            INTERNAL,
            UNAVAILABLE,
        ])
    }
}

impl IntoResponses for ListErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        error_responses(&[INVALID_REQUEST, BAD_KEY, INTERNAL, UNAVAILABLE])
    }
}

impl IntoResponses for NotAcceptable {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let response = error_response(
            ErrorType::InvalidRequest,
            "`Accept` names no available format; the type is `invalid_request`",
        );
        BTreeMap::from([("406".to_owned(), response.into())])
    }
}

impl IntoResponses for RotationErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        error_responses(&[
            (
                ErrorType::InvalidRequest,
                "`new_key` is malformed, is the key of the request, or is rejected by the marketplace; the message shows nothing of the body",
            ),
            BAD_KEY,
            (ErrorType::NotFound, "The key of the request owns nothing"),
            (
                ErrorType::InvalidState,
                "The new key already owns an account",
            ),
            TOO_LARGE,
            (
                ErrorType::TooManyRequests,
                "The service receives too many unknown keys, or the caller exceeds its request rate",
            ),
            INTERNAL,
            (
                ErrorType::UpstreamError,
                "The marketplace could not check the new key; nothing was changed",
            ),
            UNAVAILABLE,
            (
                ErrorType::UpstreamTimeout,
                "The marketplace did not check the new key in time; nothing was changed",
            ),
        ])
    }
}

impl IntoResponses for LaneBoundsErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let no_lane = (ErrorType::NotFound, "Unknown lane");
        error_responses(&[
            INVALID_REQUEST,
            BAD_KEY,
            no_lane,
            NOT_ACCEPTED,
            TOO_LARGE,
            INTERNAL,
            UNAVAILABLE,
        ])
    }
}

impl IntoResponses for AccountSettingsErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        error_responses(&[
            INVALID_REQUEST,
            BAD_KEY,
            NOT_ACCEPTED,
            TOO_LARGE,
            INTERNAL,
            UNAVAILABLE,
        ])
    }
}

impl IntoResponses for WebhookErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let off = (
            ErrorType::InvalidState,
            "The webhook is disabled or deleted, or its secret was rotated too often within a day",
        );
        let reused = (
            ErrorType::IdempotencyMismatch,
            "The `Idempotency-Key` was used with another body",
        );
        let soon = (
            ErrorType::TooManyRequests,
            "The monitor was tested less than a minute ago",
        );
        error_responses(&[
            INVALID_REQUEST,
            BAD_KEY,
            NOT_FOUND,
            off,
            TOO_LARGE,
            reused,
            soon,
            INTERNAL,
            UNAVAILABLE,
        ])
    }
}

impl IntoResponses for AccountErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        error_responses(&[BAD_KEY, INTERNAL, UNAVAILABLE])
    }
}

impl IntoResponses for FlightErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        error_responses(&[
            (
                ErrorType::InvalidRequest,
                "The request is invalid; the message names every invalid field",
            ),
            (ErrorType::InvalidApiKey, "The key is missing or malformed"),
            (
                ErrorType::NotSubscribed,
                "The key is not subscribed to the flights API",
            ),
            (ErrorType::PayloadTooLarge, "The body is larger than 64 KiB"),
            (ErrorType::TooManyRequests, SEARCH_LIMITED),
            (ErrorType::Internal, "A defect of this service"),
            (
                ErrorType::SearchIncomplete,
                "The search did not complete and `strict` is true; too many searches are in flight; or, with `Prefer` and `Idempotency-Key` or with `only-if-cached`, the database is unavailable or this service has no master key",
            ),
            (ErrorType::NotCached, NOT_CACHED),
        ])
    }
}

impl IntoResponses for HotelErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        hotel_errors(
            SEARCH_LIMITED,
            "The marketplace's own 503; too many searches are in flight; or, with `Prefer` and `Idempotency-Key` or with `only-if-cached`, the database is unavailable or this service has no master key",
            "The marketplace did not respond in time; or, with `only-if-cached`, no stored answer is young enough (`not_cached`)",
        )
    }
}

impl IntoResponses for ResolveErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        hotel_errors(
            RESOLVE_LIMITED,
            "The marketplace's own 503, or too many searches are in flight",
            "The marketplace did not respond in time",
        )
    }
}

fn hotel_errors(limited: &str, unavailable: &str, late: &str) -> BTreeMap<String, RefOr<Response>> {
    error_responses(&[
        (
            ErrorType::InvalidRequest,
            "The request is invalid; the message names every invalid field",
        ),
        (ErrorType::InvalidApiKey, "The key is missing or malformed"),
        (
            ErrorType::NotSubscribed,
            "The key is not subscribed to the hotels API",
        ),
        (ErrorType::NotFound, "Nothing matched; a normal result"),
        (ErrorType::PayloadTooLarge, "The body is larger than 64 KiB"),
        (ErrorType::TooManyRequests, limited),
        (
            ErrorType::Internal,
            "A defect of this service, or the marketplace's own 500",
        ),
        (
            ErrorType::UpstreamError,
            "The marketplace failed, cannot be reached, or its response cannot be parsed",
        ),
        (ErrorType::Unavailable, unavailable),
        (ErrorType::UpstreamTimeout, late),
    ])
}

impl IntoResponses for VerifyErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        error_responses(&[
            (
                ErrorType::InvalidRequest,
                "`api` is none of its allowed values",
            ),
            (
                ErrorType::InvalidApiKey,
                "The key is missing or malformed (an error), or has no subscription (a VerifyResponse)",
            ),
            (
                ErrorType::Internal,
                "A defect of this service, or the marketplace's own 500",
            ),
            (
                ErrorType::UpstreamError,
                "The marketplace failed or cannot be reached",
            ),
            (
                ErrorType::Unavailable,
                "The marketplace's own 503, or too many searches are in flight",
            ),
            (
                ErrorType::TooManyRequests,
                "The service receives too many unknown keys; retry after the time in `Retry-After`",
            ),
            (
                ErrorType::UpstreamTimeout,
                "The marketplace did not respond in time",
            ),
        ])
    }
}

pub(super) fn error_responses(rows: &[(ErrorType, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let answer = |(error, meaning): &(ErrorType, &str)| {
        (
            error.status().to_string(),
            error_response(*error, meaning).into(),
        )
    };
    rows.iter().map(answer).collect()
}

/// One body type for all errors, with an example for each type.
fn error_response(error: ErrorType, meaning: &str) -> Response {
    let schema = Some(Ref::from_schema_name("ErrorBody"));
    let body = ContentBuilder::new()
        .schema(schema)
        .example(Some(json!(ErrorBody::example(error))))
        .build();
    ResponseBuilder::new()
        .description(meaning)
        .content("application/json", body)
        .build()
}
