//! Answers that are not reused.

use farescan::contract::Endpoint;
use serde_json::{Value, json};

use super::{make_answers_older, reusing, run};
use crate::support::app::KEY;
use crate::support::reply::Reply;
use crate::support::service::{TestService, day, fares, with};
use crate::support::upstream::{default_reply, fare, pair};

/// A service with the answers of one scan of two dates, and how many requests it got.
async fn searched(reply: Reply) -> TestService {
    let service = TestService::start().await;
    service
        .upstream
        .replies([reply, Reply::json(json!([fare(140, &json!({}))]))]);
    let worker = service.start_worker(1);
    let first = service.submit(&fares(2)).await;
    service.wait_until_ended(&first).await;
    worker.stop().await;
    service
}

fn complete() -> Reply {
    Reply::json(json!([fare(150, &json!({}))]))
}

/// How many of the two answers a scan takes.
async fn reused(service: &TestService, body: &Value) -> Value {
    let worker = service.start_worker(4);
    let scan = run(service, body).await;
    worker.stop().await;
    scan["requests"]["avoided"]["reused"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_age_every_item_is_searched() {
    let service = searched(complete()).await;
    let worker = service.start_worker(4);
    let id = service.submit(&fares(2)).await;
    let scan = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_eq!(
        scan["requests"],
        json!({"planned": 2, "spent": 2, "max": null})
    );
    assert_eq!(service.upstream.count(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_degraded_or_partial_answer_is_bought_again() {
    for reply in [
        Reply::search_incomplete("upstream_timeout"),
        Reply::json(json!([fare(90, &json!({}))]))
            .header("x-search-status", "partial")
            .header("x-search-reason", "search_truncated"),
    ] {
        let service = searched(reply).await;
        assert_eq!(reused(&service, &reusing(2)).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_empty_answer_is_reused() {
    let service = searched(Reply::json(json!([])).header("x-search-status", "empty")).await;
    assert_eq!(reused(&service, &reusing(2)).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_old_is_bought_again() {
    let service = searched(complete()).await;
    make_answers_older(service.pool(), 61 * 60).await;
    let day = with(reusing(2), &json!({"max_age_seconds": 86400}));
    assert_eq!(reused(&service, &day).await, 2);
    assert_eq!(reused(&service, &reusing(2)).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_deleted_is_bought_again() {
    let service = searched(complete()).await;
    sqlx::query(
        "delete from answers where item_id = (select item_id from scan_items where position = 0)",
    )
    .execute(service.pool())
    .await
    .unwrap();
    assert_eq!(reused(&service, &reusing(2)).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_search_is_bought() {
    let service = searched(complete()).await;
    let with_request = |more: Value| {
        let mut body = reusing(2);
        body["request"] = with(body["request"].clone(), &more);
        body
    };
    for other in [
        with_request(json!({"airline_codes": ["BA"]})),
        with_request(json!({"max_stops": 0})),
        with_request(json!({"limit": 7})),
        with_request(json!({"use_ext_proxy": false})),
        with_request(json!({"use_fallback": true})),
        with_request(json!({"currency": "EUR"})),
        with(reusing(2), &json!({"upstream_limit": 60})),
    ] {
        assert_eq!(reused(&service, &other).await, 0, "{other:#}");
    }
    // A scan sends `strict` anyway, and has no filter to send.
    for alike in [
        with_request(json!({"strict": true})),
        with_request(json!({"limit": 50})),
        with(reusing(2), &json!({"upstream_filters": true})),
    ] {
        assert_eq!(reused(&service, &alike).await, 2, "{alike:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_with_other_filters_is_bought_again() {
    let service = TestService::start().await;
    let filtered = |more: Value| {
        let mut body = with(reusing(2), &more);
        body["request"] = with(body["request"].clone(), &json!({"max_price": 300}));
        body
    };
    for (sent, expected) in [(false, 0), (true, 0), (false, 2), (true, 2)] {
        let body = filtered(json!({"upstream_filters": sent}));
        assert_eq!(reused(&service, &body).await, expected, "{body:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_return_or_checkout_date_is_another_search() {
    let service = TestService::start().await;
    service.upstream.answer(|call| match call.endpoint {
        Some(Endpoint::FlightsRoundtrip) => Reply::json(json!([pair(300, &call.body)])),
        _ => default_reply(call),
    });
    let worker = service.start_worker(4);
    let roundtrip = |nights: usize| {
        json!({
            "endpoint": "flights/roundtrip",
            "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": {"from": day(1), "to": day(2)}, "nights": [nights]},
            "max_age_seconds": 3600
        })
    };
    let stay = |nights: usize| {
        json!({
            "endpoint": "hotels/by-name",
            "request": {"hotel_name": "Hotel Arts"},
            "sweep": {"checkin_date": {"from": day(1), "to": day(2)}, "nights": [nights]},
            "max_age_seconds": 3600
        })
    };
    for body in [&roundtrip as &dyn Fn(usize) -> Value, &stay] {
        for (nights, expected) in [(3, 0), (4, 0), (3, 2), (4, 2)] {
            let scan = run(&service, &body(nights)).await;
            assert_eq!(scan["requests"]["avoided"]["reused"], expected, "{scan:#}");
        }
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_caller_that_stores_copies_without_end_is_refused() {
    let service = searched(complete()).await;
    sqlx::query("update scans set reused = 100000")
        .execute(service.pool())
        .await
        .unwrap();
    let refused = service.post("/v1/scans", &reusing(2)).await.expect(429);
    assert!(
        refused.message().contains("max_age_seconds"),
        "{}",
        refused.text()
    );
    service.post("/v1/scans", &fares(2)).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_callers_answer_is_never_taken() {
    let service = searched(complete()).await;
    let worker = service.start_worker(4);
    let other = format!("{KEY}-other");
    for _ in 0..2 {
        let before = service.upstream.count();
        let id = service.submit_as(&other, &reusing(2)).await;
        service.wait_for_scan_as(&other, &id).await;
        let scan = service
            .get_as(&other, &format!("/v1/scans/{id}"))
            .await
            .json();
        let spent = scan["requests"]["spent"].as_u64().unwrap();
        assert_eq!(
            service.upstream.count() - before,
            usize::try_from(spent).unwrap()
        );
        if before == 2 {
            assert_eq!(spent, 2, "the first caller's answers are its own");
        } else {
            assert_eq!(spent, 0, "it has its own answers by now");
        }
    }
    worker.stop().await;
}
