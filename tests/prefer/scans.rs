//! A search that does not end within the wait becomes a scan, which is sent once for all
//! repetitions.

use farescan::contract::Endpoint;
use futures::future::join_all;
use serde_json::{Value, json};

use super::answers::prefer;
use crate::gateway::endpoints::{body, with};
use crate::support::app::{HttpResponse, KEY};
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::support::{SearchOutcome, TestService, text};

const ONEWAY: Endpoint = Endpoint::FlightsOneway;

async fn once(service: &TestService, preference: &str, key: &str, body: &Value) -> HttpResponse {
    let request = service
        .request("POST", "/v1/flights/oneway")
        .header("x-api-key", KEY)
        .header("prefer", preference);
    service
        .send(request.header("idempotency-key", key).json(body))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn respond_async_makes_a_scan_of_one_unchanged_search() {
    let service = TestService::start().await;
    let request_body = with(
        Endpoint::FlightsRoundtrip,
        json!({"max_stops": 1, "max_price": 500, "sort_type": "Price"}),
    );
    let answer = prefer(
        &service,
        "respond-async",
        Endpoint::FlightsRoundtrip,
        &request_body,
    )
    .await;
    let scan = answer.json();
    let id = scan["id"].as_str().unwrap();
    assert_eq!(
        (answer.status, answer.header("location")),
        (202, format!("/v1/scans/{id}").as_str())
    );
    assert_eq!(
        (answer.header("preference-applied"), answer.header("vary")),
        ("respond-async", "Prefer")
    );
    assert!(
        answer
            .header("x-field-aliased")
            .starts_with("max_stops -> max_departure_stops"),
        "{:?}",
        answer.headers
    );
    assert_eq!(
        (&scan["endpoint"], &scan["items"]["total"]),
        (&json!("flights/roundtrip"), &json!(1))
    );
    assert_eq!(
        (
            &scan["status"],
            &scan["sweep"],
            &scan["requests"]["planned"]
        ),
        (&json!("queued"), &json!({}), &json!(1))
    );
    assert_eq!(service.upstream.count(), 0, "not sent yet");

    let worker = service.start_worker(1);
    let ended = service.wait_until_ended(id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["status"], &ended["best"]["price"]),
        (&json!("completed"), &json!(310))
    );
    let sent = service.upstream.calls()[0].body.clone();
    let mut written = request_body;
    written.as_object_mut().unwrap().remove("max_stops");
    written["max_departure_stops"] = json!(1);
    written["max_return_stops"] = json!(1);
    assert_eq!(
        sent, written,
        "no `strict`, no other `limit`, the price filters upstream"
    );
    let observed = service
        .count("select count(*) from observations where price = 310")
        .await;
    assert_eq!(observed, 1, "its result is in the history");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_search_is_named_and_a_repetition_gets_its_answer() {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    let gate = Gate::closed();
    let request_body = body(ONEWAY);
    service.upstream.reply(
        Reply::json(json!([fare(120, &request_body)]))
            .header("x-search-status", "ok")
            .gated_by(&gate),
    );
    let early = once(&service, "wait=1", "k", &request_body).await;
    let scan = early.json();
    assert_eq!(
        (early.status, early.header("preference-applied")),
        (202, "wait=1")
    );
    assert_eq!(
        early.header("location"),
        format!("/v1/scans/{}", scan["id"].as_str().unwrap())
    );
    service.upstream.wait_for_in_flight(1).await;
    let others =
        join_all((0..6).map(|_| once(&service, "respond-async, wait=0", "k", &request_body))).await;
    for other in others {
        assert_eq!(
            (
                other.status,
                &other.json()["id"],
                other.header("idempotent-replayed")
            ),
            (202, &scan["id"], "true")
        );
    }
    gate.open();
    let late = once(&service, "wait=60", "k", &request_body).await;
    assert_eq!(
        (
            late.status,
            late.header("idempotent-replayed"),
            late.header("location")
        ),
        (200, "true", "")
    );
    assert_eq!(
        (
            late.json()[0]["price_as_number"].clone(),
            late.header("x-search-status")
        ),
        (json!(120), "ok")
    );
    assert_eq!(late.header("x-upstream-requests"), "1");
    let again = once(&service, "respond-async", "k", &request_body).await;
    assert_eq!(
        (again.status, &again.json()["id"]),
        (202, &scan["id"]),
        "who does not wait is given the first answer"
    );
    worker.stop().await;
    assert_eq!(service.upstream.count(), 1, "sent once");
    assert_eq!(
        once(
            &service,
            "respond-async",
            "k",
            &with(ONEWAY, json!({"limit": 1}))
        )
        .await
        .kind(),
        "422 idempotency_mismatch"
    );
    assert_eq!(
        once(&service, "respond-async", "a key", &request_body)
            .await
            .kind(),
        "400 invalid_request"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_concurrent_equal_requests_are_one_search() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    let request_body = body(ONEWAY);
    let answers = join_all((0..20).map(|_| once(&service, "wait=60", "k", &request_body))).await;
    worker.stop().await;
    let first = answers[0].text();
    for answer in &answers {
        assert_eq!((answer.status, answer.text()), (200, first.clone()));
    }
    assert_eq!(service.upstream.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inconclusive_empty_answer_is_no_empty_item() {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    service.upstream.reply(Reply::json(json!([])));
    let mut seen = Vec::new();
    for strict in [false, true] {
        let scan = prefer(
            &service,
            "respond-async",
            ONEWAY,
            &with(ONEWAY, json!({"strict": strict})),
        )
        .await
        .json();
        let id = scan["id"].as_str().unwrap();
        service.wait_until_ended(id).await;
        let item = service.items(id).await.remove(0);
        seen.push((item["search_status"].clone(), item["reason"].clone()));
    }
    worker.stop().await;
    assert_eq!(
        seen,
        [
            (json!("degraded"), json!("not_stated")),
            (json!("empty"), json!(null))
        ]
    );
}

/// A call that was lost with its process has no answer yet but may get one: the response names the
/// scan.
#[tokio::test]
async fn a_search_without_an_answer_returns_its_scan() {
    let service = TestService::start().await;
    let post = async |preference: &str| {
        let request = service
            .request("POST", "/v1/flights/oneway")
            .header("x-api-key", KEY)
            .header("prefer", preference);
        service
            .send(request.header("idempotency-key", "k").json(&body(ONEWAY)))
            .await
    };
    let id = text(&post("respond-async").await.json()["id"]);
    let claims = service.claim().await;
    service.begin(&claims[0]).await;
    // Completed step by step, without the outcome that a worker stores.
    service
        .finish(&claims[0], SearchOutcome::Degraded("worker_lost"))
        .await;
    let answer = post("wait=5").await;
    assert_eq!(
        (
            answer.status,
            &answer.json()["id"],
            &answer.json()["status"]
        ),
        (202, &json!(id), &json!("incomplete"))
    );

    let cancelled = service.submit(&crate::support::fares(1)).await;
    service
        .post(&format!("/v1/scans/{cancelled}/cancel"), &json!({}))
        .await;
    let deleted = service
        .request("DELETE", &format!("/v1/scans/{id}"))
        .header("x-api-key", KEY);
    assert_eq!(service.send(deleted).await.status, 204);
    assert_eq!(
        post("wait=5").await.status,
        202,
        "the first response of a deleted scan stays"
    );
    assert_eq!(service.upstream.count(), 0, "it is never sent again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_key_ends_the_search_and_pauses_the_lane() {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    service
        .upstream
        .reply(Reply::status(401).with_json(json!({"message": "Invalid API key"})));
    let scan = prefer(&service, "respond-async", ONEWAY, &body(ONEWAY))
        .await
        .json();
    let ended = service.wait_until_ended(scan["id"].as_str().unwrap()).await;
    worker.stop().await;
    assert_eq!(
        (
            &ended["status"],
            &ended["items"]["failed"],
            &ended["key_custody"]
        ),
        (&json!("incomplete"), &json!(1), &json!(null))
    );
    let item = service.items(scan["id"].as_str().unwrap()).await.remove(0);
    assert_eq!(
        (&item["reason"], &item["error"]),
        (&json!("key_rejected"), &json!("Invalid API key"))
    );
    assert_eq!(
        service.get("/v1/quota").await["flights"]["paused"],
        json!({"reason": "key_rejected", "until": null})
    );
    assert_eq!(service.upstream.count(), 1);
}
