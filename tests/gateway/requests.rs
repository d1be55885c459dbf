//! Validation of requests, its order, and the upstream request (gateway.md, rules 4 to 10).

use serde_json::{Value, json};

use super::endpoints::{bodies, body, with};
use crate::support::app::{KEY, TestApp};
use crate::support::reply::Reply;
use farescan::contract::Endpoint;

const ONEWAY: &str = "/v1/flights/oneway";
const ROUNDTRIP: &str = "/v1/flights/roundtrip";

#[tokio::test]
async fn body_is_read_before_key_validation_and_upstream() {
    let app = TestApp::start().await;
    let aliased = "max_stops -> max_departure_stops, max_return_stops";
    let valid = with(Endpoint::FlightsRoundtrip, json!({"max_stops": 1}));
    let invalid = json!({"max_stops": 1});
    let no_key = |body: Value| app.request("POST", ROUNDTRIP).json(&body);
    for (request, kind) in [
        (no_key(invalid.clone()), "401 missing_api_key"),
        (
            no_key(valid.clone()).header("x-api-key", "a b"),
            "401 invalid_api_key",
        ),
        (
            no_key(invalid).header("x-api-key", KEY),
            "400 invalid_request",
        ),
    ] {
        let answer = app.send(request).await;
        assert_eq!(
            (answer.kind().as_str(), answer.header("x-field-aliased")),
            (kind, aliased)
        );
    }
    assert_eq!(app.upstream.count(), 0);
    for status in [200, 401, 403, 429, 500] {
        app.upstream.reply(Reply::status(status).body("[]"));
        assert_eq!(
            app.post(ROUNDTRIP, &valid).await.header("x-field-aliased"),
            aliased,
            "{status}"
        );
    }
    let unreadable = app.send(app.request("POST", ROUNDTRIP).body("{")).await;
    assert_eq!(
        (
            unreadable.kind().as_str(),
            unreadable.header("x-field-aliased")
        ),
        ("401 missing_api_key", "")
    );
}

#[tokio::test]
async fn max_stops_sets_the_leg_limits_not_given() {
    let app = TestApp::start().await;
    let rows = [
        (
            json!({"max_stops": 1}),
            "max_stops -> max_departure_stops, max_return_stops",
            json!({"max_departure_stops": 1, "max_return_stops": 1}),
        ),
        (
            json!({"max_stops": 1, "max_return_stops": 0}),
            "max_stops -> max_departure_stops",
            json!({"max_departure_stops": 1, "max_return_stops": 0}),
        ),
        (
            json!({"max_stops": 1, "max_departure_stops": 2}),
            "max_stops -> max_return_stops",
            json!({"max_departure_stops": 2, "max_return_stops": 1}),
        ),
        (
            json!({"max_stops": 1, "max_departure_stops": 2, "max_return_stops": 0}),
            "",
            json!({"max_departure_stops": 2, "max_return_stops": 0}),
        ),
        (json!({"max_stops": null}), "", json!({})),
    ];
    for (given, header, forwarded) in rows {
        let answer = app
            .post(ROUNDTRIP, &with(Endpoint::FlightsRoundtrip, given.clone()))
            .await;
        assert_eq!(
            (answer.status, answer.header("x-field-aliased")),
            (200, header),
            "{given}"
        );
        assert_eq!(
            app.upstream.calls().last().unwrap().body,
            with(Endpoint::FlightsRoundtrip, forwarded),
            "{given}"
        );
    }
    let native = with(Endpoint::FlightsOneway, json!({"max_stops": 0}));
    let answer = app.post(ONEWAY, &native).await;
    assert_eq!((answer.status, answer.header("x-field-aliased")), (200, ""));
    assert_eq!(app.upstream.calls().last().unwrap().body, native);
}

