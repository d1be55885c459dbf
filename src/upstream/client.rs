//! Sending: one question as one request, or two when the first was a server error, inside one time budget.
//!
//! Contract 2 (only our headers, no redirects, no proxy), 17 (the second try), 18 (the budget). What an answer means is `wire`'s.

use std::error::Error as _;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::native::{ConfigFault, Native, UpstreamConfig};
use super::probe::{self, Probe};
use super::reply::{BodyFault, NoReply, Reply};
use super::wire::{self, Asked};
use super::{Marketplace, lightest, quota};
use crate::contract::{Api, Endpoint};
use crate::measure;
use crate::search::{CallerKey, Outcome, Search};

/// The largest answer after decompression (security, "Limits").
const MAX_BODY: usize = 8 * 1024 * 1024;
/// No engine takes this long to accept a connection; what does is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest silence inside a body. The first byte may take the whole budget: engines search before they answer.
const STALL_TIMEOUT: Duration = Duration::from_secs(20);
/// Shorter than what servers allow, so that a request is rarely sent on a connection that is just being closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long to wait before the second try (contract 17).
const PAUSE_MS: std::ops::RangeInclusive<u64> = 100..=500;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The marketplace, ready to be asked. Cheap to clone: clones share their connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    native: Native,
    budget: Duration,
}

/// One or two requests and the answer that counts.
struct Exchange {
    reply: Result<Reply, NoReply>,
    billed: u16,
    latency: Duration,
}

