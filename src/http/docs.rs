//! The description of the whole service: `/openapi.json` (OpenAPI 3.1, specification 9) and `/docs`, which shows it (`page`,
//! contract 21). Routes describe themselves; here is what they share.

mod headers;
mod page;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::HeaderMap;
use axum::response::{Redirect, Response};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::response::{Response as Described, ResponseBuilder};
use utoipa::openapi::schema::{Object, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Required};
use utoipa::{IntoParams, IntoResponses, Modify, OpenApi as _};

pub(super) use self::page::page;
use super::assets::Asset;
use crate::contract::account::{VerifyResponse, VerifyScope};
use crate::contract::scans::EventsReset;
use crate::contract::{ErrorBody, ErrorType};

const DESCRIPTION: &str = "Live flight fares and hotel rates, and scans over dates and markets.\n\n\
    Every search is one request against the plan of the marketplace key that it is sent with. A request that cannot be valid costs \
    nothing: it is answered 400 with every fault named. Flight searches say in `X-Search-Status` whether they completed.";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "farescan", version = "1.1.0", description = DESCRIPTION, license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")),
    servers((url = "/", description = "this service")),
    tags(
        (name = "Flights", description = "Live flight fares"),
        (name = "Hotels", description = "Live hotel rates, from any market"),
        (name = "Scans", description = "One request over many dates, markets or values, paced inside the caller's plan"),
        (name = "Monitors", description = "A scan on a schedule, what became of each slot, and when to tell"),
        (name = "History", description = "What scans have seen"),
        (name = "Webhooks", description = "What monitors tell, and whether it arrived"),
        (name = "Account", description = "The caller's key and plan"),
        (name = "Service", description = "This service itself")
    ),
    components(schemas(ErrorBody, EventsReset, VerifyResponse, VerifyScope)),
    security(("x-api-key" = []), ("x-marketplace-key" = []), ("x-marketplace-token" = []), ("authorization" = []), ("api_key" = [])),
    modifiers(&Carriers)
)]
struct Description;

/// What every route's own description is added to.
pub(super) fn shared() -> OpenApi {
    Description::openapi()
}

/// Names every operation by its method and path (`post_flights_oneway`): unique, and it stays when a handler is renamed. Completes its
/// answers by what they have in common.
pub(super) fn completed(mut openapi: OpenApi) -> OpenApi {
    for (path, item) in &mut openapi.paths.paths {
        let words = path.trim_start_matches("/v1").split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let name = words.collect::<Vec<_>>().join("_");
        let operations = [
            ("get", &mut item.get),
            ("post", &mut item.post),
            ("put", &mut item.put),
            ("patch", &mut item.patch),
            ("delete", &mut item.delete),
        ];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                operation.operation_id = Some(format!("{method}_{name}"));
            }
        }
    }
    headers::describe(&mut openapi);
    webhooks::describe(&mut openapi);
    openapi
}

/// The key's carriers (specification 5).
struct Carriers;

impl Modify for Carriers {
    fn modify(&self, openapi: &mut OpenApi) {
        let components = openapi.components.get_or_insert_default();
        for name in ["x-api-key", "x-marketplace-key", "x-marketplace-token"] {
            let scheme = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(name, "Your marketplace key")));
            components.add_security_scheme(name, scheme);
        }
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("Your marketplace key (`Bearer`, `ApiKey` or `Token`)"));
        components.add_security_scheme("authorization", SecurityScheme::Http(bearer.build()));
        let query =
            ApiKeyValue::with_description("api_key", "Works, and is discouraged: keys in URLs end up in logs and history");
        components.add_security_scheme("api_key", SecurityScheme::ApiKey(ApiKey::Query(query)));
    }
}

/// The headers by which a search may become a scan.
pub(super) struct SearchHeaders;
/// Its answers then.
pub(super) struct SearchAccepted;

impl IntoParams for SearchHeaders {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let header = |name: &str, description: &str| {
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Header)
                .required(Required::False)
                .description(Some(description))
                .schema(Some(Object::with_type(Type::String)))
                .build()
        };
        vec![
            header(
                "Prefer",
                "RFC 7240. `respond-async`: the search becomes a scan of one item, answered 202. With `wait=20` (at most 60) the answer \
                 comes as usual if it is known within that many seconds. Ignored where it cannot be honoured; `Preference-Applied` says \
                 what was.",
            ),
            header("Idempotency-Key", "With `Prefer`: the same key and body within 48 hours are the same search, asked once"),
        ]
    }
}

impl IntoResponses for SearchAccepted {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        let scan = ContentBuilder::new().schema(Some(Ref::from_schema_name("Scan"))).build();
        let accepted = ResponseBuilder::new()
            .description("With `Prefer`: the search is a scan of one item; `Location` names it")
            .content("application/json", scan);
        let mut responses =
            described(&[(ErrorType::IdempotencyMismatch, "With `Prefer`: the `Idempotency-Key` was used with another body")]);
        responses.insert("202".to_owned(), accepted.build().into());
        responses
    }
}

