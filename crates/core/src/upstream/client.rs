//! Sends requests: one HTTP request per search, or two if the first gets a server error, within one
//! time budget.
//!
//! gateway.md, rule 2 (own headers only, no redirects, no proxy), rule 17 (retry), rule 18 (time
//! budget). `classify` interprets the response.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::classify::{self, AnswerContext, classify};
use super::endpoints::{UpstreamConfig, UpstreamConfigError, UpstreamEndpoints};
use super::probe::{self, Probe};
use super::raw_response::{BodyError, NoResponse, RawResponse};
use super::{Marketplace, probe_endpoint, quota};
use crate::contract::{Api, Endpoint};
use crate::metrics;
use crate::search::{CallerKey, Outcome, Search};

/// Maximum size of a response body after decompression (security.md, rule 19).
const MAX_BODY: usize = 8 * 1024 * 1024;
/// Engines accept connections quickly; a longer wait means that none is there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum silence within a body. The first byte may take the whole budget: engines search first.
const STALL_TIMEOUT: Duration = Duration::from_secs(20);
/// Shorter than usual server timeouts, so that a request rarely meets a closing connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Pause before the retry (gateway.md, rule 17).
const PAUSE_MS: std::ops::RangeInclusive<u64> = 100..=500;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The marketplace client. Clones share their connections and settings.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    endpoints: Arc<UpstreamEndpoints>,
    budget: Duration,
}

/// One or two requests and the last response.
struct Exchange {
    response: Result<RawResponse, NoResponse>,
    billed: u16,
    latency: Duration,
}