impl Client {
    /// A client for the marketplace that `config` names. Sends nothing yet.
    ///
    /// # Errors
    /// [`ConfigFault`]: a setting is missing or cannot be used.
    pub fn new(config: &UpstreamConfig) -> Result<Self, ConfigFault> {
        let native = Native::new(config)?;
        let http = reqwest::Client::builder()
            .user_agent(concat!("farescan/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .retry(reqwest::retry::never())
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build()
            .map_err(|error| ConfigFault::Client(error.without_url().to_string()))?;
        Ok(Self {
            http,
            native,
            budget: config.search_timeout_seconds,
        })
    }

    /// Which marketplace it is.
    #[must_use]
    pub fn marketplace(&self) -> &Marketplace {
        &self.native.marketplace
    }

    /// Asks one search.
    ///
    /// `request_id` goes out as `x-request-id`, so that both logs can be laid side by side. `second_try` is awaited before a server
    /// error is sent once more (contract 17): what it must do first (take a place in a budget) it does, and `false` forbids the try.
    /// Never fails: what went wrong is an [`Outcome`] too.
    pub async fn ask<F>(
        &self,
        search: &Search,
        key: &CallerKey,
        request_id: &str,
        second_try: impl FnOnce() -> F,
    ) -> Outcome
    where
        F: Future<Output = bool>,
    {
        let asked = Asked {
            endpoint: search.endpoint(),
            strict: search.is_strict(),
            row_cap: search.row_cap(),
        };
        let exchange = self
            .exchange(asked.endpoint, search.body(), key, request_id, second_try)
            .await;
        let (search_headers, plan_headers) = exchange.reply.as_ref().map_or_else(
            |_| (Vec::new(), Vec::new()),
            |reply| {
                (
                    wire::search_headers(&reply.headers),
                    quota::forwarded(&reply.headers),
                )
            },
        );
        let finding = wire::find(asked, &exchange.reply);
        measure::search(
            asked.endpoint.as_str(),
            finding.word(),
            exchange.latency,
            exchange.billed,
        );
        Outcome {
            finding,
            http_status: exchange.reply.as_ref().ok().map(|reply| reply.status),
            search_headers,
            plan: quota::read(&plan_headers),
            plan_headers,
            billed_requests: exchange.billed,
            latency: exchange.latency,
        }
    }

    /// Asks whether `key` may use `api`, by an empty body that the engine refuses at once (contract 20).
    pub async fn probe(&self, api: Api, key: &CallerKey, request_id: &str) -> Probe {
        let exchange = self
            .exchange(lightest(api), &Map::new(), key, request_id, || async {
                true
            })
            .await;
        let plan_headers = exchange
            .reply
            .as_ref()
            .map_or_else(|_| Vec::new(), |reply| quota::forwarded(&reply.headers));
        measure::billed_requests("verify", exchange.billed);
        Probe {
            verdict: probe::judge(&exchange.reply),
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
        second_try: impl FnOnce() -> F,
    ) -> Exchange
    where
        F: Future<Output = bool>,
    {
        let _open = measure::call(endpoint.api().as_str());
        let begin = Instant::now();
        let deadline = begin + self.budget;
        let request = || self.request(endpoint, body, key, request_id);
        let mut reply = send(request(), key, deadline).await;
        let mut billed = billed_for(&reply);
        if reply.as_ref().is_ok_and(wire::wants_second_try)
            && may_try_again(deadline, second_try).await
        {
            let second = send(request(), key, deadline).await;
            billed += billed_for(&second);
            reply = second;
        }
        Exchange {
            reply,
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
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Ok(id) = HeaderValue::from_str(request_id) {
            headers.insert(REQUEST_ID, id);
        }
        headers.insert(
            self.native.host_header.clone(),
            self.native.host(endpoint.api()).clone(),
        );
        // A key that no header can hold never gets past the gateway's check; without one the marketplace refuses.
        if let Ok(mut value) = HeaderValue::from_str(key.expose()) {
            value.set_sensitive(true);
            headers.insert(self.native.key_header.clone(), value);
        }
        self.http
            .post(self.native.url(endpoint).clone())
            .headers(headers)
            .json(body)
    }
}

/// Waits out the pause and asks for leave; no leave if the budget ends first.
async fn may_try_again<F: Future<Output = bool>>(
    deadline: Instant,
    second_try: impl FnOnce() -> F,
) -> bool {
    let pause = Duration::from_millis(rand::random_range(PAUSE_MS));
    if Instant::now() + pause >= deadline {
        return false;
    }
    sleep(pause).await;
    timeout_at(deadline, second_try()).await.unwrap_or(false)
}

async fn send(
    request: reqwest::RequestBuilder,
    key: &CallerKey,
    deadline: Instant,
) -> Result<Reply, NoReply> {
    let response = match timeout_at(deadline, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(no_reply(error)),
        Err(_) => return Err(NoReply::Late),
    };
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = timeout_at(deadline, whole_body(response))
        .await
        .unwrap_or(Err(BodyFault::Late));
    Ok(Reply {
        status,
        headers,
        body,
    }
    .without(key))
}

fn no_reply(error: reqwest::Error) -> NoReply {
    let error = error.without_url();
    tracing::info!(error = %error, cause = error.source().map(tracing::field::display), "the marketplace gave no answer");
    if error.is_connect() {
        NoReply::Unconnected
    } else {
        NoReply::Broken
    }
}

/// Reads chunk by chunk, so that what is over the bound is never held, whatever it decompresses to.
async fn whole_body(mut response: reqwest::Response) -> Result<Bytes, BodyFault> {
    let mut body = BytesMut::new();
    loop {
        match timeout(STALL_TIMEOUT, response.chunk()).await {
            Err(_) => return Err(BodyFault::Late),
            Ok(Err(error)) => return Err(body_fault(&error)),
            Ok(Ok(None)) => return Ok(body.freeze()),
            Ok(Ok(Some(chunk))) if body.len() + chunk.len() > MAX_BODY => {
                return Err(BodyFault::TooLarge);
            }
            Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
        }
    }
}

/// A body fails on its connection, or in its decompression.
fn body_fault(error: &reqwest::Error) -> BodyFault {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<hyper::Error>() {
            return BodyFault::Broken;
        }
        source = cause.source();
    }
    BodyFault::Garbled
}

/// A request is billed once its first byte may have been sent.
fn billed_for(reply: &Result<Reply, NoReply>) -> u16 {
    match reply {
        Err(NoReply::Unconnected) => 0,
        Ok(_) | Err(NoReply::Broken | NoReply::Late) => 1,
    }
}

#[cfg(test)]
mod tests;
