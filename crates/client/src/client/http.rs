//! An HTTP client of the service's own API.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{ClientError, root_cause};
use crate::Failure;
use farescan_contract::visible_text::{escape_hidden, visible_json};
use farescan_contract::{ErrorBody, ErrorDetail, ErrorType, MAX_KEY_BYTES};

/// Longer than the longest search that the service allows.
const TIMEOUT: Duration = Duration::from_secs(200);
/// Time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest error message of a foreign server that is shown, in characters.
const MAX_MESSAGE_CHARS: usize = 300;
/// The longest answer that is read as a whole. A page of the API holds far less; an export is
/// streamed.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// The time between two tries of a request that the service refused for now.
const BUSY_WAIT: Duration = Duration::from_secs(1);
const KEY_HEADER: &str = "x-api-key";

/// Calls the service at one address with one key.
#[derive(Debug, Clone)]
pub struct ApiClient {
    http: reqwest::Client,
    base: String,
    /// Marked as sensitive, so that `Debug` hides it.
    key: HeaderValue,
    /// How often a request is sent again that the service refused for now.
    busy_retries: u32,
}

/// A successful answer.
#[derive(Debug)]
pub struct ServiceResponse {
    pub headers: HeaderMap,
    /// The body as it came, with hidden characters as escapes of JSON.
    pub text: String,
    base: String,
}

