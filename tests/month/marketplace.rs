//! The sandbox with a scenario, at a time that the test sets. It counts what it is asked.

use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use farescan::sandbox::scenarios::Scenario;
use farescan::sandbox::{SandboxClock, SandboxOptions, router};
use farescan::upstream::UpstreamConfig;
use jiff::Timestamp;
use serde_json::json;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

/// The caller's key: its plan has no limit.
pub(super) const KEY: &str = "sandbox-unlimited.month";

/// A sandbox whose clock stands still until it is set.
#[derive(Clone)]
pub(super) struct Marketplace {
    options: SandboxOptions,
    /// The sandbox of this time. Another time has another one, with counters of its own.
    now: Arc<Mutex<Router>>,
}

impl Marketplace {
    pub(super) fn new(scenario: &Path, seed: u64) -> Self {
        let options = SandboxOptions {
            seed,
            latency_factor: 0.0,
            scenario: Some(Arc::new(Scenario::read(scenario).unwrap())),
            ..SandboxOptions::default()
        };
        Self {
            now: Arc::new(Mutex::new(router(options.clone()))),
            options,
        }
    }

    /// Serves the sandbox of whatever time it is; ends with the test.
    pub(super) async fn serve(&self) -> UpstreamConfig {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: reqwest::Url = format!("http://{}", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        let now = Arc::clone(&self.now);
        let forward = move |request: Request| {
            let sandbox = now.lock().unwrap().clone();
            async move { sandbox.oneshot(request).await }
        };
        let app = Router::new().fallback(forward);
        tokio::spawn(async move { axum::serve(listener, app).await });
        UpstreamConfig::at(url.clone(), url)
    }

    pub(super) fn set_time(&self, time: Timestamp) {
        let clock = SandboxClock {
            start: Some(time),
            speed: 0,
        };
        *self.now.lock().unwrap() = router(SandboxOptions {
            clock: Some(clock),
            ..self.options.clone()
        });
    }

    /// The searches that the sandbox has counted since its time was set, by its own headers. It does
    /// not count this one: its origin is refused for its rate.
    pub(super) async fn searches_counted(&self) -> u64 {
        let body =
            json!({"from_airport": "STN", "to_airport": "ZZQ", "departure_date": "2030-01-10"});
        let request = Request::post("/api/google_flights/oneway/v1")
            .header("x-marketplace-key", KEY)
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .unwrap();
        let sandbox = self.now.lock().unwrap().clone();
        let response = sandbox.oneshot(request).await.unwrap();
        let number = |headers: &HeaderMap, name: &str| -> u64 {
            headers[name].to_str().unwrap().parse().unwrap()
        };
        let headers = response.headers();
        number(headers, "x-ratelimit-requests-limit")
            - number(headers, "x-ratelimit-requests-remaining")
    }
}
