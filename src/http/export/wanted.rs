//! Which form of a list a request wants: by `format` of the query, else by `Accept` (RFC 9110, 12.5.1).
//!
//! Parameters but `q` are not looked at: `text/csv; charset=utf-8` means CSV, and there is one kind of each.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header::ACCEPT};
use axum::response::Response;
use form_urlencoded::parse;
use mediatype::{MediaType, MediaTypeList, ReadParams as _, names};

use super::{Form, varied};
use crate::contract::primitives::ListFormat;
use crate::contract::{Fault, Faults, shorten};
use crate::http::error::ApiError;
use crate::http::extract::Pairs;

/// What is streamed; `None`: a page of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct Wanted(pub(in crate::http) Option<Form>);

/// The forms in the order in which they are given where a request likes them equally.
const OFFERED: [(Option<Form>, &str, &str); 4] = [
    (None, "application", "json"),
    (Some(Form::Csv), "text", "csv"),
    (Some(Form::Ndjson), "application", "x-ndjson"),
    (Some(Form::Parquet), "application", "vnd.apache.parquet"),
];

impl Wanted {
    /// The form that is liked best; `None`: none will do. No `Accept` at all is JSON.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let Some(likings) = likings(headers) else {
            return Some(Self(None));
        };
        let liked = likings
            .into_iter()
            .zip(OFFERED)
            .filter(|(liking, _)| *liking > 0);
        // The first of the best.
        liked
            .rev()
            .max_by_key(|(liking, _)| *liking)
            .map(|(_, (form, ..))| Self(form))
    }

    /// All rows have no pages.
    ///
    /// # Errors
    /// A fault for `limit` and `cursor` where everything is wanted.
    pub(in crate::http) fn check(self, pairs: &Pairs) -> Result<(), Faults> {
        let Some(form) = self.0 else { return Ok(()) };
        let mut faults = Faults::default();
        for (name, value) in pairs
            .iter()
            .filter(|(name, value)| matches!(*name, "limit" | "cursor") && !value.is_empty())
        {
            let allowed = format!(
                "nothing, since {} has all rows; pages are application/json",
                form.media_type()
            );
            faults.push_with(|| Fault::new(name, &value.into(), allowed));
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults)
        }
    }
}

/// How much each of the offered forms is liked; `None`: `Accept` says nothing.
fn likings(headers: &HeaderMap) -> Option<[u16; OFFERED.len()]> {
    let accept: Vec<_> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    if accept.iter().all(|value| value.trim().is_empty()) {
        return None;
    }
    let accept = accept.join(",");
    // What cannot be read is not a form of ours: the rest of the list counts.
    let ranges: Vec<_> = MediaTypeList::new(&accept).filter_map(Result::ok).collect();
    Some(OFFERED.map(|(_, top, sub)| liking(&ranges, top, sub)))
}

/// How much a form is liked, in thousandths: by the range that names it most exactly. 0: not at all.
fn liking(ranges: &[MediaType<'_>], top: &str, sub: &str) -> u16 {
    let is = |name: mediatype::Name<'_>, word: &str| name.as_str().eq_ignore_ascii_case(word);
    let exactness = |range: &MediaType<'_>| {
        let (any_top, any_sub) = (range.ty == names::_STAR, range.subty == names::_STAR);
        match (
            is(range.ty, top),
            is(range.subty, sub) && range.suffix.is_none(),
        ) {
            (true, true) => Some(2),
            (true, _) if any_sub => Some(1),
            _ if any_top && any_sub => Some(0),
            _ => None,
        }
    };
    let naming = ranges
        .iter()
        .filter_map(|range| Some((exactness(range)?, quality(range))));
    naming.max().map_or(0, |(_, quality)| quality)
}

/// `q` in thousandths; what is no number from 0 to 1 counts as not given.
fn quality(range: &MediaType<'_>) -> u16 {
    let given = range
        .get_param(names::Q)
        .and_then(|q| q.as_str().parse::<f32>().ok())
        .filter(|q| (0.0..=1.0).contains(q));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to 1000"
    )]
    given.map_or(1000, |q| (q * 1000.0).round() as u16)
}

impl<S: Sync> FromRequestParts<S> for Wanted {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Response> {
        if let Some(format) = format(parts.uri.query().unwrap_or_default()) {
            return Ok(Self(streamed(format)));
        }
        Self::of(&parts.headers).ok_or_else(|| {
            refused(
                &parts.headers,
                "application/json (pages), or text/csv, application/x-ndjson, application/vnd.apache.parquet (all rows)",
            )
        })
    }
}