impl ServiceResponse {
    /// The body as a value to be shown: its texts are visible.
    ///
    /// # Errors
    /// It is not a `T`: the service has another version.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        self.read_json(&visible_json(&self.text))
    }

    /// The body as a value to be passed on, with every character of its texts.
    ///
    /// # Errors
    /// It is not a `T`: the service has another version.
    pub fn read_data<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        self.read_json(&self.text)
    }

    fn read_json<T: DeserializeOwned>(&self, json: &str) -> Result<T, ClientError> {
        serde_json::from_str(json).map_err(|error| ClientError::Unexpected {
            base: self.base.clone(),
            what: format!("sent an answer that this version cannot read ({error})"),
        })
    }

    /// A header's text; `None` when absent.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl ApiClient {
    /// A client of the service at `base` (`http://127.0.0.1:8080`). It follows no redirects, which
    /// could carry the key to another host, and uses no proxy for this machine.
    pub fn new(base: &str, key: &str) -> Result<Self, Failure> {
        let mut http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none());
        if Url::parse(base).is_ok_and(|url| is_this_machine(&url)) {
            http = http.no_proxy();
        }
        let mut key = HeaderValue::from_str(key).map_err(|_| {
            format!("the key is not valid: expected 1 to {MAX_KEY_BYTES} visible ASCII characters")
        })?;
        key.set_sensitive(true);
        Ok(Self {
            http: http.build()?,
            base: base.trim_end_matches('/').to_owned(),
            key,
            busy_retries: 0,
        })
    }

    /// The same client, which sends a request again, at most so often, while the service refuses it
    /// for now: a refused request has changed nothing (scans.md, rule 4).
    #[must_use]
    pub fn with_busy_retries(self, busy_retries: u32) -> Self {
        Self {
            busy_retries,
            ..self
        }
    }

    /// The answer of `GET path`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask(path).await?.read()
    }

    /// The answer of `GET path`, unread.
    pub async fn ask(&self, path: &str) -> Result<ServiceResponse, ClientError> {
        self.send(Method::GET, path, None::<&()>, None).await
    }

    /// The answer of `POST path` with a body.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.send(Method::POST, path, Some(body), None)
            .await?
            .read()
    }

    /// The answer of `POST path` without a body: a command that may be repeated.
    pub async fn command<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.send(Method::POST, path, None::<&()>, None)
            .await?
            .read()
    }

    /// Sends a request. With an idempotency key a request that got no answer is sent once more:
    /// the service executes it once.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
        idempotency_key: Option<&str>,
    ) -> Result<ServiceResponse, ClientError> {
        let header = idempotency_key.map(|key| ("idempotency-key", key));
        let mut busy_retries = self.busy_retries;
        let mut unreachable_retries = u32::from(idempotency_key.is_some());
        loop {
            let sent = self.send_once(method.clone(), path, body, header).await;
            match sent {
                Err(ClientError::Unreachable { .. }) if unreachable_retries > 0 => {
                    unreachable_retries -= 1;
                }
                Err(error @ ClientError::Service { .. })
                    if busy_retries > 0 && error.is_temporary() =>
                {
                    busy_retries -= 1;
                    tokio::time::sleep(BUSY_WAIT).await;
                }
                other => return other,
            }
        }
    }

    /// Sends a request once, with a header.
    pub async fn send_once(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
        header: Option<(&str, &str)>,
    ) -> Result<ServiceResponse, ClientError> {
        let changes = method != Method::GET;
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.base))
            .timeout(TIMEOUT)
            .header(KEY_HEADER, self.key.clone());
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error, changes))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let text = self.read_body(response, changes).await?;
        if status.is_success() {
            return Ok(ServiceResponse {
                headers,
                text: escape_hidden(&text).into_owned(),
                base: self.base.clone(),
            });
        }
        Err(self.refused(status.as_u16(), &headers, &text))
    }

    /// The response of `GET path`, whose body the caller reads: a file of any length.
    pub async fn download(&self, path: &str) -> Result<Response, ClientError> {
        self.download_with(path, None).await
    }

    /// The same with a header.
    pub(super) async fn download_with(
        &self,
        path: &str,
        header: Option<(&str, &str)>,
    ) -> Result<Response, ClientError> {
        let mut request = self
            .http
            .get(format!("{}{path}", self.base))
            .header(KEY_HEADER, self.key.clone());
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error, false))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let headers = response.headers().clone();
        let text = self.read_body(response, false).await.unwrap_or_default();
        Err(self.refused(status.as_u16(), &headers, &text))
    }

    /// The body of an answer, at most [`MAX_ANSWER_BYTES`].
    async fn read_body(
        &self,
        mut response: Response,
        changes: bool,
    ) -> Result<String, ClientError> {
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.unreachable(&error, changes))?
        {
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                let most = MAX_ANSWER_BYTES >> 20;
                return Err(ClientError::Unexpected {
                    base: self.base.clone(),
                    what: format!("sent an answer of more than {most} MiB"),
                });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// A broken answer to a download.
    pub fn broken(&self, error: &reqwest::Error) -> ClientError {
        self.unreachable(error, false)
    }

    fn unreachable(&self, error: &reqwest::Error, changes: bool) -> ClientError {
        let cause = root_cause(error);
        if let (Some(rest), true) = (self.base.strip_prefix("https://"), is_not_tls(&cause)) {
            return ClientError::Unexpected {
                base: self.base.clone(),
                what: format!("does not speak TLS; use http://{rest}"),
            };
        }
        ClientError::Unreachable {
            base: self.base.clone(),
            cause,
            may_have_arrived: changes && !error.is_connect(),
        }
    }

    fn refused(&self, status: u16, headers: &HeaderMap, text: &str) -> ClientError {
        let retry_after = headers
            .get("retry-after")
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let text = &*visible_json(text);
        if let Ok(body) = serde_json::from_str::<ErrorBody>(text) {
            return ClientError::Service {
                detail: Box::new(body.error),
                retry_after,
            };
        }
        let message = foreign_message(text);
        match status {
            429 => ClientError::PlanUsedUp {
                message: message.unwrap_or_else(|| "429".to_owned()),
                retry_after,
            },
            401 if text.contains("\"checks\"") => ClientError::Service {
                detail: Box::new(ErrorDetail {
                    error_type: ErrorType::InvalidApiKey,
                    reason: None,
                    message: "the key is subscribed to neither API".to_owned(),
                    details: Vec::new(),
                    request_id: None,
                }),
                retry_after,
            },
            _ => ClientError::Unexpected {
                base: self.base.clone(),
                what: format!("answered {status}, without an error of this API"),
            },
        }
    }
}

/// Whether a TLS handshake failed because the other side answered in plain text.
fn is_not_tls(cause: &str) -> bool {
    cause.contains("InvalidContentType")
}

/// Whether a URL leads to this machine.
pub(super) fn is_this_machine(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// The `message` of another program's JSON, shortened.
fn foreign_message(text: &str) -> Option<String> {
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    let message = json.get("message")?.as_str()?;
    Some(message.chars().take(MAX_MESSAGE_CHARS).collect())
}
