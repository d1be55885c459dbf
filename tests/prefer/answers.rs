//! Ready in time, the answer is the synchronous endpoint's own: status, headers and body, and the same one call of the marketplace.

use std::collections::BTreeMap;

use farescan::contract::Endpoint;
use serde_json::{Value, json};

use crate::control::house::House;
use crate::gateway::endpoints::{body, with};
use crate::support::app::{Answer, KEY};
use crate::support::reply::Reply;
use crate::support::upstream::fare;

pub const READY: &str = "respond-async, wait=60";

pub async fn prefer(house: &House, preference: &str, endpoint: Endpoint, body: &Value) -> Answer {
    let request = house
        .app
        .request("POST", &format!("/v1/{endpoint}"))
        .header("x-api-key", KEY)
        .header("prefer", preference);
    house.app.send(request.json(body)).await
}

/// What an answer is, without what differs from any answer to the next.
fn told(answer: &Answer) -> (u16, BTreeMap<String, Vec<String>>, String) {
    let mut headers = BTreeMap::<_, Vec<_>>::new();
    for (name, value) in &answer.headers {
        if !["date", "x-request-id", "preference-applied"].contains(&name.as_str()) {
            headers
                .entry(name.to_string())
                .or_default()
                .push(value.to_str().unwrap().to_owned());
        }
    }
    for values in headers.values_mut() {
        values.sort_unstable();
    }
    (
        answer.status,
        headers,
        answer
            .text()
            .replace(answer.header("x-request-id"), "<request>"),
    )
}

/// Lanes go on, so that the next row is asked.
async fn unpaused(house: &House) {
    let sql = "update lanes set paused_until = null, pause_reason = null, next_at = now()";
    sqlx::query(sql).execute(house.db.pool()).await.unwrap();
}

/// The same request both ways, with the same answer of the marketplace.
async fn both_ways(house: &House, reply: &Reply, endpoint: Endpoint, body: &Value) {
    house.app.upstream.on_any().reply(reply.clone());
    let before = house.app.upstream.count();
    let plain = house.app.post(&format!("/v1/{endpoint}"), body).await;
    let between = house.app.upstream.count();
    let preferred = prefer(house, READY, endpoint, body).await;
    let after = house.app.upstream.count();
    assert_eq!(
        told(&preferred),
        told(&plain),
        "{endpoint} {body} {reply:?}"
    );
    assert_eq!(
        preferred.header("preference-applied"),
        READY,
        "{endpoint} {reply:?}"
    );
    assert_eq!(
        after - between,
        between - before,
        "{endpoint} {reply:?}: as many calls"
    );
    let calls = house.app.upstream.calls();
    assert_eq!(
        calls[between].body, calls[before].body,
        "{endpoint}: the same question"
    );
    assert_eq!(
        (&calls[between].path, &calls[between].key),
        (&calls[before].path, &calls[before].key)
    );
    unpaused(house).await;
}