/// Takes a request only if JSON will do: of what can be had in no other form.
#[derive(Debug)]
pub(in crate::http) struct JsonOnly;

impl<S: Sync> FromRequestParts<S> for JsonOnly {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Response> {
        if likings(&parts.headers).is_none_or(|[json, ..]| json > 0) {
            Ok(Self)
        } else {
            Err(refused(&parts.headers, "application/json"))
        }
    }
}

/// 406: what `Accept` holds, and what there is.
fn refused(headers: &HeaderMap, allowed: &str) -> Response {
    let lines: Vec<_> = headers
        .get_all(ACCEPT)
        .iter()
        .map(|line| String::from_utf8_lossy(line.as_bytes()))
        .collect();
    let held = Some(shorten(&lines.join(", ")));
    varied(ApiError::not_acceptable(Fault {
        path: "Accept".to_owned(),
        held,
        allowed: allowed.to_owned(),
    }))
}

/// The form that the query names; a word that is none is the query's reader's to refuse.
fn format(query: &str) -> Option<ListFormat> {
    parse(query.as_bytes())
        .find(|(name, _)| name == "format")
        .and_then(|(_, word)| ListFormat::parse(&word))
}

const fn streamed(format: ListFormat) -> Option<Form> {
    match format {
        ListFormat::Json => None,
        ListFormat::Csv => Some(Form::Csv),
        ListFormat::Ndjson => Some(Form::Ndjson),
        ListFormat::Parquet => Some(Form::Parquet),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const JSON: Option<Wanted> = Some(Wanted(None));
    const CSV: Option<Wanted> = Some(Wanted(Some(Form::Csv)));
    const NDJSON: Option<Wanted> = Some(Wanted(Some(Form::Ndjson)));
    const PARQUET: Option<Wanted> = Some(Wanted(Some(Form::Parquet)));

    fn wanted(lines: &[&str]) -> Option<Wanted> {
        Wanted::of(
            &lines
                .iter()
                .map(|line| (ACCEPT, HeaderValue::from_str(line).unwrap()))
                .collect(),
        )
    }

    #[test]
    fn the_form_that_is_liked_best() {
        for (accept, form) in [
            ("", JSON),
            ("*/*", JSON),
            ("application/*", JSON),
            ("application/json", JSON),
            ("application/json; charset=utf-8", JSON),
            ("application/json, text/plain, */*", JSON),
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8",
                JSON,
            ),
            ("text/csv", CSV),
            ("TEXT/CSV", CSV),
            ("text/*", CSV),
            ("text/csv; charset=utf-8; header=present", CSV),
            ("text/csv, */*;q=0.1", CSV),
            ("application/json;q=0.5, text/csv;q=0.6", CSV),
            ("application/json;q=0.5, text/*", CSV),
            ("application/json;q=0.999, text/csv;q=1.000", CSV),
            ("*/*, application/json;q=0, application/x-ndjson;q=0.9", CSV),
            ("application/x-ndjson", NDJSON),
            ("application/x-ndjson, text/csv;q=0.5", NDJSON),
            ("application/*, application/json;q=0.2", NDJSON),
            ("text/csv;q=0, */*, application/json;q=0", NDJSON),
            ("application/vnd.apache.parquet", PARQUET),
            (
                "application/vnd.apache.parquet, application/json;q=0.9",
                PARQUET,
            ),
            // Liked equally: ours to choose.
            ("text/csv, application/json", JSON),
            ("application/x-ndjson, text/csv", CSV),
            // What cannot be read does not spoil the rest.
            ("text, text/csv", CSV),
            ("text/csv;q=high", CSV),
            ("text/csv;q=7, application/json;q=0.9", CSV),
            // Nothing that there is.
            ("text/html", None),
            ("image/*", None),
            ("text/csv;q=0", None),
            ("*/*;q=0", None),
            ("application/vnd.api+json", None),
            ("application/json+x", None),
            ("csv", None),
            ("*/csv", None),
        ] {
            assert_eq!(wanted(&[accept]), form, "{accept}");
        }
        assert_eq!(wanted(&[]), JSON);
        assert_eq!(
            wanted(&["application/json;q=0.1", "text/csv"]),
            CSV,
            "a list in two lines is one list"
        );
    }
}
