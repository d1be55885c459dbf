//! What an answer of the marketplace means: contract.md's outcome table, as one pure function.
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
//! Not here: sending and the second try (`client`), what a caller is answered (`http`).

mod walk;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use serde_json::{Map, Value};

use self::walk::{Kind, VERDICT};
use super::reply::{BodyFault, NoReply, Reply};
use crate::contract::{Api, Endpoint, SearchStatus};
use crate::search::{Answer, AnswerBody, Finding, Incomplete, RateLimit};

/// The most properties of a hotel search (specification 8).
const MAX_PROPERTIES: usize = 50;
/// The deepest nesting of an answer (security, "Limits").
const MAX_DEPTH: usize = 64;
/// The most headers of one kind that are kept of an answer: a stored one keeps them for good.
pub(super) const MAX_HEADERS: usize = 32;
/// The most bytes of one, its name included.
const MAX_HEADER: usize = 1_024;
/// The longest text of the marketplace that goes into a message, in characters.
const MAX_MESSAGE: usize = 300;

/// What was asked, as far as it decides what the answer means.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) endpoint: Endpoint,
    /// The caller wants to be told when a flight search did not complete.
    pub(super) strict: bool,
    /// The most rows, for flights.
    pub(super) row_cap: Option<usize>,
}

/// What was found.
pub(super) fn find(asked: Asked, reply: &Result<Reply, NoReply>) -> Finding {
    let reply = match reply {
        Ok(reply) => reply,
        Err(NoReply::Late) => return Finding::Incomplete(Incomplete::Timeout),
        Err(NoReply::Unconnected | NoReply::Broken) => {
            return Finding::Incomplete(Incomplete::Connection);
        }
    };
    let api = asked.endpoint.api();
    match reply.status {
        200..=299 => answer(asked, reply).map_or_else(Finding::Incomplete, Finding::Answer),
        400 | 422 => Finding::Refused {
            message: said(reply, "the marketplace refused the request"),
        },
        401 => Finding::KeyRejected {
            message: said(reply, "the marketplace does not know this key"),
        },
        403 => Finding::NotSubscribed {
            api,
            message: said(reply, "the key has no subscription"),
        },
        404 if api == Api::Hotels && !is_from_proxy(&reply.headers) => Finding::Nothing {
            message: said(reply, "nothing was found"),
        },
        429 => Finding::RateLimited(rate_limit(reply)),
        503 if let Some(reason) = search_incomplete(reply) => {
            Finding::Incomplete(Incomplete::Stated { reason })
        }
        status => Finding::Incomplete(Incomplete::Status(status)),
    }
}

/// Whether it is sent once more: a server error that is not itself an answer (contract 17). A 503 whose body could not be had might
/// be one, so it is not.
pub(super) fn wants_second_try(reply: &Reply) -> bool {
    match reply.status {
        500 | 502 | 504 => true,
        503 => {
            matches!(reply.body, Ok(_) | Err(BodyFault::TooLarge))
                && search_incomplete(reply).is_none()
        }
        _ => false,
    }
}

/// The upstream headers that begin with `x-search-`, in their order (contract 15). What is too large for a header of ours is left out.
pub(super) fn search_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let search = headers.iter().filter(|(name, value)| {
        name.as_str().starts_with("x-search-") && fits(name.as_str(), value)
    });
    search
        .take(MAX_HEADERS)
        .filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        })
        .collect()
}

/// Whether a header is small enough to be kept and sent on.
pub(super) fn fits(name: &str, value: &HeaderValue) -> bool {
    name.len() + value.len() <= MAX_HEADER
}

fn answer(asked: Asked, reply: &Reply) -> Result<Answer, Incomplete> {
    let bytes = reply.body.as_ref().map_err(|fault| match fault {
        BodyFault::TooLarge | BodyFault::Garbled => Incomplete::Unreadable,
        BodyFault::Broken => Incomplete::Connection,
        BodyFault::Late => Incomplete::Timeout,
    })?;
    let (body, results) = read(asked, bytes).ok_or(Incomplete::Unreadable)?;
    let stated = reply
        .header("x-search-status")
        .and_then(|status| SearchStatus::parse(status.trim()));
    let reason = reply
        .header("x-search-reason")
        .filter(|reason| !reason.trim().is_empty());
    let reason = reason.map(|reason| reason.chars().take(MAX_MESSAGE).collect::<String>());
    if asked.strict && stated == Some(SearchStatus::Degraded) {
        return Err(Incomplete::Stated {
            reason: reason.unwrap_or_else(|| UNSTATED.to_owned()),
        });
    }
    Ok(Answer {
        body,
        results,
        stated,
        reason,
    })
}

/// The reason of a search that did not complete and did not say why.
const UNSTATED: &str = "not_stated";

