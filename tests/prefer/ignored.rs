//! A preference is never an error: what cannot be honoured is ignored, and the search is asked at once, once.

use std::num::NonZeroU32;
use std::time::Duration;

use farescan::config::LimitConfig;
use farescan::contract::Endpoint;
use serde_json::json;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::answers::prefer;
use crate::control::house::{House, fares};
use crate::gateway::endpoints::{bodies, body};
use crate::support::app::{Answer, KEY, TestApp};
use crate::support::db::TestDb;

const ONEWAY: Endpoint = Endpoint::FlightsOneway;

async fn preferring(
    app: &TestApp,
    path: &str,
    body: &serde_json::Value,
    once: Option<&str>,
) -> Answer {
    let mut request = app
        .request("POST", path)
        .header("x-api-key", KEY)
        .header("prefer", "respond-async, wait=5")
        .json(body);
    if let Some(key) = once {
        request = request.header("idempotency-key", key);
    }
    app.send(request).await
}

#[tokio::test]
async fn a_service_that_keeps_nothing_asks_at_once() {
    let app = TestApp::start().await;
    for (number, (endpoint, _, body)) in bodies().into_iter().enumerate() {
        let answer = preferring(&app, &format!("/v1/{endpoint}"), &body, None).await;
        assert_eq!(
            (answer.status, answer.header("preference-applied")),
            (200, ""),
            "{endpoint}"
        );
        let varies = if endpoint == Endpoint::HotelsResolve {
            ""
        } else {
            "Prefer"
        };
        assert_eq!(answer.header("vary"), varies, "{endpoint}");
        assert_eq!(app.upstream.count(), number + 1, "{endpoint}");
    }
    assert_eq!(
        app.post("/v1/flights/oneway", &body(ONEWAY))
            .await
            .header("vary"),
        "Prefer",
        "also without one"
    );
}

#[tokio::test]
async fn while_the_database_is_away_it_is_asked_at_once_unless_it_must_be_asked_once() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let options: PgConnectOptions = format!("postgres://nobody@{nobody}/nowhere")
        .parse()
        .unwrap();
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_secs(1))
        .connect_lazy_with(options.clone());
    let app = TestApp::builder().orders(pool, options).start().await;
    let answer = preferring(&app, "/v1/flights/oneway", &body(ONEWAY), None).await;
    assert_eq!(
        (
            answer.status,
            answer.header("preference-applied"),
            app.upstream.count()
        ),
        (200, "", 1)
    );
    let answer = preferring(&app, "/v1/flights/oneway", &body(ONEWAY), Some("k")).await;
    assert_eq!(
        answer.kind(),
        "503 unavailable",
        "an equal request may be stored already"
    );
    assert_eq!(app.upstream.count(), 1);
}

#[tokio::test]
async fn at_a_bound_of_the_caller_it_is_asked_at_once_unless_it_must_be_asked_once() {
    let house = House::open().await;
    for _ in 0..100 {
        house.order(&fares(1)).await;
    }
    let answer = prefer(&house, "respond-async", ONEWAY, &body(ONEWAY)).await;
    assert_eq!(
        (
            answer.status,
            answer.header("preference-applied"),
            house.app.upstream.count()
        ),
        (200, "", 1)
    );
    let answer = preferring(&house.app, "/v1/flights/oneway", &body(ONEWAY), Some("k")).await;
    assert_eq!(
        (answer.kind().as_str(), answer.header("retry-after")),
        ("429 too_many_requests", "60")
    );
    assert_eq!(
        (
            house.app.upstream.count(),
            house.count("select count(*) from scans").await
        ),
        (1, 100)
    );
}

/// A stored search is an order, so it takes a token of its caller's bucket; the synchronous search takes none.
#[tokio::test]
async fn who_orders_too_fast_is_told_only_where_it_must_be_asked_once() {
    let limits = LimitConfig {
        requests_per_second: NonZeroU32::MIN,
        request_burst: NonZeroU32::MIN,
    };
    let db = TestDb::new().await;
    let app = TestApp::builder()
        .database(&db)
        .state(move |app| app.with_limits(&limits))
        .start()
        .await;
    let asynchronous = async || {
        let request = app
            .request("POST", "/v1/flights/oneway")
            .header("x-api-key", KEY)
            .header("prefer", "respond-async");
        app.send(request.header("idempotency-key", "k").json(&body(ONEWAY)))
            .await
    };
    assert_eq!(asynchronous().await.status, 202);
    // A token comes back each second, so a slow machine needs a few more tries.
    let mut refused = asynchronous().await;
    for _ in 0..30 {
        if refused.status == 429 {
            break;
        }
        assert_eq!(
            (refused.status, refused.header("idempotent-replayed")),
            (202, "true")
        );
        refused = asynchronous().await;
    }
    assert_eq!(
        (refused.kind().as_str(), refused.header("retry-after")),
        ("429 too_many_requests", "1")
    );
    assert_eq!(app.upstream.count(), 0);
}

#[tokio::test]
async fn what_is_no_preference_of_ours_changes_nothing() {
    let house = House::open().await;
    for preference in [
        "return=minimal",
        "handling=lenient",
        "wait=soon",
        "respond-async=1",
        "",
        "wait=-5",
        ";;=,,",
    ] {
        let answer = prefer(&house, preference, ONEWAY, &body(ONEWAY)).await;
        assert_eq!(
            (answer.status, answer.header("preference-applied")),
            (200, ""),
            "{preference}"
        );
    }
    let resolve = prefer(
        &house,
        "respond-async",
        Endpoint::HotelsResolve,
        &body(Endpoint::HotelsResolve),
    )
    .await;
    assert_eq!(resolve.status, 200, "resolve is no search of prices");
    assert_eq!(house.count("select count(*) from scans").await, 0);
    let waits = prefer(
        &house,
        "respond-async, wait=999999, return=minimal",
        Endpoint::HotelsRooms,
        &json!({}),
    )
    .await;
    assert_eq!(
        waits.kind(),
        "400 invalid_request",
        "the body is checked first"
    );
    let keyless = house
        .app
        .request("POST", "/v1/flights/oneway")
        .header("prefer", "respond-async")
        .json(&body(ONEWAY));
    assert_eq!(house.app.send(keyless).await.kind(), "401 missing_api_key");
    assert_eq!(
        house.count("select count(*) from tenants").await,
        0,
        "nothing was stored"
    );
}

/// The synchronous endpoint forwards a date that has passed, so the scan does too.
#[tokio::test(flavor = "multi_thread")]
async fn a_date_that_has_passed_is_the_marketplaces_to_judge() {
    let house = House::open().await;
    let worker = house.worker(1);
    let mut asked = body(ONEWAY);
    asked["departure_date"] = json!("2020-01-01");
    let answer = prefer(&house, "wait=60", ONEWAY, &asked).await;
    worker.stop().await;
    assert_eq!(
        (answer.status, answer.header("preference-applied")),
        (200, "wait=60"),
        "{}",
        answer.text()
    );
    assert_eq!(house.app.upstream.calls()[0].body, asked);
}
