//! Limits on event streams and long polls.

use std::time::Duration;

use farescan::scans::watch::WatchSettings;
use serde_json::json;

use super::service_with;
use crate::events::client::{Events, ask};
use crate::support::app::{KEY, TestApp};
use crate::support::fares;

fn settings() -> WatchSettings {
    WatchSettings {
        min_read_interval: Duration::from_millis(20),
        ..WatchSettings::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn event_streams_are_limited_before_and_after_acceptance() {
    let service = service_with(TestApp::builder().watch(WatchSettings {
        max_clients: 80,
        ..settings()
    }))
    .await;
    let id = service.submit(&fares(3)).await;
    let mut streams = Vec::new();
    for _ in 0..5 {
        streams.push(Events::open(&service, &id, None).await);
    }
    let sixth = service.app.get(&format!("/v1/scans/{id}/events")).await;
    assert_eq!(sixth.kind(), "429 too_many_requests");
    assert_eq!(
        service
            .app
            .get(&format!("/v1/scans/{id}?wait=1"))
            .await
            .kind(),
        "429 too_many_requests",
        "a long poll counts as a stream"
    );
    for number in 0..3 {
        let key = format!("made-up-{number}");
        let theirs = service.submit_as(&key, &fares(3)).await;
        for _ in 0..5 {
            streams.push(Events::of(ask(&service, &key, &theirs, None).await));
        }
    }
    let crowd = service.submit_as("made-up-more", &fares(3)).await;
    let full = service
        .ask_as(
            "made-up-more",
            "GET",
            &format!("/v1/scans/{crowd}/events"),
            None,
        )
        .await;
    assert_eq!(
        (full.kind().as_str(), full.header("retry-after")),
        ("503 unavailable", "5"),
        "all unaccepted callers together have a quarter"
    );

    assert_eq!(
        service
            .ask_as("accepted", "GET", "/v1/verify", None)
            .await
            .status,
        200
    );
    let theirs = service.submit_as("accepted", &fares(3)).await;
    for _ in 0..15 {
        streams.push(Events::of(ask(&service, "accepted", &theirs, None).await));
    }
    let more = service
        .ask_as(
            "accepted",
            "GET",
            &format!("/v1/scans/{theirs}/events"),
            None,
        )
        .await;
    assert_eq!(
        more.kind(),
        "429 too_many_requests",
        "an accepted caller has a quarter of the 60 free ones"
    );
    let other = service.submit_as("another", &fares(3)).await;
    drop(streams.drain(..5));
    while ask(&service, "another", &other, None).await.status() != 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_paused_scans_end_before_acceptance() {
    let service = service_with(TestApp::builder().watch(WatchSettings {
        max_paused_stream: Duration::from_millis(300),
        ..settings()
    }))
    .await;
    let id = service.submit(&fares(3)).await;
    let mut running = Events::open(&service, &id, None).await;
    assert_eq!(
        running.next().await.unwrap().data["status"],
        json!("queued")
    );
    service.command(&id, "pause", &json!({})).await;
    while running.next().await.is_some() {}

    assert_eq!(service.app.get("/v1/verify").await.status, 200);
    service.submit(&fares(1)).await;
    let mut stays = Events::of(ask(&service, KEY, &id, None).await);
    assert_eq!(stays.next().await.unwrap().data["status"], json!("paused"));
    assert!(
        tokio::time::timeout(Duration::from_secs(1), stays.next())
            .await
            .is_err(),
        "an accepted caller's stream stays open"
    );
}
