//! `Cache-Control` on the five searches: an answer that its caller has paid for may answer again
//! (gateway.md, rules 53 to 58).

mod by_setting;
mod joined;
mod stored;
mod unavailable;

use farescan::contract::Endpoint;
use serde_json::Value;

use crate::support::app::{HttpResponse, KEY, TestApp};
use crate::support::{TestService, wait_until};

/// Sends a search with these directives.
async fn search(app: &TestApp, directives: &str, endpoint: Endpoint, body: &Value) -> HttpResponse {
    search_as(app, KEY, directives, endpoint, body).await
}

async fn search_as(
    app: &TestApp,
    key: &str,
    directives: &str,
    endpoint: Endpoint,
    body: &Value,
) -> HttpResponse {
    let request = app
        .request("POST", &format!("/v1/{endpoint}"))
        .header("x-api-key", key)
        .header("cache-control", directives);
    app.send(request.json(body)).await
}

/// Waits until this many synchronous searches are stored.
async fn wait_for_records(service: &TestService, count: i64) {
    wait_until(&format!("{count} searches are stored"), async || {
        records(service).await == count
    })
    .await;
}

async fn records(service: &TestService) -> i64 {
    value!(
        service.pool(),
        "select count(*) from scan_items where state in ('done', 'failed')"
    )
}
