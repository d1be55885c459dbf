//! Paths, validation and ordinary answers.

use std::time::{Duration, Instant};

use super::*;
use crate::magic_values::MAGIC_VALUES;
use crate::plans::KEYS;

const KEY: &str = "sandbox-unlimited";

#[tokio::test]
async fn every_native_path_has_its_answer_format() {
    let sandbox = TestSandbox::open().await;
    for (path, body, fields) in [
        (
            ONEWAY,
            oneway("LHR"),
            "price_range_in_relation_to_other_periods price_insights_low price_insights_high \
            from_airport to_airport departure_date price price_as_number duration duration_seconds buy_link airline \
            stops stops_info departure_description arrival_description",
        ),
        (
            ROUNDTRIP,
            roundtrip("LHR"),
            "price_range_in_relation_to_other_periods price_insights_low \
            price_insights_high from_airport to_airport departure_date return_date total_price \
            total_price_as_number total_duration_seconds total_stops buy_link \
            departure_flight_departure_description departure_flight_arrival_description departure_flight_airline \
            departure_flight_duration departure_flight_stops return_flight_departure_description \
            return_flight_arrival_description return_flight_airline return_flight_duration return_flight_stops",
        ),
        (
            SEARCH,
            hotel(SEARCH, "London"),
            "destination checkin_date checkout_date applied_filters budget_per_night \
            properties",
        ),
        (
            BY_NAME,
            hotel(BY_NAME, "The Savoy"),
            "name available price_string price review_score review_count \
            room_type image_url link nights adults children",
        ),
        (
            ROOMS,
            hotel(ROOMS, "the savoy"),
            "hotel_booking_id checkin_date checkout_date booking_url rooms",
        ),
        (
            RESOLVE,
            hotel(RESOLVE, "The Savoy"),
            "hotel_name hotel_booking_id matched_name",
        ),
    ] {
        let answer = sandbox.call(KEY, path, &body).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let json = answer.json();
        let object = json.as_array().map_or(&json, |rows| &rows[0]);
        let mut seen: Vec<&str> = object
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        let mut expected: Vec<&str> = fields.split_whitespace().collect();
        seen.sort_unstable();
        expected.sort_unstable();
        assert_eq!(seen, expected, "{path}");
    }
    sandbox.close().await;
}

#[tokio::test]
async fn hotel_rows_have_their_documented_fields() {
    let sandbox = TestSandbox::open().await;
    let mut body = hotel(SEARCH, "Lisbon");
    body["filters"] = json!(["free_wifi", "review_score_7"]);
    body["budget_per_night"] = json!(250);
    body["children"] = json!(1);
    let answer = sandbox.call(KEY, SEARCH, &body).await.json();
    assert_eq!(answer["applied_filters"], body["filters"]);
    assert_eq!(answer["budget_per_night"], json!(250.0));
    let properties = answer["properties"].as_array().expect("properties");
    assert!((5..=50).contains(&properties.len()));
    for property in properties {
        assert!(
            property["price"]
                .as_i64()
                .is_some_and(|price| price <= 3 * 250)
        );
        assert_eq!(
            (
                &property["nights"],
                &property["adults"],
                &property["children"]
            ),
            (&json!(3), &json!(2), &json!(1))
        );
        let link = property["link"].as_str().expect("a link");
        assert!(
            link.contains("checkin=2027-03-02&checkout=2027-03-05&group_adults=2&group_children=1"),
            "{link}"
        );
        for field in ["name", "price_string", "room_type", "location"] {
            assert!(property[field].is_string(), "{field}");
        }
    }
    let rooms = sandbox
        .call(KEY, ROOMS, &hotel(ROOMS, "The Savoy"))
        .await
        .json();
    for room in rooms["rooms"].as_array().expect("rooms") {
        assert!(
            room["room_type"].is_string()
                && room["room_economy"].is_string()
                && room["price"].is_string()
        );
        assert!(room["guests"].is_i64() && room["price_as_number"].is_i64());
    }
    sandbox.close().await;
}

#[tokio::test]
async fn name_id_rooms_and_listing_agree() {
    let sandbox = TestSandbox::open().await;
    let listed = sandbox
        .call(KEY, SEARCH, &hotel(SEARCH, "Lisbon"))
        .await
        .json();
    let properties = listed["properties"].as_array().expect("properties");
    assert!(properties.len() > 20);
    for property in properties.iter().take(8) {
        let name = property["name"].as_str().expect("a name");
        let mut body = hotel(BY_NAME, name);
        let by_name = sandbox.call(KEY, BY_NAME, &body).await.json();
        assert_eq!(
            (&by_name["name"], &by_name["price"]),
            (&property["name"], &property["price"])
        );
        let resolved = sandbox
            .call(KEY, RESOLVE, &json!({"hotel_name": name.to_lowercase()}))
            .await
            .json();
        assert_eq!(resolved["matched_name"], property["name"]);
        body = hotel(ROOMS, "");
        body["hotel_booking_id"] = resolved["hotel_booking_id"].clone();
        let rooms = sandbox.call(KEY, ROOMS, &body).await.json();
        assert_eq!(
            rooms["rooms"][0]["price_as_number"], property["price"],
            "{name}"
        );
    }
    sandbox.close().await;
}

