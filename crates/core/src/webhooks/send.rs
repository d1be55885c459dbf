//! One try: sends a signed event or a message to the receiver within ten seconds, or a mail (`mail`). Not
//! here: what is sent (`prepare`), the outcome (`retry_schedule`), its record (`store`).

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::dns::Resolve;
use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use tokio::time::{Instant, timeout, timeout_at};

use super::guard::{Guard, GuardError, GuardedResolver, SystemResolver};
use super::mail::{Mail, Mailer};
use super::relay::{RELAY_TIMEOUT, Relay};
use super::retry_schedule::{self, ReceiverAnswer};
use super::sign::{self, Secret};
use super::smtp::MAIL_TIMEOUT;
use crate::contract::channels::ChannelKind;
use crate::contract::webhooks::TryError;
use crate::ids::DeliveryId;
use crate::notices::RenderedMessage;
use crate::visible_text::VisibleText;

/// How long a receiver may take to answer (security.md, rule 25).
pub const TRY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for the body of a response, which is only stored for information.
const EXCERPT_TIMEOUT: Duration = Duration::from_secs(2);
/// How many bytes of the response are stored.
const EXCERPT_BYTES: usize = 1024;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
/// The delivery of a message to a channel, the same at each try.
const DELIVERY: HeaderName = HeaderName::from_static("farescan-delivery");

/// Sends deliveries. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sender {
    http: reqwest::Client,
    guard: Guard,
    time: Duration,
    mailer: Option<Mailer>,
    relay: Option<Relay>,
}

/// What one try sends.
#[derive(Debug)]
pub enum Prepared {
    /// A request.
    Post(PostRequest),
    /// A mail.
    Mail(Box<Mail>),
    /// JSON for the relay.
    Relayed(String),
}

/// A request to a receiver.
#[derive(Debug)]
pub struct PostRequest {
    url: String,
    headers: HeaderMap,
    body: String,
}

impl PostRequest {
    /// An event for a webhook, signed now with these secrets, newest first; the body is sent byte for
    /// byte. `None` without a secret.
    pub fn signed(
        id: DeliveryId,
        url: String,
        body: String,
        secrets: &[Secret],
        now: Timestamp,
    ) -> Option<Self> {
        if secrets.is_empty() {
            return None;
        }
        let (id, timestamp) = (id.to_string(), now.as_second());
        let signature = sign::header(secrets, &id, timestamp, &body);
        let mut signature = HeaderValue::try_from(signature).ok()?;
        signature.set_sensitive(true);
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (ID, HeaderValue::try_from(id).ok()?),
            (TIMESTAMP, HeaderValue::from(timestamp)),
            (SIGNATURE, signature),
        ]);
        Some(Self { url, headers, body })
    }

    /// A message to a channel.
    pub fn message(id: DeliveryId, message: RenderedMessage) -> Option<Self> {
        let id = HeaderValue::try_from(id.to_string()).ok()?;
        let mut headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (DELIVERY, id),
        ]);
        if let Some(authorization) = message.authorization {
            let mut value = HeaderValue::try_from(authorization).ok()?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Some(Self {
            url: message.url,
            headers,
            body: message.body,
        })
    }
}

/// The result of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TryResult {
    /// What the receiver said of it.
    pub answer: ReceiverAnswer,
    /// The status of the response by HTTP.
    pub http_status: Option<u16>,
    /// The error, if the try failed.
    pub error: Option<TryError>,
    /// The beginning of the response, as safe text.
    pub response: Option<String>,
    /// The `Retry-After` of the response.
    pub retry_after: Option<Duration>,
    /// The duration of the try.
    pub latency: Duration,
}

impl TryResult {
    /// A result by HTTP, without what its response says.
    fn of_http(http_status: Option<u16>, error: Option<TryError>) -> Self {
        Self {
            answer: ReceiverAnswer::of_http(http_status),
            http_status,
            error,
            response: None,
            retry_after: None,
            latency: Duration::ZERO,
        }
    }
}

impl Sender {
    /// A sender with the resolver of the operating system.
    ///
    /// # Errors
    /// When the HTTP client cannot be built, for example without root certificates.
    pub fn new(guard: Guard) -> reqwest::Result<Self> {
        Self::with_resolver(guard, Arc::new(SystemResolver))
    }

    /// A sender with another resolver.
    ///
    /// # Errors
    /// As [`Sender::new`].
    pub fn with_resolver(guard: Guard, resolver: Arc<dyn Resolve>) -> reqwest::Result<Self> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("farescan/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(GuardedResolver { guard, resolver }))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .https_only(guard.is_strict())
            .retry(reqwest::retry::never())
            // Each try opens its own connection, whose address was checked for it.
            .pool_max_idle_per_host(0)
            // Uncompressed, so that the stored excerpt is as sent; HTTP/2 would write headers to
            // traces.
            .http1_only()
            .no_gzip()
            .no_zstd()
            .build()?;
        Ok(Self {
            http,
            guard,
            time: TRY_TIMEOUT,
            mailer: None,
            relay: None,
        })
    }

