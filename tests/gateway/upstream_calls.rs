//! Upstream requests and their answers (gateway.md, rules 1 to 3, 14, 15, 17 and 18). Other rules:
//! 4 to 10 in `requests`, 11 to 13 in `keys`, 16, 17, 19 and 45 in `outcomes`, 20 in `verify`, 21
//! in `description`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::endpoints::{bodies, body, with};
use crate::support::app::{KEY, TestApp};
use crate::support::array;
use crate::support::db::unreachable_database;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use farescan::contract::Endpoint;

const ONEWAY: &str = "/v1/flights/oneway";

#[tokio::test]
async fn quota_headers_stand_on_every_upstream_answer() {
    let app = TestApp::start().await;
    for status in [200, 400, 401, 403, 404, 422, 429, 500] {
        let reply = Reply::status(status)
            .body("[{}]")
            .header("x-ratelimit-requests-limit", "2500")
            .header("x-ratelimit-remaining", "24")
            .header("x-plan-own", "kept as it is")
            .header("x-other", "dropped")
            .header("server", "dropped");
        app.upstream.reply(reply);
        for (endpoint, _, body) in bodies() {
            let answer = app.post(&format!("/v1/{endpoint}"), &body).await;
            let plan = ["x-plan-requests-limit", "x-plan-remaining", "x-plan-own"]
                .map(|name| answer.header(name));
            assert_eq!(plan, ["2500", "24", "kept as it is"], "{endpoint} {status}");
            assert!(
                !["x-other", "server", "x-ratelimit-remaining"]
                    .iter()
                    .any(|name| answer.headers.contains_key(*name))
            );
        }
    }
}

#[tokio::test]
async fn nothing_of_the_caller_is_passed_through() {
    let app = TestApp::start().await;
    let request = app
        .request("POST", &format!("{ONEWAY}?debug=1"))
        .json(&body(Endpoint::FlightsOneway))
        .header("x-api-key", KEY)
        .header("cookie", "a=b")
        .header("x-custom", "c")
        .header("x-request-id", "the-callers-own")
        .header("x-forwarded-for", "192.0.2.1")
        .header("accept-language", "de")
        .header("user-agent", "curl");
    let answer = app.send(request).await;
    let call = app.upstream.calls().remove(0);
    let mut names: Vec<_> = call.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let ours = [
        "accept",
        "accept-encoding",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        "x-marketplace-host",
        "x-marketplace-key",
        "x-request-id",
    ];
    assert_eq!(names, ours);
    assert_eq!(call.header("x-marketplace-host"), "127.0.0.1");
    assert_eq!(call.header("x-request-id"), answer.header("x-request-id"));
    assert_ne!(call.header("x-request-id"), "the-callers-own");
    assert_eq!(
        call.body,
        body(Endpoint::FlightsOneway),
        "no defaults are added"
    );
    assert_eq!(call.path, "/api/google_flights/oneway/v1", "no query");
}

#[tokio::test]
async fn header_names_hosts_and_paths_are_settings() {
    let app = TestApp::builder()
        .config(|config| {
            config.upstream_key_header = "x-rapidapi-key".parse().unwrap();
            config.upstream_host_header = "x-rapidapi-host".parse().unwrap();
            config.flights_host = Some("fares.example".into());
            config.flights_oneway_path = "/v9/oneway".into();
        })
        .start()
        .await;
    app.upstream.reply(Reply::json(json!([])));
    assert_eq!(
        app.post(ONEWAY, &body(Endpoint::FlightsOneway))
            .await
            .status,
        200
    );
    let call = app.upstream.calls().remove(0);
    assert_eq!(
        (
            call.path.as_str(),
            call.header("x-rapidapi-key"),
            call.header("x-rapidapi-host")
        ),
        ("/v9/oneway", KEY, "fares.example")
    );
}

