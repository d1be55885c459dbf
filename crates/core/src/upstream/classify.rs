//! Classifies a response of the marketplace: gateway.md, rule 45, as one pure function.
//!
//! ```text
//!  upstream                        flights              flights strict       hotels
//!  2xx, right kind                 Answer               Answer               Answer
//!  2xx, right kind, degraded       Answer               Incomplete(Stated)   Answer
//!  2xx, unreadable or wrong kind   Incomplete(Unreadable)
//!  2xx, body broke off / late      Incomplete(Connection) / Incomplete(Timeout)
//!  503 search_incomplete           Incomplete(Stated)
//!  401, 403, 400 and 422, 429      KeyRejected, NotSubscribed, Refused, RateLimited
//!  404 from the engine             Incomplete(Status)   Incomplete(Status)   Nothing
//!  any other status                Incomplete(Status)
//!  no answer: late, otherwise      Incomplete(Timeout), Incomplete(Connection)
//! ```
//!
//! `client` sends and retries; `api` answers the caller.

mod json_scan;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use serde_json::{Map, Value};

use self::json_scan::{JsonKind, VERDICT_FIELD};
use super::raw_response::{BodyError, NoResponse, RawResponse};
use crate::contract::{Api, Endpoint, SearchStatus};
use crate::search::{Answer, AnswerBody, Finding, Incomplete, RateLimit};

/// Maximum number of properties of a hotel search (gateway.md, rule 14).
const MAX_PROPERTIES: usize = 50;
/// Maximum nesting depth of an answer (security.md, rule 19).
const MAX_DEPTH: usize = 64;
/// Headers of one kind that are kept: they are stored with the answer.
pub(super) const MAX_HEADERS: usize = 32;
/// Bytes of one header, including its name.
const MAX_HEADER: usize = 1_024;
/// Characters of the marketplace's text in a message.
const MAX_MESSAGE: usize = 300;

/// The parts of the request that affect how its response is classified.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerContext {
    pub(super) endpoint: Endpoint,
    /// The caller wants an incomplete flight search to be an error.
    pub(super) strict: bool,
    /// Maximum number of rows, for flights.
    pub(super) row_cap: Option<usize>,
}

/// Classifies a response.
pub(super) fn classify(
    context: AnswerContext,
    response: &Result<RawResponse, NoResponse>,
) -> Finding {
    let response = match response {
        Ok(response) => response,
        Err(NoResponse::TimedOut) => return Finding::Incomplete(Incomplete::Timeout),
        Err(NoResponse::NotConnected | NoResponse::Broken) => {
            return Finding::Incomplete(Incomplete::Connection);
        }
    };
    let api = context.endpoint.api();
    match response.status {
        200..=299 => answer(context, response).map_or_else(Finding::Incomplete, Finding::Answer),
        400 | 422 => Finding::Refused {
            message: error_message(response, "the marketplace refused the request"),
        },
        401 => Finding::KeyRejected {
            message: error_message(response, "the marketplace does not know this key"),
        },
        403 => Finding::NotSubscribed {
            api,
            message: error_message(response, "the key has no subscription"),
        },
        404 if api == Api::Hotels && !is_from_proxy(&response.headers) => Finding::Nothing {
            message: error_message(response, "nothing was found"),
        },
        429 => Finding::RateLimited(rate_limit(response)),
        503 if let Some(reason) = search_incomplete(response) => {
            Finding::Incomplete(Incomplete::Stated { reason })
        }
        status => Finding::Incomplete(Incomplete::Status(status)),
    }
}

/// Whether to retry: a server error that is not itself an answer (gateway.md, rule 17). A 503 with
/// an incomplete body might be an answer, so it is not retried.
pub(super) fn is_retryable(response: &RawResponse) -> bool {
    match response.status {
        500 | 502 | 504 => true,
        503 => {
            matches!(response.body, Ok(_) | Err(BodyError::TooLarge))
                && search_incomplete(response).is_none()
        }
        _ => false,
    }
}

