//! Answers that are there when a scan is submitted.

use serde_json::{Value, json};

use super::{reusing, run};
use crate::support::reply::Reply;
use crate::support::service::{TestService, fares, fares_with, with};
use crate::support::upstream::fare;

/// Each date has a price of its own.
fn price_of_day(call: &Value) -> u64 {
    let date = call["departure_date"].as_str().unwrap();
    100 + date[8..].parse::<u64>().unwrap()
}

/// What an item says about its answer.
fn answer_of(item: &Value) -> Vec<Value> {
    [
        "search",
        "state",
        "search_status",
        "reason",
        "results",
        "best_price",
        "currency",
        "observed_at",
        "answer",
    ]
    .map(|field| item[field].clone())
    .to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_takes_the_answer_of_an_equal_search() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    service
        .upstream
        .answer(|call| Reply::json(json!([fare(price_of_day(&call.body), &call.body)])));
    let first = service.submit(&fares(3)).await;
    service.wait_until_ended(&first).await;
    let observations = "select count(*) from observations";
    assert_eq!(service.count(observations).await, 3);

    let scan = run(&service, &reusing(5)).await;
    assert_eq!(scan["status"], "completed");
    assert_eq!(
        scan["requests"],
        json!({
            "planned": 5, "spent": 2, "max": null,
            "avoided": {"reused": 3, "joined": 0, "not_needed": 0}
        })
    );
    assert_eq!(scan["best"]["price"], 101);
    assert_eq!(
        service.count(observations).await,
        5,
        "a reuse observes nothing"
    );

    let expanded = |id: &str| format!("/v1/scans/{id}/items?expand=answer");
    let originals = service.page(&expanded(&first)).await;
    let items = service.page(&expanded(scan["id"].as_str().unwrap())).await;
    for (item, original) in items.iter().zip(&originals) {
        assert_eq!(answer_of(item), answer_of(original));
        let attempts = format!("/v1/items/{}/attempts", original["id"].as_str().unwrap());
        assert_eq!(item["reused_item"], original["id"]);
        assert_eq!(item["reused_from"], service.page(&attempts).await[0]["id"]);
        assert!(item["age_seconds"].as_u64().unwrap() < 60, "{item:#}");
        assert_eq!(
            (
                &item["attempts"],
                &item["requests_spent"],
                &item["latency_ms"]
            ),
            (&json!(0), &json!(0), &Value::Null)
        );
    }
    for item in &items[3..] {
        assert_eq!(item["attempts"], 1);
        assert!(item.get("reused_from").is_none() && item.get("age_seconds").is_none());
    }
    let grid = async |id: &Value| {
        let path = format!(
            "/v1/scans/{}/grid?rows=departure_date",
            id.as_str().unwrap()
        );
        service.get(&path).await["cells"].as_array().unwrap()[..3].to_vec()
    };
    let price = |cell: &Value| {
        (
            cell["row"].clone(),
            cell["price"].clone(),
            cell["buy_link"].clone(),
        )
    };
    assert_eq!(
        grid(&scan["id"])
            .await
            .iter()
            .map(price)
            .collect::<Vec<_>>(),
        grid(&json!(first))
            .await
            .iter()
            .map(price)
            .collect::<Vec<_>>()
    );
    worker.stop().await;
    service.check_ledger().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_whose_answers_are_all_there_ends_at_once_and_outlives_them() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    let first = service.submit(&fares(4)).await;
    service.wait_until_ended(&first).await;
    worker.stop().await;
    // No worker runs: nothing but the submit can end it.
    let scan = run(&service, &reusing(4)).await;
    assert_eq!(
        (&scan["status"], &scan["started_at"]),
        (&json!("completed"), &Value::Null)
    );
    assert_eq!(scan["key_custody"], Value::Null);
    service
        .delete(&format!("/v1/scans/{first}"))
        .await
        .expect(204);
    let path = format!(
        "/v1/scans/{}/items?expand=answer",
        scan["id"].as_str().unwrap()
    );
    for item in service.page(&path).await {
        assert!(item["answer"].is_array(), "{item:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_spells_out_defaults_is_equal() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    let first = service.submit(&fares(2)).await;
    service.wait_until_ended(&first).await;
    let mut body = reusing(2);
    body["request"] = json!({
        "from_airport": "tlv", "to_airport": "LHR", "currency": "USD",
        "limit": 50, "strict": false, "use_ext_proxy": true
    });
    let scan = run(&service, &body).await;
    worker.stop().await;
    assert_eq!(scan["requests"]["avoided"]["reused"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_counts_the_answers_that_are_there() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    let first = service.submit(&fares(3)).await;
    service.wait_until_ended(&first).await;
    worker.stop().await;
    let preview = async |body: &Value| {
        service
            .post("/v1/scans/preview", body)
            .await
            .expect(200)
            .json()
    };
    let plain = preview(&fares(5)).await;
    assert_eq!(plain["requests"], json!({"least": 5, "most": 10}));
    assert!(plain.get("reused").is_none());
    let reusing_five = preview(&reusing(5)).await;
    assert_eq!(reusing_five["requests"], json!({"least": 2, "most": 4}));
    assert_eq!(reusing_five["reused"], 3);
    let another = service
        .post_as("another-key-0123456789", "/v1/scans/preview", &reusing(5))
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&another["reused"], &another["requests"]["least"]),
        (&json!(0), &json!(5))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_decisions_of_a_question_take_answers() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    service
        .upstream
        .answer(|call| Reply::json(json!([fare(price_of_day(&call.body), &call.body)])));
    let first = service.submit(&fares(2)).await;
    service.wait_until_ended(&first).await;
    // Two dates are known, and found again by their bounds. Nine are too few for patience to end it.
    let body = with(reusing(9), &json!({"strategy": {"find": "cheapest"}}));
    let scan = run(&service, &body).await;
    assert_eq!(
        scan["requests"],
        json!({
            "planned": 9, "spent": 7, "max": null,
            "avoided": {"reused": 2, "joined": 0, "not_needed": 0}
        })
    );
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_takes_the_answers_that_are_young_enough() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    let first = service.submit(&fares(2)).await;
    service.wait_until_ended(&first).await;
    let monitor = service
        .create_monitor(&json!({
            "name": "reusing",
            "scan": reusing(3),
            "schedule": {"cron": "0 0 1 1 *", "timezone": "UTC"}
        }))
        .await;
    let run = service
        .post(&format!("/v1/monitors/{monitor}/run"), &json!({}))
        .await
        .json();
    let scan = service.wait_until_ended(run["id"].as_str().unwrap()).await;
    assert_eq!(
        (
            &scan["requests"]["spent"],
            &scan["requests"]["avoided"]["reused"]
        ),
        (&json!(1), &json!(2))
    );
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_requests_may_be_what_the_preview_says() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    let first = service.submit(&fares(3)).await;
    service.wait_until_ended(&first).await;
    let scan = run(&service, &with(reusing(5), &json!({"max_requests": 2}))).await;
    assert_eq!(
        (&scan["status"], &scan["requests"]["spent"]),
        (&json!("completed"), &json!(2))
    );
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_age_are_named() {
    let service = TestService::start().await;
    for age in [json!(-1), json!(2_678_401), json!("1h")] {
        let refused = service
            .post(
                "/v1/scans",
                &fares_with(1, &json!({"max_age_seconds": age})),
            )
            .await
            .expect(400)
            .json();
        let detail = &refused["error"]["details"][0];
        assert_eq!(detail["field"], "max_age_seconds", "{refused:#}");
    }
    let mut samples = reusing(1);
    samples["sweep"]["samples"] = json!(2);
    let refused = service.post("/v1/scans", &samples).await.expect(400).json();
    assert_eq!(refused["error"]["details"][0]["field"], "max_age_seconds");
}
