//! Of a product and its dates the newest answer that satisfies is taken, whatever came after it
//! (scans.md, rule 74; gateway.md, rule 54).

use serde_json::{Value, json};

use super::{reusing, run};
use crate::support::app::KEY;
use crate::support::reply::Reply;
use crate::support::service::{TestService, day, fares, with};
use crate::support::upstream::fare;
use crate::support::wait_until;

pub(super) const FLIGHTS: &str = "/v1/flights/oneway";

/// How many single searches are stored.
pub(super) async fn recorded(service: &TestService) -> i64 {
    value!(
        service.pool(),
        "select count(*) from scans where verbatim and finished_at is not null"
    )
}

/// Sends a single search, with an age if it may take an answer, and waits until it is stored; returns
/// its requests.
pub(super) async fn search(
    service: &TestService,
    path: &str,
    body: &Value,
    age: Option<u32>,
) -> u64 {
    let before = recorded(service).await;
    let request = service.request("POST", path).header("x-api-key", KEY);
    let request = match age {
        Some(age) => request.header("cache-control", format!("max-age={age}")),
        None => request,
    };
    let response = service.send(request.json(body)).await.expect(200);
    let spent = response.header("x-upstream-requests").parse().unwrap();
    // Without an age only complete answers are stored.
    let is_complete = response.header("x-search-status") != "partial";
    if age.is_some() || is_complete {
        wait_until("the search is stored", async || {
            recorded(service).await == before + i64::try_from(spent).unwrap()
        })
        .await;
    }
    spent
}

/// A single search of the n-th date.
fn single(date: usize, more: &Value) -> Value {
    let request = with(fares(1)["request"].clone(), more);
    with(request, &json!({"departure_date": day(date)}))
}

async fn spent_by(service: &TestService, body: &Value) -> u64 {
    let id = service.submit(body).await;
    let scan = service.wait_until_ended(&id).await;
    scan["requests"]["spent"].as_u64().unwrap()
}

/// What each of five rounds of a single search and a scan costs.
async fn five_rounds(path: &str, single: &Value, scan: &Value) -> Vec<(u64, u64)> {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    service.accept_key().await;
    let before = service.upstream.count();
    let mut spent = Vec::new();
    for _ in 0..5 {
        let of_single = search(&service, path, single, Some(3600)).await;
        spent.push((of_single, spent_by(&service, scan).await));
    }
    worker.stop().await;
    let sum: u64 = spent.iter().map(|(single, scan)| single + scan).sum();
    assert_eq!(service.upstream.count() as u64 - before as u64, sum);
    spent
}

#[tokio::test(flavor = "multi_thread")]
async fn single_searches_and_scans_hide_no_answers_from_each_other() {
    // A single search has its own limit, a scan that of a scan: these are two searches.
    let spent = five_rounds(FLIGHTS, &single(1, &json!({})), &reusing(5)).await;
    assert_eq!(spent, [(1, 5), (0, 0), (0, 0), (0, 0), (0, 0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_is_sent_alike_is_bought_once_by_whoever_comes_first() {
    let none = [(0, 0); 4];
    let sent_alike = single(1, &json!({"strict": true, "limit": 50}));
    let spent = five_rounds(FLIGHTS, &sent_alike, &reusing(1)).await;
    assert_eq!((spent[0], &spent[1..]), ((1, 0), &none[..]));

    let stay =
        json!({"hotel_name": "Grand Hotel", "checkin_date": day(1), "checkout_date": day(3)});
    let scan = json!({"endpoint": "hotels/by-name", "request": stay, "max_age_seconds": 3600});
    let spent = five_rounds("/v1/hotels/by-name", &stay, &scan).await;
    assert_eq!((spent[0], &spent[1..]), ((1, 0), &none[..]));
}

/// A single search takes the answer of a scan as it was received.
#[tokio::test(flavor = "multi_thread")]
async fn a_single_search_answers_with_what_a_scan_has_bought() {
    let nothing = Reply::status(404).with_json(json!({"detail": "no such hotel"}));
    for reply in [None, Some(nothing)] {
        let service = TestService::start().await;
        let worker = service.start_worker(8);
        service.accept_key().await;
        let stay =
            json!({"hotel_name": "Grand Hotel", "checkin_date": day(1), "checkout_date": day(3)});
        let ask = async |directives: &'static str| {
            let request = service.request("POST", "/v1/hotels/by-name");
            let request = request
                .header("x-api-key", KEY)
                .header("cache-control", directives);
            service.send(request.json(&stay)).await
        };
        if let Some(reply) = reply {
            service.upstream.replies([reply.clone(), reply]);
        }
        let bought = ask("no-store").await;
        let scan = json!({"endpoint": "hotels/by-name", "request": stay});
        assert_eq!(spent_by(&service, &scan).await, 1);
        let taken = ask("only-if-cached").await;
        worker.stop().await;
        assert_eq!((taken.status, taken.text()), (bought.status, bought.text()));
        for name in ["x-search-status", "x-search-reason", "x-search-results"] {
            assert_eq!(taken.header(name), bought.header(name), "{name}");
        }
        assert_eq!(taken.header("x-upstream-requests"), "0");
    }
}

/// Retention has removed the body of an empty answer: a scan still takes it, a single search takes the
/// answer before it.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_without_its_body_hides_no_whole_one() {
    for bought_by_scan in [true, false] {
        let service = TestService::start().await;
        let body = single(1, &json!({"strict": true, "limit": 50}));
        service.upstream.replies([
            Reply::json(json!([fare(120, &json!({}))])),
            Reply::json(json!([])).header("x-search-status", "empty"),
        ]);
        assert_eq!(search(&service, FLIGHTS, &body, Some(3600)).await, 1);
        let worker = service.start_worker(1);
        let spent = if bought_by_scan {
            spent_by(&service, &fares(1)).await
        } else {
            search(&service, FLIGHTS, &body, Some(0)).await
        };
        assert_eq!(spent, 1);
        let of_empty = "delete from answers a using scan_items i where i.item_id = a.item_id and i.search_status = 'empty'";
        execute!(service.pool(), of_empty);
        assert_eq!(search(&service, FLIGHTS, &body, Some(3600)).await, 0);
        let scan = run(&service, &reusing(1)).await;
        worker.stop().await;
        assert_eq!(
            (&scan["requests"]["spent"], &scan["items"]["empty"]),
            (&json!(0), &json!(1)),
            "{scan:#}"
        );
    }
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
