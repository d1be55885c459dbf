//! Headers and 429 responses that many routes share. They are defined once and added here, so that
//! no route can omit them.

use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, Parameter};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{Object, OpenApi, Ref, RefOr};

use super::error_responses::error_responses;
use crate::contract::ErrorType;

const REQUEST_ID: &str = "X-Request-Id";
const RETRY_AFTER: &str = "Retry-After";
const AUTHENTICATE: &str = "WWW-Authenticate";
const ALIASED: &str = "X-Field-Aliased";
const BILLED: &str = "X-Upstream-Requests";
const AGE: &str = "Age";
const LOCATION: &str = "Location";
const LINK: &str = "Link";
const REPLAYED: &str = "Idempotent-Replayed";
const APPLIED: &str = "Preference-Applied";

const TEXT: Type = Type::String;
const COUNT: Type = Type::Integer;

/// On searches. Other `x-search-*` headers of the marketplace are passed on unchanged.
const SEARCH: [(&str, Type, &str); 3] = [
    (
        "X-Search-Status",
        TEXT,
        "Whether the search completed: `ok`, `empty`, `partial` or `degraded`; absent if the marketplace did not state it",
    ),
    (
        "X-Search-Reason",
        TEXT,
        "Why it did not complete; may also come with `ok`",
    ),
    ("X-Search-Results", COUNT, "Number of results in the body"),
];

/// On every response of the marketplace. Other `x-plan-*` headers are passed on unchanged.
const PLAN: [(&str, Type, &str); 6] = [
    (
        "X-Plan-Requests-Limit",
        COUNT,
        "Requests in the caller's plan",
    ),
    (
        "X-Plan-Requests-Remaining",
        COUNT,
        "Requests left in the plan",
    ),
    (
        "X-Plan-Requests-Reset",
        COUNT,
        "Seconds until the plan's count resets",
    ),
    (
        "X-Plan-Limit",
        COUNT,
        "Requests per rate window, on plans that have one",
    ),
    (
        "X-Plan-Remaining",
        COUNT,
        "Requests left in the rate window",
    ),
    ("X-Plan-Reset", COUNT, "Seconds until the next rate window"),
];

const OTHERS: [(&str, Type, &str); 10] = [
    (
        REQUEST_ID,
        TEXT,
        "The id of this request; include it in problem reports",
    ),
    (RETRY_AFTER, COUNT, "Seconds to wait before a retry"),
    (
        AUTHENTICATE,
        TEXT,
        "One way to send the key; the security schemes list all of them",
    ),
    (
        ALIASED,
        TEXT,
        "Alias that was applied to the body: `max_stops -> max_departure_stops, max_return_stops`",
    ),
    (
        BILLED,
        COUNT,
        "Requests that the marketplace bills for this response",
    ),
    (
        AGE,
        COUNT,
        "Seconds since the search that found this answer, if it was made for an earlier request",
    ),
    (
        LOCATION,
        TEXT,
        "The path of the new resource: `/v1/scans/{id}`",
    ),
    (
        LINK,
        TEXT,
        "On every page but the last: the next page, as `</v1/scans?cursor=...>; rel=\"next\"`",
    ),
    (
        REPLAYED,
        Type::Boolean,
        "`true`: the stored response to an earlier request with the same `Idempotency-Key` and body",
    ),
    (
        APPLIED,
        TEXT,
        "The honoured part of `Prefer`: `respond-async, wait=20`",
    ),
];

/// Adds the shared headers and responses to every operation.
pub(super) fn describe(openapi: &mut OpenApi) {
    let defined = SEARCH.into_iter().chain(PLAN).chain(OTHERS);
    let headers = defined.map(|(name, kind, text)| (name.to_owned(), RefOr::T(header(kind, text))));
    openapi
        .components
        .get_or_insert_default()
        .headers
        .extend(headers);
    for (path, item) in &mut openapi.paths.paths {
        for operation in [
            &mut item.get,
            &mut item.post,
            &mut item.put,
            &mut item.patch,
            &mut item.delete,
        ]
        .into_iter()
        .flatten()
        {
            add_shared(path, operation);
        }
    }
}

fn header(kind: Type, text: &str) -> Header {
    HeaderBuilder::new()
        .schema(Some(Object::with_type(kind)))
        .description(Some(text))
        .build()
}

fn add_shared(path: &str, operation: &mut Operation) {
    let repeatable = is_repeatable(operation);
    let searches = is_search(path);
    let calls_upstream = searches || path == "/v1/verify";
    let answers = &mut operation.responses.responses;
    if path.starts_with("/v1/") && !calls_upstream {
        let rate_limited = error_responses(&[(
            ErrorType::TooManyRequests,
            "The caller exceeds its request rate (`too_many_requests`)",
        )]);
        for (status, answer) in rate_limited {
            answers.entry(status).or_insert(answer);
        }
    }
    for (status, answer) in answers {
        let RefOr::T(answer) = answer else { continue };
        // A body that is too large is rejected before any call. A search that became a scan has
        // made no call before this response.
        let from_upstream = calls_upstream && !matches!(status.as_str(), "202" | "413" | "422");
        let deferred = searches && status == "202";
        let succeeded = status.starts_with('2');
        let mentions = |header: &str| answer.description.contains(&format!("`{header}`"));
        let named = [
            (REQUEST_ID, true),
            (RETRY_AFTER, matches!(status.as_str(), "429" | "503")),
            (AUTHENTICATE, status == "401"),
            (ALIASED, path == "/v1/flights/roundtrip" && status != "413"),
            (BILLED, from_upstream),
            (
                AGE,
                searches && path != "/v1/hotels/resolve" && status == "200",
            ),
            (LOCATION, deferred || mentions(LOCATION)),
            (LINK, mentions(LINK)),
            (REPLAYED, succeeded && repeatable),
            (
                APPLIED,
                deferred || searches && from_upstream && path != "/v1/hotels/resolve",
            ),
        ];
        let search = SEARCH
            .iter()
            .map(|(name, ..)| (*name, searches && from_upstream));
        let plan = PLAN.iter().map(|(name, ..)| (*name, from_upstream));
        for (name, _) in named
            .into_iter()
            .chain(search)
            .chain(plan)
            .filter(|(_, carried)| *carried)
        {
            answer.headers.insert(
                name.to_owned(),
                RefOr::Ref(Ref::new(format!("#/components/headers/{name}"))),
            );
        }
    }
}

/// Whether a repeated request may get the first response again.
fn is_repeatable(operation: &Operation) -> bool {
    let takes_key = |parameter: &RefOr<Parameter>| matches!(parameter, RefOr::T(parameter) if parameter.name == "Idempotency-Key");
    let error_responses = operation.description.as_deref().unwrap_or_default();
    operation.parameters.iter().flatten().any(takes_key) || error_responses.contains(REPLAYED)
}

/// The six searches among the seven specified endpoints.
fn is_search(path: &str) -> bool {
    path.starts_with("/v1/flights/") || path.starts_with("/v1/hotels/")
}
