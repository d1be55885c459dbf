//! The error answers of each kind of route.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::IntoResponses;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::{ContentBuilder, Ref, RefOr};

use crate::contract::{ErrorBody, ErrorType};

/// Error answers of flight searches.
pub(in crate::http) struct FlightErrors;
/// Error answers of hotel searches.
pub(in crate::http) struct HotelErrors;
/// Error answers of verify.
pub(in crate::http) struct VerifyErrors;

/// Error answers of what creates or spends.
pub(in crate::http) struct OrderErrors;
/// Error answers of what makes or changes a monitor.
pub(in crate::http) struct MonitorErrors;
/// Error answers of a pause or cancel.
pub(in crate::http) struct StopErrors;
/// Error answers of a word over one thing that neither waits nor spends.
pub(in crate::http) struct WordErrors;
/// Error answers of a deletion.
pub(in crate::http) struct DeleteErrors;
/// Error answers of a preview.
pub(in crate::http) struct PreviewErrors;
/// Error answers of reading one thing.
pub(in crate::http) struct ReadErrors;
/// Error answers of watching one thing.
pub(in crate::http) struct WatchErrors;
/// Error answers of lists.
pub(in crate::http) struct ListErrors;
/// Error answers of a rotation.
pub(in crate::http) struct RotationErrors;
/// Error answers of a lane's bounds.
pub(in crate::http) struct BoundErrors;
/// Error answers of what is sent to a webhook.
pub(in crate::http) struct WebhookErrors;
/// Error answers of what takes no parameter.
pub(in crate::http) struct AccountErrors;

/// The error answer of lists that can be had in more forms than one.
pub(in crate::http) struct NotAcceptable;

/// The error answers of what takes neither a key nor a parameter.
pub(in crate::http) struct OpenErrors;

impl IntoResponses for OpenErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let response = error_response(
            ErrorType::InvalidRequest,
            "The request cannot be served: its address or its headers are too long",
        );
        BTreeMap::from([("4XX".to_owned(), response.into())])
    }
}

const BAD_KEY: (ErrorType, &str) = (
    ErrorType::InvalidApiKey,
    "No key, one that cannot be used, or one that the marketplace refused",
);
const UNKNOWN: (ErrorType, &str) = (ErrorType::NotFound, "No such thing, or another caller's");
const DEFECT: (ErrorType, &str) = (ErrorType::Internal, "A defect of this service");
const AWAY: (ErrorType, &str) = (
    ErrorType::Unavailable,
    "The database is away (`unavailable`, with Retry-After), or no key may be held (`key_custody_disabled`)",
);
const TOO_LARGE: (ErrorType, &str) = (ErrorType::PayloadTooLarge, "The body is too large");
const FAULTS: (ErrorType, &str) = (
    ErrorType::InvalidRequest,
    "The request cannot be valid; the message names every fault",
);

impl IntoResponses for OrderErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[
            FAULTS,
            BAD_KEY,
            UNKNOWN,
            (
                ErrorType::InvalidState,
                "The scan was cancelled, or has ended and cannot be resumed; or the order is too large for a key that the marketplace has not accepted yet",
            ),
            TOO_LARGE,
            (
                ErrorType::IdempotencyMismatch,
                "The `Idempotency-Key` was used with another body",
            ),
            (
                ErrorType::TooManyRequests,
                "The caller has as much underway as one may have, or sends requests too fast",
            ),
            DEFECT,
            AWAY,
        ])
    }
}

impl IntoResponses for MonitorErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[
            FAULTS,
            BAD_KEY,
            UNKNOWN,
            (
                ErrorType::InvalidState,
                "The marketplace has not accepted this key yet; the caller has as many monitors as one may; or a run has not ended, could go over the month's ceiling, or cannot be made any more",
            ),
            TOO_LARGE,
            (
                ErrorType::IdempotencyMismatch,
                "The `Idempotency-Key` was used with another body",
            ),
            (
                ErrorType::TooManyRequests,
                "The caller has as much underway as one may have, or sends requests too fast",
            ),
            DEFECT,
            AWAY,
        ])
    }
}

impl IntoResponses for StopErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[
            FAULTS,
            BAD_KEY,
            UNKNOWN,
            (ErrorType::InvalidState, "The scan has ended"),
            TOO_LARGE,
            DEFECT,
            AWAY,
        ])
    }
}

impl IntoResponses for DeleteErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[
            FAULTS,
            BAD_KEY,
            UNKNOWN,
            (ErrorType::InvalidState, "The scan has not ended"),
            DEFECT,
            AWAY,
        ])
    }
}

impl IntoResponses for PreviewErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[FAULTS, BAD_KEY, TOO_LARGE, DEFECT, AWAY])
    }
}

impl IntoResponses for ReadErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[FAULTS, BAD_KEY, UNKNOWN, DEFECT, AWAY])
    }
}

impl IntoResponses for WordErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[FAULTS, BAD_KEY, UNKNOWN, TOO_LARGE, DEFECT, AWAY])
    }
}

impl IntoResponses for WatchErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let too_many = (
            ErrorType::TooManyRequests,
            "The caller watches as many scans as one may, or sends requests too fast",
        );
        described(&[FAULTS, BAD_KEY, UNKNOWN, too_many, DEFECT, AWAY])
    }
}

