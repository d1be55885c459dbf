//! gateway.md, rule 36, row by row: status, condition, error type.

use serde_json::json;

use super::endpoints::{bodies, body};
use crate::support::app::{KEY, TestApp};
use crate::support::array;
use crate::support::reply::Reply;
use farescan::contract::Endpoint;

#[tokio::test]
async fn errors_common_to_all_post_endpoints() {
    let app = TestApp::start().await;
    for (endpoint, _, body) in bodies() {
        let path = format!("/v1/{endpoint}");
        let unknown = |mut body: serde_json::Value| {
            body["no_such_field"] = json!(1);
            body
        };
        assert_eq!(
            app.post(&path, &json!([])).await.kind(),
            "400 invalid_request",
            "{path}: not a JSON object"
        );
        assert_eq!(
            app.post(&path, &unknown(body.clone())).await.kind(),
            "400 invalid_request",
            "{path}: a field fails validation"
        );
        let keyless = app.request("POST", &path).json(&body);
        assert_eq!(
            app.send(keyless).await.kind(),
            "401 missing_api_key",
            "{path}"
        );
        let malformed = app
            .request("POST", &path)
            .json(&body)
            .header("x-api-key", "a b");
        assert_eq!(
            app.send(malformed).await.kind(),
            "401 invalid_api_key",
            "{path}"
        );
        assert_eq!(
            app.upstream.count(),
            0,
            "none of these reaches the marketplace"
        );
    }
    for (endpoint, _, body) in bodies() {
        let path = format!("/v1/{endpoint}");
        app.upstream.on(endpoint).reply(
            Reply::status(403).with_json(json!({"message": "You are not subscribed to this API."})),
        );
        let answer = app.post(&path, &body).await;
        assert_eq!(answer.kind(), "403 not_subscribed", "{path}");
        assert!(
            answer
                .message()
                .contains(&format!("the {} API", endpoint.api())),
            "{}",
            answer.message()
        );
        app.upstream
            .on(endpoint)
            .reply(Reply::status(429).body("slow down"));
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
async fn errors_of_single_endpoints() {
    let app = TestApp::start().await;
    let location =
        json!({"location": "Rome", "checkin_date": "2027-03-01", "checkout_date": "2027-03-03"});
    let answer = app.post("/v1/hotels/search", &location).await;
    assert_eq!(answer.kind(), "400 invalid_request");
    for required in ["destination", "checkin_date", "checkout_date"] {
        assert!(answer.message().contains(required), "{}", answer.message());
    }
    app.upstream
        .on(Endpoint::HotelsSearch)
        .reply(Reply::status(404).with_json(json!({"detail": "No properties matched"})));
    let answer = app
        .post("/v1/hotels/search", &body(Endpoint::HotelsSearch))
        .await;
    assert_eq!(
        (answer.kind().as_str(), answer.message().as_str()),
        ("404 not_found", "No properties matched")
    );
    for (endpoint, path) in [
        (Endpoint::FlightsOneway, "/v1/flights/oneway"),
        (Endpoint::FlightsRoundtrip, "/v1/flights/roundtrip"),
    ] {
        app.upstream
            .on(endpoint)
            .reply(Reply::search_incomplete("blocked_page"));
        let mut strict = body(endpoint);
        strict["strict"] = json!(true);
        let answer = app.post(path, &strict).await;
        assert_eq!(
            (answer.kind().as_str(), &answer.json()["error"]["reason"]),
            ("503 search_incomplete", &json!("blocked_page"))
        );
    }
    app.upstream.reply(Reply::status(403));
    let unsubscribed = app
        .send(app.request("GET", "/v1/verify").header("x-api-key", KEY))
        .await;
    assert_eq!(
        (unsubscribed.status, &unsubscribed.json()["valid"]),
        (401, &json!(false))
    );
}

/// The message is for people, the details for programs; both have the same content.
#[tokio::test]
async fn an_error_names_each_field_and_its_request() {
    let app = TestApp::start().await;
    let wrong = json!({"from_airport": "TLVV", "departure_date": "2027-02-30", "limit": 2.5});
    let answer = app.post("/v1/flights/oneway", &wrong).await;
    let error = answer.json()["error"].clone();
    let date = "a date that exists, as YYYY-MM-DD";
    assert_eq!(error["details"][0]["field"], "from_airport");
    assert_eq!(
        error["details"][1],
        json!({"field": "to_airport", "found": null, "expected": error["details"][1]["expected"]})
    );
    assert_eq!(
        error["details"][2],
        json!({"field": "departure_date", "found": "\"2027-02-30\"", "expected": date})
    );
    assert_eq!(error["details"][3]["found"], "2.5");
    assert_eq!(array(&error["details"]).len(), 4, "{error}");
    for detail in array(&error["details"]) {
        let expected = format!("expected {}", detail["expected"].as_str().unwrap());
        assert!(
            answer.message().contains(&expected),
            "{expected}: {}",
            answer.message()
        );
    }
    let keyless = app
        .send(app.request("POST", "/v1/flights/oneway").json(&wrong))
        .await;
    let nowhere = app.send(app.request("GET", "/v1/nowhere")).await;
    let verify = app
        .send(
            app.request("GET", "/v1/verify?api=trains")
                .header("x-api-key", KEY),
        )
        .await;
    assert_eq!(
        verify.json()["error"]["details"][0]["field"],
        "api",
        "{}",
        verify.text()
    );
    for answer in [&answer, &keyless, &nowhere, &verify] {
        let error = answer.json()["error"].clone();
        assert!(error["details"].is_array(), "{error}");
        assert_eq!(
            error["request_id"],
            answer.header("x-request-id"),
            "{error}"
        );
    }
    assert_eq!(nowhere.json()["error"]["details"], json!([]));
}
