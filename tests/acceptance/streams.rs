//! Seats of events and long polls.

use std::time::Duration;

use farescan::scans::watch::WatchSettings;
use serde_json::json;

use super::{house_with, send};
use crate::control::house::fares;
use crate::events::client::{Events, ask};
use crate::support::app::{KEY, TestApp};

fn settings() -> WatchSettings {
    WatchSettings {
        gap: Duration::from_millis(20),
        ..WatchSettings::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_streams_before_acceptance_and_a_share_after() {
    let house = house_with(TestApp::builder().watch(WatchSettings {
        clients: 80,
        ..settings()
    }))
    .await;
    let id = house.order(&fares(3)).await;
    let mut streams = Vec::new();
    for _ in 0..5 {
        streams.push(Events::open(&house.app, &id, None).await);
    }
    let sixth = house.app.get(&format!("/v1/scans/{id}/events")).await;
    assert_eq!(sixth.kind(), "429 too_many_requests");
    assert_eq!(
        house
            .app
            .get(&format!("/v1/scans/{id}?wait=1"))
            .await
            .kind(),
        "429 too_many_requests",
        "a long poll is one too"
    );
    for number in 0..3 {
        let key = format!("made-up-{number}");
        let theirs = house.order_as(&key, &fares(3)).await;
        for _ in 0..5 {
            streams.push(Events::of(ask(&house.app, &key, &theirs, None).await));
        }
    }
    let crowd = house.order_as("made-up-more", &fares(3)).await;
    let full = send(
        &house.app,
        "made-up-more",
        "GET",
        &format!("/v1/scans/{crowd}/events"),
        None,
    )
    .await;
    assert_eq!(
        (full.kind().as_str(), full.header("retry-after")),
        ("503 unavailable", "5"),
        "all such callers have a quarter"
    );

    assert_eq!(
        send(&house.app, "accepted", "GET", "/v1/verify", None)
            .await
            .status,
        200
    );
    let theirs = house.order_as("accepted", &fares(3)).await;
    for _ in 0..15 {
        streams.push(Events::of(ask(&house.app, "accepted", &theirs, None).await));
    }
    let more = send(
        &house.app,
        "accepted",
        "GET",
        &format!("/v1/scans/{theirs}/events"),
        None,
    )
    .await;
    assert_eq!(
        more.kind(),
        "429 too_many_requests",
        "a quarter of the 60 that the others leave"
    );
    let other = house.order_as("another", &fares(3)).await;
    drop(streams.drain(..5));
    while ask(&house.app, "another", &other, None).await.status() != 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn before_acceptance_a_stream_of_a_paused_scan_ends() {
    let house = house_with(TestApp::builder().watch(WatchSettings {
        paused_stream: Duration::from_millis(300),
        ..settings()
    }))
    .await;
    let id = house.order(&fares(3)).await;
    let mut running = Events::open(&house.app, &id, None).await;
    assert_eq!(
        running.next().await.unwrap().data["status"],
        json!("queued")
    );
    house.say(&id, "pause", &json!({})).await;
    while running.next().await.is_some() {}

    assert_eq!(house.app.get("/v1/verify").await.status, 200);
    house.order(&fares(1)).await;
    let mut stays = Events::of(ask(&house.app, KEY, &id, None).await);
    assert_eq!(stays.next().await.unwrap().data["status"], json!("paused"));
    assert!(
        tokio::time::timeout(Duration::from_secs(1), stays.next())
            .await
            .is_err(),
        "an accepted caller's stream stays"
    );
}
