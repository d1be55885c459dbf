//! Callers whose key no marketplace has accepted yet (security.md, rule 15): their limits, their
//! cost, and their effect on other callers.

mod crowd;
mod guesses;
mod orders;
mod removal;
mod streams;

use serde_json::{Value, json};

use crate::support::TestService;
use crate::support::app::{TestApp, TestAppBuilder};
use crate::support::db::require_key_acceptance;

/// A service whose callers are not accepted yet.
async fn service() -> TestService {
    service_with(TestApp::builder()).await
}

async fn service_with(builder: TestAppBuilder) -> TestService {
    let service = TestService::start_with(builder).await;
    require_key_acceptance(service.pool()).await;
    service
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
