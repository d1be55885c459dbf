//! Rate limits per caller on our own routes (security.md, rule 23).

use std::num::NonZeroU32;

use farescan::config::RateLimitConfig;
use serde_json::json;

use crate::support::app::{HttpResponse, KEY, TestApp};
use crate::support::db::TestDb;

const BURST: u32 = 4;

/// A service with a burst of four requests and one more per second.
async fn strict() -> (TestDb, TestApp) {
    let limits = RateLimitConfig {
        requests_per_second: NonZeroU32::MIN,
        request_burst: NonZeroU32::new(BURST).unwrap(),
    };
    let db = TestDb::new().await;
    let app = TestApp::builder()
        .database(&db)
        .state(move |app| app.with_rate_limits(&limits))
        .start()
        .await;
    (db, app)
}

/// Sends until a request is refused. Tokens refill each second, so a slow machine needs more
/// requests.
async fn refused(app: &TestApp, method: &str, path: &str, key: &str) -> Option<HttpResponse> {
    for _ in 0..30 {
        let answer = app
            .send(
                app.request(method, path)
                    .header("x-api-key", key)
                    .json(&json!({})),
            )
            .await;
        if answer.status == 429 {
            return Some(answer);
        }
    }
    None
}

#[tokio::test]
async fn rate_limits_are_per_caller_and_give_retry_after() {
    let (_db, app) = strict().await;
    for _ in 0..BURST {
        assert_eq!(app.get("/v1/scans").await.status, 200);
    }
    let answer = refused(&app, "GET", "/v1/scans", KEY)
        .await
        .expect("the burst ends");
    assert_eq!(answer.kind(), "429 too_many_requests");
    assert!(
        answer
            .message()
            .contains(&format!("requests/s sustained, burst {BURST}")),
        "{}",
        answer.message()
    );
    assert_eq!(answer.header("retry-after"), "1");
    assert!(!answer.header("x-request-id").is_empty());
    let other = app
        .send(
            app.request("GET", "/v1/scans")
                .header("x-api-key", "another-callers-key"),
        )
        .await;
    assert_eq!(other.status, 200, "another caller has a bucket of its own");
}

#[tokio::test]
async fn own_routes_are_rate_limited_the_specified_seven_are_not() {
    let (_db, app) = strict().await;
    app.upstream.answer_fares(120);
    let description = app.send(app.request("GET", "/openapi.json")).await.json();
    let mut limited = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let ours = path.starts_with("/v1/")
                && !["/v1/flights/", "/v1/hotels/", "/v1/verify"]
                    .iter()
                    .any(|specified| path.starts_with(specified));
            let path = path
                .split('/')
                .map(|part| if part.starts_with('{') { "x" } else { part })
                .collect::<Vec<_>>()
                .join("/");
            let answer = refused(&app, &method.to_uppercase(), &path, KEY).await;
            assert_eq!(answer.is_some(), ours, "{method} {path}");
            assert_eq!(
                operation["responses"]["429"].is_object(),
                path.starts_with("/v1/")
            );
            limited += usize::from(ours);
        }
    }
    assert!(limited > 10, "{limited}");
}

#[tokio::test]
async fn requests_without_a_key_always_get_401() {
    let (_db, app) = strict().await;
    for _ in 0..3 * BURST {
        assert_eq!(
            app.send(app.request("GET", "/v1/scans")).await.kind(),
            "401 missing_api_key"
        );
        let placeholder = app
            .request("GET", "/v1/scans")
            .header("x-api-key", "YOUR_API_KEY");
        assert_eq!(app.send(placeholder).await.kind(), "401 invalid_api_key");
    }
}
