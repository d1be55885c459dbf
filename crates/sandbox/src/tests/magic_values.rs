//! Every outcome on demand.

use std::time::Duration;

use super::*;

const KEY: &str = "sandbox-unlimited";

#[tokio::test]
async fn each_magic_airport_has_its_outcome_on_both_flight_paths() {
    let sandbox = TestSandbox::open().await;
    // word; (status, search status) of the first and the second call; the same with strict
    for (word, lenient, strict) in [
        ("LHR", [(200, Some("ok")); 2], [(200, Some("ok")); 2]),
        ("ZZE", [(200, Some("empty")); 2], [(200, Some("empty")); 2]),
        (
            "ZZP",
            [(200, Some("partial")); 2],
            [(200, Some("partial")); 2],
        ),
        (
            "ZZD",
            [(200, Some("degraded")); 2],
            [(503, Some("degraded")); 2],
        ),
        (
            "ZZR",
            [(200, Some("degraded")), (200, Some("ok"))],
            [(503, Some("degraded")), (200, Some("ok"))],
        ),
        (
            "ZZS",
            [(503, None), (200, Some("ok"))],
            [(503, None), (200, Some("ok"))],
        ),
        ("ZZX", [(503, None); 2], [(503, None); 2]),
        ("ZZG", [(200, None); 2], [(200, None); 2]),
        ("ZZQ", [(429, None); 2], [(429, None); 2]),
    ] {
        for (path, mut body) in [(ONEWAY, oneway(word)), (ROUNDTRIP, roundtrip(word))] {
            for (is_strict, expected) in [(false, lenient), (true, strict)] {
                if is_strict {
                    body["strict"] = json!(true);
                }
                for outcome in expected {
                    let answer = sandbox.call(KEY, path, &body).await;
                    let seen = (answer.status.as_u16(), answer.header("x-search-status"));
                    assert_eq!(seen, outcome, "{path} {word} strict {is_strict}");
                    assert!(answer.header("x-ratelimit-requests-limit").is_some());
                    search_headers_fit(&answer, word);
                }
            }
        }
    }
    sandbox.close().await;
}

/// Headers and body agree (gateway.md, rule 38).
fn search_headers_fit(answer: &SandboxResponse, word: &str) {
    let Some(status) = answer.header("x-search-status") else {
        return;
    };
    let rows = if answer.status == 200 {
        answer.rows()
    } else {
        0
    };
    assert_eq!(
        answer.number("x-search-results"),
        Some(u64::try_from(rows).expect("few")),
        "{word}"
    );
    for name in [
        "x-search-attempts",
        "x-search-combinations",
        "x-search-retries",
        "x-search-unreadable-pages",
    ] {
        assert!(answer.number(name).is_some(), "{word} {name}");
    }
    assert_eq!(rows > 0, matches!(status, "ok" | "partial"), "{word}");
    match status {
        "degraded" => assert_eq!(answer.header("x-search-reason"), Some("blocked_page")),
        "partial" => assert_eq!(answer.header("x-search-reason"), Some("upstream_timeout")),
        "empty" => assert!(
            answer
                .header("x-search-reason")
                .is_none_or(|reason| reason == "upstream_status")
        ),
        _ => {}
    }
    if answer.status == 503 {
        let error = &answer.json()["error"];
        assert_eq!(
            (&error["type"], &error["reason"]),
            (&json!("search_incomplete"), &json!("blocked_page"))
        );
        assert!(error["message"].is_string());
    }
}

#[tokio::test]
async fn each_magic_word_has_its_outcome_on_the_hotel_paths() {
    let sandbox = TestSandbox::open().await;
    let incomplete = "search_incomplete";
    for (word, path, first, second) in [
        ("ZZE", SEARCH, (404, ""), (404, "")),
        ("ZZE", BY_NAME, (404, ""), (404, "")),
        ("ZZE", ROOMS, (200, "\"rooms\":[]"), (200, "\"rooms\":[]")),
        ("ZZE", RESOLVE, (404, ""), (404, "")),
        (
            "ZZP",
            BY_NAME,
            (
                200,
                "\"available\":false,\"price_string\":null,\"price\":null",
            ),
            (200, ""),
        ),
        ("ZZP", ROOMS, (200, "room_type"), (200, "room_type")),
        ("ZZP", SEARCH, (200, "price_string"), (200, "price_string")),
        ("ZZD", SEARCH, (503, incomplete), (503, incomplete)),
        ("ZZD", RESOLVE, (503, incomplete), (503, incomplete)),
        ("ZZR", SEARCH, (503, incomplete), (200, "price_string")),
        ("ZZR", BY_NAME, (503, incomplete), (200, "room_type")),
        ("ZZR", ROOMS, (503, incomplete), (200, "rooms")),
        ("ZZR", RESOLVE, (503, incomplete), (200, "matched_name")),
        (
            "ZZS",
            BY_NAME,
            (503, "Service Unavailable"),
            (200, "room_type"),
        ),
        (
            "ZZX",
            ROOMS,
            (503, "Service Unavailable"),
            (503, "Service Unavailable"),
        ),
        (
            "ZZG",
            BY_NAME,
            (200, "<!doctype html>"),
            (200, "<!doctype html>"),
        ),
        (
            "ZZQ",
            RESOLVE,
            (429, "Too many requests"),
            (429, "Too many requests"),
        ),
    ] {
        for (status, text) in [first, second] {
            let answer = sandbox
                .call(KEY, path, &hotel(path, &format!("{word} Hotel")))
                .await;
            assert_eq!(answer.status, status, "{word} {path}");
            assert!(answer.text.contains(text), "{word} {path}: {}", answer.text);
            assert_eq!(
                answer.header("x-search-status"),
                None,
                "hotels have no search status"
            );
            assert_eq!(
                answer.header("x-rapidapi-proxy-response").is_some(),
                status == 429,
                "{word} {path}"
            );
        }
    }
    sandbox.close().await;
}

