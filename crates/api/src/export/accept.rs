//! The format of a list response: from the query parameter `format`, else from `Accept` (RFC 9110,
//! 12.5.1).
//!
//! Media type parameters other than `q` are ignored: `text/csv; charset=utf-8` means CSV.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header::ACCEPT};
use axum::response::Response;
use form_urlencoded::parse;

use super::{ExportFormat, vary_on_accept};
use farescan_core::app::accept::{accept_text, accepted_ranges, quality_of};
use farescan_core::app::error::ApiError;
use farescan_core::app::extract::QueryPairs;
use farescan_core::contract::primitives::ListFormat;
use farescan_core::contract::{ValidationError, ValidationErrors, shorten};

/// The streamed format; `None`: a page of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestedFormat(pub(crate) Option<ExportFormat>);

/// The formats in order of preference for equal quality.
const SUPPORTED: [(Option<ExportFormat>, &str, &str); 4] = [
    (None, "application", "json"),
    (Some(ExportFormat::Csv), "text", "csv"),
    (Some(ExportFormat::Ndjson), "application", "x-ndjson"),
    (
        Some(ExportFormat::Parquet),
        "application",
        "vnd.apache.parquet",
    ),
];

impl RequestedFormat {
    /// The format with the highest quality; `None`: none is acceptable. Without `Accept` it is
    /// JSON.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let Some(qualities) = qualities(headers) else {
            return Some(Self(None));
        };
        let acceptable = qualities
            .into_iter()
            .zip(SUPPORTED)
            .filter(|(quality, _)| *quality > 0);
        // `max_by_key` returns the last maximum, so `rev` selects the first format.
        acceptable
            .rev()
            .max_by_key(|(quality, _)| *quality)
            .map(|(_, (format, ..))| Self(format))
    }

    /// Rejects `limit` and `cursor` for streamed formats.
    ///
    /// # Errors
    /// One error for each of them.
    pub(crate) fn check(self, pairs: &QueryPairs) -> Result<(), ValidationErrors> {
        let Some(format) = self.0 else { return Ok(()) };
        let mut errors = ValidationErrors::default();
        for (name, value) in pairs
            .iter()
            .filter(|(name, value)| matches!(*name, "limit" | "cursor") && !value.is_empty())
        {
            let expected = format!(
                "no value, since {} has all rows; only application/json has pages",
                format.media_type()
            );
            errors.push_lazily(|| ValidationError::new(name, &value.into(), expected));
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }
}

/// The quality of each supported format; `None` without `Accept`.
fn qualities(headers: &HeaderMap) -> Option<[u16; SUPPORTED.len()]> {
    let accept = accept_text(headers);
    if accept.trim().is_empty() {
        return None;
    }
    let ranges = accepted_ranges(&accept);
    Some(SUPPORTED.map(|(_, top, sub)| quality_of(&ranges, top, sub)))
}

impl<S: Sync> FromRequestParts<S> for RequestedFormat {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Response> {
        if let Some(format) = format_parameter(parts.uri.query().unwrap_or_default()) {
            return Ok(Self(export_format(format)));
        }
        Self::of(&parts.headers).ok_or_else(|| {
            not_acceptable(
                &parts.headers,
                "application/json (pages), or text/csv, application/x-ndjson, application/vnd.apache.parquet (all rows)",
            )
        })
    }
}

/// Rejects requests that do not accept JSON, for responses without another format.
#[derive(Debug)]
pub(crate) struct JsonOnly;

impl<S: Sync> FromRequestParts<S> for JsonOnly {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Response> {
        if qualities(&parts.headers).is_none_or(|[json, ..]| json > 0) {
            Ok(Self)
        } else {
            Err(not_acceptable(&parts.headers, "application/json"))
        }
    }
}

/// 406 with the value of `Accept` and the available formats.
fn not_acceptable(headers: &HeaderMap, expected: &str) -> Response {
    let lines: Vec<_> = headers
        .get_all(ACCEPT)
        .iter()
        .map(|line| String::from_utf8_lossy(line.as_bytes()))
        .collect();
    let found = shorten(&lines.join(", "));
    vary_on_accept(ApiError::not_acceptable(ValidationError::with_found(
        "Accept", found, expected,
    )))
}

/// The format that the query names. The parser of the query rejects unknown names.
fn format_parameter(query: &str) -> Option<ListFormat> {
    parse(query.as_bytes())
        .find(|(name, _)| name == "format")
        .and_then(|(_, word)| ListFormat::parse(&word))
}

const fn export_format(format: ListFormat) -> Option<ExportFormat> {
    match format {
        ListFormat::Json => None,
        ListFormat::Csv => Some(ExportFormat::Csv),
        ListFormat::Ndjson => Some(ExportFormat::Ndjson),
        ListFormat::Parquet => Some(ExportFormat::Parquet),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const JSON: Option<RequestedFormat> = Some(RequestedFormat(None));
    const CSV: Option<RequestedFormat> = Some(RequestedFormat(Some(ExportFormat::Csv)));
    const NDJSON: Option<RequestedFormat> = Some(RequestedFormat(Some(ExportFormat::Ndjson)));
    const PARQUET: Option<RequestedFormat> = Some(RequestedFormat(Some(ExportFormat::Parquet)));

    fn negotiated(lines: &[&str]) -> Option<RequestedFormat> {
        RequestedFormat::of(
            &lines
                .iter()
                .map(|line| (ACCEPT, HeaderValue::from_str(line).unwrap()))
                .collect(),
        )
    }

    #[test]
    fn the_format_of_highest_quality_wins() {
        for (accept, format) in [
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
            // Equal quality: the server's preference decides.
            ("text/csv, application/json", JSON),
            ("application/x-ndjson, text/csv", CSV),
            // Unparsable elements are skipped.
            ("text, text/csv", CSV),
            ("text/csv;q=high", CSV),
            ("text/csv;q=7, application/json;q=0.9", CSV),
            // No available format.
            ("text/html", None),
            ("image/*", None),
            ("text/csv;q=0", None),
            ("*/*;q=0", None),
            ("application/vnd.api+json", None),
            ("application/json+x", None),
            ("csv", None),
            ("*/csv", None),
        ] {
            assert_eq!(negotiated(&[accept]), format, "{accept}");
        }
        assert_eq!(negotiated(&[]), JSON);
        assert_eq!(
            negotiated(&["application/json;q=0.1", "text/csv"]),
            CSV,
            "a list in two lines is one list"
        );
    }
}
