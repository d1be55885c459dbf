//! Commands on a scan that finds the cheapest, its limits, and what dies between two decisions.

use std::time::Duration;

use farescan::scans::question::{self, DueWork, Turn};
use jiff::Timestamp;
use serde_json::json;
use sqlx::postgres::PgListener;

use super::watch::watching;
use super::{
    assert_shows, check_sum, decisions, finding, ladder, run, searches, sell, wait_until_decided,
    with_calendar,
};
use crate::support::WAIT_LIMIT;
use crate::support::reply::Reply;
use crate::support::service::{TestService, with};
use crate::support::steps::{SearchOutcome, decide_all};

async fn decide(service: &TestService) -> usize {
    decide_all(service.pool()).await.unwrap()
}

/// Completes the searches of a decision at the prices.
async fn complete(service: &TestService, prices: &[Option<u32>]) {
    service
        .complete_all(|position| prices[position].map_or(SearchOutcome::Empty, SearchOutcome::Ok))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sweepers_at_once_decide_once() {
    let prices = ladder(60);
    let service = with_calendar(&prices, 7).await;
    let id = service.submit(&finding(60)).await;
    assert_eq!(
        service.claim().await.len(),
        0,
        "nothing is searched before a decision"
    );
    for expected in 1..=3 {
        let all = futures::future::join_all((0..8).map(|_| decide_all(service.pool())));
        assert!(all.await.iter().all(Result::is_ok));
        let scan = service.scan(&id).await;
        assert_eq!(scan["strategy"]["decisions"], expected);
        let pending = "select count(*) from scan_items where state = 'pending'";
        assert_eq!(service.count(pending).await, 2);
        assert_eq!(decide(&service).await, 0, "its searches have not ended");
        complete(&service, &prices).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_scan_decides_nothing_more() {
    let service = with_calendar(&ladder(60), 7).await;
    let id = service.submit(&finding(60)).await;
    decide(&service).await;
    let cancelled = service.command(&id, "cancel", &json!({})).await;
    assert_eq!(cancelled["items"]["cancelled"], 60);
    assert!(cancelled["finished_at"].is_string());
    // It is removed from the due scans.
    assert_eq!([decide(&service).await, decide(&service).await], [1, 0]);
    let scan = service.scan(&id).await;
    assert_shows(
        &scan["strategy"],
        &json!({"risk_of_cheaper": null, "decisions": 1}),
    );
    let deleted = service.app.delete(&format!("/v1/scans/{id}")).await;
    assert_eq!(deleted.status, 204);
    let stored = "select count(*) from scan_decisions";
    assert_eq!(service.count(stored).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_budget_pauses_in_a_decision_and_ends_between_two() {
    // A second try takes the request that the second search of a decision had.
    let service = with_calendar(&ladder(60), 10).await;
    service.upstream.reply(Reply::status(502));
    let worker = service.start_worker(1);
    let id = service
        .submit(&with(finding(60), &json!({"max_requests": 2})))
        .await;
    let scan = service
        .wait_for_scan(&id, "its budget is spent", |scan| {
            scan["status_reason"] == "budget_spent"
        })
        .await;
    assert_eq!(scan["requests"]["spent"], 2);
    sell(&service, ladder(60));
    service
        .command(&id, "resume", &json!({"max_requests": 4}))
        .await;
    let scan = wait_until_decided(&service, &id).await;
    worker.stop().await;
    assert_eq!(scan["requests"]["spent"], 4);
    assert_shows(&scan["strategy"], &json!({"ended_by": "limit_reached"}));
    assert_shows(&scan["items"], &json!({"degraded": 1, "ok": 2}));
    check_sum(&service, &scan).await;
    service.check_ledger().await;
}

/// Its decision ends it at the limit, and searches nothing.
#[tokio::test(flavor = "multi_thread")]
async fn paused_between_decisions_with_a_spent_budget_it_is_resumed_without_more() {
    let prices = ladder(60);
    let service = with_calendar(&prices, 7).await;
    let body = with(finding(60), &json!({"max_requests": 2}));
    let id = service.submit(&body).await;
    decide(&service).await;
    complete(&service, &prices).await;
    service.command(&id, "pause", &json!({})).await;
    assert_eq!(decide(&service).await, 0, "it is paused");
    let resumed = service.command(&id, "resume", &json!({})).await;
    assert_shows(&resumed, &json!({"status": "running"}));
    assert_eq!(resumed["requests"]["spent"], 2);
    assert_eq!(decide(&service).await, 1);
    let scan = service.scan(&id).await;
    assert_shows(&scan, &json!({"status": "completed"}));
    let ended = json!({"ended_by": "limit_reached", "decisions": 2});
    assert_shows(&scan["strategy"], &ended);
    check_sum(&service, &scan).await;

    // A search that waits for its call still needs a request.
    let id = service.submit(&body).await;
    decide(&service).await;
    let first = service.claim().await.remove(0);
    service.begin(&first).await;
    service.finish(&first, SearchOutcome::Ok(60)).await;
    service.command(&id, "pause", &json!({})).await;
    let lower = format!("/v1/scans/{id}/resume");
    let refused = service.post(&lower, &json!({"max_requests": 1})).await;
    assert_eq!(
        refused.message(),
        "`max_requests`: found 1; expected at least 2: 1 requests are spent"
    );
}

/// One turn makes a part of the decisions that are due; the next one goes on after it, also if the
/// first of them fail.
#[tokio::test(flavor = "multi_thread")]
async fn decisions_are_made_in_turns() {
    let service = with_calendar(&ladder(60), 7).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(service.submit(&finding(60)).await);
    }
    let locked: farescan::ids::ScanId = ids[0].parse().unwrap();
    let mut lock = crate::support::db::begin_holding(service.pool()).await;
    execute!(
        &mut *lock,
        "select from scans where scan_id = $1 for update",
        locked.uuid()
    );
    let mut turn = Turn::default();
    let mut decided = Vec::new();
    for _ in 0..4 {
        let (pool, now) = (service.pool(), Timestamp::now());
        let work = DueWork::Decisions;
        let made = question::do_due(pool, work, &mut turn, Duration::ZERO, now).await;
        decided.push(made.unwrap());
    }
    lock.rollback().await.unwrap();
    assert_eq!(decided, [0, 1, 1, 0], "then it begins again");
    assert_eq!(decide(&service).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_without_an_answer_stays_a_risk_until_its_retry() {
    let prices = ladder(60);
    let service = with_calendar(&prices, 2).await;
    let id = service.submit(&finding(60)).await;
    // The stored cheapest date is not answered.
    while service.scan(&id).await["finished_at"].is_null() {
        decide(&service).await;
        service
            .complete_all(|position| match position {
                30 => SearchOutcome::Degraded("upstream_timeout"),
                _ => prices[position].map_or(SearchOutcome::Empty, SearchOutcome::Ok),
            })
            .await;
    }
    let before = service.scan(&id).await;
    let decided = decisions(&service, &before).await;
    let of_it = decided.iter().filter(|one| searches(one).contains(&30));
    assert_eq!(of_it.count(), 1, "{decided:#?}");
    assert_shows(&before, &json!({"status": "incomplete"}));
    assert_shows(&before["strategy"], &json!({"risk_of_cheaper": null}));
    check_sum(&service, &before).await;

    let body = json!({"search_status": ["degraded"]});
    let retried = service.command(&id, "retry", &body).await;
    assert_shows(
        &retried["scan"]["strategy"],
        &json!({"risk_of_cheaper": null}),
    );
    assert_eq!(decide(&service).await, 0, "its search has not ended");
    service.complete_all(|_| SearchOutcome::Ok(50)).await;
    // The scan has ended; who reads its events learns of the decision.
    let events = "select sum(event_count)::bigint from scans";
    let numbered = service.count(events).await;
    let mut listener = PgListener::connect_with(service.pool()).await.unwrap();
    listener.listen("farescan_scan").await.unwrap();
    assert_eq!(decide(&service).await, 1);
    assert_eq!(service.count(events).await, numbered + 1);
    let notified = tokio::time::timeout(WAIT_LIMIT, listener.recv()).await;
    let scan_id: farescan::ids::ScanId = id.parse().unwrap();
    let notified = notified.unwrap().unwrap();
    assert_eq!(notified.payload(), scan_id.uuid().to_string());
    let after = service.scan(&id).await;
    assert_eq!(after["strategy"]["best"]["price"], 50);
    assert!(after["strategy"]["risk_of_cheaper"].is_f64(), "{after:#}");
    // Nothing more is searched than the retry has said.
    assert_shows(&after, &json!({"status": "completed"}));
    let unsearched = json!({"unsearched": before["strategy"]["unsearched"]});
    assert_shows(&after["strategy"], &unsearched);
    assert_eq!(decide(&service).await, 0);
    check_sum(&service, &after).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_share_nothing() {
    let service = with_calendar(&ladder(31), 1).await;
    for (other, body) in [
        ("another-caller-with-its-own-key", finding(31)),
        ("a-third-caller-with-its-own-key", watching(31, 6)),
    ] {
        let worker = service.start_worker(8);
        let id = service.submit_as(other, &body).await;
        service.wait_for_scan_as(other, &id).await;
        let path = format!("/v1/scans/{id}");
        let scan = service.get_as(other, &path).await.json();
        assert_shows(&scan["strategy"], &json!({"stored_prices": 0}));
        let read = format!("{path}/decisions");
        assert_eq!(service.get_as(other, &read).await.status, 200);
        assert_eq!(service.app.get(&read).await.status, 404);
        worker.stop().await;
        let own = run(&service, &body).await;
        assert_shows(&own["strategy"], &json!({"stored_prices": 31}));
    }
}
