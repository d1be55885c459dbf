//! One caller cannot exhaust connections, memory or CPU for others (security.md, rules 18 to 24).

mod backtests;
mod bodies;
mod connections;
mod reads;

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::Value;

use crate::support::text;

/// A client with a key and the service's URL.
#[derive(Clone)]
pub struct ApiClient {
    url: String,
    key: String,
    http: reqwest::Client,
}

/// An answer and its duration.
pub struct TimedResponse {
    pub status: u16,
    pub retry_after: Option<String>,
    pub body: Value,
    pub took: Duration,
}

impl ApiClient {
    pub fn new(url: &str, key: &str) -> Self {
        let http = crate::support::http_client();
        Self {
            url: url.to_owned(),
            key: key.to_owned(),
            http,
        }
    }

    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> TimedResponse {
        let begun = Instant::now();
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.url))
            .header("x-api-key", &self.key);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get("retry-after")
            .map(|value| value.to_str().unwrap().to_owned());
        let text = response.text().await.unwrap();
        TimedResponse {
            status,
            retry_after,
            body: serde_json::from_str(&text).unwrap_or_default(),
            took: begun.elapsed(),
        }
    }

    pub async fn get(&self, path: &str) -> TimedResponse {
        self.send(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> TimedResponse {
        self.send(Method::POST, path, Some(body)).await
    }

    /// Submits a scan; returns its id. A busy machine may refuse to plan it for a moment: then it is
    /// submitted again.
    pub async fn submit_scan(&self, body: &Value) -> String {
        let mut answer = self.post("/v1/scans", body).await;
        while answer.status == 503 {
            answer = self.post("/v1/scans", body).await;
        }
        assert_eq!(answer.status, 202, "{}", answer.body);
        text(&answer.body["id"])
    }

    /// Reads the scan until the condition holds.
    pub async fn wait_for_scan(&self, id: &str, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..6_000 {
            let read = self.get(&format!("/v1/scans/{id}")).await;
            assert_eq!(read.status, 200, "{}", read.body);
            if so(&read.body) {
                return read.body;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("timed out waiting until {what}");
    }

    pub async fn finished_scan(&self, id: &str) -> Value {
        self.wait_for_scan(id, "the scan has ended", |scan| {
            scan["finished_at"].is_string()
        })
        .await
    }
}

/// The 99th percentile.
pub fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}