impl IntoResponses for ListErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[FAULTS, BAD_KEY, DEFECT, AWAY])
    }
}

impl IntoResponses for NotAcceptable {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let response = error_response(
            ErrorType::InvalidRequest,
            "`Accept` names no form of this answer; the type is `invalid_request`",
        );
        BTreeMap::from([("406".to_owned(), response.into())])
    }
}

impl IntoResponses for RotationErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[
            (
                ErrorType::InvalidRequest,
                "`new_key` can be no key, is the key of the request, or is refused by the marketplace; the message shows nothing of the body",
            ),
            BAD_KEY,
            (ErrorType::NotFound, "The key of the request owns nothing"),
            (
                ErrorType::InvalidState,
                "The new key owns something already",
            ),
            TOO_LARGE,
            (
                ErrorType::TooManyRequests,
                "Too many unknown keys are tried, or the caller sends requests too fast",
            ),
            DEFECT,
            (
                ErrorType::UpstreamError,
                "The marketplace could not check the new key; nothing has passed",
            ),
            AWAY,
            (
                ErrorType::UpstreamTimeout,
                "The marketplace did not check the new key in time; nothing has passed",
            ),
        ])
    }
}

impl IntoResponses for BoundErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let no_lane = (ErrorType::NotFound, "There is no such lane");
        let not_accepted = (
            ErrorType::InvalidState,
            "The marketplace has not accepted this key yet",
        );
        described(&[
            FAULTS,
            BAD_KEY,
            no_lane,
            not_accepted,
            TOO_LARGE,
            DEFECT,
            AWAY,
        ])
    }
}

impl IntoResponses for WebhookErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let off = (
            ErrorType::InvalidState,
            "The webhook is switched off, is no more, or had too many new secrets within a day",
        );
        let reused = (
            ErrorType::IdempotencyMismatch,
            "The `Idempotency-Key` was used with another body",
        );
        let soon = (
            ErrorType::TooManyRequests,
            "The monitor was tested less than a minute ago",
        );
        described(&[
            FAULTS, BAD_KEY, UNKNOWN, off, TOO_LARGE, reused, soon, DEFECT, AWAY,
        ])
    }
}

impl IntoResponses for AccountErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[BAD_KEY, DEFECT, AWAY])
    }
}

impl IntoResponses for FlightErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[
            (
                ErrorType::InvalidRequest,
                "The request cannot be valid; the message names every fault",
            ),
            (
                ErrorType::InvalidApiKey,
                "No key, or one that cannot be used",
            ),
            (
                ErrorType::NotSubscribed,
                "The key is not subscribed to the flights API",
            ),
            (ErrorType::PayloadTooLarge, "The body is larger than 64 KiB"),
            (
                ErrorType::TooManyRequests,
                "Plan quota or rate limit exhausted; the marketplace's answer, unchanged. Ours, if `Prefer` and `Idempotency-Key` meet a bound, or if too many unknown keys are tried",
            ),
            (ErrorType::Internal, "A defect of this service"),
            (
                ErrorType::SearchIncomplete,
                "The search did not complete and `strict` is true; too many searches are in flight; or, with `Prefer` and `Idempotency-Key`, the database is away",
            ),
        ])
    }
}

impl IntoResponses for HotelErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[
            (
                ErrorType::InvalidRequest,
                "The request cannot be valid; the message names every fault",
            ),
            (
                ErrorType::InvalidApiKey,
                "No key, or one that cannot be used",
            ),
            (
                ErrorType::NotSubscribed,
                "The key is not subscribed to the hotels API",
            ),
            (ErrorType::NotFound, "Nothing matched; a normal outcome"),
            (ErrorType::PayloadTooLarge, "The body is larger than 64 KiB"),
            (
                ErrorType::TooManyRequests,
                "Plan quota or rate limit exhausted; the marketplace's answer, unchanged. Ours, if `Prefer` and `Idempotency-Key` meet a bound, or if too many unknown keys are tried",
            ),
            (
                ErrorType::Internal,
                "A defect of this service, or the marketplace's own 500",
            ),
            (
                ErrorType::UpstreamError,
                "The marketplace failed, cannot be reached, or its answer cannot be read",
            ),
            (
                ErrorType::Unavailable,
                "The marketplace's own 503; too many searches are in flight; or, with `Prefer` and `Idempotency-Key`, the database is away",
            ),
            (
                ErrorType::UpstreamTimeout,
                "The marketplace did not answer in the time budget",
            ),
        ])
    }
}

impl IntoResponses for VerifyErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[
            (ErrorType::InvalidRequest, "`api` holds none of its words"),
            (
                ErrorType::InvalidApiKey,
                "No key, a malformed one (an error), or one without a subscription (a VerifyResponse)",
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
                "Too many unknown keys are tried; `Retry-After` says when to come back",
            ),
            (
                ErrorType::UpstreamTimeout,
                "The marketplace did not answer in the time budget",
            ),
        ])
    }
}

pub(super) fn described(rows: &[(ErrorType, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let answer = |(error, meaning): &(ErrorType, &str)| {
        (
            error.status().to_string(),
            error_response(*error, meaning).into(),
        )
    };
    rows.iter().map(answer).collect()
}

/// One body type for every error, with an example of its own.
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
