//! Not ready in time, the search is a scan: named at once, asked once, whoever asks again.

use farescan::contract::Endpoint;
use futures::future::join_all;
use serde_json::{Value, json};

use super::answers::prefer;
use crate::control::house::House;
use crate::gateway::endpoints::{body, with};
use crate::scans::office::{Comes, Office};
use crate::support::app::{Answer, KEY};
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;

const ONEWAY: Endpoint = Endpoint::FlightsOneway;

async fn once(house: &House, preference: &str, key: &str, body: &Value) -> Answer {
    let request = house
        .app
        .request("POST", "/v1/flights/oneway")
        .header("x-api-key", KEY)
        .header("prefer", preference);
    house
        .app
        .send(request.header("idempotency-key", key).json(body))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn respond_async_is_a_scan_of_one_item_that_goes_upstream_as_it_is_written() {
    let house = House::open().await;
    let asked = with(
        Endpoint::FlightsRoundtrip,
        json!({"max_stops": 1, "max_price": 500, "sort_type": "Price"}),
    );
    let answer = prefer(&house, "respond-async", Endpoint::FlightsRoundtrip, &asked).await;
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
    assert_eq!(house.app.upstream.count(), 0, "nobody has asked it yet");

    let worker = house.worker(1);
    let ended = house.ended(id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["status"], &ended["best"]["price"]),
        (&json!("completed"), &json!(310))
    );
    let sent = house.app.upstream.calls()[0].body.clone();
    let mut written = asked;
    written.as_object_mut().unwrap().remove("max_stops");
    written["max_departure_stops"] = json!(1);
    written["max_return_stops"] = json!(1);
    assert_eq!(
        sent, written,
        "no `strict`, no other `limit`, the price filters upstream"
    );
    let observed = house
        .count("select count(*) from observations where price = 310")
        .await;
    assert_eq!(observed, 1, "what a scan sees is history");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ready_by_then_is_named_and_an_equal_request_gets_its_answer() {
    let house = House::open().await;
    let worker = house.worker(2);
    let gate = Gate::closed();
    let asked = body(ONEWAY);
    house.app.upstream.on_any().reply(
        Reply::json(json!([fare(120, &asked)]))
            .header("x-search-status", "ok")
            .held_by(&gate),
    );
    let early = once(&house, "wait=1", "k", &asked).await;
    let scan = early.json();
    assert_eq!(
        (early.status, early.header("preference-applied")),
        (202, "wait=1")
    );
    assert_eq!(
        early.header("location"),
        format!("/v1/scans/{}", scan["id"].as_str().unwrap())
    );
    house.app.upstream.wait_for_in_flight(1).await;
    let others = join_all((0..6).map(|_| once(&house, "respond-async, wait=0", "k", &asked))).await;
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
    let late = once(&house, "wait=60", "k", &asked).await;
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
    let again = once(&house, "respond-async", "k", &asked).await;
    assert_eq!(
        (again.status, &again.json()["id"]),
        (202, &scan["id"]),
        "who does not wait is given the first answer"
    );
    worker.stop().await;
    assert_eq!(house.app.upstream.count(), 1, "asked once");
    assert_eq!(
        once(
            &house,
            "respond-async",
            "k",
            &with(ONEWAY, json!({"limit": 1}))
        )
        .await
        .kind(),
        "422 idempotency_mismatch"
    );
    assert_eq!(
        once(&house, "respond-async", "a key", &asked).await.kind(),
        "400 invalid_request"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_equal_requests_at_once_are_one_search() {
    let house = House::open().await;
    let worker = house.worker(8);
    let asked = body(ONEWAY);
    let answers = join_all((0..20).map(|_| once(&house, "wait=60", "k", &asked))).await;
    worker.stop().await;
    let first = answers[0].text();
    for answer in &answers {
        assert_eq!((answer.status, answer.text()), (200, first.clone()));
    }
    assert_eq!(house.app.upstream.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_that_says_nothing_is_no_empty_item() {
    let house = House::open().await;
    let worker = house.worker(2);
    house.app.upstream.on_any().reply(Reply::json(json!([])));
    let mut seen = Vec::new();
    for strict in [false, true] {
        let scan = prefer(
            &house,
            "respond-async",
            ONEWAY,
            &with(ONEWAY, json!({"strict": strict})),
        )
        .await
        .json();
        let id = scan["id"].as_str().unwrap();
        house.ended(id).await;
        let item = house.items(id).await.remove(0);
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

/// A call that was lost with its process has no answer yet, and may get one: the caller is told where.
#[tokio::test]
async fn what_has_no_answer_to_show_is_named() {
    let office = Office::open().await;
    let post = async |preference: &str| {
        let request = office
            .app
            .request("POST", "/v1/flights/oneway")
            .header("x-api-key", KEY)
            .header("prefer", preference);
        office
            .app
            .send(request.header("idempotency-key", "k").json(&body(ONEWAY)))
            .await
    };
    let id = post("respond-async").await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let claims = office.claim().await;
    office.begin(&claims[0]).await;
    // Done by hand, without the outcome that a worker keeps.
    office.end(&claims[0], Comes::Degraded("worker_lost")).await;
    let answer = post("wait=5").await;
    assert_eq!(
        (
            answer.status,
            &answer.json()["id"],
            &answer.json()["status"]
        ),
        (202, &json!(id), &json!("incomplete"))
    );

    let cancelled = office.order(&crate::scans::office::fares(1)).await;
    office
        .app
        .post(&format!("/v1/scans/{cancelled}/cancel"), &json!({}))
        .await;
    let deleted = office
        .app
        .request("DELETE", &format!("/v1/scans/{id}"))
        .header("x-api-key", KEY);
    assert_eq!(office.app.send(deleted).await.status, 204);
    assert_eq!(
        post("wait=5").await.status,
        202,
        "of a deleted scan the first answer is kept"
    );
    assert_eq!(office.app.upstream.count(), 0, "it is never asked again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_ends_the_search_and_stops_the_lane() {
    let house = House::open().await;
    let worker = house.worker(2);
    house
        .app
        .upstream
        .on_any()
        .reply(Reply::status(401).with_json(json!({"message": "Invalid API key"})));
    let scan = prefer(&house, "respond-async", ONEWAY, &body(ONEWAY))
        .await
        .json();
    let ended = house.ended(scan["id"].as_str().unwrap()).await;
    worker.stop().await;
    assert_eq!(
        (
            &ended["status"],
            &ended["items"]["failed"],
            &ended["key_custody"]
        ),
        (&json!("incomplete"), &json!(1), &json!(null))
    );
    let item = house.items(scan["id"].as_str().unwrap()).await.remove(0);
    assert_eq!(
        (&item["reason"], &item["error"]),
        (&json!("key_rejected"), &json!("Invalid API key"))
    );
    assert_eq!(
        house.get("/v1/quota").await["flights"]["paused"],
        json!({"reason": "key_rejected", "until": null})
    );
    assert_eq!(house.app.upstream.count(), 1);
}