/// What the marketplace may do, for flights and for hotels; each endpoint is given all of it.
fn replies() -> Vec<Reply> {
    let quota = |reply: Reply| {
        reply
            .header("x-ratelimit-requests-limit", "2500")
            .header("x-ratelimit-requests-remaining", "2000")
            .header("x-ratelimit-requests-reset", "3600")
            .header("x-plan-anything", "as it is")
    };
    let rows = || json!([fare(210, &json!({})), fare(190, &json!({})), {"price_as_number": null, "extra": [1.5, {"deep": true}]}]);
    let stated = |reply: Reply, word: &str| {
        reply
            .header("x-search-status", word)
            .header("x-search-reason", "search_truncated")
            .header("x-search-lost-combinations", "3")
    };
    vec![
        quota(stated(Reply::json(rows()), "ok")),
        stated(Reply::json(rows()), "partial"),
        stated(Reply::json(rows()), "degraded"),
        Reply::json(rows()),
        Reply::json(json!([])),
        stated(Reply::json(json!([])), "empty"),
        stated(Reply::json(json!([])), "degraded"),
        quota(Reply::search_incomplete("blocked_page")),
        Reply::status(502).with_json(json!({"message": "no"})),
        Reply::status(418),
        Reply::reset(),
        Reply::text("<html>").header("x-search-status", "ok"),
        quota(Reply::status(404).with_json(json!({"detail": "Nothing here"}))),
        Reply::status(422)
            .with_json(json!({"detail": [{"loc": ["body", "limit"], "msg": "too large"}]})),
        quota(Reply::status(401).with_json(json!({"message": "Invalid API key"}))),
        Reply::status(403).with_json(json!({"message": "You are not subscribed to this API."})),
        Reply::status(429)
            .body(r#"{ "message":"Too many requests" , "n":1.50}"#)
            .header("content-type", "application/json; charset=utf-8")
            .header("retry-after", "37")
            .header("x-ratelimit-requests-remaining", "5"),
        Reply::json(json!({"properties": [], "applied_filters": []})),
        Reply::json(
            json!({"properties": [{"name": "One", "price": 420.5}], "rooms": [], "available": false, "name": "One"}),
        ),
        Reply::json(
            json!({"rooms": [{"room_type": "Double", "price_as_number": 420}], "name": "One", "available": true, "price": 3}),
        ),
    ]
}

async fn every_outcome(endpoint: Endpoint, body: Value) {
    let house = House::open().await;
    let worker = house.worker(4);
    house.warm().await;
    for reply in replies() {
        both_ways(&house, &reply, endpoint, &body).await;
    }
    worker.stop().await;
    assert_eq!(
        house
            .count("select count(*) from scans where finished_at is null")
            .await,
        0,
        "none is left underway"
    );
    assert_eq!(
        house
            .count("select count(*) from key_grants where wiped_at is null")
            .await,
        0,
        "nor a key held"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn flights_are_answered_as_the_synchronous_endpoint_answers_them() {
    let filters = json!({"max_price": 200, "sort_type": "Price", "limit": 2, "max_stops": 1});
    every_outcome(
        Endpoint::FlightsOneway,
        with(Endpoint::FlightsOneway, filters),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_flights_are_answered_as_the_synchronous_endpoint_answers_them() {
    let strict = json!({"strict": true, "max_stops": 0});
    every_outcome(
        Endpoint::FlightsRoundtrip,
        with(Endpoint::FlightsRoundtrip, strict),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hotels_of_a_place_are_answered_as_the_synchronous_endpoint_answers_them() {
    every_outcome(Endpoint::HotelsSearch, body(Endpoint::HotelsSearch)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hotel_by_name_is_answered_as_the_synchronous_endpoint_answers_it() {
    every_outcome(Endpoint::HotelsByName, body(Endpoint::HotelsByName)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rooms_are_answered_as_the_synchronous_endpoint_answers_them() {
    every_outcome(Endpoint::HotelsRooms, body(Endpoint::HotelsRooms)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_error_is_tried_twice_and_billed_so_both_ways() {
    let house = House::open().await;
    let worker = house.worker(2);
    let asked = body(Endpoint::FlightsOneway);
    house
        .app
        .upstream
        .on_any()
        .replies([Reply::status(503), Reply::json(json!([fare(99, &asked)]))]);
    let answer = prefer(&house, READY, Endpoint::FlightsOneway, &asked).await;
    worker.stop().await;
    assert_eq!(
        (answer.status, answer.header("x-upstream-requests")),
        (200, "2")
    );
    assert_eq!(house.app.upstream.count(), 2);
    assert_eq!(house.get("/v1/usage").await["totals"]["requests"], json!(2));
}

/// The marketplace repeats the key in its answer's headers and in a 429: neither is stored.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_for_the_answer_holds_no_key() {
    let house = House::open().await;
    let worker = house.worker(2);
    for reply in [
        Reply::status(429)
            .body(format!("slow down, {KEY}"))
            .header("x-plan-note", KEY),
        Reply::status(401).with_json(json!({"message": format!("no such key: {KEY}")})),
    ] {
        house.app.upstream.on_any().reply(reply.clone());
        let answer = prefer(
            &house,
            READY,
            Endpoint::HotelsRooms,
            &body(Endpoint::HotelsRooms),
        )
        .await;
        assert!(
            !format!("{} {:?}", answer.text(), answer.headers).contains(KEY),
            "{reply:?}"
        );
        unpaused(&house).await;
    }
    worker.stop().await;
    let kept: Vec<Vec<u8>> = sqlx::query_scalar("select outcome from search_outcomes")
        .fetch_all(house.db.pool())
        .await
        .unwrap();
    assert_eq!(kept.len(), 2);
    for outcome in kept {
        let text = String::from_utf8(zstd::decode_all(&outcome[..]).unwrap()).unwrap();
        assert!(!text.contains(KEY) && text.contains("[key]"), "{text}");
    }
}