#[tokio::test]
async fn the_area_decides_whether_a_named_hotel_is_found() {
    let sandbox = TestSandbox::open().await;
    for (name, area, status) in [
        ("The Grand London", "London", 200),
        ("The Grand London", "Mayfair, London", 200),
        ("The Grand London", "Mayfair", 200),
        ("The Grand London", "Paris", 404),
        ("The Savoy", "London", 200),
        ("---", "London", 404),
    ] {
        let mut body = hotel(BY_NAME, name);
        body["area"] = json!(area);
        assert_eq!(
            sandbox.call(KEY, BY_NAME, &body).await.status,
            status,
            "{name}, {area}"
        );
    }
    sandbox.close().await;
}

#[tokio::test]
async fn markets_see_different_prices_of_the_same_hotel() {
    let sandbox = TestSandbox::open().await;
    let mut prices = std::collections::HashSet::new();
    for country in ["us", "de", "jp", "in", "gb"] {
        let mut body = hotel(BY_NAME, "The Grand London");
        body["proxy_country"] = json!(country);
        prices.insert(
            sandbox.call(KEY, BY_NAME, &body).await.json()["price"]
                .as_i64()
                .expect("a price"),
        );
    }
    assert!(prices.len() >= 3, "{prices:?}");
    sandbox.close().await;
}

#[tokio::test]
async fn invalid_bodies_are_refused_with_details() {
    let sandbox = TestSandbox::open().await;
    for (path, body, kind, field) in [
        (ONEWAY, json!({}), "missing", "from_airport"),
        (ROUNDTRIP, json!({}), "missing", "from_airport"),
        (SEARCH, json!({}), "missing", "destination"),
        (BY_NAME, json!({}), "missing", "hotel_name"),
        (ROOMS, json!({}), "missing", "hotel_booking_id"),
        (RESOLVE, json!({}), "missing", "hotel_name"),
        (
            ONEWAY,
            with(oneway("LHR"), "max_stopz", json!(1)),
            "extra_forbidden",
            "max_stopz",
        ),
        (
            ONEWAY,
            with(oneway("LHR"), "max_stops", json!(null)),
            "int_type",
            "max_stops",
        ),
        (
            ONEWAY,
            with(oneway("LHR"), "limit", json!("5")),
            "int_type",
            "limit",
        ),
        (
            ROUNDTRIP,
            with(roundtrip("LHR"), "max_stops", json!(1)),
            "extra_forbidden",
            "max_stops",
        ),
        (
            ROUNDTRIP,
            with(roundtrip("LHR"), "return_date", json!("2027-01-19")),
            "value_error",
            "return_date",
        ),
        (
            SEARCH,
            with(hotel(SEARCH, "x"), "checkout_date", json!("2027-03-02")),
            "value_error",
            "checkout_date",
        ),
        (
            RESOLVE,
            json!({"hotel_name": "x", "proxy_country": null}),
            "string_type",
            "proxy_country",
        ),
    ] {
        let answer = sandbox.call(KEY, path, &body).await;
        assert_eq!(answer.status, 422, "{path} {body}");
        let detail = &answer.json()["detail"][0];
        assert_eq!(
            (&detail["type"], &detail["loc"]),
            (&json!(kind), &json!(["body", field])),
            "{path} {body}"
        );
    }
    let request = sandbox
        .client
        .post(format!("{}{ONEWAY}", sandbox.base))
        .header("x-rapidapi-key", KEY);
    let answer = SandboxResponse::of(request.body("{")).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["detail"][0]["type"]),
        (422, &json!("json_invalid"))
    );
    sandbox.close().await;
}

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

