//! `GET /v1/verify` (gateway.md, rule 20): a row is the response of each API to the key.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::array;
use crate::support::reply::Reply;
use farescan::contract::Endpoint;

async fn app(flights: Reply, hotels: Reply) -> TestApp {
    let app = TestApp::start().await;
    let plan = |reply: Reply, left: &str| {
        reply
            .header("x-ratelimit-requests-limit", "10")
            .header("x-ratelimit-requests-remaining", left)
            .header("x-ratelimit-requests-reset", "60")
    };
    app.upstream
        .on(Endpoint::FlightsOneway)
        .reply(plan(flights, "4"));
    app.upstream
        .on(Endpoint::HotelsResolve)
        .reply(plan(hotels, "7"));
    app
}

fn check(api: &str, ok: bool, reason: &str) -> Value {
    let checked = if api == "flights" {
        "flights/oneway, empty body"
    } else {
        "hotels/resolve, empty body"
    };
    json!({"api": api, "ok": ok, "checked": checked, "reason": reason})
}

fn plan(left: u64) -> Value {
    json!({"plan_requests_limit": 10, "plan_requests_remaining": left, "plan_seconds_until_reset": 60})
}

#[tokio::test]
async fn verify_checks_hotels_only_if_flights_is_not_subscribed() {
    let good = || Reply::status(422).with_json(json!({"detail": []}));
    let (unsubscribed, unknown, used_up) = (
        || Reply::status(403),
        || Reply::status(401),
        || Reply::status(429),
    );
    let flights = |ok, reason| check("flights", ok, reason);
    let hotels = |ok, reason| check("hotels", ok, reason);
    let rows = [
        ("", good(), good(), 200, vec![flights(true, "subscribed")]),
        (
            "",
            Reply::status(400),
            good(),
            200,
            vec![flights(true, "subscribed")],
        ),
        (
            "",
            used_up(),
            good(),
            200,
            vec![flights(true, "quota_exhausted")],
        ),
        (
            "",
            unsubscribed(),
            good(),
            200,
            vec![flights(false, "not_subscribed"), hotels(true, "subscribed")],
        ),
        (
            "",
            unsubscribed(),
            used_up(),
            200,
            vec![
                flights(false, "not_subscribed"),
                hotels(true, "quota_exhausted"),
            ],
        ),
        (
            "",
            unsubscribed(),
            unsubscribed(),
            401,
            vec![
                flights(false, "not_subscribed"),
                hotels(false, "not_subscribed"),
            ],
        ),
        (
            "",
            unknown(),
            good(),
            401,
            vec![flights(false, "invalid_key")],
        ),
        (
            "?api=flights",
            unsubscribed(),
            good(),
            401,
            vec![flights(false, "not_subscribed")],
        ),
        (
            "?api=hotels",
            good(),
            good(),
            200,
            vec![hotels(true, "subscribed")],
        ),
        (
            "?api=hotels",
            good(),
            unsubscribed(),
            401,
            vec![hotels(false, "not_subscribed")],
        ),
        (
            "?api=both",
            good(),
            good(),
            200,
            vec![flights(true, "subscribed"), hotels(true, "subscribed")],
        ),
        (
            "?api=both",
            good(),
            unsubscribed(),
            200,
            vec![flights(true, "subscribed"), hotels(false, "not_subscribed")],
        ),
    ];
    for (query, flights, hotels, status, checks) in rows {
        let app = app(flights, hotels).await;
        let answer = app.get(&format!("/v1/verify{query}")).await;
        let body = answer.json();
        assert_eq!(
            (answer.status, &body["checks"]),
            (status, &json!(checks)),
            "{query}"
        );
        assert_eq!(
            (&body["valid"], &body["key_source"]),
            (&json!(status == 200), &json!("x-api-key"))
        );
        assert_eq!(
            app.upstream.count(),
            checks.len(),
            "one call for each check"
        );
        assert!(
            app.upstream
                .calls()
                .iter()
                .all(|call| call.body == json!({})),
            "an empty body"
        );
        assert_eq!(
            answer.header("x-upstream-requests"),
            checks.len().to_string()
        );
        for (api, left) in [("flights", 4), ("hotels", 7)] {
            let asked = checks.iter().any(|check| check["api"] == api);
            let expected = if asked { plan(left) } else { Value::Null };
            assert_eq!(body["api_usage"][api], expected, "{query} {api}");
        }
    }
}

#[tokio::test]
async fn verify_without_a_usable_answer_is_an_upstream_error() {
    let rows = [
        (Reply::reset(), "502 upstream_unreachable"),
        (Reply::status(404), "502 upstream_error"),
        (Reply::status(503), "503 upstream_error"),
    ];
    for (reply, kind) in rows {
        let app = app(reply, Reply::status(422)).await;
        assert_eq!(app.get("/v1/verify").await.kind(), kind);
    }
    let both = app(Reply::status(422), Reply::reset())
        .await
        .get("/v1/verify?api=both")
        .await;
    assert_eq!(
        (both.status, array(&both.json()["checks"]).len()),
        (200, 1),
        "good for one is good"
    );
}

#[tokio::test]
async fn verify_accepts_only_the_known_api_words() {
    let app = app(Reply::status(422), Reply::status(422)).await;
    for query in ["?api=trains", "?api=", "?api=Flights"] {
        let answer = app.get(&format!("/v1/verify{query}")).await;
        assert_eq!(answer.kind(), "400 invalid_request");
        assert!(
            answer.message().contains("`flights`, `hotels`, `both`"),
            "{}",
            answer.message()
        );
    }
    assert_eq!(app.upstream.count(), 0);
}