/// Each kind of validation error (gateway.md, rules 6 to 9) once over HTTP; `crates/contract/src/tests`
/// has the tables of all rules.
#[tokio::test]
async fn an_invalid_request_costs_nothing() {
    let app = TestApp::start().await;
    let rows = [
        (
            Endpoint::FlightsOneway,
            json!({"from_airport": "TLVV", "departure_date": "2027-02-30"}),
            [
                "`from_airport`: found \"TLVV\"",
                "`departure_date`: found \"2027-02-30\"",
            ],
        ),
        (
            Endpoint::FlightsOneway,
            json!({"arrival_time_min": 3}),
            [
                "`arrival_time_min`",
                "did you mean `departure_arrival_time_min`?",
            ],
        ),
        (
            Endpoint::FlightsOneway,
            json!({"limit": "10", "seat_type": 2}),
            ["`limit`: found \"10\"", "`seat_type`: found 2"],
        ),
        (
            Endpoint::FlightsOneway,
            json!({"to_airport": null}),
            ["`to_airport` is missing", "expected"],
        ),
        (
            Endpoint::FlightsOneway,
            json!({"passengers": [1, 5]}),
            ["`passengers[1]`: found 5", "expected"],
        ),
        (
            Endpoint::FlightsRoundtrip,
            json!({"return_date": "2027-01-13"}),
            ["`return_date`", "2027-01-14"],
        ),
        (
            Endpoint::HotelsSearch,
            json!({"location": "Rome"}),
            [
                "`location`",
                "`destination`, `checkin_date`, `checkout_date`",
            ],
        ),
        (
            Endpoint::HotelsSearch,
            json!({"filters": ["spa"]}),
            ["`filters[0]`: found \"spa\"", "`free_cancellation`"],
        ),
        (
            Endpoint::HotelsSearch,
            json!({"checkout_date": "2027-03-01"}),
            ["`checkout_date`", "2027-03-01"],
        ),
        (
            Endpoint::HotelsByName,
            json!({"adults": 0}),
            ["`adults`: found 0", "expected"],
        ),
        (
            Endpoint::HotelsRooms,
            json!({"hotel_booking_id": "../etc/passwd"}),
            ["`hotel_booking_id`", "expected"],
        ),
        (
            Endpoint::HotelsResolve,
            json!({"hotel_name": ""}),
            ["`hotel_name`", "expected"],
        ),
    ];
    for (endpoint, fields, expected) in rows {
        let answer = app
            .post(&format!("/v1/{endpoint}"), &with(endpoint, fields.clone()))
            .await;
        assert_eq!(answer.kind(), "400 invalid_request", "{fields}");
        for part in expected {
            assert!(
                answer.message().contains(part),
                "{part}: {}",
                answer.message()
            );
        }
    }
    assert_eq!(app.upstream.count(), 0);
}

#[tokio::test]
async fn values_are_forwarded_in_their_spelling() {
    let app = TestApp::start().await;
    let rows = [
        (
            Endpoint::FlightsOneway,
            json!({"from_airport": "tlv", "currency": "eur"}),
            json!({"from_airport": "TLV", "currency": "eur"}),
        ),
        (
            Endpoint::FlightsOneway,
            json!({"departure_time_min": 22, "departure_time_max": 5}),
            json!({"departure_time_min": 22, "departure_time_max": 5}),
        ),
        (
            Endpoint::FlightsOneway,
            json!({"departure_date": "2020-01-01"}),
            json!({"departure_date": "2020-01-01"}),
        ),
        // An integer in JSON Schema.
        (
            Endpoint::FlightsOneway,
            json!({"limit": 20.0, "seat_type": 3.0, "passengers": [1.0, 2]}),
            json!({"limit": 20, "seat_type": 3, "passengers": [1, 2]}),
        ),
        (
            Endpoint::HotelsSearch,
            json!({"proxy_country": "De", "children": null}),
            json!({"proxy_country": "De"}),
        ),
    ];
    for (endpoint, given, forwarded) in rows {
        app.post(&format!("/v1/{endpoint}"), &with(endpoint, given))
            .await
            .expect(200);
        assert_eq!(
            app.upstream.calls().last().unwrap().body,
            with(endpoint, forwarded)
        );
    }
}