/// Error answers of flight searches.
pub(super) struct FlightErrors;
/// Error answers of hotel searches.
pub(super) struct HotelErrors;
/// Error answers of verify.
pub(super) struct VerifyErrors;

/// Error answers of what creates or spends.
pub(super) struct OrderErrors;
/// Error answers of what makes or changes a monitor.
pub(super) struct MonitorErrors;
/// Error answers of a pause or cancel.
pub(super) struct StopErrors;
/// Error answers of a word over one thing that neither waits nor spends.
pub(super) struct WordErrors;
/// Error answers of a deletion.
pub(super) struct DeleteErrors;
/// Error answers of a preview.
pub(super) struct PreviewErrors;
/// Error answers of reading one thing.
pub(super) struct ReadErrors;
/// Error answers of watching one thing.
pub(super) struct WatchErrors;
/// Error answers of lists.
pub(super) struct ListErrors;
/// Error answers of a rotation.
pub(super) struct RotationErrors;
/// Error answers of a lane's bounds.
pub(super) struct BoundErrors;
/// Error answers of what is sent to a webhook.
pub(super) struct WebhookErrors;
/// Error answers of what takes no parameter.
pub(super) struct AccountErrors;

/// The error answer of lists that can be had in more forms than one.
pub(super) struct NotAcceptable;

const BAD_KEY: (ErrorType, &str) =
    (ErrorType::InvalidApiKey, "No key, one that cannot be used, or one that the marketplace refused");
const UNKNOWN: (ErrorType, &str) = (ErrorType::NotFound, "No such thing, or another caller's");
const DEFECT: (ErrorType, &str) = (ErrorType::Internal, "A defect of this service");
const AWAY: (ErrorType, &str) = (
    ErrorType::Unavailable,
    "The database is away (`unavailable`, with Retry-After), or no key may be held (`key_custody_disabled`)",
);
const TOO_LARGE: (ErrorType, &str) = (ErrorType::PayloadTooLarge, "The body is too large");
const FAULTS: (ErrorType, &str) = (ErrorType::InvalidRequest, "The request cannot be valid; the message names every fault");

impl IntoResponses for OrderErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        described(&[
            FAULTS,
            BAD_KEY,
            UNKNOWN,
            (
                ErrorType::InvalidState,
                "The scan was cancelled, or has ended and cannot be resumed; or the order is too large for a key that the marketplace has not accepted yet",
            ),
            TOO_LARGE,
            (ErrorType::IdempotencyMismatch, "The `Idempotency-Key` was used with another body"),
            (ErrorType::TooManyRequests, "The caller has as much underway as one may have, or sends requests too fast"),
            DEFECT,
            AWAY,
        ])
    }
}

impl IntoResponses for MonitorErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        described(&[
            FAULTS,
            BAD_KEY,
            UNKNOWN,
            (
                ErrorType::InvalidState,
                "The marketplace has not accepted this key yet; the caller has as many monitors as one may; or a run has not ended, could go over the month's ceiling, or cannot be made any more",
            ),
            TOO_LARGE,
            (ErrorType::IdempotencyMismatch, "The `Idempotency-Key` was used with another body"),
            (ErrorType::TooManyRequests, "The caller has as much underway as one may have, or sends requests too fast"),
            DEFECT,
            AWAY,
        ])
    }
}

impl IntoResponses for StopErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        described(&[FAULTS, BAD_KEY, UNKNOWN, (ErrorType::InvalidState, "The scan has ended"), TOO_LARGE, DEFECT, AWAY])
    }
}

impl IntoResponses for DeleteErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        described(&[FAULTS, BAD_KEY, UNKNOWN, (ErrorType::InvalidState, "The scan has not ended"), DEFECT, AWAY])
    }
}

impl IntoResponses for PreviewErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        described(&[FAULTS, BAD_KEY, TOO_LARGE, DEFECT, AWAY])
    }
}

impl IntoResponses for ReadErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        described(&[FAULTS, BAD_KEY, UNKNOWN, DEFECT, AWAY])
    }
}

impl IntoResponses for WordErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        described(&[FAULTS, BAD_KEY, UNKNOWN, TOO_LARGE, DEFECT, AWAY])
    }
}

impl IntoResponses for WatchErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        let too_many = (ErrorType::TooManyRequests, "The caller watches as many scans as one may, or sends requests too fast");
        described(&[FAULTS, BAD_KEY, UNKNOWN, too_many, DEFECT, AWAY])
    }
}

impl IntoResponses for ListErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        described(&[FAULTS, BAD_KEY, DEFECT, AWAY])
    }
}

impl IntoResponses for NotAcceptable {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        let response = error_response("`Accept` names no form of this list; the type is `invalid_request`");
        BTreeMap::from([("406".to_owned(), response.into())])
    }
}