/// The `x-search-*` headers in order (gateway.md, rule 15), without oversized ones.
pub(super) fn search_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let search = headers.iter().filter(|(name, value)| {
        name.as_str().starts_with("x-search-") && is_within_limit(name.as_str(), value)
    });
    search
        .take(MAX_HEADERS)
        .filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        })
        .collect()
}

/// Whether a header is small enough to be stored and forwarded.
pub(super) fn is_within_limit(name: &str, value: &HeaderValue) -> bool {
    name.len() + value.len() <= MAX_HEADER
}

fn answer(context: AnswerContext, response: &RawResponse) -> Result<Answer, Incomplete> {
    let bytes = response.body.as_ref().map_err(|fault| match fault {
        BodyError::TooLarge | BodyError::Undecodable => Incomplete::Unreadable,
        BodyError::Broken => Incomplete::Connection,
        BodyError::TimedOut => Incomplete::Timeout,
    })?;
    let (body, results) = read(context, bytes).ok_or(Incomplete::Unreadable)?;
    let stated = response
        .header("x-search-status")
        .and_then(|status| SearchStatus::parse(status.trim()));
    let reason = response
        .header("x-search-reason")
        .filter(|reason| !reason.trim().is_empty());
    let reason = reason.map(|reason| reason.chars().take(MAX_MESSAGE).collect::<String>());
    if context.strict && stated == Some(SearchStatus::Degraded) {
        return Err(Incomplete::Stated {
            reason: reason.unwrap_or_else(|| NOT_STATED.to_owned()),
        });
    }
    Ok(Answer {
        body,
        results,
        stated,
        reason,
    })
}

/// The reason of an incomplete search that states none.
const NOT_STATED: &str = "not_stated";

/// The body to forward (gateway.md, rule 14) and its number of results; `None` if it is not JSON,
/// too deep or of the wrong shape.
///
/// The text stays as received, but for empty verdicts, which are replaced, and rows beyond the cap,
/// which are cut off. Only a hotel search with too many properties is serialized again.
fn read(context: AnswerContext, bytes: &Bytes) -> Option<(AnswerBody, usize)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let as_it_came = |results| Some((AnswerBody::from_checked(bytes.clone()), results));
    let within = |name: &str, cap: usize| match json_scan::field(text, name)? {
        JsonKind::List {
            count,
            of_objects: true,
        } if count <= cap => as_it_came(count),
        JsonKind::List {
            of_objects: true, ..
        } => read_and_cap(context, text),
        _ => None,
    };
    match context.endpoint {
        Endpoint::FlightsOneway | Endpoint::FlightsRoundtrip => {
            let rows = json_scan::rows(text)?;
            if let Some(cap) = context.row_cap.filter(|cap| rows.count > *cap) {
                return match json_scan::first_rows(text, cap, &rows.empty_verdicts) {
                    Some(text) => Some((AnswerBody::from_checked(text), cap)),
                    None => read_and_cap(context, text),
                };
            }
            if rows.empty_verdicts.is_empty() {
                return as_it_came(rows.count);
            }
            match json_scan::with_nulls(text, &rows.empty_verdicts) {
                Some(text) => Some((AnswerBody::from_checked(text), rows.count)),
                None => read_and_cap(context, text),
            }
        }
        Endpoint::HotelsSearch => within("properties", MAX_PROPERTIES),
        Endpoint::HotelsRooms => within("rooms", usize::MAX),
        Endpoint::HotelsByName => match json_scan::field(text, "available")? {
            JsonKind::Bool(available) => as_it_came(available.into()),
            _ => None,
        },
        Endpoint::HotelsResolve => match json_scan::field(text, "hotel_booking_id")? {
            JsonKind::Text { is_empty, .. } => as_it_came((!is_empty).into()),
            JsonKind::Null => as_it_came(0),
            _ => None,
        },
    }
}

/// The same for a body that has to change: parsed, capped, cleaned and serialized again.
fn read_and_cap(context: AnswerContext, text: &str) -> Option<(AnswerBody, usize)> {
    let mut body: Value = serde_json::from_str(text).ok()?;
    let results = match context.endpoint {
        Endpoint::HotelsSearch => rows(body.get_mut("properties")?, Some(MAX_PROPERTIES))?,
        _ => flights(&mut body, context.row_cap)?,
    };
    Some((body.into(), results))
}

