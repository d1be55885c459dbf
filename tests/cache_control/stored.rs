//! Stored answers: which may be reused, and what such a response says.

use farescan::contract::Endpoint;
use serde_json::{Value, json};

use super::{records, search, search_as, wait_for_records};
use crate::gateway::endpoints::{bodies, body};
use crate::prefer::answers::{READY, prefer};
use crate::support::app::{HttpResponse, KEY};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{TestService, array, service::with, total, wait_until};

const ONEWAY: Endpoint = Endpoint::FlightsOneway;

/// Body and search headers.
fn content(response: &HttpResponse) -> (String, [String; 3]) {
    let headers = ["x-search-status", "x-search-reason", "x-search-results"];
    (
        response.text(),
        headers.map(|name| response.header(name).to_owned()),
    )
}

/// How many requests the response says it cost.
fn cost(response: &HttpResponse) -> &str {
    response.header("x-upstream-requests")
}

#[tokio::test]
async fn an_answer_is_bought_once() {
    let service = TestService::start().await;
    let searches: Vec<_> = bodies()
        .into_iter()
        .filter(|(endpoint, ..)| Endpoint::SEARCHES.contains(endpoint))
        .collect();
    for (number, (endpoint, _, body)) in (1..).zip(&searches) {
        let first = search(&service, "max-age=3600", *endpoint, body).await;
        assert_eq!(
            (first.status, cost(&first), first.header("age")),
            (200, "1", "")
        );
        wait_for_records(&service, number).await;
        let again = search(&service, "max-age=3600", *endpoint, body).await;
        assert_eq!((again.status, cost(&again)), (200, "0"), "{endpoint}");
        assert!(again.header("age").parse::<u32>().unwrap() < 3600);
        assert_eq!(content(&again), content(&first), "{endpoint}");
        let plan = again
            .headers
            .keys()
            .find(|name| name.as_str().starts_with("x-plan"));
        assert_eq!(plan, None, "what the plan was then");
    }
    assert_eq!(service.upstream.count(), searches.len());

    // What was bought is in the caller's records, once.
    let scans = service.get("/v1/scans").await;
    assert_eq!(scans["data"].as_array().unwrap().len(), searches.len());
    for scan in scans["data"].as_array().unwrap() {
        assert_eq!(
            (&scan["status"], &scan["requests"]["spent"]),
            (&json!("completed"), &json!(1)),
            "{scan:#}"
        );
    }
    // One of each pair was bought, the other has taken its answer.
    let usage = service.wait_for_requests(KEY, searches.len()).await;
    wait_until("the reused answers are counted", async || {
        let usage = service.get("/v1/usage").await;
        total(&usage, "reused") == u64::try_from(searches.len()).unwrap()
    })
    .await;
    assert_eq!(
        total(&usage, "attempts"),
        u64::try_from(searches.len()).unwrap()
    );
    let observed: i64 = value!(service.pool(), "select count(*) from observations");
    assert_eq!(usize::try_from(observed).unwrap(), searches.len());
}

#[tokio::test]
async fn only_an_answer_that_is_young_enough_is_reused() {
    let service = TestService::start().await;
    let body = body(ONEWAY);
    search(&service, "max-age=60", ONEWAY, &body)
        .await
        .expect(200);
    wait_for_records(&service, 1).await;
    for (directives, calls) in [
        ("max-age=60, min-fresh=60", 2),
        ("max-age=60, no-cache", 3),
        ("max-age=0", 4),
        ("max-age=60, no-store", 5),
    ] {
        let response = search(&service, directives, ONEWAY, &body).await;
        assert_eq!(
            (response.status, cost(&response)),
            (200, "1"),
            "{directives}"
        );
        assert_eq!(service.upstream.count(), calls, "{directives}");
    }
    // All but the last are stored.
    wait_for_records(&service, 4).await;

    // A minute later.
    let older = [
        "update observations set observed_at = observed_at - interval '1 minute'",
        "update latest_prices set observed_at = observed_at - interval '1 minute', sampled_at = sampled_at - interval '1 minute'",
        "update scan_items set observed_at = observed_at - interval '1 minute'",
        "update attempts set ended_at = ended_at - interval '1 minute'",
        "update answers set observed_at = observed_at - interval '1 minute'",
    ];
    for statement in older {
        execute!(service.pool(), statement);
    }
    let aged = search(&service, "max-age=3600", ONEWAY, &body).await;
    assert_eq!(cost(&aged), "0");
    let age: u32 = aged.header("age").parse().unwrap();
    assert!((60..3600).contains(&age), "{age}");
    let new = search(&service, "max-age=60", ONEWAY, &body).await;
    assert_eq!((cost(&new), service.upstream.count()), ("1", 6));
}

