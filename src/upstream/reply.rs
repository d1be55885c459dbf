//! One answer of the marketplace as it came over the wire, before anything is made of it.

use bytes::Bytes;
use reqwest::header::HeaderMap;

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
    /// A header's text; `None` when absent or not ASCII.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Its body, or nothing: for messages, which the status outranks.
    pub(super) fn text(&self) -> &[u8] {
        self.body.as_deref().unwrap_or_default()
    }
}
