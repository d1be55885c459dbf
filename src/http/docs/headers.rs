//! What every answer of a kind has in common: the headers that it may carry and our own 429.
//! Defined once and referred to; added here, so that no route can forget them.

use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, Parameter};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{Object, OpenApi, Ref, RefOr};

use super::errors::described;
use crate::contract::ErrorType;

const REQUEST_ID: &str = "X-Request-Id";
const RETRY_AFTER: &str = "Retry-After";
const AUTHENTICATE: &str = "WWW-Authenticate";
const ALIASED: &str = "X-Field-Aliased";
const BILLED: &str = "X-Upstream-Requests";
const LOCATION: &str = "Location";
const LINK: &str = "Link";
const REPLAYED: &str = "Idempotent-Replayed";
const APPLIED: &str = "Preference-Applied";

const TEXT: Type = Type::String;
const COUNT: Type = Type::Integer;

/// On searches. Further `x-search-*` headers of the marketplace are forwarded as they come.
const SEARCH: [(&str, Type, &str); 3] = [
    (
        "X-Search-Status",
        TEXT,
        "Whether the search completed: `ok`, `empty`, `partial` or `degraded`; absent where nobody said",
    ),
    (
        "X-Search-Reason",
        TEXT,
        "Why it did not complete; may ride on an `ok` answer too",
    ),
    ("X-Search-Results", COUNT, "How many results the body holds"),
];

/// On whatever came from the marketplace. Other `x-plan-*` headers are forwarded as they come.
const PLAN: [(&str, Type, &str); 6] = [
    (
        "X-Plan-Requests-Limit",
        COUNT,
        "Requests that the caller's plan has",
    ),
    ("X-Plan-Requests-Remaining", COUNT, "Requests left of them"),
    (
        "X-Plan-Requests-Reset",
        COUNT,
        "Seconds until the plan's count starts anew",
    ),
    (
        "X-Plan-Limit",
        COUNT,
        "Requests in one rate window, on plans that have one",
    ),
    ("X-Plan-Remaining", COUNT, "Requests left in the window"),
    ("X-Plan-Reset", COUNT, "Seconds until the next window"),
];

const OTHERS: [(&str, Type, &str); 9] = [
    (
        REQUEST_ID,
        TEXT,
        "The id of this request: name it when you report a problem",
    ),
    (RETRY_AFTER, COUNT, "Seconds to wait before trying again"),
    (
        AUTHENTICATE,
        TEXT,
        "How a key may be sent; the description of the service lists the other ways",
    ),
    (
        ALIASED,
        TEXT,
        "Which field of the body was read as which: `max_stops -> max_departure_stops, max_return_stops`",
    ),
    (
        BILLED,
        COUNT,
        "Requests that the marketplace bills for this answer",
    ),
    (
        LOCATION,
        TEXT,
        "The path of what was made: `/v1/scans/{id}`",
    ),
    (
        LINK,
        TEXT,
        "On every page but the last: the next one, as `</v1/scans?cursor=...>; rel=\"next\"`",
    ),
    (
        REPLAYED,
        Type::Boolean,
        "`true`: this answer was given before, to the same `Idempotency-Key` and body",
    ),
    (
        APPLIED,
        TEXT,
        "What of `Prefer` was honoured, and how: `respond-async, wait=20`",
    ),
];

/// Completes every answer.
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
            complete(path, operation);
        }
    }
}

fn header(kind: Type, text: &str) -> Header {
    HeaderBuilder::new()
        .schema(Some(Object::with_type(kind)))
        .description(Some(text))
        .build()
}

fn complete(path: &str, operation: &mut Operation) {
    let repeatable = is_repeatable(operation);
    let (searches, asks) = (is_search(path), is_search(path) || path == "/v1/verify");
    let answers = &mut operation.responses.responses;
    if path.starts_with("/v1/") && !asks {
        let too_fast = described(&[(
            ErrorType::TooManyRequests,
            "The caller sends requests too fast (`too_many_requests`)",
        )]);
        for (status, answer) in too_fast {
            answers.entry(status).or_insert(answer);
        }
    }
    for (status, answer) in answers {
        let RefOr::T(answer) = answer else { continue };
        // A body that is too large was not read, so nobody was asked; a search that became a scan has not been, for all its answer knows.
        let from_upstream = asks && !matches!(status.as_str(), "202" | "413" | "422");
        let deferred = searches && status == "202";
        let succeeded = status.starts_with('2');
        let says = |header: &str| answer.description.contains(&format!("`{header}`"));
        let named = [
            (REQUEST_ID, true),
            (RETRY_AFTER, matches!(status.as_str(), "429" | "503")),
            (AUTHENTICATE, status == "401"),
            (ALIASED, path == "/v1/flights/roundtrip" && status != "413"),
            (BILLED, from_upstream),
            (LOCATION, deferred || says(LOCATION)),
            (LINK, says(LINK)),
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

/// Whether the same request again may be answered with the first answer.
fn is_repeatable(operation: &Operation) -> bool {
    let takes_key = |parameter: &RefOr<Parameter>| matches!(parameter, RefOr::T(parameter) if parameter.name == "Idempotency-Key");
    let described = operation.description.as_deref().unwrap_or_default();
    operation.parameters.iter().flatten().any(takes_key) || described.contains(REPLAYED)
}

/// The six searches among the specified seven.
fn is_search(path: &str) -> bool {
    path.starts_with("/v1/flights/") || path.starts_with("/v1/hotels/")
}
