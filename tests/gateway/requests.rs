//! What a request may hold, in which order it is looked at, and what goes upstream of it (contract 4 to 10).

use serde_json::{Value, json};

use super::endpoints::{bodies, body, with};
use crate::support::app::{KEY, TestApp};
use crate::support::reply::Reply;
use farescan::contract::Endpoint;

const ONEWAY: &str = "/v1/flights/oneway";
const ROUNDTRIP: &str = "/v1/flights/roundtrip";

#[tokio::test]
async fn contract_4_body_then_key_then_validation_then_upstream() {
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
        app.upstream
            .on_any()
            .reply(Reply::status(status).body("[]"));
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
async fn contract_5_alias() {
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

/// Every kind of fault of contract 6 to 9, once over the wire; the rules themselves have their tables at `contract`.
#[tokio::test]
async fn contract_6_to_9_a_request_that_cannot_be_valid_spends_nothing() {
    let app = TestApp::start().await;
    let rows = [
        (
            Endpoint::FlightsOneway,
            json!({"from_airport": "TLVV", "departure_date": "2027-02-30"}),
            [
                "`from_airport` holds \"TLVV\"",
                "`departure_date` holds \"2027-02-30\"",
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
            ["`limit` holds \"10\"", "`seat_type` holds 2"],
        ),
        (
            Endpoint::FlightsOneway,
            json!({"to_airport": null}),
            ["`to_airport` is missing", "allowed"],
        ),
        (
            Endpoint::FlightsOneway,
            json!({"passengers": [1, 5]}),
            ["`passengers[1]` holds 5", "allowed"],
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
            ["`filters[0]` holds \"spa\"", "`free_cancellation`"],
        ),
        (
            Endpoint::HotelsSearch,
            json!({"checkout_date": "2027-03-01"}),
            ["`checkout_date`", "2027-03-01"],
        ),
        (
            Endpoint::HotelsByName,
            json!({"adults": 0}),
            ["`adults` holds 0", "allowed"],
        ),
        (
            Endpoint::HotelsRooms,
            json!({"hotel_booking_id": "../etc/passwd"}),
            ["`hotel_booking_id`", "allowed"],
        ),
        (
            Endpoint::HotelsResolve,
            json!({"hotel_name": ""}),
            ["`hotel_name`", "allowed"],
        ),
    ];
    for (endpoint, fields, says) in rows {
        let answer = app
            .post(&format!("/v1/{endpoint}"), &with(endpoint, fields.clone()))
            .await;
        assert_eq!(answer.kind(), "400 invalid_request", "{fields}");
        for part in says {
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
async fn contract_8_what_is_forwarded_in_which_spelling() {
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
        // An integer, as JSON Schema has it.
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
        let answer = app
            .post(&format!("/v1/{endpoint}"), &with(endpoint, given))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(
            app.upstream.calls().last().unwrap().body,
            with(endpoint, forwarded)
        );
    }
}

/// Specification 2.6, written out: the 24 values, no more and no fewer.
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
async fn the_24_filters_of_the_specification() {
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
async fn contract_10_bodies() {
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
async fn contract_10_paths_methods_and_request_ids() {
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