#[tokio::test]
async fn rows_and_fields_are_kept_within_the_caps() {
    let app = TestApp::start().await;
    app.upstream.on(Endpoint::FlightsOneway).answer(|call| {
        let mut row = fare(164, &call.body);
        row["price_range_in_relation_to_other_periods"] = json!("");
        row["a_new_field"] = json!({"kept": true});
        Reply::json(Value::Array(vec![row; 15]))
    });
    for (fields, rows) in [
        (json!({}), 10),
        (json!({"limit": 3}), 3),
        (json!({"limit": 40}), 15),
    ] {
        let answer = app
            .post(ONEWAY, &with(Endpoint::FlightsOneway, fields))
            .await;
        let list = answer.json();
        assert_eq!(
            (array(&list).len(), answer.header("x-search-results")),
            (rows, rows.to_string().as_str())
        );
        assert_eq!(
            (
                &list[0]["a_new_field"],
                &list[0]["price_range_in_relation_to_other_periods"]
            ),
            (&json!({"kept": true}), &Value::Null)
        );
    }
    app.upstream.on(Endpoint::HotelsSearch).reply(Reply::json(
        json!({"properties": vec![json!({"name": "H"}); 60], "kept": 1}),
    ));
    let answer = app
        .post("/v1/hotels/search", &body(Endpoint::HotelsSearch))
        .await;
    assert_eq!(
        (
            array(&answer.json()["properties"]).len(),
            answer.header("x-search-results")
        ),
        (50, "50")
    );
    assert_eq!(answer.json()["kept"], 1);
}

#[tokio::test]
async fn search_status_is_added_only_where_certain() {
    let app = TestApp::start().await;
    let strict = with(Endpoint::FlightsOneway, json!({"strict": true}));
    let lenient = body(Endpoint::FlightsOneway);
    let stated = |status: &str| Reply::json(json!([])).header("x-search-status", status);
    let rows = [
        (
            "upstream's own word stands",
            stated("partial"),
            &lenient,
            "partial",
        ),
        (
            "even when a strict array is empty",
            stated("partial"),
            &strict,
            "partial",
        ),
        ("none is made up", Reply::json(json!([])), &lenient, ""),
        ("nor for rows", Reply::json(json!([{}])), &strict, ""),
        (
            "strict and empty is certain",
            Reply::json(json!([])),
            &strict,
            "empty",
        ),
        (
            "no answer is degraded",
            Reply::text("?"),
            &lenient,
            "degraded",
        ),
    ];
    for (what, reply, body, status) in rows {
        app.upstream.reply(reply);
        assert_eq!(
            app.post(ONEWAY, body).await.header("x-search-status"),
            status,
            "{what}"
        );
    }
    let reply = Reply::json(json!([{}, {}]))
        .header("X-Search-Results", "99")
        .header("X-Search-Attempts", "3")
        .header("x-search-unreadable-pages", "1")
        .header("x-search-fallback", "used");
    app.upstream.replies([Reply::status(502), reply]);
    let answer = app.post(ONEWAY, &lenient).await;
    let names = [
        "x-search-results",
        "x-search-attempts",
        "x-search-unreadable-pages",
        "x-search-fallback",
        "x-upstream-requests",
    ];
    assert_eq!(
        names.map(|name| answer.header(name)),
        ["2", "3", "1", "used", "2"]
    );
    assert_eq!(answer.headers.get_all("x-search-results").iter().count(), 1);
    assert_eq!(answer.header("cache-control"), "no-store");
}

#[tokio::test]
async fn a_server_error_is_sent_once_more_after_a_pause() {
    let app = TestApp::start().await;
    for status in [500, 502, 503, 504] {
        for (endpoint, _, body) in bodies() {
            let before = app.upstream.count();
            let failed_once = std::sync::atomic::AtomicBool::new(false);
            app.upstream.on(endpoint).answer(move |call| {
                if failed_once.swap(true, std::sync::atomic::Ordering::Relaxed) {
                    crate::support::upstream::default_reply(call)
                } else {
                    Reply::status(status)
                }
            });
            let answer = app.post(&format!("/v1/{endpoint}"), &body).await;
            assert_eq!(
                (answer.status, answer.header("x-upstream-requests")),
                (200, "2"),
                "{endpoint} {status}"
            );
            let calls = app.upstream.calls().split_off(before);
            assert_eq!((calls.len(), &calls[0].body), (2, &calls[1].body));
            let pause = calls[1].at - calls[0].at;
            assert!(pause >= Duration::from_millis(100), "{pause:?}");
        }
    }
}