impl IntoResponses for RotationErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        described(&[
            (
                ErrorType::InvalidRequest,
                "`new_key` can be no key, is the key of the request, or is refused by the marketplace; the message shows nothing of the body",
            ),
            BAD_KEY,
            (ErrorType::NotFound, "The key of the request owns nothing"),
            (ErrorType::InvalidState, "The new key owns something already"),
            TOO_LARGE,
            DEFECT,
            AWAY,
        ])
    }
}

impl IntoResponses for BoundErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        let no_lane = (ErrorType::NotFound, "There is no such lane");
        let not_accepted = (ErrorType::InvalidState, "The marketplace has not accepted this key yet");
        described(&[FAULTS, BAD_KEY, no_lane, not_accepted, TOO_LARGE, DEFECT, AWAY])
    }
}

impl IntoResponses for WebhookErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        let off = (ErrorType::InvalidState, "The webhook is switched off, is no more, or had too many new secrets within a day");
        let reused = (ErrorType::IdempotencyMismatch, "The `Idempotency-Key` was used with another body");
        described(&[FAULTS, BAD_KEY, UNKNOWN, off, TOO_LARGE, reused, DEFECT, AWAY])
    }
}

impl IntoResponses for AccountErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        described(&[BAD_KEY, DEFECT, AWAY])
    }
}

impl IntoResponses for FlightErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        described(&[
            (ErrorType::InvalidRequest, "The request cannot be valid; the message names every fault"),
            (ErrorType::InvalidApiKey, "No key, or one that cannot be used"),
            (ErrorType::NotSubscribed, "The key is not subscribed to the flights API"),
            (ErrorType::PayloadTooLarge, "The body is larger than 64 KiB"),
            (
                ErrorType::TooManyRequests,
                "Plan quota or rate limit exhausted; the marketplace's answer, unchanged. Ours, if `Prefer` and `Idempotency-Key` meet a bound",
            ),
            (ErrorType::Internal, "A defect of this service"),
            (
                ErrorType::SearchIncomplete,
                "The search did not complete and `strict` is true; or, with `Prefer` and `Idempotency-Key`, the database is away",
            ),
        ])
    }
}

impl IntoResponses for HotelErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        described(&[
            (ErrorType::InvalidRequest, "The request cannot be valid; the message names every fault"),
            (ErrorType::InvalidApiKey, "No key, or one that cannot be used"),
            (ErrorType::NotSubscribed, "The key is not subscribed to the hotels API"),
            (ErrorType::NotFound, "Nothing matched; a normal outcome"),
            (ErrorType::PayloadTooLarge, "The body is larger than 64 KiB"),
            (
                ErrorType::TooManyRequests,
                "Plan quota or rate limit exhausted; the marketplace's answer, unchanged. Ours, if `Prefer` and `Idempotency-Key` meet a bound",
            ),
            (ErrorType::Internal, "A defect of this service, or the marketplace's own 500"),
            (ErrorType::UpstreamError, "The marketplace failed, cannot be reached, or its answer cannot be read"),
            (ErrorType::Unavailable, "The marketplace's own 503; or, with `Prefer` and `Idempotency-Key`, the database is away"),
            (ErrorType::UpstreamTimeout, "The marketplace did not answer in the time budget"),
        ])
    }
}

impl IntoResponses for VerifyErrors {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        described(&[
            (ErrorType::InvalidRequest, "`api` holds none of its words"),
            (ErrorType::InvalidApiKey, "No key, a malformed one (an error), or one without a subscription (a VerifyResponse)"),
            (ErrorType::Internal, "A defect of this service, or the marketplace's own 500"),
            (ErrorType::UpstreamError, "The marketplace failed or cannot be reached"),
            (ErrorType::Unavailable, "The marketplace's own 503"),
            (ErrorType::UpstreamTimeout, "The marketplace did not answer in the time budget"),
        ])
    }
}

pub(super) fn described(rows: &[(ErrorType, &str)]) -> BTreeMap<String, RefOr<Described>> {
    rows.iter().map(|(error, description)| (error.status().to_string(), error_response(description).into())).collect()
}

/// One body type for every error (specification 2.14).
fn error_response(description: &str) -> Described {
    let body = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
    ResponseBuilder::new().description(description).content("application/json", body).build()
}

/// This description
///
/// Needs no key.
#[utoipa::path(
    get, path = "/openapi.json", tag = "Service", security(()),
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = Object))
)]
pub(super) async fn openapi(headers: HeaderMap) -> Response {
    static DESCRIPTION: LazyLock<Asset> = LazyLock::new(|| {
        let description = serde_json::to_vec(&super::description()).expect("it has no map whose keys are not text");
        Asset::new("application/json", description)
    });
    DESCRIPTION.answer(&headers).await
}

/// Whoever opens the address in a browser is shown what is here.
pub(super) async fn front() -> Redirect {
    Redirect::to("/docs")
}
