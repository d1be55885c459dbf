//! The endpoints of gateway.md, rule 22: the upstream request and the answer.

use serde_json::{Value, json};

use crate::support::app::{KEY, TestApp};
use farescan::contract::Endpoint;

/// Every POST endpoint with its native path and a valid body.
pub fn bodies() -> [(Endpoint, &'static str, Value); 6] {
    let stay = |mut body: Value| {
        body["checkin_date"] = json!("2027-03-01");
        body["checkout_date"] = json!("2027-03-03");
        body
    };
    let flight =
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14"});
    let mut pair = flight.clone();
    pair["return_date"] = json!("2027-01-21");
    [
        (
            Endpoint::FlightsOneway,
            "/api/google_flights/oneway/v1",
            flight,
        ),
        (
            Endpoint::FlightsRoundtrip,
            "/api/google_flights/roundtrip/v1",
            pair,
        ),
        (
            Endpoint::HotelsSearch,
            "/search",
            stay(json!({"destination": "Rome"})),
        ),
        (
            Endpoint::HotelsByName,
            "/hotel_by_name",
            stay(json!({"hotel_name": "Hotel One"})),
        ),
        (
            Endpoint::HotelsRooms,
            "/hotel",
            stay(json!({"hotel_booking_id": "il/one"})),
        ),
        (
            Endpoint::HotelsResolve,
            "/resolve",
            json!({"hotel_name": "Hotel One"}),
        ),
    ]
}

/// The body of one endpoint.
pub fn body(endpoint: Endpoint) -> Value {
    bodies()
        .into_iter()
        .find_map(|(of, _, body)| (of == endpoint).then_some(body))
        .unwrap()
}

/// The same body with other fields.
#[expect(
    clippy::needless_pass_by_value,
    reason = "tests write json!(…) in place"
)]
pub fn with(endpoint: Endpoint, fields: Value) -> Value {
    let mut body = body(endpoint);
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[tokio::test]
async fn each_endpoint_calls_its_native_path_once() {
    let app = TestApp::start().await;
    for (endpoint, native, body) in bodies() {
        let before = app.upstream.count();
        let answer = app.post(&format!("/v1/{endpoint}"), &body).await;
        assert_eq!(answer.status, 200, "{endpoint}: {}", answer.text());
        let calls = app.upstream.calls();
        assert_eq!(calls.len(), before + 1, "{endpoint}");
        let call = calls.last().unwrap();
        assert_eq!(
            (call.path.as_str(), &call.body, call.key.as_str()),
            (native, &body, KEY)
        );
        assert_eq!(answer.header("x-search-results"), "1", "{endpoint}");
        assert_eq!(answer.header("x-upstream-requests"), "1", "{endpoint}");
    }
}