#[tokio::test]
async fn another_search_or_another_caller_takes_nothing() {
    let service = TestService::start().await;
    let first = body(ONEWAY);
    search(&service, "max-age=3600", ONEWAY, &first)
        .await
        .expect(200);
    wait_for_records(&service, 1).await;
    // What a field has by default may be written out.
    let same = with(first.clone(), &json!({"limit": 10, "strict": false}));
    let response = search(&service, "max-age=3600", ONEWAY, &same).await;
    assert_eq!((cost(&response), service.upstream.count()), ("0", 1));
    let others = [
        json!({"departure_date": "2027-01-15"}),
        json!({"limit": 20}),
        json!({"strict": true}),
        json!({"currency": "EUR"}),
        json!({"max_price": 900}),
        json!({"sort_type": "Price"}),
        json!({"use_ext_proxy": false}),
    ];
    for (number, other) in (2..).zip(&others) {
        let response = search(
            &service,
            "max-age=3600",
            ONEWAY,
            &with(first.clone(), other),
        )
        .await;
        assert_eq!(
            (cost(&response), service.upstream.count()),
            ("1", number),
            "{other}"
        );
    }
    let calls = service.upstream.count();
    let stranger = search_as(&service, "another-key", "max-age=3600", ONEWAY, &first).await;
    assert_eq!(
        (cost(&stranger), service.upstream.count()),
        ("1", calls + 1)
    );
}

#[tokio::test]
async fn an_incomplete_answer_is_stored_but_never_reused() {
    let service = TestService::start().await;
    let body = body(ONEWAY);
    let row = json!([fare(120, &body)]);
    let incomplete = [
        Reply::json(row.clone()).header("x-search-status", "partial"),
        Reply::json(json!([])).header("x-search-status", "degraded"),
        Reply::json(json!([])), // not stated
        Reply::search_incomplete("no_response"),
        Reply::status(500),
    ];
    for (number, reply) in (1..).zip(&incomplete) {
        service.upstream.reply(reply.clone());
        let before = service.upstream.count();
        let response = search(&service, "max-age=3600", ONEWAY, &body).await;
        assert_ne!((cost(&response), response.header("age")), ("0", "0"));
        assert!(service.upstream.count() > before, "{reply:?}");
        wait_for_records(&service, number).await;
    }
    service.upstream.reply(Reply::status(429));
    search(&service, "max-age=3600", ONEWAY, &body)
        .await
        .expect(429);
    service
        .upstream
        .reply(Reply::json(json!([])).header("x-search-status", "empty"));
    search(&service, "max-age=3600", ONEWAY, &body)
        .await
        .expect(200);
    let stored = i64::try_from(incomplete.len()).unwrap() + 1;
    wait_for_records(&service, stored).await;
    // An empty answer is complete.
    let before = service.upstream.count();
    let empty = search(&service, "max-age=3600", ONEWAY, &body).await;
    assert_eq!(
        (empty.header("x-search-status"), cost(&empty)),
        ("empty", "0")
    );
    assert_eq!(service.upstream.count(), before);
    assert_eq!(records(&service).await, stored, "a refusal is not stored");
    let spent: i64 = value!(service.pool(), "select sum(requests_spent) from attempts");
    assert_eq!(
        usize::try_from(spent).unwrap(),
        before - 1,
        "every call but the refused one is on record, second tries too"
    );
}

#[tokio::test]
async fn only_if_cached_never_searches() {
    let service = TestService::start().await;
    let body = body(ONEWAY);
    let mut none = search(&service, "only-if-cached", ONEWAY, &body).await;
    // On a busy machine the look-up may take too long.
    while none.status == 503 {
        none = search(&service, "only-if-cached", ONEWAY, &body).await;
    }
    assert_eq!(none.kind(), "504 not_cached");
    assert!(
        none.message().contains("only-if-cached"),
        "{}",
        none.message()
    );
    search(&service, "max-age=0", ONEWAY, &body)
        .await
        .expect(200);
    wait_for_records(&service, 1).await;
    for (directives, status) in [
        ("only-if-cached", 200),
        ("only-if-cached, max-age=3600", 200),
        ("only-if-cached, max-age=0", 504),
        ("only-if-cached, no-cache", 504),
    ] {
        let response = search(&service, directives, ONEWAY, &body).await;
        assert_eq!(response.status, status, "{directives}");
    }
    assert_eq!(service.upstream.count(), 1);
}

