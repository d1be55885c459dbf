//! Scans submitted while the service is killed, submitted many times at once, or paused and
//! cancelled while running.

use std::time::Duration;

use farescan::contract::scans::ScanStatus;
use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ledger::LedgerCheck;
use super::process::{FarescanProcess, post};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{airport_code, text};
use crate::worker::fixture::{WorkerFixture, fares};

/// Completes one search, so that the marketplace has accepted the key and several scans may be
/// underway.
async fn accept_key(fixture: &WorkerFixture, service: &FarescanProcess) {
    let id = service.post("/v1/scans", &fares(1)).await.body["id"]
        .as_str()
        .unwrap()
        .to_owned();
    fixture.wait_until_ended(id.parse().unwrap()).await;
}

/// The body of a scan of 1,250 items.
fn large(number: usize) -> Value {
    let mut body = fares(250);
    body["request"]
        .as_object_mut()
        .unwrap()
        .remove("to_airport");
    body["sweep"]["to_airport"] = (0..5).map(airport_code).collect();
    body["label"] = json!(format!("order {number}"));
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_during_submits_it_stores_whole_scans_or_none() {
    let seed = super::seed();
    let mut rng = StdRng::seed_from_u64(seed);
    let fixture = WorkerFixture::new().await;
    let first = FarescanProcess::start(&fixture, 1);
    accept_key(&fixture, &first).await;
    first.kill();
    let mut accepted = Vec::new();
    let mut usual = Duration::ZERO;
    for round in 0..6 {
        let service = FarescanProcess::start_with(&fixture, 1, &[("FARESCAN_MAX_IN_FLIGHT", "1")]);
        let url = service.url().await;
        if round == 0 {
            // How long a single submit takes on this machine.
            let begun = Instant::now();
            accepted.push(
                service.post("/v1/scans", &large(100)).await.body["id"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
            );
            usual = begun.elapsed();
        }
        let submits: Vec<_> = (0..4)
            .map(|number| {
                let (url, body) = (url.clone(), large(round * 4 + number));
                tokio::spawn(async move { post(&url, "/v1/scans", &body, &[]).await })
            })
            .collect();
        tokio::time::sleep(usual.mul_f64(rng.random_range(0.0..5.0))).await;
        service.kill();
        for submit in submits {
            // Only a complete response promises the scan.
            if let Ok(answer) = submit.await.unwrap() {
                match answer.status {
                    202 => accepted.push(text(&answer.body["id"])),
                    // Refused while others are planned.
                    status => assert!(matches!(status, 429 | 503), "{}", answer.body),
                }
            }
        }
    }
    for id in &accepted {
        let scan: farescan::ids::ScanId = id.parse().unwrap();
        assert_eq!(fixture.scan(scan).await.items.total, 1_250, "{id}");
    }
    let torn = "select count(*) from scans s where s.total <> (select count(*) from scan_items i where i.scan_id = s.scan_id)";
    assert_eq!(fixture.count(torn).await, 0, "seed {seed}");
    println!(
        "seed {seed}: 25 submits, {} accepted, {} scans, all complete",
        accepted.len(),
        fixture.count("select count(*) from scans").await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_identical_submits_at_two_services_make_one_scan() {
    let fixture = WorkerFixture::new().await;
    let services = [
        FarescanProcess::start(&fixture, 4),
        FarescanProcess::start(&fixture, 4),
    ];
    let urls = [services[0].url().await, services[1].url().await];
    let (body, key) = (fares(20), [("idempotency-key", "order-1")]);
    // As a client does, a request that is refused for being one of too many is sent again.
    let submit = async |number: usize| loop {
        let answer = post(&urls[number % 2], "/v1/scans", &body, &key)
            .await
            .unwrap();
        if !matches!(answer.status, 429 | 503) {
            return answer;
        }
    };
    let answers = join_all((0..50).map(submit)).await;
    assert!(
        answers.iter().all(|answer| answer.status == 202),
        "{:?}",
        answers
            .iter()
            .map(|answer| answer.status)
            .collect::<Vec<_>>()
    );
    assert!(
        answers
            .iter()
            .all(|answer| answer.body["id"] == answers[0].body["id"])
    );
    let seen = fixture
        .wait_until_ended(answers[0].body["id"].as_str().unwrap().parse().unwrap())
        .await;
    assert_eq!(
        (seen.status, seen.items.ok, fixture.upstream.count()),
        (ScanStatus::Completed, 20, 20)
    );
    assert_eq!(fixture.count("select count(*) from scans").await, 1);
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_pause_or_cancel_response_no_call_begins() {
    let fixture = WorkerFixture::new().await;
    fixture.upstream.answer(|call| {
        Reply::json(json!([fare(120, &call.body)])).delay(Duration::from_millis(60))
    });
    let services = [
        FarescanProcess::start(&fixture, 8),
        FarescanProcess::start(&fixture, 8),
    ];
    accept_key(&fixture, &services[0]).await;
    for (word, end) in [
        ("pause", ScanStatus::Paused),
        ("cancel", ScanStatus::Cancelled),
    ] {
        let before = fixture.upstream.count();
        let id = services[0].post("/v1/scans", &fares(300)).await.body["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let scan = id.parse().unwrap();
        fixture
            .upstream
            .wait_for("the scan is underway", |calls| calls.len() >= before + 40)
            .await;
        // Sent to the other service, whose worker may not know of the scan.
        assert_eq!(
            services[1]
                .post(&format!("/v1/scans/{id}/{word}"), &json!({}))
                .await
                .status,
            200
        );
        let on_record = fixture.count("select count(*) from attempts").await;
        let seen = fixture
            .wait_for_scan(scan, "nothing is in flight", |scan| scan.items.running == 0)
            .await;
        assert_eq!(seen.status, end);
        // Another scan completes, so both services could have continued.
        accept_key(&fixture, &services[0]).await;
        assert_eq!(
            fixture.count("select count(*) from attempts").await,
            on_record + 1,
            "{word}"
        );
        assert_eq!(
            fixture.count("select count(*) from answers").await,
            on_record + 1,
            "answers in flight are stored"
        );
        if word == "pause" {
            assert_eq!(
                services[0]
                    .post(&format!("/v1/scans/{id}/resume"), &json!({}))
                    .await
                    .status,
                200
            );
            assert_eq!(fixture.wait_until_ended(scan).await.items.ok, 300);
        }
    }
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}