/// The body as it goes on (contract 14), and how many results it holds; `None` when it is not JSON, too deep or of the wrong kind.
///
/// It is the text that came, unless there is something to cap. A verdict that is none is replaced in the text.
fn read(asked: Asked, bytes: &Bytes) -> Option<(AnswerBody, usize)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let as_it_came = |results| Some((AnswerBody::checked(bytes.clone()), results));
    let within = |name: &str, cap: usize| match walk::field(text, name)? {
        Kind::List {
            count,
            of_objects: true,
        } if count <= cap => as_it_came(count),
        Kind::List {
            of_objects: true, ..
        } => capped(asked, text),
        _ => None,
    };
    match asked.endpoint {
        Endpoint::FlightsOneway | Endpoint::FlightsRoundtrip => {
            let rows = walk::rows(text)?;
            if asked.row_cap.is_some_and(|cap| rows.count > cap) {
                return capped(asked, text);
            }
            if rows.blanks.is_empty() {
                return as_it_came(rows.count);
            }
            match walk::with_nulls(text, &rows.blanks) {
                Some(text) => Some((AnswerBody::checked(text), rows.count)),
                None => capped(asked, text),
            }
        }
        Endpoint::HotelsSearch => within("properties", MAX_PROPERTIES),
        Endpoint::HotelsRooms => within("rooms", usize::MAX),
        Endpoint::HotelsByName => match walk::field(text, "available")? {
            Kind::Bool(available) => as_it_came(available.into()),
            _ => None,
        },
        Endpoint::HotelsResolve => match walk::field(text, "hotel_booking_id")? {
            Kind::Text { is_empty, .. } => as_it_came((!is_empty).into()),
            Kind::Null => as_it_came(0),
            _ => None,
        },
    }
}

/// The same for a body that is not to go on as it came: taken apart, capped and cleaned, and put together again.
fn capped(asked: Asked, text: &str) -> Option<(AnswerBody, usize)> {
    let mut body: Value = serde_json::from_str(text).ok()?;
    let results = match asked.endpoint {
        Endpoint::HotelsSearch => rows(body.get_mut("properties")?, Some(MAX_PROPERTIES))?,
        _ => flights(&mut body, asked.row_cap)?,
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

/// The engine writes "no verdict" as an empty string where the specification has null (contract 3, 14).
fn clean_verdict(itinerary: &mut Map<String, Value>) {
    if let Some(verdict) = itinerary.get_mut(VERDICT)
        && verdict.as_str() == Some("")
    {
        *verdict = Value::Null;
    }
}

/// Cuts a list of objects to its cap and counts it.
fn rows(list: &mut Value, cap: Option<usize>) -> Option<usize> {
    let list = list.as_array_mut()?;
    if !list.iter().all(Value::is_object) {
        return None;
    }
    list.truncate(cap.unwrap_or(usize::MAX));
    Some(list.len())
}

/// The marketplace itself answered, not the engine: a 404 of that kind is a wrong path (contract 3).
fn is_from_proxy(headers: &HeaderMap) -> bool {
    let proxy = |name: &str| name.starts_with("x-") && name.ends_with("-proxy-response");
    headers
        .iter()
        .any(|(name, value)| proxy(name.as_str()) && value.as_bytes().eq_ignore_ascii_case(b"true"))
}

/// The reason of a body `{"error": {"type": "search_incomplete", …}}`; `None` for any other body.
fn search_incomplete(reply: &Reply) -> Option<String> {
    let body: Value = serde_json::from_slice(reply.text()).ok()?;
    let error = body.get("error")?;
    if error.get("type")?.as_str()? != "search_incomplete" {
        return None;
    }
    let stated = error
        .get("reason")
        .and_then(Value::as_str)
        .or(reply.header("x-search-reason"));
    let reason = stated
        .map(str::trim)
        .filter(|reason| !reason.is_empty())
        .unwrap_or(UNSTATED);
    Some(reason.chars().take(MAX_MESSAGE).collect())
}

fn rate_limit(reply: &Reply) -> RateLimit {
    RateLimit {
        body: reply.body.clone().unwrap_or_default(),
        content_type: reply.header(CONTENT_TYPE.as_str()).map(str::to_owned),
        retry_after: reply.header(RETRY_AFTER.as_str()).map(str::to_owned),
    }
}

/// What the marketplace says in an error's body, in the shapes that were seen (contract 3), or `otherwise`.
fn said(reply: &Reply, otherwise: &str) -> String {
    let body: Value = serde_json::from_slice(reply.text()).unwrap_or_default();
    let error = body.get("error");
    let texts = [
        error.and_then(|error| error.get("message")),
        body.get("detail"),
        body.get("message"),
        error,
    ];
    let text = texts.into_iter().flatten().find_map(in_words);
    text.unwrap_or_else(|| otherwise.to_owned())
}

/// A text, or the list of faults that the flights engine sends: `[{"loc": ["body", "limit"], "msg": "…"}]`.
fn in_words(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(faults) => faults
            .iter()
            .filter_map(fault_in_words)
            .collect::<Vec<_>>()
            .join("; "),
        _ => return None,
    };
    let safe = |c: char| if c.is_control() { ' ' } else { c };
    (!text.is_empty()).then(|| text.chars().take(MAX_MESSAGE).map(safe).collect())
}

fn fault_in_words(fault: &Value) -> Option<String> {
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
