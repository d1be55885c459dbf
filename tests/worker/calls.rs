//! The calls of a scan and their effects in the database.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use farescan::contract::scans::{ItemState, ScanStatus};
use farescan::contract::{Endpoint, SearchStatus};
use serde_json::json;

use super::fixture::WorkerFixture;
use crate::support::reply::Reply;
use crate::support::upstream::fare;

#[tokio::test(flavor = "multi_thread")]
async fn each_date_is_searched_once_and_every_answer_is_stored() {
    let fixture = WorkerFixture::new().await;
    let worker = fixture.start_worker();
    let scan = fixture.submit(31, &json!({})).await;
    let seen = fixture.wait_until_ended(scan).await;
    worker.stop().await;

    let calls = fixture.upstream.calls();
    let dates: BTreeSet<_> = calls
        .iter()
        .map(|call| call.body["departure_date"].to_string())
        .collect();
    assert_eq!((calls.len(), dates.len()), (31, 31));
    assert!(calls.iter().all(|call| call.body["strict"] == true
        && call.body["limit"] == 50
        && call.key == "test-key-0123456789"));
    assert_eq!(
        (seen.status, seen.items.ok, seen.requests.spent),
        (ScanStatus::Completed, 31, 31)
    );
    for table in [
        "select count(*) from attempts where ended_at is not null and requests_spent = 1 and search_status = 'ok'",
        "select count(*) from answers",
        "select count(*) from observations where price = 164",
        "select count(*) from latest_prices where price = 164",
        "select count(*) from scan_items where state = 'done' and best_price = 164 and currency = 'USD' and results = 1",
    ] {
        assert_eq!(fixture.count(table).await, 31, "{table}");
    }
    // All tables store the same time of an answer.
    let same = "select count(*) from scan_items where observed_at is not null
                and (item_id, observed_at) in (select item_id, ended_at from attempts)
                and (item_id, observed_at) in (select item_id, observed_at from observations)
                and (item_id, observed_at) in (select item_id, observed_at from answers)
                and observed_at in (select observed_at from latest_prices)";
    assert_eq!(
        fixture.count(same).await,
        31,
        "the times of items, attempts, answers, observations and latest prices"
    );
    assert_eq!(
        fixture
            .count("select count(*) from key_grants where wiped_at is null")
            .await,
        0
    );
    assert_eq!(
        fixture.count("select count(*) from workers").await,
        0,
        "the lease was released"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_worker_starts_a_new_scan_within_half_a_second() {
    let fixture = WorkerFixture::new().await;
    let worker = fixture.start_worker();
    let first = fixture.submit(1, &json!({})).await;
    fixture.wait_until_ended(first).await;
    // The claimer has just polled, so its timer alone would take a second. Repeated because the
    // machine may be busy.
    let mut shortest = Duration::MAX;
    for earlier in 1..=50 {
        let submitted_at = Instant::now();
        let scan = fixture.submit(1, &json!({})).await;
        fixture
            .upstream
            .wait_for("the next scan is searched", |calls| calls.len() > earlier)
            .await;
        shortest = shortest.min(submitted_at.elapsed());
        fixture.wait_until_ended(scan).await;
        if shortest < Duration::from_millis(500) {
            break;
        }
    }
    assert!(shortest < Duration::from_millis(500), "{shortest:?}");
    worker.stop().await;
}

/// A scan that was paused for weeks resumes: dates in the past cost nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_date_in_the_past_is_not_searched() {
    let fixture = WorkerFixture::new().await;
    let scan = fixture.submit(5, &json!({})).await;
    let weeks_later =
        "update scan_items set body = jsonb_set(body, '{departure_date}', '\"2026-01-01\"'), first_date = '2026-01-01'
                       where position < 2";
    execute!(fixture.pool(), weeks_later);
    let worker = fixture.start_worker();
    let seen = fixture.wait_until_ended(scan).await;
    worker.stop().await;
    assert_eq!(
        (
            fixture.upstream.count(),
            seen.items.ok,
            seen.items.failed,
            seen.requests.spent
        ),
        (3, 3, 2, 3)
    );
    let items = fixture.items(scan).await;
    let of = |item: &farescan::contract::scans::Item| (item.reason.clone(), item.error.clone());
    let error = "2026-01-01 had passed when its turn came: it was not searched";
    assert!(
        items[..2]
            .iter()
            .all(|item| of(item) == (Some("date_passed".to_owned()), Some(error.to_owned()))),
        "{:?}",
        items[0]
    );
    assert_eq!(
        fixture
            .count("select count(*) from observations where search_status <> 'ok'")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_searches_only_the_degraded_items_again() {
    let fixture = WorkerFixture::new().await;
    let worker = fixture.start_worker();
    let broken: Vec<_> = (0..5)
        .map(|day| super::fixture::fares(5 + day)["sweep"]["departure_date"]["to"].clone())
        .collect();
    let dates = broken.clone();
    fixture
        .upstream
        .on(Endpoint::FlightsOneway)
        .when(move |call| dates.contains(&call.body["departure_date"]))
        .reply(Reply::search_incomplete("blocked_page"));
    let scan = fixture.submit(31, &json!({})).await;
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!(
        (seen.status, seen.items.ok, seen.items.degraded),
        (ScanStatus::Incomplete, 26, 5)
    );
    assert_eq!(fixture.upstream.count(), 31);

    fixture
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(|call| Reply::json(json!([fare(164, &call.body)])));
    fixture
        .retry(scan, &json!({"search_status": ["degraded"]}))
        .await;
    let seen = fixture.wait_until_ended(scan).await;
    worker.stop().await;
    let again: BTreeSet<_> = fixture.upstream.calls()[31..]
        .iter()
        .map(|call| call.body["departure_date"].to_string())
        .collect();
    assert_eq!(again, broken.iter().map(ToString::to_string).collect());
    assert_eq!(
        (
            fixture.upstream.count(),
            seen.status,
            seen.items.ok,
            seen.requests.spent
        ),
        (36, ScanStatus::Completed, 31, 36)
    );
    assert_eq!(
        fixture
            .count("select count(*) from attempts where reason = 'blocked_page'")
            .await,
        5
    );
    assert_eq!(fixture.count("select count(*) from observations where search_status = 'degraded' and price is null").await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_error_is_retried_once_within_the_budget() {
    let fixture = WorkerFixture::new().await;
    let worker = fixture.start_worker();
    fixture
        .upstream
        .on(Endpoint::FlightsOneway)
        .reply(Reply::status(502));
    let scan = fixture.submit(3, &json!({"max_requests": 4})).await;
    let seen = fixture.wait_until_ended(scan).await;
    worker.stop().await;
    assert_eq!((seen.items.degraded, seen.requests.spent), (3, 4));
    assert_eq!(
        fixture.upstream.count(),
        4,
        "the budget allowed one second try"
    );
    assert_eq!(
        fixture
            .count(
                "select sum(requests_spent)::bigint from attempts where reason = 'upstream_status'"
            )
            .await,
        4
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_degraded_item_is_retried_as_its_scan_requests() {
    let fixture = WorkerFixture::new().await;
    let worker = fixture.start_worker();
    fixture.upstream.on(Endpoint::FlightsOneway).replies([
        Reply::search_incomplete("blocked_page"),
        Reply::json(json!([fare(99, &json!({}))])),
    ]);
    let scan = fixture
        .submit(
            1,
            &json!({"retry": {"max_attempts": 2, "delay_seconds": 1}}),
        )
        .await;
    let seen = fixture.wait_until_ended(scan).await;
    worker.stop().await;
    assert_eq!(
        (seen.status, seen.items.ok, fixture.upstream.count()),
        (ScanStatus::Completed, 1, 2)
    );
    let calls = fixture.upstream.calls();
    assert!(calls[1].at - calls[0].at >= Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_pauses_the_lane_and_is_not_retried() {
    let mut fixture = WorkerFixture::new().await;
    fixture.pace.max_in_flight = 4;
    let worker = fixture.start_worker();
    fixture
        .upstream
        .reply(Reply::status(429).header("retry-after", "600"));
    let scan = fixture.submit(40, &json!({})).await;
    let seen = fixture
        .wait_for_scan(scan, "the lane is paused", |scan| {
            scan.status == ScanStatus::Paused
        })
        .await;
    assert_eq!(
        seen.status_reason
            .map(|reason| reason.to_string())
            .as_deref(),
        Some("rate_limited")
    );
    let settled = fixture
        .wait_for_scan(scan, "nothing is in flight", |scan| scan.items.running == 0)
        .await;
    worker.stop().await;
    assert!(
        fixture.upstream.count() <= 8,
        "{} calls: at most those in flight exceed the limit",
        fixture.upstream.count()
    );
    assert_eq!(settled.items.degraded as usize, fixture.upstream.count());
    assert_eq!(settled.items.pending, 40 - settled.items.degraded);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_key_leaves_every_item_pending() {
    let mut fixture = WorkerFixture::new().await;
    fixture.pace.max_in_flight = 3;
    let worker = fixture.start_worker();
    fixture
        .upstream
        .reply(Reply::status(401).with_json(json!({"message": "Invalid API key"})));
    let scan = fixture.submit(10, &json!({})).await;
    fixture
        .wait_for_scan(scan, "the lane is paused", |scan| {
            scan.status == ScanStatus::Paused && scan.items.running == 0
        })
        .await;
    worker.stop().await;
    assert!(fixture.upstream.count() <= 3);
    assert!(
        fixture
            .items(scan)
            .await
            .iter()
            .all(|item| item.state == ItemState::Pending && item.search_status.is_none())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_emptied_by_our_filter_is_ok_and_filtered_out() {
    let fixture = WorkerFixture::new().await;
    let worker = fixture.start_worker();
    let mut request = super::fixture::fares(1)["request"].clone();
    request["max_price"] = json!(100);
    let scan = fixture.submit(1, &json!({"request": request})).await;
    fixture.wait_until_ended(scan).await;
    worker.stop().await;
    assert!(fixture.upstream.calls()[0].body.get("max_price").is_none());
    let item = &fixture.items(scan).await[0];
    assert_eq!(
        (item.search_status, item.reason.as_deref(), item.results),
        (Some(SearchStatus::Ok), Some("filtered_out"), Some(0))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_rows_is_an_empty_observation() {
    let fixture = WorkerFixture::new().await;
    let worker = fixture.start_worker();
    fixture.upstream.reply(Reply::json(json!([])));
    let scan = fixture.submit(2, &json!({})).await;
    let seen = fixture.wait_until_ended(scan).await;
    worker.stop().await;
    assert_eq!((seen.status, seen.items.empty), (ScanStatus::Completed, 2));
    assert_eq!(
        fixture
            .count(
                "select count(*) from observations where search_status = 'empty' and price is null"
            )
            .await,
        2
    );
    assert_eq!(
        fixture
            .count("select count(*) from latest_prices where sample_status = 'empty'")
            .await,
        2
    );
    assert_eq!(
        fixture
            .count("select count(*) from latest_prices where price is not null")
            .await,
        0
    );
}
