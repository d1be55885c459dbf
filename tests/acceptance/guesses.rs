//! Guessed keys, sent to verify and to searches.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _};
use serde_json::json;

use super::service;
use crate::support::app::TestApp;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;

const GOOD: &str = "a-good-key";

#[tokio::test(flavor = "multi_thread")]
async fn guessed_keys_are_relayed_within_the_rate_limit() {
    let service = service().await;
    service.upstream.answer(|call| match call.key.as_str() {
        GOOD | "known-to-the-database" => Reply::json(json!([fare(120, &call.body)])),
        _ => Reply::status(401),
    });
    let search =
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-14"});
    assert_eq!(
        service
            .ask_as(GOOD, "POST", "/v1/flights/oneway", Some(&search))
            .await
            .status,
        200
    );
    service
        .submit_as("known-to-the-database", &crate::support::service::fares(1))
        .await;
    execute!(service.pool(), "update tenants set accepted_at = now()");

    let began = Instant::now();
    let (app, search) = (&service, &search);
    // A hundred at a time: a busy machine would connect to more of them before it sends, and the
    // service closes connections that send nothing.
    let guesses = stream::iter(0..600).map(async |number| {
        let key = format!("guess-{number}");
        match number % 2 {
            0 => app.ask_as(&key, "GET", "/v1/verify", None).await,
            _ => {
                app.ask_as(&key, "POST", "/v1/flights/oneway", Some(search))
                    .await
            }
        }
    });
    let answers: Vec<_> = guesses.buffer_unordered(100).collect().await;
    let took = began.elapsed();
    let relayed = service
        .upstream
        .calls()
        .iter()
        .filter(|call| call.key.starts_with("guess-"))
        .count();
    let held_back: Vec<_> = answers
        .iter()
        .filter(|answer| matches!(answer.status, 429 | 503))
        .collect();
    println!(
        "600 guessed keys in {took:.1?}: {relayed} relayed, {} held back",
        held_back.len()
    );
    let most = 200 + 20 * (usize::try_from(took.as_secs()).unwrap() + 1);
    assert!(
        relayed <= most && held_back.len() == 600 - relayed,
        "{relayed} relayed, {} held back",
        held_back.len()
    );
    assert!(
        held_back
            .iter()
            .all(|answer| !answer.header("retry-after").is_empty())
    );
    for key in [GOOD, "known-to-the-database"] {
        assert_eq!(
            app.ask_as(key, "POST", "/v1/flights/oneway", Some(search))
                .await
                .status,
            200,
            "{key} is known as accepted"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_in_flight_are_bounded() {
    let app = TestApp::builder()
        .state(|app| app.with_search_limit(2))
        .start()
        .await;
    let gate = Gate::closed();
    let call_gate = gate.clone();
    app.upstream
        .answer(move |call| Reply::json(json!([fare(120, &call.body)])).gated_by(&call_gate));
    let search =
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-14"});
    let (first, second, third) = tokio::join!(
        app.post("/v1/flights/oneway", &search),
        app.get("/v1/verify"),
        async {
            app.upstream.wait_for_in_flight(2).await;
            let third = app.post("/v1/flights/oneway", &search).await;
            gate.open();
            third
        }
    );
    assert_eq!(
        (third.kind().as_str(), third.header("retry-after")),
        ("503 unavailable", "5"),
        "{}",
        third.text()
    );
    assert_eq!((first.status, second.status), (200, 200));
    let after = tokio::time::timeout(
        Duration::from_secs(30),
        app.post("/v1/flights/oneway", &search),
    )
    .await
    .unwrap();
    assert_eq!(after.status, 200);
}
