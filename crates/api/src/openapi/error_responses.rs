//! The error responses of each kind of route.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::IntoResponses;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::{ContentBuilder, Ref, RefOr};

use farescan_core::contract::{ErrorBody, ErrorType};

/// An error and when it comes.
type ErrorRow = (ErrorType, &'static str);

/// Declares a row for each meaning that several routes have, then a type for each kind of route, with
/// those rows or rows of its own, and where given the status instead of that of the error.
macro_rules! error_responses {
    (
        $( $shared:ident: $shared_type:ident => $shared_meaning:literal; )+
        $( $(#[$doc:meta])+ $name:ident $( as $status:literal )?: [$( $row:ident $( => $meaning:literal )? ),+]; )+
    ) => {
        $( const $shared: ErrorRow = (ErrorType::$shared_type, $shared_meaning); )+
        $(
            $(#[$doc])+
            pub(crate) struct $name;

            impl IntoResponses for $name {
                fn responses() -> BTreeMap<String, RefOr<Response>> {
                    let status = None $( .or(Some($status)) )?;
                    error_responses(status, &[$( error_responses!(@row $row $( => $meaning )?) ),+])
                }
            }
        )+
    };
    (@row $error:ident => $meaning:literal) => { (ErrorType::$error, $meaning) };
    (@row $shared:ident) => { $shared };
}

error_responses! {
    INVALID_REQUEST: InvalidRequest => "The request is invalid; the message names every invalid field";
    BAD_KEY: InvalidApiKey => "The key is missing, malformed, or rejected by the marketplace";
    BAD_KEY_FORM: InvalidApiKey => "The key is missing or malformed";
    NOT_ACCEPTED: KeyNotAccepted => "The marketplace has not accepted this key yet";
    NOT_FOUND: NotFound => "Unknown id, or one of another caller";
    TOO_LARGE: PayloadTooLarge => "The body is too large";
    TOO_LARGE_SEARCH: PayloadTooLarge => "The body is larger than 64 KiB";
    KEY_REUSED: IdempotencyMismatch => "The `Idempotency-Key` was used with another body";
    LIVE_WORK: TooManyRequests => "The caller is at its limit of live work, or exceeds its request rate";
    INTERNAL: Internal => "A defect of this service";
    UNAVAILABLE: Unavailable => "The database is unavailable (`unavailable`, with Retry-After), or the service has no master key (`key_custody_disabled`)";
    // Of calls to the marketplace.
    PLAN_LIMIT: TooManyRequests => "The plan's quota or rate limit is exhausted: the marketplace's own response, unchanged, whose body is not an `ErrorBody`. Or, as an `ErrorBody`: `Prefer` with `Idempotency-Key` meets a limit of this service, or it receives too many unknown keys";
    HOTELS_NOT_SUBSCRIBED: NotSubscribed => "The key is not subscribed to the hotels API";
    NO_MATCH: NotFound => "Nothing matched; a normal result";
    FAILED: Internal => "A defect of this service, or the marketplace's own 500";
    UPSTREAM_FAILED: UpstreamError => "The marketplace failed, cannot be reached, or its response cannot be parsed";
    BUSY: Unavailable => "The marketplace's own 503, or too many searches are in flight";
    LATE: UpstreamTimeout => "The marketplace did not respond in time";

    /// Error responses of flight searches.
    FlightErrors: [
        INVALID_REQUEST, BAD_KEY_FORM, NotSubscribed => "The key is not subscribed to the flights API", TOO_LARGE_SEARCH, PLAN_LIMIT, INTERNAL,
        SearchIncomplete => "The search did not complete and `strict` is true; too many searches are in flight; or, with `Prefer` and `Idempotency-Key` or with `only-if-cached`, the database is unavailable or this service has no master key",
        NotCached => "With `only-if-cached`: no stored answer is young enough (`not_cached`)"
    ];
    /// Error responses of hotel searches.
    HotelErrors: [
        INVALID_REQUEST, BAD_KEY_FORM, HOTELS_NOT_SUBSCRIBED, NO_MATCH, TOO_LARGE_SEARCH, PLAN_LIMIT, FAILED, UPSTREAM_FAILED,
        Unavailable => "The marketplace's own 503; too many searches are in flight; or, with `Prefer` and `Idempotency-Key` or with `only-if-cached`, the database is unavailable or this service has no master key",
        UpstreamTimeout => "The marketplace did not respond in time; or, with `only-if-cached`, no stored answer is young enough (`not_cached`)"
    ];
    /// Error responses of resolving a hotel's name, which takes no `Prefer`.
    ResolveErrors: [
        INVALID_REQUEST, BAD_KEY_FORM, HOTELS_NOT_SUBSCRIBED, NO_MATCH, TOO_LARGE_SEARCH,
        TooManyRequests => "The plan's quota or rate limit is exhausted: the marketplace's own response, unchanged, whose body is not an `ErrorBody`. Or, as an `ErrorBody`: this service receives too many unknown keys",
        FAILED, UPSTREAM_FAILED, BUSY, LATE
    ];
    /// Error responses of verify.
    VerifyErrors: [
        InvalidRequest => "`api` is none of its allowed values",
        InvalidApiKey => "The key is missing or malformed (an error), or has no subscription (a VerifyResponse)",
        FAILED, UpstreamError => "The marketplace failed or cannot be reached", BUSY,
        TooManyRequests => "The service receives too many unknown keys; retry after the time in `Retry-After`", LATE
    ];
    /// Error responses of submissions and retries.
    SubmissionErrors: [
        INVALID_REQUEST, BAD_KEY, NOT_FOUND,
        InvalidState => "The scan was cancelled, or has ended and cannot be resumed (`invalid_state`); or the scan is too large for a key that the marketplace has not accepted yet (`key_not_accepted`)",
        TOO_LARGE, KEY_REUSED, LIVE_WORK, INTERNAL, UNAVAILABLE
    ];
    /// Error responses of creating or changing a monitor.
    MonitorErrors: [
        INVALID_REQUEST, BAD_KEY, NOT_FOUND,
        InvalidState => "The marketplace has not accepted this key yet (`key_not_accepted`); the caller is at its limit of monitors, or a run has not ended, could exceed the monthly limit, or is no longer possible (`invalid_state`)",
        TOO_LARGE, KEY_REUSED, LIVE_WORK, INTERNAL, UNAVAILABLE
    ];
    /// Error responses of pausing or cancelling a scan.
    StopErrors: [INVALID_REQUEST, BAD_KEY, NOT_FOUND, InvalidState => "The scan has ended", TOO_LARGE, INTERNAL, UNAVAILABLE];
    /// Error responses of other commands on one resource.
    CommandErrors: [INVALID_REQUEST, BAD_KEY, NOT_FOUND, TOO_LARGE, INTERNAL, UNAVAILABLE];
    /// Error responses of deleting a scan.
    DeleteErrors: [INVALID_REQUEST, BAD_KEY, NOT_FOUND, InvalidState => "The scan has not ended", INTERNAL, UNAVAILABLE];
    /// Error responses of a backtest.
    BacktestErrors: [
        INVALID_REQUEST, BAD_KEY, NOT_ACCEPTED, TOO_LARGE,
        TooManyRequests => "The caller's other backtest has not ended, or the caller exceeds its request rate", INTERNAL, UNAVAILABLE
    ];
    /// Error responses of a preview.
    PreviewErrors: [INVALID_REQUEST, BAD_KEY, TOO_LARGE, INTERNAL, UNAVAILABLE];
    /// Error responses of reading one resource.
    ReadErrors: [INVALID_REQUEST, BAD_KEY, NOT_FOUND, INTERNAL, UNAVAILABLE];
    /// Error responses of watching a scan.
    WatchErrors: [
        INVALID_REQUEST, BAD_KEY, NOT_FOUND,
        TooManyRequests => "The caller is at its limit of watched scans, or exceeds its request rate", INTERNAL, UNAVAILABLE
    ];
    /// Error responses of lists.
    ListErrors: [INVALID_REQUEST, BAD_KEY, INTERNAL, UNAVAILABLE];
    /// Error responses of a key rotation.
    RotationErrors: [
        InvalidRequest => "`new_key` is malformed, is the key of the request, or is rejected by the marketplace; the message shows nothing of the body",
        BAD_KEY, NotFound => "The key of the request owns nothing", InvalidState => "The new key already owns an account", TOO_LARGE,
        TooManyRequests => "The service receives too many unknown keys, or the caller exceeds its request rate", INTERNAL,
        UpstreamError => "The marketplace could not check the new key; nothing was changed", UNAVAILABLE,
        UpstreamTimeout => "The marketplace did not check the new key in time; nothing was changed"
    ];
    /// Error responses of setting a lane's limits.
    LaneBoundsErrors: [INVALID_REQUEST, BAD_KEY, NotFound => "Unknown lane", NOT_ACCEPTED, TOO_LARGE, INTERNAL, UNAVAILABLE];
    /// Error responses of setting the account's settings.
    AccountSettingsErrors: [INVALID_REQUEST, BAD_KEY, NOT_ACCEPTED, TOO_LARGE, INTERNAL, UNAVAILABLE];
    /// Error responses of creating a channel.
    ChannelErrors: [
        INVALID_REQUEST, BAD_KEY,
        InvalidState => "The marketplace has not accepted this key yet (`key_not_accepted`), or the caller is at its limit of channels (`invalid_state`)",
        TOO_LARGE, KEY_REUSED, TooManyRequests => "The account has had its codes of the day mailed", INTERNAL, UNAVAILABLE
    ];
    /// Error responses of changing a channel.
    ChannelCommandErrors: [
        INVALID_REQUEST, BAD_KEY, NOT_FOUND, InvalidState => "The address of the channel is not confirmed, so it cannot be active", TOO_LARGE,
        TooManyRequests => "A code was mailed less than a minute ago, or the account has had its codes of the day", INTERNAL, UNAVAILABLE
    ];
    /// Error responses of confirming an address.
    ChannelConfirmErrors: [
        InvalidRequest => "The body is not valid, or the code is another one", BAD_KEY, NOT_FOUND,
        InvalidState => "No code is valid, the address is confirmed already, or the channel has none", TOO_LARGE,
        TooManyRequests => "A code was mailed less than a minute ago, or the account has had its codes of the day", INTERNAL, UNAVAILABLE
    ];
    /// Error responses of deleting a channel.
    DeleteChannelErrors: [INVALID_REQUEST, BAD_KEY, NOT_FOUND, InvalidState => "Monitors name the channel", INTERNAL, UNAVAILABLE];
    /// Error responses of testing a channel.
    ChannelTestErrors: [
        INVALID_REQUEST, BAD_KEY, NOT_FOUND, InvalidState => "The channel is paused", TOO_LARGE, KEY_REUSED,
        TooManyRequests => "The channel was tested less than a minute ago", INTERNAL, UNAVAILABLE
    ];
    /// Error responses of sending to a webhook.
    WebhookErrors: [
        INVALID_REQUEST, BAD_KEY, NOT_FOUND,
        InvalidState => "The webhook is disabled or deleted, or its secret was rotated too often within a day", TOO_LARGE, KEY_REUSED,
        TooManyRequests => "The monitor was tested less than a minute ago", INTERNAL, UNAVAILABLE
    ];
    /// Error responses of account routes without parameters.
    AccountErrors: [BAD_KEY, INTERNAL, UNAVAILABLE];
    /// The error response of lists with several formats.
    NotAcceptable as "406": [InvalidRequest => "`Accept` names no available format; the type is `invalid_request`"];
    /// The error responses of routes without key and parameters.
    PublicErrors as "4XX": [InvalidRequest => "The URL or the headers of the request are too long"];
}

/// A response for each row, under `status` or that of its error.
pub(super) fn error_responses(
    status: Option<&str>,
    rows: &[ErrorRow],
) -> BTreeMap<String, RefOr<Response>> {
    let response = |&(error, meaning): &ErrorRow| {
        let of_error = || error.status().to_string();
        (
            status.map_or_else(of_error, str::to_owned),
            error_response(error, meaning).into(),
        )
    };
    rows.iter().map(response).collect()
}

/// One body type for all errors, with an example for each type.
fn error_response(error: ErrorType, meaning: &str) -> Response {
    let body = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("ErrorBody")))
        .example(Some(json!(ErrorBody::example(error))))
        .build();
    ResponseBuilder::new()
        .description(meaning)
        .content("application/json", body)
        .build()
}
