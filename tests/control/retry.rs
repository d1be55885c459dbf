//! Asking again: by itself as ordered, and by the caller's word, on scans that run and that have ended.

use std::collections::BTreeMap;

use farescan::contract::Endpoint;
use serde_json::json;

use super::house::{House, adds_up, fares, order};
use crate::scans::office::day;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;

#[tokio::test(flavor = "multi_thread")]
async fn only_what_may_be_mended_is_asked_again_by_itself_and_only_so_often() {
    let house = House::open().await;
    let worker = house.worker(1);
    // By date: what each attempt comes to; the last stays.
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
    house
        .app
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
    let id = house
        .order(&order(
            7,
            &json!({"retry": {"max_attempts": 3, "delay_seconds": 0}}),
        ))
        .await;
    let ended = house.ended(&id).await;
    worker.stop().await;
    adds_up(&ended);
    let seen: Vec<_> = house
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
    let asked: Vec<_> = house.asked("TLV").into_values().collect();
    assert_eq!(asked, [1, 2, 3, 1, 1, 1, 4], "the marketplace's ledger");
    assert_eq!(ended["requests"]["spent"], json!(13));
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_are_never_asked_again_by_themselves() {
    let house = House::open().await;
    let worker = house.worker(1);
    house.app.upstream.on_any().replies([
        Reply::status(429).header("retry-after", "1"),
        Reply::status(429)
            .header("x-ratelimit-requests-limit", "10")
            .header("x-ratelimit-requests-remaining", "0"),
        Reply::json(json!([fare(164, &json!({}))])),
    ]);
    let id = house
        .order(&order(
            3,
            &json!({"retry": {"max_attempts": 10, "delay_seconds": 0}}),
        ))
        .await;
    house
        .scan_when(&id, "its quota is used up", |scan| {
            scan["status_reason"] == "quota_exhausted"
        })
        .await;
    house.say(&id, "resume", &json!({})).await;
    let ended = house.ended(&id).await;
    worker.stop().await;
    let reasons: Vec<_> = house
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
        (&ended["items"]["degraded"], house.app.upstream.count()),
        (&json!(2), 3)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_a_running_scan_asks_exactly_what_it_names() {
    let house = House::open().await;
    let worker = house.worker(8);
    let gate = Gate::closed();
    let held = Reply::json(json!([fare(90, &json!({}))])).held_by(&gate);
    let upstream = &house.app.upstream;
    upstream.on_any().answer(
        move |call| match call.body["departure_date"].as_str().unwrap() {
            date if date == day(1) => Reply::search_incomplete("blocked_page"),
            date if date == day(2) => Reply::search_incomplete("upstream_timeout"),
            _ => held.clone(),
        },
    );
    let id = house.order(&fares(6)).await;
    house
        .scan_when(&id, "two are degraded", |scan| {
            scan["items"]["degraded"] == 2 && scan["items"]["running"] == 4
        })
        .await;
    upstream
        .on_any()
        .when(|call| call.body["departure_date"] == day(1))
        .reply(Reply::json(json!([fare(80, &json!({}))])));
    let answer = house
        .say(
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
    house
        .scan_when(&id, "it was asked again", |scan| scan["items"]["ok"] == 1)
        .await;
    gate.open();
    let ended = house.ended(&id).await;
    assert_eq!(
        (
            &ended["items"]["ok"],
            &ended["items"]["degraded"],
            &ended["best"]["price"]
        ),
        (&json!(5), &json!(1), &json!(80))
    );

    // The same on the scan that has ended.
    upstream
        .on_any()
        .reply(Reply::json(json!([fare(70, &json!({}))])));
    house
        .say(
            &id,
            "retry",
            &json!({"search_status": ["degraded", "failed"]}),
        )
        .await;
    let ended = house.ended(&id).await;
    worker.stop().await;
    adds_up(&ended);
    assert_eq!(
        (&ended["status"], &ended["best"]["price"]),
        (&json!("completed"), &json!(70))
    );
    assert_eq!(
        house.asked("TLV").into_values().collect::<Vec<_>>(),
        [2, 2, 1, 1, 1, 1]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_a_paused_scan_waits_with_it() {
    let house = House::open().await;
    let worker = house.worker(1);
    let gate = Gate::closed();
    let held = Reply::json(json!([fare(90, &json!({}))])).held_by(&gate);
    house
        .app
        .upstream
        .on_any()
        .replies([Reply::search_incomplete("blocked_page"), held]);
    let id = house.order(&fares(4)).await;
    house.app.upstream.wait_for_in_flight(1).await;
    house
        .scan_when(&id, "one is degraded", |scan| {
            scan["items"]["degraded"] == 1 && scan["items"]["running"] == 1
        })
        .await;
    house.say(&id, "pause", &json!({})).await;
    let answer = house
        .say(
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
    let still = house.still(&id).await;
    assert_eq!(
        (
            &still["items"]["ok"],
            &still["items"]["pending"],
            house.app.upstream.count()
        ),
        (&json!(1), &json!(3), 2)
    );
    house.say(&id, "resume", &json!({})).await;
    let ended = house.ended(&id).await;
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
