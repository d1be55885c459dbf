//! A response of the marketplace as received, except that an echoed key is redacted.

use bytes::Bytes;
use memchr::memmem;
use reqwest::header::{HeaderMap, HeaderValue};

use crate::search::CallerKey;

/// Replaces an echoed key.
const REDACTED: &str = "[key]";
/// A shorter key might be a word of the answer; no marketplace issues one.
const MIN_KEY_LENGTH: usize = 8;

/// Status, headers, and the body or the error that ended it.
#[derive(Debug)]
pub(super) struct RawResponse {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Result<Bytes, BodyError>,
}

/// Why the body is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyError {
    /// More than 8 MiB after decompression.
    TooLarge,
    /// Decompression failed.
    Undecodable,
    /// The connection broke.
    Broken,
    /// The time budget or the stall timeout ended.
    TimedOut,
}

/// Why there is no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoResponse {
    /// Connecting failed; nothing was sent.
    NotConnected,
    /// The connection broke after the request may have been sent.
    Broken,
    /// The time budget ended after the request may have been sent.
    TimedOut,
}

impl RawResponse {
    /// Redacts the caller's key everywhere, also in JSON-escaped form (gateway.md, rule 13), so
    /// that no stored, shown or logged part of the response can contain it.
    pub(super) fn redact_key(mut self, key: &CallerKey) -> Self {
        let key = key.expose();
        if key.len() < MIN_KEY_LENGTH {
            return self;
        }
        let written_forms = written_forms(key);
        for value in self.headers.values_mut() {
            if let Some(redacted) = redacted(value.as_bytes(), &written_forms) {
                *value =
                    HeaderValue::try_from(redacted).unwrap_or(HeaderValue::from_static(REDACTED));
            }
        }
        self.body = self
            .body
            .map(|body| redacted(&body, &written_forms).map_or(body, Bytes::from));
        self
    }

    /// The header's text; `None` if absent or not ASCII.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body, or nothing if it is incomplete. For messages only.
    pub(super) fn text(&self) -> &[u8] {
        self.body.as_deref().unwrap_or_default()
    }
}

/// The key as plain text and in JSON-escaped forms.
fn written_forms(key: &str) -> Vec<String> {
    let escaped = key.replace('\\', "\\\\").replace('"', "\\\"");
    let mut written_forms = vec![key.to_owned(), escaped.clone(), escaped.replace('/', "\\/")];
    written_forms.dedup();
    written_forms
}

/// The redacted text; `None` if the key does not occur.
fn redacted(text: &[u8], written_forms: &[String]) -> Option<String> {
    if !written_forms
        .iter()
        .any(|form| memmem::find(text, form.as_bytes()).is_some())
    {
        return None;
    }
    let text = String::from_utf8_lossy(text).into_owned();
    Some(
        written_forms
            .iter()
            .fold(text, |text, form| text.replace(form, REDACTED)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echoed_key_is_redacted_in_headers_and_body() {
        let key = r#"a/"key\0123"#;
        let mut headers = HeaderMap::new();
        headers.insert("x-search-reason", HeaderValue::from_str(key).unwrap());
        let json = serde_json::json!({"plain": key, "b": "other"});
        let body = format!("{json}{key} a\\/\\\"key\\\\0123");
        let response = RawResponse {
            status: 200,
            headers,
            body: Ok(Bytes::from(body)),
        }
        .redact_key(&CallerKey::new(key));
        assert_eq!(response.header("x-search-reason"), Some("[key]"));
        assert_eq!(
            response.text(),
            br#"{"plain":"[key]","b":"other"}[key] [key]"#
        );
    }

    #[test]
    fn bodies_without_the_key_and_short_keys_stay_unchanged() {
        let body = Bytes::from_static(b"not utf-8: \xff, and a key");
        for key in ["another-key", "key"] {
            let response = RawResponse {
                status: 200,
                headers: HeaderMap::new(),
                body: Ok(body.clone()),
            }
            .redact_key(&CallerKey::new(key));
            assert_eq!(response.text(), &body);
        }
    }
}
