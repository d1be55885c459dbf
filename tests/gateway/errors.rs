//! The specification's section 7, row by row: status, condition, error type.

use serde_json::json;

use super::endpoints::{bodies, body};
use crate::support::app::{KEY, TestApp};
use crate::support::reply::Reply;
use farescan::contract::Endpoint;

#[tokio::test]
async fn rows_that_apply_to_all_post_endpoints() {
    let app = TestApp::start().await;
    for (endpoint, _, body) in bodies() {
        let path = format!("/v1/{endpoint}");
        let unknown = |mut body: serde_json::Value| {
            body["no_such_field"] = json!(1);
            body
        };
        assert_eq!(app.post(&path, &json!([])).await.kind(), "400 invalid_request", "{path}: not a JSON object");
        assert_eq!(
            app.post(&path, &unknown(body.clone())).await.kind(),
            "400 invalid_request",
            "{path}: a field fails validation"
        );
        let keyless = app.request("POST", &path).json(&body);
        assert_eq!(app.send(keyless).await.kind(), "401 missing_api_key", "{path}");
        let malformed = app.request("POST", &path).json(&body).header("x-api-key", "a b");
        assert_eq!(app.send(malformed).await.kind(), "401 invalid_api_key", "{path}");
        assert_eq!(app.upstream.count(), 0, "none of these reaches the marketplace");
    }
    for (endpoint, _, body) in bodies() {
        let path = format!("/v1/{endpoint}");
        app.upstream.on(endpoint).reply(Reply::status(403).with_json(json!({"message": "You are not subscribed to this API."})));
        let answer = app.post(&path, &body).await;
        assert_eq!(answer.kind(), "403 not_subscribed", "{path}");
        assert!(answer.message().contains(&format!("the {} API", endpoint.api())), "{}", answer.message());
        app.upstream.on(endpoint).reply(Reply::status(429).body("slow down"));
        let before = app.upstream.count();
        let answer = app.post(&path, &body).await;
        assert_eq!(
            (answer.status, answer.text().as_str(), app.upstream.count()),
            (429, "slow down", before + 1),
            "{path}: unchanged, once"
        );
    }
}

#[tokio::test]
async fn rows_of_single_endpoints() {
    let app = TestApp::start().await;
    let location = json!({"location": "Rome", "checkin_date": "2027-03-01", "checkout_date": "2027-03-03"});
    let answer = app.post("/v1/hotels/search", &location).await;
    assert_eq!(answer.kind(), "400 invalid_request");
    for required in ["destination", "checkin_date", "checkout_date"] {
        assert!(answer.message().contains(required), "{}", answer.message());
    }
    app.upstream.on(Endpoint::HotelsSearch).reply(Reply::status(404).with_json(json!({"detail": "No properties matched"})));
    let answer = app.post("/v1/hotels/search", &body(Endpoint::HotelsSearch)).await;
    assert_eq!((answer.kind().as_str(), answer.message().as_str()), ("404 not_found", "No properties matched"));
    for (endpoint, path) in
        [(Endpoint::FlightsOneway, "/v1/flights/oneway"), (Endpoint::FlightsRoundtrip, "/v1/flights/roundtrip")]
    {
        app.upstream.on(endpoint).reply(Reply::search_incomplete("blocked_page"));
        let mut strict = body(endpoint);
        strict["strict"] = json!(true);
        let answer = app.post(path, &strict).await;
        assert_eq!(
            (answer.kind().as_str(), &answer.json()["error"]["reason"]),
            ("503 search_incomplete", &json!("blocked_page"))
        );
    }
    app.upstream.on_any().reply(Reply::status(403));
    let unsubscribed = app.send(app.request("GET", "/v1/verify").header("x-api-key", KEY)).await;
    assert_eq!((unsubscribed.status, &unsubscribed.json()["valid"]), (401, &json!(false)));
}
