//! Callers whose key no marketplace has accepted yet (docs/decisions/0029): what they may do, what they cost, and that nobody else pays.

mod crowd;
mod guesses;
mod orders;
mod removal;
mod streams;

use serde_json::{Value, json};

use crate::control::house::House;
use crate::support::app::{Answer, TestApp, TestAppBuilder};
use crate::support::db::strangers;

/// A house whose callers are strangers until the marketplace accepts them.
async fn house() -> House {
    house_with(TestApp::builder()).await
}

async fn house_with(service: TestAppBuilder) -> House {
    let house = House::with(service).await;
    strangers(house.db.pool()).await;
    house
}

async fn send(app: &TestApp, key: &str, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let request = app.request(method, path).header("x-api-key", key);
    app.send(
        body.iter()
            .fold(request, |request, body| request.json(body)),
    )
    .await
}

/// A monitor that tells a webhook.
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