#[tokio::test]
async fn both_tries_share_one_time_budget() {
    let app = TestApp::builder()
        .budget(Duration::from_secs(3))
        .start()
        .await;
    app.upstream.replies([
        Reply::status(503).delay(Duration::from_millis(200)),
        Reply::hang(),
    ]);
    let begin = Instant::now();
    let answer = app.post(ONEWAY, &body(Endpoint::FlightsOneway)).await;
    let took = begin.elapsed();
    assert_eq!(
        (
            answer.header("x-search-reason"),
            answer.header("x-upstream-requests")
        ),
        ("upstream_timeout", "2")
    );
    assert!(took >= Duration::from_secs(3), "{took:?}");
    // A first attempt that leaves no time for the pause gives the answer. On a busy machine it may
    // exceed the budget; then repeat.
    app.upstream
        .reply(Reply::status(503).delay(Duration::from_millis(2_950)));
    let mut reasons = Vec::new();
    while reasons.len() < 20
        && reasons
            .last()
            .is_none_or(|reason| reason != "upstream_status")
    {
        let answer = app.post(ONEWAY, &body(Endpoint::FlightsOneway)).await;
        assert_eq!(answer.header("x-upstream-requests"), "1");
        reasons.push(answer.header("x-search-reason").to_owned());
    }
    assert_eq!(reasons.last().unwrap(), "upstream_status", "{reasons:?}");
}

#[tokio::test]
async fn concurrent_callers_get_their_own_answers() {
    let app = std::sync::Arc::new(TestApp::start().await);
    let gate = Gate::closed();
    let held = gate.clone();
    app.upstream
        .on(Endpoint::FlightsOneway)
        .when(|call| call.key != KEY)
        .answer(move |call| {
            Reply::json(json!([{"of": call.key.replace("caller", "answer")}])).gated_by(&held)
        });
    let callers: Vec<_> = (0..20)
        .map(|caller| {
            let app = std::sync::Arc::clone(&app);
            let request = app
                .request("POST", ONEWAY)
                .header("x-api-key", format!("caller-{caller}"))
                .json(&body(Endpoint::FlightsOneway));
            tokio::spawn(async move { app.send(request).await })
        })
        .collect();
    app.upstream.wait_for_in_flight(20).await;
    assert_eq!(
        app.post(ONEWAY, &body(Endpoint::FlightsOneway))
            .await
            .status,
        200,
        "another caller does not wait for them"
    );
    assert_eq!(app.upstream.in_flight(), 20);
    gate.open();
    for (caller, answer) in callers.into_iter().enumerate() {
        assert_eq!(
            answer.await.unwrap().json(),
            json!([{"of": format!("answer-{caller}")}])
        );
    }
}

#[tokio::test]
async fn the_gateway_works_while_the_database_is_down() {
    let (pool, _) = unreachable_database();
    let app = TestApp::builder().pool(pool).start().await;
    for (endpoint, _, body) in bodies() {
        assert_eq!(
            app.post(&format!("/v1/{endpoint}"), &body).await.status,
            200,
            "{endpoint}"
        );
    }
    assert_eq!(app.get("/v1/verify").await.status, 200);
    assert_eq!(
        (
            app.get("/healthz").await.status,
            app.admin("/healthz").await.status
        ),
        (200, 200)
    );
    let ready = app.admin("/readyz").await;
    assert_eq!(
        (ready.kind().as_str(), ready.header("retry-after")),
        ("503 unavailable", "5")
    );
}
