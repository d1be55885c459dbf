//! An HTTP client of the service's own API.

use std::time::Duration;

use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Failure;
use crate::contract::ErrorBody;

/// Longer than the longest search that the service allows.
const TIMEOUT: Duration = Duration::from_secs(200);

/// Calls the service at one address with one key.
#[derive(Debug, Clone)]
pub struct ApiClient {
    http: reqwest::Client,
    base: String,
    key: String,
}

impl ApiClient {
    /// A client of the service at `base` (`http://127.0.0.1:8080`).
    pub fn new(base: &str, key: &str) -> Result<Self, Failure> {
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .no_proxy()
            .build()?;
        Ok(Self {
            http,
            base: base.trim_end_matches('/').to_owned(),
            key: key.to_owned(),
        })
    }

    /// The answer of `GET path`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.send(Method::GET, path, None::<&()>).await
    }

    /// The answer of `POST path` with a body.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.send(Method::POST, path, Some(body)).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, Failure> {
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.base))
            .header("x-api-key", &self.key);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await?;
        let status = response.status();
        let answer = response.bytes().await?;
        if status.is_success() {
            return Ok(serde_json::from_slice(&answer)?);
        }
        let message = serde_json::from_slice::<ErrorBody>(&answer).map(|body| body.error.message);
        Err(message
            .unwrap_or_else(|_| format!("{path} answered {status}"))
            .into())
    }
}