#[tokio::test]
async fn partial_answers_hold_half_of_the_rows() {
    let sandbox = TestSandbox::open().await;
    let mut body = oneway("ZZP");
    body["limit"] = json!(10);
    assert_eq!(sandbox.call(KEY, ONEWAY, &body).await.rows(), 5);
    sandbox.close().await;
}

#[tokio::test]
async fn an_empty_search_uses_the_fallback_unless_disabled() {
    let sandbox = TestSandbox::open().await;
    for (use_fallback, attempts) in [(true, 2), (false, 1)] {
        let mut body = oneway("ZZE");
        body["use_fallback"] = json!(use_fallback);
        assert_eq!(
            sandbox
                .call(KEY, ONEWAY, &body)
                .await
                .number("x-search-attempts"),
            Some(attempts)
        );
    }
    sandbox.close().await;
}

#[tokio::test]
async fn the_throttled_word_has_a_retry_after() {
    let sandbox = TestSandbox::open().await;
    let answer = sandbox.call(KEY, ONEWAY, &oneway("ZZQ")).await;
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert!(answer.json()["message"].is_string());
    sandbox.close().await;
}

#[tokio::test]
async fn hanging_searches_are_never_answered() {
    let sandbox = TestSandbox::open().await;
    for (path, body) in [
        (ONEWAY, oneway("ZZT")),
        (BY_NAME, hotel(BY_NAME, "ZZT Hotel")),
    ] {
        let request = sandbox.request(path, &body).header("x-rapidapi-key", KEY);
        let error = request
            .timeout(Duration::from_millis(300))
            .send()
            .await
            .expect_err("no answer");
        assert!(error.is_timeout(), "{error}");
    }
    sandbox.close().await;
}

#[tokio::test]
async fn the_server_stops_while_a_search_hangs() {
    let sandbox = TestSandbox::open().await;
    let request = sandbox
        .request(ONEWAY, &oneway("ZZT"))
        .header("x-rapidapi-key", "sandbox-pro");
    let hanging = tokio::spawn(request.send());
    sandbox.until_counted("sandbox-pro", 1).await;
    assert!(!hanging.is_finished());
    sandbox.close().await;
    assert_eq!(
        hanging.await.expect("no panic").expect("given up").status(),
        503
    );
}

#[tokio::test]
async fn the_demo_key_is_degraded_on_a_13th_once() {
    let sandbox = TestSandbox::open().await;
    let flight = |on: &str, back: &str| {
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": on,
        "return_date": back, "strict": true})
    };
    let stay = |from: &str, to: &str| {
        json!({"hotel_name": "The Grand London", "checkin_date": from,
        "checkout_date": to})
    };
    for (key, path, body, first) in [
        (
            "sandbox-demo",
            ROUNDTRIP,
            flight("2027-01-13", "2027-01-20"),
            503,
        ),
        (
            "sandbox-demo.b",
            ROUNDTRIP,
            flight("2027-01-13", "2027-01-20"),
            503,
        ),
        (
            "sandbox-demo",
            ROUNDTRIP,
            flight("2027-02-13", "2027-02-20"),
            503,
        ),
        (
            "sandbox-demo",
            ROUNDTRIP,
            flight("2027-01-12", "2027-01-13"),
            200,
        ),
        (
            "sandbox-unlimited",
            ROUNDTRIP,
            flight("2027-01-13", "2027-01-20"),
            200,
        ),
        (
            "sandbox-demo",
            BY_NAME,
            stay("2027-01-13", "2027-01-14"),
            503,
        ),
        (
            "sandbox-demo",
            BY_NAME,
            stay("2027-01-12", "2027-01-13"),
            200,
        ),
    ] {
        for status in [first, 200, 200] {
            let answer = sandbox.call(key, path, &body).await;
            assert_eq!(answer.status, status, "{key} {body}");
            assert_eq!(answer.text.contains("search_incomplete"), status == 503);
        }
    }
    sandbox.close().await;
}

#[tokio::test]
async fn once_applies_per_key_and_exact_body() {
    let sandbox = TestSandbox::open().await;
    let status = async |key: &str, body: &Value| {
        let answer = sandbox.call(key, ONEWAY, body).await;
        answer
            .header("x-search-status")
            .expect("a status")
            .to_owned()
    };
    let (body, mut other) = (oneway("ZZR"), oneway("ZZR"));
    other["limit"] = json!(3);
    assert_eq!(status("sandbox-pro", &body).await, "degraded");
    assert_eq!(status("sandbox-pro", &other).await, "degraded");
    assert_eq!(status("sandbox-pro.alice", &body).await, "degraded");
    for (key, body) in [
        ("sandbox-pro", &body),
        ("sandbox-pro", &other),
        ("sandbox-pro.alice", &body),
    ] {
        assert_eq!(status(key, body).await, "ok");
    }
    sandbox.close().await;
}
