//! One answer of the marketplace as it came over the wire, before anything is made of it but this: a key that it says back is blotted out.

use bytes::Bytes;
use memchr::memmem;
use reqwest::header::{HeaderMap, HeaderValue};

use crate::search::CallerKey;

/// What stands in the place of a key that the marketplace said back.
const BLOT: &str = "[key]";
/// A shorter key might be a word of the answer; no marketplace gives one.
const SHORTEST_ECHO: usize = 8;

/// A status, headers and as much of a body as could be had.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Result<Bytes, BodyFault>,
}

/// Why there is no whole body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFault {
    /// More than 8 MiB after decompression.
    TooLarge,
    /// It does not decompress.
    Garbled,
    /// The connection broke before its end.
    Broken,
    /// It did not end within the time budget, or stood still.
    Late,
}

/// Why there is no answer at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoReply {
    /// No connection was made: nothing was sent.
    Unconnected,
    /// The connection broke after the request may have been sent.
    Broken,
    /// The time budget ended after the request may have been sent.
    Late,
}

impl Reply {
    /// The same answer without the key that it was asked with, plain or as JSON may write it (contract 13): what is stored of it, shown
    /// or logged cannot hold the key then, wherever it stood.
    pub(super) fn without(mut self, key: &CallerKey) -> Self {
        let key = key.expose();
        if key.len() < SHORTEST_ECHO {
            return self;
        }
        let forms = forms(key);
        for value in self.headers.values_mut() {
            if let Some(blotted) = blotted(value.as_bytes(), &forms) {
                *value = HeaderValue::try_from(blotted).unwrap_or(HeaderValue::from_static(BLOT));
            }
        }
        self.body = self
            .body
            .map(|body| blotted(&body, &forms).map_or(body, Bytes::from));
        self
    }

    /// A header's text; `None` when absent or not ASCII.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Its body, or nothing: for messages, which the status outranks.
    pub(super) fn text(&self) -> &[u8] {
        self.body.as_deref().unwrap_or_default()
    }
}

/// A key as it may stand in a text: plain, or as JSON may write it.
fn forms(key: &str) -> Vec<String> {
    let escaped = key.replace('\\', "\\\\").replace('"', "\\\"");
    let mut forms = vec![key.to_owned(), escaped.clone(), escaped.replace('/', "\\/")];
    forms.dedup();
    forms
}

/// The text without the key; `None`: it is not in it.
fn blotted(text: &[u8], forms: &[String]) -> Option<String> {
    if !forms
        .iter()
        .any(|form| memmem::find(text, form.as_bytes()).is_some())
    {
        return None;
    }
    let text = String::from_utf8_lossy(text).into_owned();
    Some(
        forms
            .iter()
            .fold(text, |text, form| text.replace(form, BLOT)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contract_13_a_key_that_is_said_back_is_blotted_out() {
        let key = r#"a/"key\0123"#;
        let mut headers = HeaderMap::new();
        headers.insert("x-search-reason", HeaderValue::from_str(key).unwrap());
        let body = serde_json::json!({"plain": key, "b": "other"}).to_string()
            + &format!("{key} a\\/\\\"key\\\\0123");
        let reply = Reply {
            status: 200,
            headers,
            body: Ok(Bytes::from(body)),
        }
        .without(&CallerKey::new(key));
        assert_eq!(reply.header("x-search-reason"), Some("[key]"));
        assert_eq!(reply.text(), br#"{"plain":"[key]","b":"other"}[key] [key]"#);
    }

    #[test]
    fn what_holds_no_key_and_what_is_too_short_for_one_stays_as_it_is() {
        let body = Bytes::from_static(b"not utf-8: \xff, and a key");
        for key in ["another-key", "key"] {
            let reply = Reply {
                status: 200,
                headers: HeaderMap::new(),
                body: Ok(body.clone()),
            }
            .without(&CallerKey::new(key));
            assert_eq!(reply.text(), &body);
        }
    }
}
