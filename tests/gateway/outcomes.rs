//! gateway.md, rule 45, cell by cell: a row is an upstream behaviour; the columns are flights,
//! flights with `strict`, hotels.

use std::time::Duration;

use serde_json::{Value, json};

use super::endpoints::body;
use crate::support::app::{HttpResponse, TestApp};
use crate::support::reply::Reply;
use farescan::contract::Endpoint;

/// An answer in one line: status and body or error type, search status and reason, results, the
/// error's `reason`.
fn line(answer: &HttpResponse) -> String {
    let failed = answer.status >= 400;
    let reason = if failed {
        answer.json()["error"]["reason"]
            .as_str()
            .map(|reason| format!("reason {reason}"))
    } else {
        None
    };
    let named = |name: &str, word: &str| {
        Some(format!("{word}{}", answer.header(name))).filter(|_| !answer.header(name).is_empty())
    };
    let first = if failed {
        answer.kind()
    } else {
        format!("{} {}", answer.status, answer.text())
    };
    let parts = [
        Some(first),
        named("x-search-status", ""),
        named("x-search-reason", ""),
        named("x-search-results", "results "),
        reason,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" | ")
}

/// The same upstream behaviour on the three columns.
async fn columns(app: &TestApp, reply: Reply) -> [HttpResponse; 3] {
    app.upstream.reply(reply);
    let mut strict = body(Endpoint::FlightsRoundtrip);
    strict["strict"] = json!(true);
    [
        app.post("/v1/flights/oneway", &body(Endpoint::FlightsOneway))
            .await,
        app.post("/v1/flights/roundtrip", &strict).await,
        app.post("/v1/hotels/rooms", &body(Endpoint::HotelsRooms))
            .await,
    ]
}

async fn row(app: &TestApp, reply: Reply, expected: [&str; 3]) {
    for (answer, expected) in columns(app, reply.clone()).await.iter().zip(expected) {
        assert_eq!(line(answer), expected, "{reply:?}");
    }
}