/// gateway.md, rule 28: exactly these 24 values.
const FILTERS: [&str; 24] = [
    "free_cancellation",
    "breakfast_included",
    "breakfast_and_lunch",
    "breakfast_and_dinner",
    "all_meals_included",
    "all_inclusive",
    "free_wifi",
    "swimming_pool",
    "gym",
    "parking",
    "front_desk_24h",
    "review_score_7",
    "review_score_8",
    "review_score_9",
    "private_bathroom",
    "air_conditioning",
    "stars_3",
    "stars_4",
    "stars_5",
    "pets_allowed",
    "adults_only",
    "sauna",
    "very_good_breakfast",
    "accepts_online_payment",
];

#[tokio::test]
async fn the_24_hotel_filters_are_accepted_and_no_other() {
    let app = TestApp::start().await;
    let all = with(Endpoint::HotelsSearch, json!({"filters": FILTERS}));
    assert_eq!(app.post("/v1/hotels/search", &all).await.status, 200);
    assert_eq!(app.upstream.calls()[0].body, all);
    let answer = app
        .post(
            "/v1/hotels/search",
            &with(Endpoint::HotelsSearch, json!({"filters": ["Sauna"]})),
        )
        .await;
    let listed: Vec<_> = answer
        .message()
        .split("one of ")
        .nth(1)
        .unwrap()
        .split(", ")
        .map(|word| word.trim_matches('`').to_owned())
        .collect();
    assert_eq!(listed, FILTERS);
}

#[tokio::test]
async fn bodies_are_bounded_json_objects_of_any_content_type() {
    let app = TestApp::start().await;
    let padded = |bytes: usize| {
        let body = body(Endpoint::FlightsOneway).to_string();
        format!("{body}{}", " ".repeat(bytes - body.len()))
    };
    let object = body(Endpoint::FlightsOneway).to_string();
    let rows = [
        (padded(64 * 1024), "application/json", "200"),
        (
            padded(64 * 1024 + 1),
            "application/json",
            "413 payload_too_large",
        ),
        (object.clone(), "text/plain", "200"),
        (object, "", "200"),
        ("[]".into(), "application/json", "400 invalid_request"),
        ("not json".into(), "application/json", "400 invalid_request"),
        (String::new(), "application/json", "400 invalid_request"),
        ("{} {}".into(), "application/json", "400 invalid_request"),
        (
            format!("{{\"a\": {}{}}}", "[".repeat(64), "]".repeat(64)),
            "application/json",
            "400 invalid_request",
        ),
    ];
    for (body, content_type, kind) in rows {
        let start: String = body.chars().take(20).collect();
        let mut request = app
            .request("POST", ONEWAY)
            .header("x-api-key", KEY)
            .body(body);
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        assert_eq!(
            app.send(request).await.kind(),
            kind,
            "{start} {content_type}"
        );
    }
}

#[tokio::test]
async fn wrong_paths_and_methods_are_specified_errors() {
    let app = TestApp::start().await;
    let rows = [
        ("GET", "/v1/nothing", "404 not_found", ""),
        ("POST", "/v1", "404 not_found", ""),
        ("POST", "/", "405 method_not_allowed", "GET,HEAD"),
        ("POST", "/v1/flights/oneway/", "404 not_found", ""),
        ("GET", ONEWAY, "405 method_not_allowed", "POST"),
        (
            "DELETE",
            "/v1/hotels/search",
            "405 method_not_allowed",
            "POST",
        ),
        ("POST", "/v1/verify", "405 method_not_allowed", "GET,HEAD"),
        ("PUT", "/healthz", "405 method_not_allowed", "GET,HEAD"),
    ];
    let mut ids = std::collections::HashSet::new();
    for (method, path, kind, allow) in rows {
        let answer = app
            .send(app.request(method, path).header("x-api-key", KEY))
            .await;
        assert_eq!(
            (answer.kind().as_str(), answer.header("allow")),
            (kind, allow),
            "{method} {path}"
        );
        assert!(
            ids.insert(answer.header("x-request-id").to_owned()),
            "each request has its own id"
        );
    }
    for (endpoint, _, body) in bodies() {
        assert!(
            ids.insert(
                app.post(&format!("/v1/{endpoint}"), &body)
                    .await
                    .header("x-request-id")
                    .to_owned()
            )
        );
    }
    assert!(!ids.contains(""));
}
