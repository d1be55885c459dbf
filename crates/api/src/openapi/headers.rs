//! Headers and 429 responses that many routes share. They are defined once and added here, so that
//! no route can omit them.

use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, Parameter};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{Object, OpenApi, Ref, RefOr};

use super::error_responses::error_responses;
use super::operations;
use farescan_core::contract::ErrorType;

const REPLAYED: &str = "Idempotent-Replayed";

/// Declares the headers: name, type, meaning.
macro_rules! shared_headers {
    ($( $name:literal: $kind:ident => $meaning:literal; )+) => {
        const HEADERS: &[(&str, Type, &str)] = &[$( ($name, Type::$kind, $meaning) ),+];
    };
}

shared_headers! {
    "X-Request-Id": String => "The id of this request; include it in problem reports";
    "Retry-After": Integer => "Seconds to wait before a retry";
    "WWW-Authenticate": String => "One way to send the key; the security schemes list all of them";
    "X-Field-Aliased": String => "Alias that was applied to the body: `max_stops -> max_departure_stops, max_return_stops`";
    "X-Upstream-Requests": Integer => "Requests that the marketplace bills for this response";
    "Age": Integer => "Seconds since the search that found this answer, if it was made for an earlier request";
    "Location": String => "The path of the new resource: `/v1/scans/{id}`";
    "Link": String => "On every page but the last: the next page, as `</v1/scans?cursor=...>; rel=\"next\"`";
    "Idempotent-Replayed": Boolean => "`true`: the stored response to an earlier request with the same `Idempotency-Key` and body";
    "Preference-Applied": String => "The honoured part of `Prefer`: `respond-async, wait=20`";
    // On searches. Other `x-search-*` headers of the marketplace are passed on unchanged.
    "X-Search-Status": String => "Whether the search completed: `ok`, `empty`, `partial` or `degraded`; absent if the marketplace did not state it";
    "X-Search-Reason": String => "Why it did not complete; may also come with `ok`";
    "X-Search-Results": Integer => "Number of results in the body";
    // On every response of the marketplace. Other `x-plan-*` headers are passed on unchanged.
    "X-Plan-Requests-Limit": Integer => "Requests in the caller's plan";
    "X-Plan-Requests-Remaining": Integer => "Requests left in the plan";
    "X-Plan-Requests-Reset": Integer => "Seconds until the plan's count resets";
    "X-Plan-Limit": Integer => "Requests per rate window, on plans that have one";
    "X-Plan-Remaining": Integer => "Requests left in the rate window";
    "X-Plan-Reset": Integer => "Seconds until the next rate window";
}

/// Adds the shared headers and responses to every operation.
pub(super) fn describe(openapi: &mut OpenApi) {
    let headers = HEADERS
        .iter()
        .map(|(name, kind, meaning)| ((*name).to_owned(), RefOr::T(header(kind.clone(), meaning))));
    openapi
        .components
        .get_or_insert_default()
        .headers
        .extend(headers);
    for (path, item) in &mut openapi.paths.paths {
        operations(item).for_each(|operation| add_shared(path, operation));
    }
}

fn header(kind: Type, meaning: &str) -> Header {
    HeaderBuilder::new()
        .schema(Some(Object::with_type(kind)))
        .description(Some(meaning))
        .build()
}

fn add_shared(path: &str, operation: &mut Operation) {
    let repeatable = is_repeatable(operation);
    let searches = is_search(path);
    let takes_prefer = searches && path != "/v1/hotels/resolve";
    let calls_upstream = searches || path == "/v1/verify";
    let answers = &mut operation.responses.responses;
    if path.starts_with("/v1/") && !calls_upstream {
        let exceeded = "The caller exceeds its request rate (`too_many_requests`)";
        let rate_limited = error_responses(None, &[(ErrorType::TooManyRequests, exceeded)]);
        for (status, answer) in rate_limited {
            answers.entry(status).or_insert(answer);
        }
    }
    for (status, answer) in answers {
        let RefOr::T(answer) = answer else { continue };
        let status = status.as_str();
        // A body that is too large is rejected before any call. A search that became a scan has
        // made no call before this response.
        let from_upstream = calls_upstream && !matches!(status, "202" | "413" | "422");
        let deferred = searches && status == "202";
        let mentions = |header: &str| answer.description.contains(&format!("`{header}`"));
        let has = |header: &str| match header {
            "X-Request-Id" => true,
            "Retry-After" => matches!(status, "429" | "503"),
            "WWW-Authenticate" => status == "401",
            "X-Field-Aliased" => path == "/v1/flights/roundtrip" && status != "413",
            "Age" => takes_prefer && status == "200",
            "Location" => deferred || mentions(header),
            "Link" => mentions(header),
            REPLAYED => repeatable && status.starts_with('2'),
            "Preference-Applied" => deferred || takes_prefer && from_upstream,
            _ if header.starts_with("X-Search-") => searches && from_upstream,
            _ => from_upstream,
        };
        let named = HEADERS.iter().filter(|(name, ..)| has(name));
        answer.headers.extend(named.map(|(name, ..)| {
            let reference = Ref::new(format!("#/components/headers/{name}"));
            ((*name).to_owned(), RefOr::Ref(reference))
        }));
    }
}

/// Whether a repeated request may get the first response again.
fn is_repeatable(operation: &Operation) -> bool {
    let takes_key = |parameter: &RefOr<Parameter>| matches!(parameter, RefOr::T(parameter) if parameter.name == "Idempotency-Key");
    let description = operation.description.as_deref().unwrap_or_default();
    operation.parameters.iter().flatten().any(takes_key) || description.contains(REPLAYED)
}

/// The six searches among the seven specified endpoints.
fn is_search(path: &str) -> bool {
    path.starts_with("/v1/flights/") || path.starts_with("/v1/hotels/")
}