/// The columns of a search that did not complete for `reason`.
async fn incomplete(app: &TestApp, reply: Reply, reason: &str, hotels: &str) {
    let flights = format!("200 [] | degraded | {reason} | results 0");
    let strict = format!("503 search_incomplete | degraded | {reason} | reason {reason}");
    row(
        app,
        reply,
        [
            &flights,
            &strict,
            &format!("{hotels} | degraded | {reason}"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_timeout_gives_upstream_timeout() {
    let app = TestApp::builder()
        .budget(Duration::from_millis(300))
        .start()
        .await;
    for reply in [
        Reply::hang(),
        Reply::json(json!([{}])).stalled_body(),
        Reply::json(json!([{}])).drip(Duration::from_millis(200)),
    ] {
        incomplete(&app, reply, "upstream_timeout", "504 upstream_timeout").await;
    }
}

#[tokio::test]
async fn server_errors_twice_keep_their_status_for_hotels() {
    let app = TestApp::start().await;
    for status in [500, 502, 503, 504] {
        let hotels = format!("{status} upstream_error");
        incomplete(
            &app,
            Reply::status(status).with_json(json!({"message": "no"})),
            "upstream_status",
            &hotels,
        )
        .await;
    }
}

#[tokio::test]
async fn other_statuses_give_upstream_errors() {
    let app = TestApp::start().await;
    for status in [301, 402, 405, 409, 410, 418] {
        incomplete(
            &app,
            Reply::status(status).header("location", "/x"),
            "upstream_status",
            "502 upstream_error",
        )
        .await;
    }
    incomplete(
        &app,
        Reply::status(501),
        "upstream_status",
        "501 upstream_error",
    )
    .await;
}

#[tokio::test]
async fn connection_failures_give_upstream_unreachable() {
    let app = TestApp::start().await;
    for reply in [
        Reply::reset(),
        Reply::garbage(),
        Reply::json(json!([{}])).half_body(),
    ] {
        incomplete(
            &app,
            reply,
            "upstream_connection",
            "502 upstream_unreachable",
        )
        .await;
    }
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let url: reqwest::Url = format!("http://{nobody}").parse().unwrap();
    let app = TestApp::builder()
        .config(move |config| {
            config.flights_url = Some(url.clone());
            config.hotels_url = Some(url);
        })
        .start()
        .await;
    incomplete(
        &app,
        Reply::status(200),
        "upstream_connection",
        "502 upstream_unreachable",
    )
    .await;
    let answer = app
        .post("/v1/flights/oneway", &body(Endpoint::FlightsOneway))
        .await;
    assert_eq!(
        answer.header("x-upstream-requests"),
        "0",
        "nothing was sent"
    );
}

#[tokio::test]
async fn unparsable_answers_give_invalid_response() {
    let app = TestApp::start().await;
    let deep = format!("[{{\"a\": {}{}}}]", "[".repeat(80), "]".repeat(80));
    let wrong_everywhere = [
        json!("text"),
        json!(7),
        json!(null),
        json!([1, 2]),
        json!([[]]),
    ];
    let replies = wrong_everywhere.into_iter().map(Reply::json).chain([
        Reply::text("<html>"),
        Reply::text(""),
        Reply::text("[{}"),
        Reply::text("[{}] tail"),
        Reply::text(deep),
        Reply::huge(),
        Reply::compression_bomb(),
        Reply::not_gzip(),
    ]);
    for reply in replies {
        // The body decides, not the search headers.
        let claimed = reply
            .header("x-search-status", "ok")
            .header("x-search-results", "7");
        incomplete(
            &app,
            claimed,
            "unreadable_response",
            "502 upstream_invalid_response",
        )
        .await;
    }
    let flights = [
        "200 [] | degraded | unreadable_response | results 0",
        "503 search_incomplete | degraded | unreadable_response | reason unreadable_response",
    ];
    row(
        &app,
        Reply::json(json!({"rooms": []})),
        [flights[0], flights[1], r#"200 {"rooms":[]} | results 0"#],
    )
    .await;
    row(
        &app,
        Reply::json(json!([])),
        [
            "200 [] | results 0",
            "200 [] | empty | results 0",
            "502 upstream_invalid_response | degraded | unreadable_response",
        ],
    )
    .await;
}

#[tokio::test]
async fn rejected_keys_and_missing_subscriptions() {
    let app = TestApp::start().await;
    let message = |text: &str| json!({ "message": text });
    row(
        &app,
        Reply::status(401).with_json(message("Invalid API key")),
        ["401 invalid_api_key"; 3],
    )
    .await;
    let answers = columns(
        &app,
        Reply::status(403).with_json(message("You are not subscribed to this API.")),
    )
    .await;
    for (answer, api) in answers.iter().zip(["flights", "flights", "hotels"]) {
        assert_eq!(line(answer), "403 not_subscribed");
        assert!(
            answer.message().contains(&format!("the {api} API")),
            "{}",
            answer.message()
        );
    }
}

#[tokio::test]
async fn requests_that_upstream_refuses_are_invalid() {
    let app = TestApp::start().await;
    for status in [400, 422] {
        for answer in columns(
            &app,
            Reply::status(status).with_json(json!({"detail": "no flights on that route"})),
        )
        .await
        {
            assert_eq!(line(&answer), "400 invalid_request");
            assert!(
                answer.message().contains("no flights on that route"),
                "{}",
                answer.message()
            );
        }
    }
}

#[tokio::test]
async fn not_found_is_an_answer_only_from_hotels() {
    let app = TestApp::start().await;
    let engine = Reply::status(404).with_json(json!({"detail": "Hotel not found"}));
    let flights = [
        "200 [] | degraded | upstream_status | results 0",
        "503 search_incomplete | degraded | upstream_status | reason upstream_status",
    ];
    row(
        &app,
        engine.clone(),
        [flights[0], flights[1], "404 not_found"],
    )
    .await;
    assert_eq!(
        app.post("/v1/hotels/rooms", &body(Endpoint::HotelsRooms))
            .await
            .message(),
        "Hotel not found"
    );
    let proxy = engine.header("X-RapidAPI-Proxy-Response", "true");
    row(
        &app,
        proxy,
        [
            flights[0],
            flights[1],
            "502 upstream_error | degraded | upstream_status",
        ],
    )
    .await;
}

#[tokio::test]
async fn rate_limit_answers_pass_unchanged() {
    let app = TestApp::start().await;
    let raw = r#"{ "message":"You have exceeded the MONTHLY quota" , "n":1.50}"#;
    let reply = Reply::status(429)
        .body(raw)
        .header("content-type", "application/json; charset=utf-8")
        .header("retry-after", "37")
        .header("x-ratelimit-requests-remaining", "0")
        .header("set-cookie", "session=1")
        .header("keep-alive", "timeout=5");
    for answer in columns(&app, reply).await {
        assert_eq!((answer.status, answer.text().as_str()), (429, raw));
        assert_eq!(
            answer.header("content-type"),
            "application/json; charset=utf-8"
        );
        assert_eq!(
            (
                answer.header("retry-after"),
                answer.header("x-plan-requests-remaining")
            ),
            ("37", "0")
        );
        assert!(
            !answer.headers.contains_key("set-cookie")
                && !answer.headers.contains_key("keep-alive")
        );
        assert_eq!(answer.header("x-upstream-requests"), "1");
    }
    assert_eq!(app.upstream.count(), 3, "never sent again");
}

#[tokio::test]
async fn a_strict_degraded_flight_search_is_incomplete() {
    let app = TestApp::start().await;
    let strict = "503 search_incomplete | degraded | blocked_page | reason blocked_page";
    let flights = "200 [] | degraded | blocked_page | results 0";
    row(
        &app,
        Reply::search_incomplete("blocked_page"),
        [
            flights,
            strict,
            "503 upstream_error | degraded | blocked_page",
        ],
    )
    .await;
    let degraded = |body: Value| {
        Reply::json(body)
            .header("x-search-status", "degraded")
            .header("x-search-reason", "blocked_page")
    };
    row(
        &app,
        degraded(json!([])),
        [
            flights,
            strict,
            "502 upstream_invalid_response | degraded | unreadable_response",
        ],
    )
    .await;
    let before = app.upstream.count();
    row(
        &app,
        Reply::search_incomplete("blocked_page"),
        [
            flights,
            strict,
            "503 upstream_error | degraded | blocked_page",
        ],
    )
    .await;
    assert_eq!(
        app.upstream.count(),
        before + 3,
        "search_incomplete is an answer and not sent again"
    );
}

#[tokio::test]
async fn each_hotel_endpoint_answers_nothing_in_its_own_way() {
    let app = TestApp::start().await;
    let none = json!({
        "review_score": null, "review_count": null, "room_type": null, "image_url": null, "link": null, "nights": null, "adults": null,
        "children": null, "name": null, "available": false, "price_string": null, "price": null
    });
    let missing = || Reply::status(404).with_json(json!({"detail": "nothing here"}));
    let rows = [
        (
            Endpoint::HotelsSearch,
            Reply::json(json!({"properties": []})),
            Err("404 not_found"),
        ),
        (Endpoint::HotelsSearch, missing(), Err("404 not_found")),
        (Endpoint::HotelsByName, missing(), Ok(none.clone())),
        (
            Endpoint::HotelsByName,
            Reply::json(json!({"available": false, "name": null})),
            Ok(none),
        ),
        (
            Endpoint::HotelsRooms,
            Reply::json(json!({"rooms": []})),
            Ok(json!({"rooms": []})),
        ),
        (Endpoint::HotelsRooms, missing(), Err("404 not_found")),
        (
            Endpoint::HotelsResolve,
            Reply::json(json!({"hotel_booking_id": null})),
            Err("404 not_found"),
        ),
        (Endpoint::HotelsResolve, missing(), Err("404 not_found")),
    ];
    for (endpoint, reply, expected) in rows {
        app.upstream.on(endpoint).reply(reply.clone());
        let answer = app.post(&format!("/v1/{endpoint}"), &body(endpoint)).await;
        match expected {
            Ok(body) => assert_eq!(
                (answer.status, answer.json()),
                (200, body),
                "{endpoint} {reply:?}"
            ),
            Err(kind) => assert_eq!(answer.kind(), kind, "{endpoint} {reply:?}"),
        }
    }
    let sold_out = json!({"available": false, "name": "Hotel One", "price": 5, "price_string": "$5", "nights": 2});
    app.upstream
        .on(Endpoint::HotelsByName)
        .reply(Reply::json(sold_out));
    let answer = app
        .post("/v1/hotels/by-name", &body(Endpoint::HotelsByName))
        .await
        .json();
    assert_eq!(
        (
            &answer["name"],
            &answer["nights"],
            &answer["price"],
            &answer["price_string"]
        ),
        (&json!("Hotel One"), &json!(2), &Value::Null, &Value::Null)
    );
}
