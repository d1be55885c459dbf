//! A preference is never an error: if it cannot be honoured, the search is sent synchronously,
//! once.

use std::num::NonZeroU32;

use farescan::config::RateLimitConfig;
use farescan::contract::Endpoint;
use serde_json::json;

use super::answers::prefer;
use crate::gateway::endpoints::{bodies, body};
use crate::support::app::{HttpResponse, KEY, TestApp};
use crate::support::db::{TestDb, unreachable_database};
use crate::support::{TestService, fares};

const ONEWAY: Endpoint = Endpoint::FlightsOneway;

async fn send_with_preference(
    app: &TestApp,
    path: &str,
    body: &serde_json::Value,
    once: Option<&str>,
) -> HttpResponse {
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
async fn without_key_custody_the_search_is_synchronous() {
    let app = TestApp::start().await;
    for (number, (endpoint, _, body)) in bodies().into_iter().enumerate() {
        let answer = send_with_preference(&app, &format!("/v1/{endpoint}"), &body, None).await;
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
    let sent = app.upstream.count();
    let once = send_with_preference(&app, "/v1/flights/oneway", &body(ONEWAY), Some("k")).await;
    assert_eq!(
        once.kind(),
        "503 key_custody_disabled",
        "its repetition would be billed again"
    );
    assert_eq!(app.upstream.count(), sent);
    assert_eq!(
        app.post("/v1/flights/oneway", &body(ONEWAY))
            .await
            .header("vary"),
        "Prefer",
        "also without one"
    );
}

#[tokio::test]
async fn without_the_database_only_keyless_searches_are_sent() {
    let (pool, options) = unreachable_database();
    let app = TestApp::builder().scan_api(pool, options).start().await;
    let answer = send_with_preference(&app, "/v1/flights/oneway", &body(ONEWAY), None).await;
    assert_eq!(
        (
            answer.status,
            answer.header("preference-applied"),
            app.upstream.count()
        ),
        (200, "", 1)
    );
    let answer = send_with_preference(&app, "/v1/flights/oneway", &body(ONEWAY), Some("k")).await;
    assert_eq!(
        answer.kind(),
        "503 unavailable",
        "an equal request may be stored already"
    );
    assert_eq!(app.upstream.count(), 1);
}

#[tokio::test]
async fn at_a_limit_only_searches_without_a_key_are_synchronous() {
    let service = TestService::start().await;
    for _ in 0..100 {
        service.submit(&fares(1)).await;
    }
    let answer = prefer(&service, "respond-async", ONEWAY, &body(ONEWAY)).await;
    assert_eq!(
        (
            answer.status,
            answer.header("preference-applied"),
            service.upstream.count()
        ),
        (200, "", 1)
    );
    let answer =
        send_with_preference(&service, "/v1/flights/oneway", &body(ONEWAY), Some("k")).await;
    assert_eq!(
        (answer.kind().as_str(), answer.header("retry-after")),
        ("429 too_many_requests", "60")
    );
    assert_eq!(
        (
            service.upstream.count(),
            service.count("select count(*) from scans").await
        ),
        (1, 100)
    );
}

/// A stored search is a submit, so it takes a token of its caller's rate limit; a synchronous one
/// does not.
#[tokio::test]
async fn the_rate_limit_refuses_only_searches_with_a_key() {
    let limits = RateLimitConfig {
        requests_per_second: NonZeroU32::MIN,
        request_burst: NonZeroU32::MIN,
    };
    let db = TestDb::new().await;
    let app = TestApp::builder()
        .database(&db)
        .state(move |app| app.with_rate_limits(&limits))
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
    // The limit regains a token each second, so a slow machine needs a few more tries.
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
async fn unknown_preferences_have_no_effect() {
    let service = TestService::start().await;
    for preference in [
        "return=minimal",
        "handling=lenient",
        "wait=soon",
        "respond-async=1",
        "",
        "wait=-5",
        ";;=,,",
    ] {
        let answer = prefer(&service, preference, ONEWAY, &body(ONEWAY)).await;
        assert_eq!(
            (answer.status, answer.header("preference-applied")),
            (200, ""),
            "{preference}"
        );
    }
    let resolve = prefer(
        &service,
        "respond-async",
        Endpoint::HotelsResolve,
        &body(Endpoint::HotelsResolve),
    )
    .await;
    assert_eq!(resolve.status, 200, "resolve is not a price search");
    assert_eq!(service.count("select count(*) from scans").await, 0);
    let waits = prefer(
        &service,
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
    let keyless = service
        .request("POST", "/v1/flights/oneway")
        .header("prefer", "respond-async")
        .json(&body(ONEWAY));
    assert_eq!(service.send(keyless).await.kind(), "401 missing_api_key");
    assert_eq!(
        service.count("select count(*) from scans").await,
        0,
        "nothing was stored"
    );
}

/// The synchronous endpoint forwards a past date, so the scan does too.
#[tokio::test(flavor = "multi_thread")]
async fn a_past_date_is_forwarded_to_the_marketplace() {
    let service = TestService::start().await;
    let worker = service.start_worker(1);
    let mut request_body = body(ONEWAY);
    request_body["departure_date"] = json!("2020-01-01");
    let answer = prefer(&service, "wait=60", ONEWAY, &request_body).await;
    worker.stop().await;
    assert_eq!(
        (answer.status, answer.header("preference-applied")),
        (200, "wait=60"),
        "{}",
        answer.text()
    );
    assert_eq!(service.upstream.calls()[0].body, request_body);
}
