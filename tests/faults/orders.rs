//! What a caller orders while the service dies, orders many times at once, or takes back while it runs.

use std::time::Duration;

use farescan::contract::scans::ScanStatus;
use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::books::Books;
use super::process::{Serve, post};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::stage::{Stage, fares};

/// One search through, so that the marketplace has accepted the key and more than one scan may be underway.
async fn warm(stage: &Stage, service: &Serve) {
    let id = service.post("/v1/scans", &fares(1)).await.body["id"]
        .as_str()
        .unwrap()
        .to_owned();
    stage.ended(id.parse().unwrap()).await;
}

/// 1,250 items.
fn large(number: usize) -> Value {
    let mut order = fares(250);
    order["request"]
        .as_object_mut()
        .unwrap()
        .remove("to_airport");
    let airport = |at: usize| {
        format!(
            "A{}{}",
            char::from(b'A' + u8::try_from(at / 26).unwrap()),
            char::from(b'A' + u8::try_from(at % 26).unwrap())
        )
    };
    order["sweep"]["to_airport"] = json!((0..5).map(airport).collect::<Vec<_>>());
    order["label"] = json!(format!("order {number}"));
    order
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_during_submits_it_has_all_of_a_scan_or_none_and_all_of_what_it_promised() {
    let seed = super::seed();
    let mut dice = StdRng::seed_from_u64(seed);
    let stage = Stage::new().await;
    let first = Serve::start(&stage, 1);
    warm(&stage, &first).await;
    first.kill();
    let mut promised = Vec::new();
    let mut usual = Duration::ZERO;
    for round in 0..6 {
        let service = Serve::with(&stage, 1, &[("FARESCAN_MAX_IN_FLIGHT", "1")]);
        let url = service.url().await;
        if round == 0 {
            // How long one takes here, by itself.
            let begun = Instant::now();
            promised.push(
                service.post("/v1/scans", &large(100)).await.body["id"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
            );
            usual = begun.elapsed();
        }
        let orders: Vec<_> = (0..4)
            .map(|number| {
                let (url, body) = (url.clone(), large(round * 4 + number));
                tokio::spawn(async move { post(&url, "/v1/scans", &body, &[]).await })
            })
            .collect();
        tokio::time::sleep(usual.mul_f64(dice.random_range(0.0..5.0))).await;
        service.kill();
        for order in orders {
            // An answer that broke off promises nothing.
            if let Ok(answer) = order.await.unwrap() {
                assert_eq!(answer.status, 202, "{}", answer.body);
                promised.push(answer.body["id"].as_str().unwrap().to_owned());
            }
        }
    }
    for id in &promised {
        let scan: farescan::ids::ScanId = id.parse().unwrap();
        assert_eq!(stage.scan(scan).await.items.total, 1_250, "{id}");
    }
    let torn = "select count(*) from scans s where s.total <> (select count(*) from scan_items i where i.scan_id = s.scan_id)";
    assert_eq!(stage.count(torn).await, 0, "seed {seed}");
    println!(
        "seed {seed}: 25 orders, {} promised, {} scans, all whole",
        promised.len(),
        stage.count("select count(*) from scans").await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_order_fifty_times_at_once_at_two_services_is_one_scan() {
    let stage = Stage::new().await;
    let services = [Serve::start(&stage, 4), Serve::start(&stage, 4)];
    let urls = [services[0].url().await, services[1].url().await];
    let (order, key) = (fares(20), [("idempotency-key", "order-1")]);
    let answers =
        join_all((0..50).map(|number| post(&urls[number % 2], "/v1/scans", &order, &key))).await;
    let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
    assert!(
        answers.iter().all(|answer| answer.status == 202),
        "{:?}",
        answers.iter().map(|it| it.status).collect::<Vec<_>>()
    );
    assert!(
        answers
            .iter()
            .all(|answer| answer.body["id"] == answers[0].body["id"])
    );
    let seen = stage
        .ended(answers[0].body["id"].as_str().unwrap().parse().unwrap())
        .await;
    assert_eq!(
        (seen.status, seen.items.ok, stage.upstream.count()),
        (ScanStatus::Completed, 20, 20)
    );
    assert_eq!(stage.count("select count(*) from scans").await, 1);
    println!("{}", Books::compare(&stage).await.complete());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_answer_to_a_pause_or_cancel_no_process_begins_a_call() {
    let stage = Stage::new().await;
    stage.upstream.on_any().answer(|call| {
        Reply::json(json!([fare(120, &call.body)])).delay(Duration::from_millis(60))
    });
    let services = [Serve::start(&stage, 8), Serve::start(&stage, 8)];
    warm(&stage, &services[0]).await;
    for (word, end) in [
        ("pause", ScanStatus::Paused),
        ("cancel", ScanStatus::Cancelled),
    ] {
        let before = stage.upstream.count();
        let id = services[0].post("/v1/scans", &fares(300)).await.body["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let scan = id.parse().unwrap();
        stage
            .upstream
            .wait_for("it is in the middle", |calls| calls.len() >= before + 40)
            .await;
        // At the service whose worker may not have heard of it.
        assert_eq!(
            services[1]
                .post(&format!("/v1/scans/{id}/{word}"), &json!({}))
                .await
                .status,
            200
        );
        let on_record = stage.count("select count(*) from attempts").await;
        let seen = stage
            .scan_when(scan, "nothing is in flight", |scan| scan.items.running == 0)
            .await;
        assert_eq!(seen.status, end);
        // Another scan goes through, so both had every chance to go on.
        warm(&stage, &services[0]).await;
        assert_eq!(
            stage.count("select count(*) from attempts").await,
            on_record + 1,
            "{word}"
        );
        assert_eq!(
            stage.count("select count(*) from answers").await,
            on_record + 1,
            "answers in flight are kept"
        );
        if word == "pause" {
            assert_eq!(
                services[0]
                    .post(&format!("/v1/scans/{id}/resume"), &json!({}))
                    .await
                    .status,
                200
            );
            assert_eq!(stage.ended(scan).await.items.ok, 300);
        }
    }
    println!("{}", Books::compare(&stage).await.complete());
}