    /// The same sender with the operator's mail server.
    #[must_use]
    pub fn with_mailer(self, mailer: Option<Mailer>) -> Self {
        Self { mailer, ..self }
    }

    /// The same sender with the operator's relay.
    #[must_use]
    pub fn with_relay(self, relay: Option<Relay>) -> Self {
        Self { relay, ..self }
    }

    /// The operator's mail server.
    pub(super) fn mailer(&self) -> Option<&Mailer> {
        self.mailer.as_ref()
    }

    /// Whether the server is there that messages to channels of this kind go through.
    pub(super) fn is_set_up(&self, kind: ChannelKind) -> bool {
        match kind {
            ChannelKind::Email => self.mailer.is_some(),
            ChannelKind::Apprise => self.relay.is_some(),
            ChannelKind::Ntfy | ChannelKind::Slack => true,
        }
    }

    /// The same sender with another timeout.
    #[must_use]
    pub fn with_timeout(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// The longest possible duration of a try.
    pub fn max_duration(&self) -> Duration {
        let post = self.time + EXCERPT_TIMEOUT;
        let mail = self.mailer.as_ref().map(|_| MAIL_TIMEOUT);
        let relay = self.relay.as_ref().map(|_| RELAY_TIMEOUT);
        post.max(mail.max(relay).unwrap_or_default())
    }

    /// Tries once, unless there is nothing to send. A failure is part of the result.
    pub async fn send(&self, prepared: Result<Prepared, TryError>, now: Timestamp) -> TryResult {
        let begun = Instant::now();
        let failed = |error| TryResult {
            latency: begun.elapsed(),
            ..TryResult::of_http(None, Some(error))
        };
        match (prepared, &self.mailer) {
            (Err(error), _) => failed(error),
            (Ok(Prepared::Post(request)), _) => self.post(request, now).await,
            (Ok(Prepared::Mail(_)), None) => failed(TryError::NotSetUp),
            (Ok(Prepared::Relayed(body)), _) => match &self.relay {
                Some(relay) => {
                    let answered = relay.send(body).await;
                    TryResult {
                        answer: answered.answer,
                        latency: begun.elapsed(),
                        ..TryResult::of_http(answered.status, answered.error)
                    }
                }
                None => failed(TryError::NotSetUp),
            },
            (Ok(Prepared::Mail(mail)), Some(mailer)) => {
                let answered = mailer.send(&mail).await;
                TryResult {
                    answer: answered.answer,
                    response: answered.reply,
                    latency: begun.elapsed(),
                    ..TryResult::of_http(None, answered.error)
                }
            }
        }
    }

    async fn post(&self, sent: PostRequest, now: Timestamp) -> TryResult {
        let begun = Instant::now();
        let result = |http_status, error| TryResult {
            latency: begun.elapsed(),
            ..TryResult::of_http(http_status, error)
        };
        // The setting that allowed the URL may have been withdrawn.
        let Ok(url) = self.guard.check(&sent.url) else {
            return result(None, Some(TryError::AddressRefused));
        };
        let request = self
            .http
            .post(url)
            .headers(sent.headers)
            .body(sent.body)
            .send();
        let response = match timeout_at(begun + self.time, request).await {
            Err(_) => return result(None, Some(TryError::Timeout)),
            Ok(Err(error)) => return result(None, Some(classify_error(&error))),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok());
        TryResult {
            retry_after: retry_after.and_then(|value| retry_schedule::retry_after(value, now)),
            response: Some(response_excerpt(response).await),
            ..result(
                Some(status.as_u16()),
                (!status.is_success()).then_some(TryError::HttpStatus),
            )
        }
    }
}

/// The kind of an error. Its text may contain the URL and is not kept.
fn classify_error(error: &reqwest::Error) -> TryError {
    let mut source = error.source();
    while let Some(cause) = source {
        match cause.downcast_ref::<GuardError>() {
            Some(GuardError::Unresolved) => return TryError::Unresolved,
            Some(GuardError::Address | GuardError::Url) => return TryError::AddressRefused,
            None => source = cause.source(),
        }
    }
    match error {
        error if error.is_timeout() => TryError::Timeout,
        error if error.is_connect() => TryError::Unconnected,
        _ => TryError::Broken,
    }
}

/// The beginning of a response as a text that a page and a terminal may show.
async fn response_excerpt(mut response: reqwest::Response) -> String {
    let mut bytes = Vec::with_capacity(EXCERPT_BYTES);
    let read = async {
        while bytes.len() < EXCERPT_BYTES {
            let Ok(Some(chunk)) = response.chunk().await else {
                break;
            };
            bytes.extend_from_slice(&chunk[..chunk.len().min(EXCERPT_BYTES - bytes.len())]);
        }
    };
    // On timeout, the bytes so far are used.
    let _ = timeout(EXCERPT_TIMEOUT, read).await;
    VisibleText::one_line(String::from_utf8_lossy(&bytes)).into_string()
}
