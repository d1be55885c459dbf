//! Test databases, the service under test and the scripted marketplace.

#[macro_use]
mod sql;

pub mod app;
pub mod db;
pub mod reply;
pub mod sandbox;
pub mod service;
pub mod steps;
pub mod upstream;

pub use service::{
    Rng, TestService, airport_code, assert_counts_add_up, billed, day, departing_from, fares,
    fares_with, total,
};
pub use steps::SearchOutcome;

/// A JSON string.
pub fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The elements of a JSON array.
pub fn array(value: &serde_json::Value) -> &Vec<serde_json::Value> {
    value.as_array().unwrap()
}

/// One HTTP client for all requests of a test: making one takes a tenth of a second, and on a busy
/// machine so long that a connection of another one is closed before its request is sent. Each
/// request has a connection of its own: an idle one may be closed just when it is used again.
pub fn http_client() -> reqwest::Client {
    static CLIENT: std::sync::LazyLock<reqwest::Client> = std::sync::LazyLock::new(|| {
        let builder = reqwest::Client::builder().no_proxy();
        // A busy server may leave a body unread for longer than reqwest's limit.
        let builder = builder.tcp_user_timeout(None);
        builder.pool_max_idle_per_host(0).build().unwrap()
    });
    CLIENT.clone()
}

/// Waits for a condition.
pub async fn wait_until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let end = tokio::time::Instant::now() + WAIT_LIMIT;
    while !condition().await {
        assert!(
            tokio::time::Instant::now() < end,
            "timed out waiting until {what}"
        );
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// Starts a service at free ports.
pub const SERVE: [&str; 5] = [
    "serve",
    "--listen",
    "127.0.0.1:0",
    "--admin-listen",
    "127.0.0.1:0",
];

/// The longest that a test waits for a condition. It is generous because an overloaded machine may
/// take a hundred times the usual time. nextest ends a test that hangs after 300 s.
pub const WAIT_LIMIT: std::time::Duration = std::time::Duration::from_secs(240);
