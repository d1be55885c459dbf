//! A sandbox that answers at once.

use farescan::sandbox::{self, SandboxOptions};
use farescan::upstream::UpstreamConfig;
use jiff::civil::Date;
use tokio::net::TcpListener;

/// Client settings of a new sandbox. It ends with the test's runtime.
pub async fn start_sandbox(today: Option<Date>) -> UpstreamConfig {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: reqwest::Url = format!("http://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let options = SandboxOptions {
        seed: 1,
        latency_factor: 0.0,
        today,
        ..SandboxOptions::default()
    };
    tokio::spawn(sandbox::serve(listener, options, std::future::pending()));
    UpstreamConfig::at(url.clone(), url)
}