impl Client {
    /// Creates a client for the marketplace in `config`. Sends nothing yet.
    pub fn new(config: &UpstreamConfig) -> Result<Self, UpstreamConfigError> {
        let endpoints = Arc::new(UpstreamEndpoints::new(config)?);
        let http = reqwest::Client::builder()
            .user_agent(concat!("farescan/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .retry(reqwest::retry::never())
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build()
            .map_err(|error| UpstreamConfigError::Client(error.without_url().to_string()))?;
        Ok(Self {
            http,
            endpoints,
            budget: config.search_timeout_seconds,
        })
    }

    pub fn marketplace(&self) -> &Marketplace {
        &self.endpoints.marketplace
    }

    /// Sends one search.
    ///
    /// `request_id` is sent as `x-request-id`, to correlate the logs of both sides. After a server
    /// error `before_retry` is awaited (gateway.md, rule 17): it may take a permit, and `false`
    /// forbids the retry. Failures are part of [`Outcome`].
    pub async fn search<F>(
        &self,
        search: &Search,
        key: &CallerKey,
        request_id: &str,
        before_retry: impl FnOnce() -> F,
    ) -> Outcome
    where
        F: Future<Output = bool>,
    {
        let context = AnswerContext {
            endpoint: search.endpoint(),
            strict: search.is_strict(),
            row_cap: search.row_cap(),
        };
        let exchange = self
            .exchange(
                context.endpoint,
                search.body(),
                key,
                request_id,
                before_retry,
            )
            .await;
        let (search_headers, plan_headers) = exchange.response.as_ref().map_or_else(
            |_| (Vec::new(), Vec::new()),
            |response| {
                (
                    classify::search_headers(&response.headers),
                    quota::forwarded(&response.headers),
                )
            },
        );
        let finding = classify(context, &exchange.response);
        metrics::search_finished(
            context.endpoint.as_str(),
            finding.label(),
            exchange.latency,
            exchange.billed,
        );
        Outcome {
            finding,
            http_status: exchange
                .response
                .as_ref()
                .ok()
                .map(|response| response.status),
            search_headers,
            plan: quota::read(&plan_headers),
            plan_headers,
            billed_requests: exchange.billed,
            latency: exchange.latency,
        }
    }

    /// Checks whether `key` may use `api`: the engine rejects the empty body at once (gateway.md,
    /// rule 20).
    pub async fn probe(&self, api: Api, key: &CallerKey, request_id: &str) -> Probe {
        let exchange = self
            .exchange(
                probe_endpoint(api),
                &Map::new(),
                key,
                request_id,
                || async { true },
            )
            .await;
        let plan_headers = exchange.response.as_ref().map_or_else(
            |_| Vec::new(),
            |response| quota::forwarded(&response.headers),
        );
        metrics::billed_requests("verify", exchange.billed);
        Probe {
            verdict: probe::classify(&exchange.response),
            plan: quota::read(&plan_headers),
            plan_headers,
            billed_requests: exchange.billed,
            latency: exchange.latency,
        }
    }

    async fn exchange<F>(
        &self,
        endpoint: Endpoint,
        body: &Map<String, Value>,
        key: &CallerKey,
        request_id: &str,
        before_retry: impl FnOnce() -> F,
    ) -> Exchange
    where
        F: Future<Output = bool>,
    {
        let _open = metrics::call_started(endpoint.api().as_str());
        let begin = Instant::now();
        let deadline = begin + self.budget;
        let request = || self.request(endpoint, body, key, request_id);
        let mut response = send(request(), key, deadline).await;
        let mut billed = billed_for(&response);
        if response.as_ref().is_ok_and(classify::is_retryable)
            && retry_allowed(deadline, before_retry).await
        {
            let second = send(request(), key, deadline).await;
            billed += billed_for(&second);
            response = second;
        }
        Exchange {
            response,
            billed,
            latency: begin.elapsed(),
        }
    }

    fn request(
        &self,
        endpoint: Endpoint,
        body: &Map<String, Value>,
        key: &CallerKey,
        request_id: &str,
    ) -> reqwest::RequestBuilder {
        // Room for these and for those that the HTTP client adds.
        let mut headers = HeaderMap::with_capacity(12);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Ok(id) = HeaderValue::from_str(request_id) {
            headers.insert(REQUEST_ID, id);
        }
        headers.insert(
            self.endpoints.host_header.clone(),
            self.endpoints.host(endpoint.api()).clone(),
        );
        // The gateway has validated the key. Without the header, the marketplace rejects the
        // request.
        if let Ok(mut value) = HeaderValue::from_str(key.expose()) {
            value.set_sensitive(true);
            headers.insert(self.endpoints.key_header.clone(), value);
        }
        self.http
            .post(self.endpoints.url(endpoint).clone())
            .headers(headers)
            .json(body)
    }
}

/// Waits for the pause and the permission; `false` if the budget ends first.
async fn retry_allowed<F: Future<Output = bool>>(
    deadline: Instant,
    before_retry: impl FnOnce() -> F,
) -> bool {
    let pause = Duration::from_millis(rand::random_range(PAUSE_MS));
    if Instant::now() + pause >= deadline {
        return false;
    }
    sleep(pause).await;
    timeout_at(deadline, before_retry()).await.unwrap_or(false)
}

async fn send(
    request: reqwest::RequestBuilder,
    key: &CallerKey,
    deadline: Instant,
) -> Result<RawResponse, NoResponse> {
    let response = match timeout_at(deadline, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(no_reply(error)),
        Err(_) => return Err(NoResponse::TimedOut),
    };
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = timeout_at(deadline, whole_body(response))
        .await
        .unwrap_or(Err(BodyError::TimedOut));
    Ok(RawResponse {
        status,
        headers,
        body,
    }
    .redact_key(key))
}

fn no_reply(error: reqwest::Error) -> NoResponse {
    let error = error.without_url();
    tracing::info!(error = %error, cause = error.source().map(tracing::field::display), "call to the marketplace failed");
    if error.is_connect() {
        NoResponse::NotConnected
    } else {
        NoResponse::Broken
    }
}

/// Reads in chunks, so that memory use stays within the limit even if the body decompresses to
/// more.
async fn whole_body(mut response: reqwest::Response) -> Result<Bytes, BodyError> {
    let mut body = BytesMut::new();
    loop {
        match timeout(STALL_TIMEOUT, response.chunk()).await {
            Err(_) => return Err(BodyError::TimedOut),
            Ok(Err(error)) => return Err(body_fault(&error)),
            Ok(Ok(None)) => return Ok(body.freeze()),
            Ok(Ok(Some(chunk))) if body.len() + chunk.len() > MAX_BODY => {
                return Err(BodyError::TooLarge);
            }
            Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
        }
    }
}

/// Distinguishes connection errors from decompression errors.
fn body_fault(error: &reqwest::Error) -> BodyError {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<hyper::Error>() {
            return BodyError::Broken;
        }
        source = cause.source();
    }
    BodyError::Undecodable
}

/// A request is billed once its first byte may have been sent.
fn billed_for(response: &Result<RawResponse, NoResponse>) -> u16 {
    match response {
        Err(NoResponse::NotConnected) => 0,
        Ok(_) | Err(NoResponse::Broken | NoResponse::TimedOut) => 1,
    }
}

#[cfg(test)]
mod tests;