fn flights(body: &mut Value, cap: Option<usize>) -> Option<usize> {
    let count = rows(body, cap)?;
    for itinerary in body
        .as_array_mut()?
        .iter_mut()
        .filter_map(Value::as_object_mut)
    {
        clean_verdict(itinerary);
    }
    Some(count)
}

/// The engine writes a missing verdict as an empty string instead of null (gateway.md, rules 3 and
/// 14).
fn clean_verdict(itinerary: &mut Map<String, Value>) {
    if let Some(verdict) = itinerary.get_mut(VERDICT_FIELD)
        && verdict.as_str() == Some("")
    {
        *verdict = Value::Null;
    }
}

/// Truncates a list of objects to `cap` and returns its length.
fn rows(list: &mut Value, cap: Option<usize>) -> Option<usize> {
    let list = list.as_array_mut()?;
    if !list.iter().all(Value::is_object) {
        return None;
    }
    list.truncate(cap.unwrap_or(usize::MAX));
    Some(list.len())
}

/// Whether the marketplace answered instead of the engine: its 404 is a wrong path (gateway.md,
/// rule 3).
fn is_from_proxy(headers: &HeaderMap) -> bool {
    let proxy = |name: &str| name.starts_with("x-") && name.ends_with("-proxy-response");
    headers
        .iter()
        .any(|(name, value)| proxy(name.as_str()) && value.as_bytes().eq_ignore_ascii_case(b"true"))
}

/// The reason in a body `{"error": {"type": "search_incomplete", …}}`; `None` for any other body.
fn search_incomplete(response: &RawResponse) -> Option<String> {
    let body: Value = serde_json::from_slice(response.text()).ok()?;
    let error = body.get("error")?;
    if error.get("type")?.as_str()? != "search_incomplete" {
        return None;
    }
    let stated = error
        .get("reason")
        .and_then(Value::as_str)
        .or(response.header("x-search-reason"));
    let reason = stated
        .map(str::trim)
        .filter(|reason| !reason.is_empty())
        .unwrap_or(NOT_STATED);
    Some(reason.chars().take(MAX_MESSAGE).collect())
}

fn rate_limit(response: &RawResponse) -> RateLimit {
    RateLimit {
        body: response.body.clone().unwrap_or_default(),
        content_type: response.header(CONTENT_TYPE.as_str()).map(str::to_owned),
        retry_after: response.header(RETRY_AFTER.as_str()).map(str::to_owned),
    }
}

/// The message in an error body, in the shapes seen so far (gateway.md, rule 3), or `otherwise`.
fn error_message(response: &RawResponse, otherwise: &str) -> String {
    let body: Value = serde_json::from_slice(response.text()).unwrap_or_default();
    let error = body.get("error");
    let texts = [
        error.and_then(|error| error.get("message")),
        body.get("detail"),
        body.get("message"),
        error,
    ];
    let text = texts.into_iter().flatten().find_map(message_text);
    text.unwrap_or_else(|| otherwise.to_owned())
}

/// A string, or the flights engine's list of errors: `[{"loc": ["body", "limit"], "msg": "…"}]`.
fn message_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(faults) => faults
            .iter()
            .filter_map(validation_message)
            .collect::<Vec<_>>()
            .join("; "),
        _ => return None,
    };
    let safe = |c: char| if c.is_control() { ' ' } else { c };
    (!text.is_empty()).then(|| text.chars().take(MAX_MESSAGE).map(safe).collect())
}

fn validation_message(fault: &Value) -> Option<String> {
    let message = fault.get("msg")?.as_str()?;
    let path = fault
        .get("loc")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let path: Vec<_> = path
        .filter_map(|part| {
            part.as_str()
                .map(str::to_owned)
                .or_else(|| part.as_u64().map(|n| n.to_string()))
        })
        .collect();
    Some(if path.is_empty() {
        message.to_owned()
    } else {
        format!("{}: {message}", path.join("."))
    })
}

#[cfg(test)]
mod tests;
