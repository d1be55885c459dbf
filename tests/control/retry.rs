//! Retries: automatic ones, and those by the caller, on running and ended scans.

use std::collections::BTreeMap;

use farescan::contract::Endpoint;
use serde_json::json;

use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::support::{TestService, assert_counts_add_up, day, fares, fares_with};

#[tokio::test(flavor = "multi_thread")]
async fn only_retryable_results_are_retried_up_to_max_attempts() {
    let service = TestService::start().await;
    let worker = service.start_worker(1);
    // By date: the outcome of each attempt; the last one repeats.
    let ok = || Reply::json(json!([fare(164, &json!({}))]));
    let mut script: BTreeMap<String, Vec<Reply>> = [
        (day(1), vec![ok()]),
        (day(2), vec![Reply::search_incomplete("blocked_page"), ok()]),
        (day(3), vec![Reply::search_incomplete("blocked_page")]),
        (day(4), vec![Reply::json(json!([]))]),
        (
            day(5),
            vec![Reply::status(422).with_json(json!({"detail": "no such airport"}))],
        ),
        (day(6), vec![ok().header("x-search-status", "partial")]),
        (
            day(7),
            vec![
                Reply::status(502),
                Reply::status(502),
                Reply::status(502),
                ok(),
            ],
        ),
    ]
    .into();
    service
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(move |call| {
            let replies = script
                .get_mut(call.body["departure_date"].as_str().unwrap())
                .unwrap();
            if replies.len() > 1 {
                replies.remove(0)
            } else {
                replies[0].clone()
            }
        });
    let id = service
        .submit(&fares_with(
            7,
            &json!({"retry": {"max_attempts": 3, "delay_seconds": 0}}),
        ))
        .await;
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_counts_add_up(&ended);
    let seen: Vec<_> = service
        .items(&id)
        .await
        .iter()
        .map(|item| {
            json!([
                item["state"],
                item["search_status"],
                item["attempts"],
                item["requests_spent"]
            ])
        })
        .collect();
    let expected = [
        json!(["done", "ok", 1, 1]),
        json!(["done", "ok", 2, 2]),
        json!(["done", "degraded", 3, 3]),
        json!(["done", "empty", 1, 1]),
        json!(["failed", null, 1, 1]),
        json!(["done", "partial", 1, 1]),
        json!(["done", "ok", 2, 4]),
    ];
    assert_eq!(seen, expected);
    let call_counts: Vec<_> = service.calls_by_date("TLV").into_values().collect();
    assert_eq!(
        call_counts,
        [1, 2, 3, 1, 1, 1, 4],
        "the marketplace's ledger"
    );
    assert_eq!(ended["requests"]["spent"], json!(13));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_429_is_never_retried_automatically() {
    let service = TestService::start().await;
    let worker = service.start_worker(1);
    service.upstream.replies([
        Reply::status(429).header("retry-after", "1"),
        Reply::status(429)
            .header("x-ratelimit-requests-limit", "10")
            .header("x-ratelimit-requests-remaining", "0"),
        Reply::json(json!([fare(164, &json!({}))])),
    ]);
    let id = service
        .submit(&fares_with(
            3,
            &json!({"retry": {"max_attempts": 10, "delay_seconds": 0}}),
        ))
        .await;
    service
        .wait_for_scan(&id, "its quota is used up", |scan| {
            scan["status_reason"] == "quota_exhausted"
        })
        .await;
    service.command(&id, "resume", &json!({})).await;
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    let reasons: Vec<_> = service
        .items(&id)
        .await
        .iter()
        .map(|item| item["reason"].clone())
        .collect();
    assert_eq!(
        reasons,
        [json!("rate_limited"), json!("quota_exhausted"), json!(null)]
    );
    assert_eq!(
        (&ended["items"]["degraded"], service.upstream.count()),
        (&json!(2), 3)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_a_running_scan_searches_only_selected_items() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    let gate = Gate::closed();
    let held = Reply::json(json!([fare(90, &json!({}))])).gated_by(&gate);
    let upstream = &service.upstream;
    upstream.answer(
        move |call| match call.body["departure_date"].as_str().unwrap() {
            date if date == day(1) => Reply::search_incomplete("blocked_page"),
            date if date == day(2) => Reply::search_incomplete("upstream_timeout"),
            _ => held.clone(),
        },
    );
    let id = service.submit(&fares(6)).await;
    service
        .wait_for_scan(&id, "two are degraded", |scan| {
            scan["items"]["degraded"] == 2 && scan["items"]["running"] == 4
        })
        .await;
    upstream
        .on_any()
        .when(|call| call.body["departure_date"] == day(1))
        .reply(Reply::json(json!([fare(80, &json!({}))])));
    let answer = service
        .command(
            &id,
            "retry",
            &json!({"search_status": ["degraded"], "reasons": ["blocked_page"]}),
        )
        .await;
    assert_eq!(
        (
            &answer["items_retried"],
            &answer["scan"]["items"]["running"]
        ),
        (&json!(1), &json!(4))
    );
    service
        .wait_for_scan(&id, "it was retried", |scan| scan["items"]["ok"] == 1)
        .await;
    gate.open();
    let ended = service.wait_until_ended(&id).await;
    assert_eq!(
        (
            &ended["items"]["ok"],
            &ended["items"]["degraded"],
            &ended["best"]["price"]
        ),
        (&json!(5), &json!(1), &json!(80))
    );

    // The same on the ended scan.
    upstream.reply(Reply::json(json!([fare(70, &json!({}))])));
    service
        .command(
            &id,
            "retry",
            &json!({"search_status": ["degraded", "failed"]}),
        )
        .await;
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_counts_add_up(&ended);
    assert_eq!(
        (&ended["status"], &ended["best"]["price"]),
        (&json!("completed"), &json!(70))
    );
    assert_eq!(
        service
            .calls_by_date("TLV")
            .into_values()
            .collect::<Vec<_>>(),
        [2, 2, 1, 1, 1, 1]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn retried_items_of_a_paused_scan_wait_for_its_resume() {
    let service = TestService::start().await;
    let worker = service.start_worker(1);
    let gate = Gate::closed();
    let held = Reply::json(json!([fare(90, &json!({}))])).gated_by(&gate);
    service
        .upstream
        .replies([Reply::search_incomplete("blocked_page"), held]);
    let id = service.submit(&fares(4)).await;
    service.upstream.wait_for_in_flight(1).await;
    service
        .wait_for_scan(&id, "one is degraded", |scan| {
            scan["items"]["degraded"] == 1 && scan["items"]["running"] == 1
        })
        .await;
    service.command(&id, "pause", &json!({})).await;
    let answer = service
        .command(
            &id,
            "retry",
            &json!({"search_status": ["degraded"], "max_requests": 20}),
        )
        .await;
    assert_eq!(
        (&answer["items_retried"], &answer["scan"]["status_reason"]),
        (&json!(1), &json!("by_caller"))
    );
    gate.open();
    let still = service.wait_until_idle(&id).await;
    assert_eq!(
        (
            &still["items"]["ok"],
            &still["items"]["pending"],
            service.upstream.count()
        ),
        (&json!(1), &json!(3), 2)
    );
    service.command(&id, "resume", &json!({})).await;
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_eq!(
        (
            &ended["items"]["ok"],
            &ended["requests"]["spent"],
            &ended["requests"]["max"]
        ),
        (&json!(4), &json!(5), &json!(20))
    );
}
