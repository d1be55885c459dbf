//! Request headers that several routes share, and the response of a search that became a scan.

use std::collections::BTreeMap;

use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Required};
use utoipa::{IntoParams, IntoResponses};

use super::error_responses::error_responses;
use farescan_core::commands::MAX_IDEMPOTENCY_KEY;
use farescan_core::contract::ErrorType;

/// `Idempotency-Key` of commands that create or spend.
pub(crate) struct IdempotencyHeader;
/// The headers that can make a search a scan, or answer it from what is stored.
pub(crate) struct SearchHeaders;
/// The responses of a search that became a scan.
pub(crate) struct SearchAccepted;

impl IntoParams for SearchHeaders {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![
            header(
                "Prefer",
                Object::with_type(Type::String),
                "RFC 7240. `respond-async`: the search becomes a scan of one item, and the response is 202. With `wait=20` (at most 60) \
                 the response is synchronous if the result is known within that many seconds. Ignored where it cannot be honoured; \
                 `Preference-Applied` names what was honoured.",
            ),
            header(
                "Cache-Control",
                Object::with_type(Type::String),
                "RFC 9111. `max-age=3600`: take the stored answer to an equal search if it is at most that many seconds old; else \
                 search, and store the answer. `min-fresh`, `no-cache` and `no-store` apply. `only-if-cached`: never search. \
                 Without `max-age` and `only-if-cached` the header is ignored.",
            ),
            idempotency_key(
                "With `Prefer`: the same key and body within 48 hours are one search, sent once.",
            ),
        ]
    }
}

impl IntoResponses for SearchAccepted {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let scan = ContentBuilder::new()
            .schema(Some(Ref::from_schema_name("Scan")))
            .build();
        let accepted = ResponseBuilder::new()
            .description("With `Prefer`: the search is a scan of one item; `Location` names it")
            .content("application/json", scan);
        let reused = "With `Prefer`: the `Idempotency-Key` was used with another body";
        let mut responses = error_responses(None, &[(ErrorType::IdempotencyMismatch, reused)]);
        responses.insert("202".to_owned(), accepted.build().into());
        responses
    }
}

impl IntoParams for IdempotencyHeader {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![idempotency_key(
            "The same key with the same body within 48 hours returns the first response again, with `Idempotent-Replayed: true`.",
        )]
    }
}

fn idempotency_key(description: &str) -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(MAX_IDEMPOTENCY_KEY))
        .pattern(Some("^[!-~]+$"))
        .examples(["order-2027-01-13-a"]);
    header("Idempotency-Key", schema.build(), description)
}

fn header(name: &str, schema: Object, description: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}
