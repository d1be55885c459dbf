//! One try: the body to the receiver, signed, within ten seconds. Not here: what comes of it (`schedule`), its record (`store`).

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::dns::Resolve;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use tokio::time::{Instant, timeout, timeout_at};

use super::guard::{Checked, Guard, Refused, SystemNames};
use super::schedule;
use super::sign::{self, Secret};
use crate::contract::webhooks::TryError;
use crate::ids::DeliveryId;

/// How long a receiver may take to answer (security.md, "Outgoing and pages").
pub const TRY_TIME: Duration = Duration::from_secs(10);
/// How long the body of an answer is waited for: it is evidence, not part of the promise.
const EVIDENCE_TIME: Duration = Duration::from_secs(2);
/// How much of it is kept.
const EVIDENCE_BYTES: usize = 1024;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Sends. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sender {
    http: reqwest::Client,
    guard: Guard,
    time: Duration,
}

/// What is sent.
#[derive(Debug)]
pub struct Message<'a> {
    /// The same at each try.
    pub id: DeliveryId,
    /// Where to.
    pub url: &'a str,
    /// Byte for byte.
    pub body: &'a str,
    /// What it is signed with, the newest first.
    pub secrets: &'a [Secret],
}

/// How a try ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// What was answered.
    pub http_status: Option<u16>,
    /// Why it failed, if it did.
    pub error: Option<TryError>,
    /// The beginning of the answer, as safe text.
    pub response: Option<String>,
    /// How long the receiver asks to be left alone.
    pub retry_after: Option<Duration>,
    /// How long it took.
    pub latency: Duration,
}

impl Sender {
    /// One that looks names up as this machine does.
    ///
    /// # Errors
    /// When this machine has no certificates to check receivers by, or the like.
    pub fn new(guard: Guard) -> reqwest::Result<Self> {
        Self::with_names(guard, Arc::new(SystemNames))
    }

    /// One that looks names up otherwise.
    ///
    /// # Errors
    /// As [`Sender::new`].
    pub fn with_names(guard: Guard, names: Arc<dyn Resolve>) -> reqwest::Result<Self> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("farescan/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(Checked { guard, names }))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .https_only(guard.is_strict())
            .retry(reqwest::retry::never())
            // Each try has a connection of its own, whose address was checked for it.
            .pool_max_idle_per_host(0)
            // What is kept of an answer is what was sent, and HTTP/2 writes headers to its traces.
            .http1_only()
            .no_gzip()
            .no_zstd()
            .build()?;
        Ok(Self {
            http,
            guard,
            time: TRY_TIME,
        })
    }

    /// The same with another patience.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// How long a try may take at most.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.time + EVIDENCE_TIME
    }

    /// Tries once. Never fails: what went wrong is how it ended.
    pub async fn send(&self, message: &Message<'_>, now: Timestamp) -> Ended {
        let begun = Instant::now();
        let ended = |http_status, error| Ended {
            http_status,
            error,
            response: None,
            retry_after: None,
            latency: begun.elapsed(),
        };
        // A setting may have been taken back since the URL was given.
        let Ok(url) = self.guard.check(message.url) else {
            return ended(None, Some(TryError::AddressRefused));
        };
        let Some(headers) = headers(message, now) else {
            return ended(None, Some(TryError::SecretUnreadable));
        };
        let request = self
            .http
            .post(url)
            .headers(headers)
            .body(message.body.to_owned())
            .send();
        let response = match timeout_at(begun + self.time, request).await {
            Err(_) => return ended(None, Some(TryError::Timeout)),
            Ok(Err(error)) => return ended(None, Some(what_failed(&error))),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok());
        Ended {
            retry_after: retry_after.and_then(|value| schedule::retry_after(value, now)),
            response: Some(evidence(response).await),
            ..ended(
                Some(status.as_u16()),
                (!status.is_success()).then_some(TryError::HttpStatus),
            )
        }
    }
}

fn headers(message: &Message<'_>, now: Timestamp) -> Option<HeaderMap> {
    if message.secrets.is_empty() {
        return None;
    }
    let (id, timestamp) = (message.id.to_string(), now.as_second());
    let mut signature =
        HeaderValue::try_from(sign::header(message.secrets, &id, timestamp, message.body)).ok()?;
    signature.set_sensitive(true);
    Some(HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ID, HeaderValue::try_from(id).ok()?),
        (TIMESTAMP, HeaderValue::from(timestamp)),
        (SIGNATURE, signature),
    ]))
}

/// Of the error only its kind is kept: its text may hold the URL.
fn what_failed(error: &reqwest::Error) -> TryError {
    let mut source = error.source();
    while let Some(cause) = source {
        match cause.downcast_ref::<Refused>() {
            Some(Refused::Unresolved) => return TryError::Unresolved,
            Some(Refused::Address | Refused::Url) => return TryError::AddressRefused,
            None => source = cause.source(),
        }
    }
    match error {
        error if error.is_timeout() => TryError::Timeout,
        error if error.is_connect() => TryError::Unconnected,
        _ => TryError::Broken,
    }
}

/// The beginning of an answer as text that can be shown: what is no text, and what controls a terminal, is a space.
async fn evidence(mut response: reqwest::Response) -> String {
    let mut bytes = Vec::with_capacity(EVIDENCE_BYTES);
    let read = async {
        while bytes.len() < EVIDENCE_BYTES {
            let Ok(Some(chunk)) = response.chunk().await else {
                break;
            };
            bytes.extend_from_slice(&chunk[..chunk.len().min(EVIDENCE_BYTES - bytes.len())]);
        }
    };
    // What has come by then is what there is.
    let _ = timeout(EVIDENCE_TIME, read).await;
    safe_text(&bytes)
}

fn safe_text(bytes: &[u8]) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| if is_hidden(c) { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_shown_as_text_that_does_nothing() {
        assert_eq!(
            safe_text(b"try\nlater\0\x1b[31m\xff"),
            "try later  [31m\u{fffd}"
        );
        assert_eq!(safe_text("übel \u{202e}gnirts".as_bytes()), "übel  gnirts");
    }
}
