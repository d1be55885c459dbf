//! Of a product and its dates the newest answer that satisfies is taken, whatever came after it
//! (scans.md, rule 74; gateway.md, rule 54).

use serde_json::{Value, json};

use super::{reusing, run};
use crate::support::reply::Reply;
use crate::support::service::{TestService, day, fares, with};
use crate::support::upstream::fare;
use crate::support::wait_until;

const PATH: &str = "/v1/flights/oneway";

/// Sends a single search of the n-th date that may take an answer of an hour, and waits until it is
/// stored; returns its requests.
async fn search(service: &TestService, date: usize, age: u32) -> u64 {
    let stored = async || -> i64 {
        value!(
            service.pool(),
            "select count(*) from scans where verbatim and finished_at is not null"
        )
    };
    let before = stored().await;
    let body = with(
        fares(1)["request"].clone(),
        &json!({"departure_date": day(date)}),
    );
    let request = service
        .request("POST", PATH)
        .header("x-api-key", crate::support::app::KEY)
        .header("cache-control", format!("max-age={age}"));
    let response = service.send(request.json(&body)).await.expect(200);
    let spent = response.header("x-upstream-requests").parse().unwrap();
    wait_until("the search is stored", async || {
        stored().await == before + i64::try_from(spent).unwrap()
    })
    .await;
    spent
}

async fn spent_by(service: &TestService, body: &Value) -> u64 {
    let id = service.submit(body).await;
    let scan = service.wait_until_ended(&id).await;
    scan["requests"]["spent"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn single_searches_and_scans_hide_no_answers_from_each_other() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    service.accept_key().await;
    let before = service.upstream.count();
    let mut spent = Vec::new();
    for _ in 0..5 {
        spent.push((
            search(&service, 1, 3600).await,
            spent_by(&service, &reusing(5)).await,
        ));
    }
    worker.stop().await;
    assert_eq!(spent, [(1, 5), (0, 0), (0, 0), (0, 0), (0, 0)]);
    assert_eq!(service.upstream.count() - before, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn scans_of_other_limits_hide_no_answers_from_each_other() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    let limited = |limit: u32| with(reusing(3), &json!({"upstream_limit": limit}));
    let mut spent = Vec::new();
    for _ in 0..3 {
        for limit in [5, 20] {
            spent.push(spent_by(&service, &limited(limit)).await);
        }
    }
    worker.stop().await;
    assert_eq!(spent, [3, 3, 0, 0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_answer_hides_no_complete_one() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    service.upstream.replies([
        Reply::json(json!([fare(120, &json!({}))])),
        Reply::json(json!([fare(90, &json!({}))]))
            .header("x-search-status", "partial")
            .header("x-search-reason", "search_truncated"),
    ]);
    let spent = [
        spent_by(&service, &fares(1)).await,
        spent_by(&service, &fares(1)).await,
    ];
    assert_eq!(spent, [1, 1]);
    let scan = run(&service, &reusing(1)).await;
    worker.stop().await;
    assert_eq!(
        (&scan["requests"]["spent"], &scan["best"]["price"]),
        (&json!(0), &json!(120)),
        "{scan:#}"
    );
}
