//! A key in the wrong field is not echoed; times out of range and ids that change the path are
//! refused.

use serde_json::{Value, json};

use crate::monitors::monitor;
use crate::support::app::{KEY, TestApp};
use crate::support::reply::Reply;
use crate::support::{TestService, fares};
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

/// Every list whose query has a date or a time, and those fields, by the description.
fn dated_lists(description: &Value) -> Vec<(String, Vec<String>)> {
    let paths = description["paths"].as_object().unwrap();
    let mut lists = Vec::new();
    for (path, item) in paths {
        let parameters = item["get"]["parameters"].as_array();
        let dated = parameters.into_iter().flatten().filter(|parameter| {
            let format = parameter["schema"].to_string();
            parameter["in"] == "query" && format.contains(r#""format":"date"#)
        });
        let names: Vec<_> = dated
            .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
            .collect();
        if !names.is_empty() {
            lists.push((path.clone(), names));
        }
    }
    lists
}

#[tokio::test]
async fn a_time_outside_the_years_0_to_9999_is_refused() {
    let service = TestService::start().await;
    let scan = service.submit(&fares(1)).await;
    assert!(!scan.is_empty());
    let monitor = service.create_monitor(&monitor()).await;
    let lists = dated_lists(&service.get("/openapi.json").await);
    println!("{lists:?}");
    let places: Vec<_> = lists.iter().map(|(path, _)| path.as_str()).collect();
    for path in [
        "/v1/alerts",
        "/v1/monitors/{id}/alerts",
        "/v1/history/flights",
        "/v1/history/hotels",
        "/v1/history/flights/series",
        "/v1/usage",
    ] {
        assert!(places.contains(&path), "{path}: {places:?}");
    }
    for (path, fields) in &lists {
        let product = if path.contains("/hotels") {
            "hotel_name=Arts"
        } else {
            "from_airport=TLV&to_airport=LHR"
        };
        let product = if path.contains("/history/") {
            product
        } else {
            ""
        };
        let list = format!("{}?{product}", path.replace("{id}", &monitor));
        for field in fields {
            for time in [
                "-9999-01-01T00:00:00Z",
                "-009999-01-01T00:00:00Z",
                "-004713-01-01T00:00:00Z",
                "-000001-12-31T23:59:59Z",
                "-009999-01-01",
                "%2B010000-01-01T00:00:00Z",
                "99999-01-01",
            ] {
                let answer = service.app.get(&format!("{list}&{field}={time}")).await;
                assert_eq!(
                    answer.kind(),
                    "400 invalid_request",
                    "{list} {field}={time}"
                );
                let message = answer.message();
                let value = time.replace("%2B", "+");
                assert!(
                    message.contains(&format!("`{field}`")) && message.contains(&value),
                    "{list}: {message}"
                );
            }
            for time in [
                "0000-01-01T00:00:00Z",
                "9999-12-30T00:00:00Z",
                "0000-01-01",
                "9999-12-31",
            ] {
                let answer = service.app.get(&format!("{list}&{field}={time}")).await;
                assert!(
                    matches!(answer.status, 200 | 400),
                    "{list} {field}={time}: {}",
                    answer.text()
                );
            }
        }
    }
}

/// A cursor is opaque, and a client may send any text as one.
#[tokio::test]
async fn a_cursor_with_a_time_before_the_year_0_is_refused() {
    let service = TestService::start().await;
    let monitor = service.create_monitor(&monitor()).await;
    let (micros, id) = ("-220000000000000000", "018f0000000070008000000000000001");
    let route = "from_airport=TLV&to_airport=LHR";
    for (path, key) in [
        (
            "/v1/alerts?".to_owned(),
            format!("alerts|{micros}|alr_{id}"),
        ),
        (
            format!("/v1/monitors/{monitor}/alerts?"),
            format!("alerts|{micros}|alr_{id}"),
        ),
        (
            format!("/v1/monitors/{monitor}/slots?"),
            format!("slots|{micros}|schedule"),
        ),
        (
            format!("/v1/history/flights?{route}"),
            format!("flights|{micros}|{id}|1"),
        ),
    ] {
        let cursor =
            |key: &str| -> String { key.bytes().map(|byte| format!("{byte:02x}")).collect() };
        let get = async |key: &str| {
            service
                .app
                .get(&format!("{path}&cursor={}", cursor(key)))
                .await
        };
        let today = get(&key.replace(micros, "1790000000000000")).await;
        assert_eq!(today.status, 200, "{path}: {}", today.text());
        let refused = get(&key).await;
        assert_eq!(refused.kind(), "400 invalid_request", "{path}");
        assert!(refused.message().contains("`cursor`"), "{path}");
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