#[tokio::test]
async fn a_wrong_age_is_a_fault_that_costs_nothing() {
    let service = TestService::start().await;
    let response = search(&service, "max-age=6h", ONEWAY, &body(ONEWAY)).await;
    assert_eq!(response.kind(), "400 invalid_request");
    let detail = &response.json()["error"]["details"][0];
    assert_eq!(detail["field"], "Cache-Control", "{detail:#}");
    assert_eq!(detail["found"], "\"max-age=6h\"", "{detail:#}");
    assert_eq!(service.upstream.count(), 0);
}

#[tokio::test]
async fn without_an_age_nothing_is_stored() {
    let service = TestService::start().await;
    for directives in ["no-cache", "no-store", "max-stale=60", "public"] {
        search(&service, directives, ONEWAY, &body(ONEWAY))
            .await
            .expect(200);
    }
    assert_eq!(service.upstream.count(), 4);
    // What comes later is stored later.
    search(&service, "max-age=5", ONEWAY, &body(ONEWAY))
        .await
        .expect(200);
    wait_for_records(&service, 1).await;
    assert_eq!(service.upstream.count(), 5);
}

#[tokio::test]
async fn the_answer_of_a_search_that_became_a_scan_is_reused() {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    let body = body(ONEWAY);
    let preferred = prefer(&service, READY, ONEWAY, &body).await.expect(200);
    let response = search(&service, "max-age=3600", ONEWAY, &body).await;
    assert_eq!(cost(&response), "0");
    assert_eq!(content(&response), content(&preferred));
    // And without such an answer the preference counts.
    let request = service
        .request("POST", "/v1/flights/oneway")
        .header("x-api-key", crate::support::app::KEY)
        .header("cache-control", "max-age=0")
        .header("prefer", "respond-async");
    let accepted: Value = service.send(request.json(&body)).await.expect(202).json();
    service
        .wait_until_ended(accepted["id"].as_str().unwrap())
        .await;
    assert_eq!(service.upstream.count(), 2);
    worker.stop().await;
}

#[tokio::test]
async fn a_stored_search_can_be_asked_again() {
    let service = TestService::start().await;
    let worker = service.start_worker(1);
    service.accept_key().await;
    service
        .upstream
        .reply(Reply::search_incomplete("no_response"));
    search(&service, "max-age=3600", ONEWAY, &body(ONEWAY)).await;
    // The other one is that of the accepted key.
    wait_for_records(&service, 2).await;
    let scans = service.get("/v1/scans").await;
    let of_search = |scan: &&Value| scan["request"]["departure_date"].is_string();
    let id = array(&scans["data"]).iter().find(of_search).unwrap()["id"]
        .as_str()
        .unwrap();
    service.upstream.answer_fares(120);
    let retry = json!({"search_status": ["degraded"]});
    service
        .post(&format!("/v1/scans/{id}/retry"), &retry)
        .await
        .expect(202);
    let scan = service.wait_until_ended(id).await;
    assert_eq!(
        (&scan["status"], &scan["requests"]["spent"]),
        (&json!("completed"), &json!(2))
    );
    assert_eq!(scan["best"]["price"], 120);
    worker.stop().await;
}

#[tokio::test]
async fn a_key_that_is_not_accepted_stores_nothing() {
    let service = TestService::start().await;
    for reply in [Reply::status(401), Reply::status(500), Reply::reset()] {
        service.upstream.reply(reply);
        search_as(&service, "made-up", "max-age=3600", ONEWAY, &body(ONEWAY)).await;
    }
    let calls = service.upstream.count();
    service.upstream.answer_fares(120);
    search_as(&service, "made-up", "max-age=3600", ONEWAY, &body(ONEWAY))
        .await
        .expect(200);
    wait_for_records(&service, 1).await;
    assert_eq!(service.upstream.count(), calls + 1);
}
