//! Callers whose key no marketplace has accepted yet (security.md, rule 15): their limits, their
//! cost, and their effect on other callers.

mod crowd;
mod guesses;
mod orders;
mod removal;
mod streams;

use serde_json::{Value, json};

use crate::control::test_service::TestService;
use crate::support::app::{HttpResponse, TestApp, TestAppBuilder};
use crate::support::db::require_key_acceptance;

/// A service whose callers are not accepted yet.
async fn service() -> TestService {
    service_with(TestApp::builder()).await
}

async fn service_with(builder: TestAppBuilder) -> TestService {
    let service = TestService::start_with(builder).await;
    require_key_acceptance(service.db.pool()).await;
    service
}

async fn send(
    app: &TestApp,
    key: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> HttpResponse {
    let request = app.request(method, path).header("x-api-key", key);
    app.send(
        body.iter()
            .fold(request, |request, body| request.json(body)),
    )
    .await
}

/// The body of a monitor.
fn monitor() -> Value {
    json!({
        "name": "fares",
        "schedule": {"cron": "0 6 * * *", "timezone": "UTC"},
        "scan": {
            "endpoint": "flights/oneway",
            "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": {"from": "+30d", "to": "+33d"}}
        }
    })
}
