//! A key in the wrong field is not echoed; times out of range and ids that change the path are
//! refused.

use serde_json::{Value, json};

use crate::support::TestService;
use crate::support::app::{KEY, TestApp};
use crate::support::reply::Reply;
use farescan::contract::Endpoint;

const SECRET: &str = "hunter2-hunter2";

#[tokio::test]
async fn a_key_in_a_wrong_field_is_not_echoed() {
    let service = TestService::start().await;
    let app = &service.app;
    let flight = |name: &str, value: Value| {
        let mut body =
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-02"});
        body[name] = value;
        body
    };
    let url =
        |url: &str| json!({"name": "x", "schedule": {"cron": "0 6 * * *"}, "webhook_url": url});
    let mut messages = Vec::new();
    for name in [
        "myApiKey",
        "x-api-key",
        "access_token",
        "client_secret",
        "Authorization",
        "PASSWORD",
        "keys",
    ] {
        for value in [json!(SECRET), json!([SECRET]), json!({"value": SECRET})] {
            messages.push(
                app.post("/v1/flights/oneway", &flight(name, value))
                    .await
                    .message(),
            );
        }
        messages.push(
            app.post(
                "/v1/flights/oneway",
                &flight("limit", json!({name: SECRET})),
            )
            .await
            .message(),
        );
        messages.push(
            app.post(
                "/v1/scans",
                &json!({"endpoint": "flights/oneway", "request": flight(name, json!(SECRET))}),
            )
            .await
            .message(),
        );
        messages.push(
            app.get(&format!("/v1/scans?{name}={SECRET}"))
                .await
                .message(),
        );
        messages.push(
            app.get(&format!("/v1/scans?{name}={SECRET}&{name}={SECRET}"))
                .await
                .message(),
        );
        let broken = format!("{{\"{name}\": \"{SECRET}\"");
        let broken = app
            .request("POST", "/v1/flights/oneway")
            .header("x-api-key", KEY)
            .body(broken);
        messages.push(app.send(broken).await.message());
        let twice = format!("{{\"{name}\": \"{SECRET}\", \"{name}\": \"other\"}}");
        let twice = app
            .request("POST", "/v1/flights/oneway")
            .header("x-api-key", KEY)
            .body(twice);
        messages.push(app.send(twice).await.message());
        messages.push(
            app.post(
                "/v1/flights/oneway",
                &flight("from_airport", json!(format!("?{name}={SECRET}"))),
            )
            .await
            .message(),
        );
    }
    for receiver in [
        format!("https://user:{SECRET}@hooks.example.com/"),
        format!("https://{SECRET}@hooks.example.com/"),
        format!("user:{SECRET}@hooks.example.com"),
        format!("ftp://hooks.example.com/{SECRET}"),
        format!("https://hooks.example.com/{SECRET} "),
    ] {
        messages.push(app.post("/v1/monitors", &url(&receiver)).await.message());
    }
    for message in &messages {
        assert!(!message.contains(SECRET), "{message}");
        let names_the_field = message.contains(": found") || message.contains("unknown field `");
        assert!(names_the_field, "{message}");
    }
    let harmless = app
        .post("/v1/flights/oneway", &flight("limit", json!("many")))
        .await
        .message();
    assert!(
        harmless.contains("`limit`: found \"many\""),
        "other values are shown: {harmless}"
    );
}

#[tokio::test]
async fn a_time_outside_the_years_0_to_9999_is_refused() {
    let service = TestService::start().await;
    let history = "from_airport=TLV&to_airport=LHR";
    for (path, field) in [
        ("/v1/history/flights", "since"),
        ("/v1/history/flights", "until"),
        ("/v1/usage", "since"),
    ] {
        for time in [
            "-009999-01-01T00:00:00Z",
            "-000001-12-31T23:59:59Z",
            "-009999-01-01",
            "%2B010000-01-01T00:00:00Z",
            "99999-01-01",
        ] {
            let query = if path.starts_with("/v1/history") {
                history
            } else {
                ""
            };
            let answer = service
                .app
                .get(&format!("{path}?{query}&{field}={time}"))
                .await;
            assert_eq!(
                answer.kind(),
                "400 invalid_request",
                "{path} {field}={time}"
            );
        }
    }
    for time in ["0000-01-01T00:00:00Z", "9999-12-30T00:00:00Z"] {
        for field in ["since", "until"] {
            let answer = service
                .app
                .get(&format!("/v1/history/flights?{history}&{field}={time}"))
                .await;
            assert_eq!(answer.status, 200, "{field}={time}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn a_hotel_id_cannot_lead_to_another_path_or_host() {
    let app = TestApp::start().await;
    app.upstream
        .on(Endpoint::HotelsRooms)
        .reply(Reply::json(json!({"rooms": []})));
    let ask = async |id: &str| {
        let body = json!({"hotel_booking_id": id, "checkin_date": "2027-03-01", "checkout_date": "2027-03-03"});
        app.post("/v1/hotels/rooms", &body).await
    };
    for id in [
        "%2e%2e/x",
        "il/%2e%2e",
        "//host/x",
        "/il/one",
        "il//one",
        "a@b/c",
        "user:pw@host/x",
        "http:/x",
        "../x",
        "il/..",
        "il/one?x",
        "il/#",
    ] {
        assert_eq!(ask(id).await.kind(), "400 invalid_request", "{id}");
    }
    assert_eq!(app.upstream.count(), 0);
    for id in [
        "il/one",
        "fr/grand-hotel",
        "us/the-o_ne.de",
        "gb/x~y!(z)",
        "de/a/b",
    ] {
        assert_eq!(ask(id).await.status, 200, "{id}");
    }
}

#[tokio::test]
async fn marketplace_headers_are_bounded() {
    let app = TestApp::start().await;
    let mut reply = Reply::json(json!([]))
        .header("x-search-status", "empty")
        .header("x-search-note", &"n".repeat(5_000));
    reply = reply.header("x-plan-note", &"n".repeat(5_000));
    for number in 0..40 {
        reply = reply
            .header(&format!("x-search-a{number}"), "1")
            .header(&format!("x-plan-a{number}"), "1");
    }
    app.upstream.on(Endpoint::FlightsOneway).reply(reply);
    let body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14"});
    let answer = app.post("/v1/flights/oneway", &body).await;
    assert_eq!(
        (answer.status, answer.header("x-search-status")),
        (200, "empty")
    );
    for prefix in ["x-search-", "x-plan-"] {
        let came = answer
            .headers
            .iter()
            .filter(|(name, _)| name.as_str().starts_with(prefix));
        let sizes: Vec<_> = came
            .map(|(name, value)| name.as_str().len() + value.len())
            .collect();
        // The service adds one: the count of results.
        assert!(
            sizes.len() <= 33 && sizes.iter().all(|size| *size <= 1_024),
            "{prefix}: {sizes:?}"
        );
    }
}
