//! The admin listener: health, readiness, metrics.

use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::app::TestApp;
use crate::support::db::{PrivatePg, TestDb};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{TestService, fares};

#[tokio::test]
async fn ready_requires_a_migrated_database_and_no_shutdown() {
    let (db, stop) = (TestDb::new().await, CancellationToken::new());
    let shutdown = stop.clone();
    let app = TestApp::builder()
        .database(&db)
        .state(|app| app.with_stop(shutdown))
        .start()
        .await;
    assert_eq!(app.admin("/healthz").await.json(), json!({"status": "ok"}));
    assert_eq!(app.admin("/readyz").await.json(), json!({"status": "ok"}));
    let nothing = app.admin("/docs").await;
    assert_eq!(nothing.kind(), "404 not_found");
    assert!(
        nothing.message().contains("/healthz, /readyz and /metrics"),
        "what there is here: {}",
        nothing.message()
    );

    execute!(
        db.pool(),
        "alter table _sqlx_migrations rename to elsewhere"
    );
    let answer = app.admin("/readyz").await;
    assert_eq!(answer.kind(), "503 unavailable");
    assert!(
        answer.message().contains("farescan migrate"),
        "{}",
        answer.message()
    );
    execute!(
        db.pool(),
        "alter table elsewhere rename to _sqlx_migrations"
    );
    assert_eq!(app.admin("/readyz").await.status, 200);

    stop.cancel();
    let answer = app.admin("/readyz").await;
    assert_eq!(answer.kind(), "503 unavailable");
    assert!(
        answer.message().contains("shutting down"),
        "{}",
        answer.message()
    );
    assert_eq!(
        app.admin("/healthz").await.status,
        200,
        "it lives until its calls are recorded"
    );
    assert_eq!(app.upstream.count(), 0, "the marketplace was never asked");
}

#[tokio::test]
async fn without_a_database_the_process_is_unready_but_alive() {
    let mut server = PrivatePg::start().await;
    let database = server.open().await;
    farescan::db::migrate(database.pool()).await.unwrap();
    let app = TestApp::builder()
        .pool(database.pool().clone())
        .start()
        .await;
    assert_eq!(app.admin("/readyz").await.status, 200);
    server.stop_immediate().await;
    assert_eq!(app.admin("/readyz").await.kind(), "503 unavailable");
    assert_eq!(app.admin("/healthz").await.status, 200);
    assert_eq!(app.admin("/metrics").await.status, 200);
    server.restart().await;
    assert_eq!(app.admin("/readyz").await.status, 200);
}

#[tokio::test]
async fn admin_routes_are_not_on_the_public_listener() {
    let app = TestApp::start().await;
    let description = app.send(app.request("GET", "/openapi.json")).await.json();
    for path in ["/readyz", "/metrics"] {
        assert_eq!(
            app.send(app.request("GET", path)).await.kind(),
            "404 not_found"
        );
        assert!(description["paths"][path].is_null());
    }
    assert_eq!(app.admin("/v1/scans").await.kind(), "404 not_found");
}

/// The value of a series; `None` if it does not exist.
fn value(metrics: &str, series: &str) -> Option<f64> {
    metrics
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_a_scan_and_name_no_caller() {
    let service = TestService::start().await;
    service.upstream.answer(|call| {
        if call.body["departure_date"] == "2030-01-02" {
            return Reply::search_incomplete("blocked_page");
        }
        Reply::json(json!([fare(120, &call.body)]))
    });
    let before = service.admin("/metrics").await.text();
    let worker = service.start_worker(4);
    let scan = service.submit(&fares(5)).await;
    service.wait_until_ended(&scan).await;
    worker.stop().await;
    let answer = service.admin("/metrics").await;
    assert!(
        answer
            .header("content-type")
            .starts_with("text/plain; version=0.0.4"),
        "{}",
        answer.header("content-type")
    );
    let after = answer.text();
    // Other tests in this process may add to the counters.
    let grown =
        |series: &str| value(&after, series).unwrap_or(0.0) - value(&before, series).unwrap_or(0.0);
    for (series, least) in [
        (
            r#"farescan_upstream_search_duration_seconds_count{endpoint="flights/oneway",outcome="unstated"}"#,
            4.0,
        ),
        (
            r#"farescan_upstream_search_duration_seconds_count{endpoint="flights/oneway",outcome="search_incomplete"}"#,
            1.0,
        ),
        (
            r#"farescan_upstream_billed_requests_total{endpoint="flights/oneway"}"#,
            5.0,
        ),
        (r#"farescan_items_ended_total{end="ok"}"#, 4.0),
        (r#"farescan_items_ended_total{end="degraded"}"#, 1.0),
        (r#"farescan_queue_batch_size_sum{step="claim"}"#, 5.0),
        (r#"farescan_queue_batch_size_sum{step="begin"}"#, 5.0),
        (r#"farescan_queue_batch_size_sum{step="record"}"#, 5.0),
        (
            r#"farescan_http_request_duration_seconds_count{route="/v1/scans",method="POST",status="2xx"}"#,
            1.0,
        ),
        (
            r#"farescan_http_request_duration_seconds_count{route="/v1/scans/{id}",method="GET",status="2xx"}"#,
            1.0,
        ),
    ] {
        assert!(
            grown(series) >= least,
            "{series}: {}\n{after}",
            grown(series)
        );
    }
    assert_eq!(value(&after, "farescan_answers_waiting"), Some(0.0));
    assert_eq!(
        value(&after, r#"farescan_items_ended_total{end="worker_lost"}"#),
        Some(0.0)
    );
    let renewed =
        value(&after, "farescan_lease_renewed_timestamp_seconds").expect("the lease was taken");
    let now = jiff::Timestamp::now().as_duration().as_secs_f64();
    assert!(
        (now - renewed).abs() < Duration::from_secs(600).as_secs_f64(),
        "{renewed}"
    );
    assert!(
        value(
            &after,
            r#"farescan_database_connections{pool="reads",state="idle"}"#
        )
        .is_some()
    );
    assert_eq!(
        value(
            &after,
            &format!(
                "farescan_build_info{{version=\"{}\"}}",
                env!("CARGO_PKG_VERSION")
            )
        ),
        Some(1.0)
    );
    for private in [
        scan.as_str(),
        scan.trim_start_matches("scn_"),
        crate::support::app::KEY,
        "TLV",
        "2030-01",
        "blocked_page",
    ] {
        assert!(!after.contains(private), "{private}: {after}");
    }
    assert!(!after.contains("quantile="), "every histogram has buckets");
}

/// A page whose name was made to lead to this machine reads nothing.
#[tokio::test]
async fn on_loopback_only_an_address_or_localhost_is_a_host() {
    let app = TestApp::start().await;
    let port = app.admin_url().rsplit(':').next().unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for (host, status) in [
        ("evil.example".to_owned(), 400),
        (format!("evil.example:{port}"), 400),
        (format!("localhost.evil.example:{port}"), 400),
        (format!("127.0.0.1.nip.io:{port}"), 400),
        (format!("localhost:{port}"), 200),
        (format!("LOCALHOST:{port}"), 200),
        (format!("127.0.0.1:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        ("127.0.0.1".to_owned(), 200),
    ] {
        for path in ["/healthz", "/metrics"] {
            let url = format!("{}{path}", app.admin_url());
            let request = client.get(url).header("host", &host);
            let answer = app.send(request).await;
            assert_eq!(answer.status, status, "{host} {path}");
        }
    }
}
