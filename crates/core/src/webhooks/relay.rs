//! The relay of the operator, a server of the Apprise API, and one try at it (channels.md, rules 26 to 28).

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use tokio::time::timeout;

use super::retry_schedule::ReceiverAnswer;
use crate::contract::webhooks::TryError;

/// How long the relay may take: it calls the service meanwhile.
pub const RELAY_TIMEOUT: Duration = Duration::from_secs(20);

/// The operator's relay. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Relay {
    http: reqwest::Client,
    url: String,
}

/// What the relay made of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RelayAnswer {
    pub(super) answer: ReceiverAnswer,
    /// Its HTTP status.
    pub(super) status: Option<u16>,
    pub(super) error: Option<TryError>,
}

impl Relay {
    /// The relay at this root. Its address is the operator's choice, so it may be inside its network.
    ///
    /// # Errors
    /// When the HTTP client cannot be built.
    pub fn new(root: &str) -> reqwest::Result<Self> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("farescan/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .retry(reqwest::retry::never())
            .http1_only()
            .build()?;
        let url = format!("{}/notify", root.trim_end_matches('/'));
        Ok(Self { http, url })
    }

    /// Posts a message once.
    pub(super) async fn send(&self, body: String) -> RelayAnswer {
        let request = self
            .http
            .post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        let (status, error) = match timeout(RELAY_TIMEOUT, request.send()).await {
            Err(_) => (None, Some(TryError::Timeout)),
            Ok(Ok(response)) => {
                let status = response.status().as_u16();
                (
                    Some(status),
                    (status != 200).then_some(TryError::HttpStatus),
                )
            }
            Ok(Err(error)) if error.is_timeout() => (None, Some(TryError::Timeout)),
            Ok(Err(error)) if error.is_connect() => (None, Some(TryError::Unconnected)),
            Ok(Err(_)) => (None, Some(TryError::Broken)),
        };
        RelayAnswer {
            answer: answer_of(status),
            status,
            error,
        }
    }
}

/// What a status of the Apprise API says: 200 the service has it, 204 and 400 the relay does not know the
/// target, 424 the service did not take it.
fn answer_of(status: Option<u16>) -> ReceiverAnswer {
    match status {
        Some(200) => ReceiverAnswer::Accepted,
        Some(204 | 400) => ReceiverAnswer::Refused,
        _ => ReceiverAnswer::Unclear,
    }
}
