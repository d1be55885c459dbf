//! A search that ends within the wait gets the response of the synchronous endpoint (status,
//! headers and body), with the same single call of the marketplace.

use std::collections::BTreeMap;

use farescan::contract::Endpoint;
use serde_json::{Value, json};

use crate::gateway::endpoints::{body, with};
use crate::support::app::{HttpResponse, KEY};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{TestService, billed};

pub const READY: &str = "respond-async, wait=60";

pub async fn prefer(
    service: &TestService,
    preference: &str,
    endpoint: Endpoint,
    body: &Value,
) -> HttpResponse {
    let request = service
        .request("POST", &format!("/v1/{endpoint}"))
        .header("x-api-key", KEY)
        .header("prefer", preference);
    service.send(request.json(body)).await
}

/// The parts of a response that are equal for equal requests.
fn visible_parts(answer: &HttpResponse) -> (u16, BTreeMap<String, Vec<String>>, String) {
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

/// Ends all pauses of lanes, so that the next row is sent.
async fn unpause_lanes(service: &TestService) {
    let sql = "update lanes set paused_until = null, pause_reason = null, next_at = now()";
    execute!(service.pool(), sql);
}

/// Compares the responses of both ways, with the same answer of the marketplace.
async fn compare_both_ways(service: &TestService, reply: &Reply, endpoint: Endpoint, body: &Value) {
    service.upstream.reply(reply.clone());
    let before = service.upstream.count();
    let plain = service.post(&format!("/v1/{endpoint}"), body).await;
    let between = service.upstream.count();
    let preferred = prefer(service, READY, endpoint, body).await;
    let after = service.upstream.count();
    assert_eq!(
        visible_parts(&preferred),
        visible_parts(&plain),
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
    let calls = service.upstream.calls();
    assert_eq!(
        calls[between].body, calls[before].body,
        "{endpoint}: the same question"
    );
    assert_eq!(
        (&calls[between].path, &calls[between].key),
        (&calls[before].path, &calls[before].key)
    );
    unpause_lanes(service).await;
}

/// The possible answers of the marketplace, for flights and hotels; each endpoint is tested with
/// all.
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

async fn compare_every_outcome(endpoint: Endpoint, body: Value) {
    let service = TestService::start().await;
    let worker = service.start_worker(4);
    service.accept_key().await;
    for reply in replies() {
        compare_both_ways(&service, &reply, endpoint, &body).await;
    }
    worker.stop().await;
    assert_eq!(
        service
            .count("select count(*) from scans where finished_at is null")
            .await,
        0,
        "no call is left in flight"
    );
    assert_eq!(
        service
            .count("select count(*) from key_grants where wiped_at is null")
            .await,
        0,
        "nor a key held"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn flights_get_the_synchronous_response() {
    let filters = json!({"max_price": 200, "sort_type": "Price", "limit": 2, "max_stops": 1});
    compare_every_outcome(
        Endpoint::FlightsOneway,
        with(Endpoint::FlightsOneway, filters),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_flights_get_the_synchronous_response() {
    let strict = json!({"strict": true, "max_stops": 0});
    compare_every_outcome(
        Endpoint::FlightsRoundtrip,
        with(Endpoint::FlightsRoundtrip, strict),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hotel_searches_get_the_synchronous_response() {
    compare_every_outcome(Endpoint::HotelsSearch, body(Endpoint::HotelsSearch)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hotel_by_name_gets_the_synchronous_response() {
    compare_every_outcome(Endpoint::HotelsByName, body(Endpoint::HotelsByName)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rooms_get_the_synchronous_response() {
    compare_every_outcome(Endpoint::HotelsRooms, body(Endpoint::HotelsRooms)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_error_is_tried_and_billed_twice_both_ways() {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    let request_body = body(Endpoint::FlightsOneway);
    service.upstream.replies([
        Reply::status(503),
        Reply::json(json!([fare(99, &request_body)])),
    ]);
    let answer = prefer(&service, READY, Endpoint::FlightsOneway, &request_body).await;
    worker.stop().await;
    assert_eq!(
        (answer.status, answer.header("x-upstream-requests")),
        (200, "2")
    );
    assert_eq!(service.upstream.count(), 2);
    assert_eq!(billed(&service.get("/v1/usage").await), 2);
}

/// The marketplace repeats the key in response headers and in a 429: the stored outcome contains
/// neither.
#[tokio::test(flavor = "multi_thread")]
async fn a_stored_outcome_contains_no_key() {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    for reply in [
        Reply::status(429)
            .body(format!("slow down, {KEY}"))
            .header("x-plan-note", KEY),
        Reply::status(401).with_json(json!({"message": format!("no such key: {KEY}")})),
    ] {
        service.upstream.reply(reply.clone());
        let answer = prefer(
            &service,
            READY,
            Endpoint::HotelsRooms,
            &body(Endpoint::HotelsRooms),
        )
        .await;
        assert!(
            !format!("{} {:?}", answer.text(), answer.headers).contains(KEY),
            "{reply:?}"
        );
        unpause_lanes(&service).await;
    }
    worker.stop().await;
    let stored: Vec<Vec<u8>> = values!(service.pool(), "select outcome from search_outcomes");
    assert_eq!(stored.len(), 2);
    for outcome in stored {
        let text = String::from_utf8(zstd::decode_all(&outcome[..]).unwrap()).unwrap();
        assert!(!text.contains(KEY) && text.contains("[key]"), "{text}");
    }
}