#[tokio::test]
async fn location_and_unknown_filters_have_their_own_messages() {
    let sandbox = TestSandbox::open().await;
    let located = with(hotel(SEARCH, "London"), "location", json!("London"));
    let filtered = with(
        hotel(SEARCH, "London"),
        "filters",
        json!(["free_wifi", "wifi"]),
    );
    for (body, words) in [
        (
            located,
            &["destination", "checkin_date", "checkout_date"][..],
        ),
        (
            filtered,
            &["wifi", "free_cancellation", "accepts_online_payment"],
        ),
    ] {
        let answer = sandbox.call(KEY, SEARCH, &body).await;
        assert_eq!(answer.status, 400);
        let message = answer.json()["message"]
            .as_str()
            .expect("a message")
            .to_owned();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    sandbox.close().await;
}

#[tokio::test]
async fn unknown_paths_and_methods_are_the_marketplaces_404() {
    let sandbox = TestSandbox::open().await;
    for path in [
        "/api/google_flights/oneway/v2",
        "/v1/flights/oneway",
        "/search/",
        "/",
    ] {
        let answer = sandbox.call(KEY, path, &json!({})).await;
        let seen = (
            answer.status.as_u16(),
            answer.header("x-rapidapi-proxy-response"),
        );
        assert_eq!(seen, (404, Some("true")), "{path}");
        assert!(answer.json()["message"].is_string());
    }
    let answer = SandboxResponse::of(sandbox.client.get(format!("{}{SEARCH}", sandbox.base))).await;
    assert_eq!(
        (
            answer.status.as_u16(),
            answer.header("x-rapidapi-proxy-response")
        ),
        (404, Some("true"))
    );
    sandbox.close().await;
}

#[tokio::test]
async fn a_body_over_64_kib_is_refused() {
    let sandbox = TestSandbox::open().await;
    let body = with(oneway("LHR"), "airline_codes", json!(vec!["LY"; 20_000]));
    assert_eq!(sandbox.call(KEY, ONEWAY, &body).await.status, 413);
    sandbox.close().await;
}

#[tokio::test]
async fn the_front_page_lists_keys_and_magic_values() {
    let sandbox = TestSandbox::open().await;
    let page = SandboxResponse::of(sandbox.client.get(&sandbox.base)).await;
    assert_eq!(
        page.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let documented = include_str!("../lib.rs");
    let keys = KEYS.map(|(key, _)| key);
    let words = MAGIC_VALUES.map(|(word, _)| word);
    for entry in keys.into_iter().chain(words) {
        assert!(page.text.contains(entry), "{entry} on the page");
        assert!(
            documented.contains(entry),
            "{entry} in the module's documentation"
        );
    }
    for path in [ONEWAY, ROUNDTRIP, SEARCH, BY_NAME, ROOMS, RESOLVE] {
        assert!(page.text.contains(&format!("\n  {path}\n")), "{path}");
    }
    sandbox.close().await;
}

#[tokio::test]
async fn two_sandboxes_of_one_seed_agree_and_another_seed_differs() {
    let options = SandboxOptions {
        seed: 1,
        latency_factor: 0.0,
        today: Some(TODAY),
        ..SandboxOptions::default()
    };
    let one = TestSandbox::with(options.clone()).await;
    let same = TestSandbox::with(options.clone()).await;
    let other = TestSandbox::with(SandboxOptions {
        seed: 2,
        ..options.clone()
    })
    .await;
    for (path, body) in [(ONEWAY, oneway("LHR")), (SEARCH, hotel(SEARCH, "Rome"))] {
        let (first, second) = (
            one.call(KEY, path, &body).await,
            same.call(KEY, path, &body).await,
        );
        assert_eq!(first.text, second.text);
        for name in ["x-search-status", "x-search-reason", "x-search-attempts"] {
            assert_eq!(first.header(name), second.header(name));
        }
        assert_ne!(first.text, other.call(KEY, path, &body).await.text);
    }
    for sandbox in [one, same, other] {
        sandbox.close().await;
    }
}

#[tokio::test]
async fn prices_move_with_the_day() {
    let options = SandboxOptions {
        seed: 1,
        latency_factor: 0.0,
        today: Some(TODAY),
        ..SandboxOptions::default()
    };
    let today = TestSandbox::with(options.clone()).await;
    let next_week = TestSandbox::with(SandboxOptions {
        today: Some(date(2026, 11, 27)),
        ..options.clone()
    })
    .await;
    let moved = TestSandbox::with(options.clone()).await;
    moved.days.set(7);
    for (path, body) in [
        (ONEWAY, oneway("LHR")),
        (BY_NAME, hotel(BY_NAME, "The Grand London")),
    ] {
        let later = next_week.call(KEY, path, &body).await.text;
        assert_ne!(today.call(KEY, path, &body).await.text, later);
        assert_eq!(moved.call(KEY, path, &body).await.text, later);
    }
    for sandbox in [today, next_week, moved] {
        sandbox.close().await;
    }
}

#[tokio::test]
async fn delays_are_scaled_by_the_factor_and_end_with_the_server() {
    let options = SandboxOptions {
        seed: 1,
        latency_factor: 0.01,
        today: Some(TODAY),
        ..SandboxOptions::default()
    };
    let sandbox = TestSandbox::with(options.clone()).await;
    let began = Instant::now();
    sandbox
        .call(KEY, BY_NAME, &hotel(BY_NAME, "The Grand London"))
        .await;
    assert!(
        began.elapsed() > Duration::from_millis(20),
        "{:?}",
        began.elapsed()
    );
    sandbox.close().await;

    let slow = TestSandbox::with(SandboxOptions {
        latency_factor: 1_000.0,
        ..options.clone()
    })
    .await;
    let waiting = tokio::spawn(
        slow.request(ONEWAY, &oneway("LHR"))
            .header("x-rapidapi-key", "sandbox-pro")
            .send(),
    );
    slow.until_counted("sandbox-pro", 1).await;
    assert!(!waiting.is_finished());
    slow.close().await;
    assert_eq!(
        waiting
            .await
            .expect("no panic")
            .expect("an answer")
            .status(),
        200
    );
}
