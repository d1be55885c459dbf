//! Watches: budget, the cheapest again, exploration, and the runs of a monitor.

use farescan::contract::scans::DecisionReason;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    assert_shows, day_of, decisions, ladder, run, searches, sell, wait_until_decided, with_calendar,
};
use crate::monitors;
use crate::support::db::require_key_acceptance;
use crate::support::reply::Reply;
use crate::support::service::{TestService, fares_with};
use crate::support::wait_until;

/// A watch of the cheapest of the first dates of 2030.
pub(super) fn watching(dates: usize, max_requests: usize) -> Value {
    let watch = json!({"strategy": {"watch": "cheapest"}, "max_requests": max_requests});
    fares_with(dates, &watch)
}

/// The positions that decisions searched for a reason.
fn searched_for(decisions: &[Value], reason: DecisionReason) -> Vec<usize> {
    let of_it = decisions
        .iter()
        .filter(|one| one["reason"] == json!(reason));
    of_it.flat_map(searches).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_verifies_the_cheapest_explores_and_spends_its_budget() {
    let service = with_calendar(&ladder(60), 5).await;
    let body = watching(60, 10);
    let preview = service.post("/v1/scans/preview", &body).await.json();
    let range = json!({"least": 10, "expected": 10, "most": 10});
    assert_eq!(preview["requests"], range);
    let mut explored = Vec::new();
    for _ in 0..3 {
        let scan = run(&service, &body).await;
        let decisions = decisions(&service, &scan).await;
        let again = searched_for(&decisions, DecisionReason::CheapestAgain);
        assert_eq!(again, [28], "it still is: {decisions:#?}");
        explored.push(searched_for(&decisions, DecisionReason::LongestUnseen));
        let strategy = &scan["strategy"];
        assert_eq!(scan["requests"]["spent"], 10, "{scan:#}");
        assert_eq!(strategy["best"]["price"], 60);
        let run = json!({"watch": "cheapest", "searched": 10, "unsearched": 50});
        assert_shows(strategy, &run);
        let last = json!({"risk": null, "reason": strategy["ended_by"]});
        assert_shows(decisions.last().unwrap(), &last);
    }
    assert_eq!(explored, [[0, 1], [2, 3], [4, 5]], "unseen the longest");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_that_is_gone_is_not_named_and_what_explores_is_not_spent_on_it() {
    let mut prices = ladder(60);
    let service = with_calendar(&prices, 1).await;
    prices[28] = Some(95);
    prices[29] = None;
    prices[30] = Some(95);
    sell(&service, prices);
    let scan = run(&service, &watching(60, 10)).await;
    let decided = decisions(&service, &scan).await;
    let again = searched_for(&decided, DecisionReason::CheapestAgain);
    assert_eq!(again, [28, 29, 30, 31], "until one still is: {scan:#}");
    assert_eq!(scan["strategy"]["best"]["price"], 60, "{scan:#}");

    sell(&service, vec![Some(900); 60]);
    let scan = run(&service, &watching(60, 10)).await;
    let decided = decisions(&service, &scan).await;
    let explored = searched_for(&decided, DecisionReason::LongestUnseen);
    assert_eq!(explored.len(), 2, "{decided:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn second_tries_count_and_what_fails_is_not_explored_again() {
    let service = with_calendar(&ladder(60), 5).await;
    let mut explored = Vec::new();
    for _ in 0..2 {
        let before = service.upstream.count();
        service.upstream.reply(Reply::status(502));
        let worker = service.start_worker(4);
        let id = service.submit(&watching(60, 9)).await;
        // It ends, although each search has cost two requests.
        let scan = wait_until_decided(&service, &id).await;
        worker.stop().await;
        assert_eq!(scan["strategy"]["ended_by"], "limit_reached", "{scan:#}");
        assert_eq!(service.upstream.count() - before, 9);
        assert_eq!(scan["requests"]["spent"], 9);
        assert_shows(&scan["strategy"], &json!({"risk_of_miss": null}));
        let decisions = decisions(&service, &scan).await;
        explored.extend(searched_for(&decisions, DecisionReason::LongestUnseen));
    }
    assert_eq!(explored, [0, 1]);
    service.check_ledger().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_that_doubles_is_looked_at_once_more() {
    let mut prices = ladder(60);
    let service = with_calendar(&prices, 0).await;
    prices[28] = Some(600);
    sell(&service, prices);
    let mut first = Vec::new();
    for _ in 0..3 {
        let scan = run(&service, &watching(60, 10)).await;
        first.push(searches(&decisions(&service, &scan).await[0])[0]);
    }
    assert_eq!(first, [28, 28, 29]);
}

#[tokio::test(flavor = "multi_thread")]
async fn from_nothing_it_spends_its_budget_on_spread_dates() {
    for is_accepted in [true, false] {
        let service = TestService::start().await;
        if !is_accepted {
            require_key_acceptance(service.pool()).await;
        }
        sell(&service, ladder(60));
        let scan = run(&service, &watching(60, 10)).await;
        assert_eq!(scan["requests"]["spent"], 10, "{scan:#}");
        assert_eq!(scan["strategy"]["stored_prices"], 0);
        let calls = service.upstream.calls();
        let mut dates: Vec<_> = calls.iter().map(|call| day_of(&call.body)).collect();
        dates.sort_unstable();
        assert!(dates[9] > 40 && dates[0] == 0, "{dates:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_watches_within_the_requests_of_a_run() {
    let service = with_calendar(&ladder(60), 5).await;
    let body = json!({
        "name": "watched",
        "schedule": {"cron": "0 6 * * *", "timezone": "Europe/London"},
        "scan": watching(60, 10),
        "alerts": [{"type": "price_below", "amount": 70}],
        "max_requests_per_month": 25
    });
    let preview = service.post("/v1/monitors/preview", &body).await.json();
    let range = json!({"least": 10, "most": 10});
    assert_eq!(preview["forecast"]["requests_per_run"], range);
    let monitor = service.create_monitor(&body).await;
    let worker = service.start_worker(8);
    let ticker = monitors::ticker(service.pool());
    let (mut spent, mut runs) = (0, 0);
    let refused = loop {
        let before = service.upstream.count();
        let path = format!("/v1/monitors/{monitor}/run");
        let started = service.post(&path, &json!({})).await;
        if started.status != 202 {
            break started.text();
        }
        let started = started.expect(202).json();
        let scan = wait_until_decided(&service, started["id"].as_str().unwrap()).await;
        assert_eq!(scan["strategy"]["watch"], "cheapest", "{scan:#}");
        let called = service.upstream.count() - before;
        assert!(called <= 10 && json!(called) == scan["requests"]["spent"]);
        spent += called;
        runs += 1;
        ticker.evaluate_ended_runs(Timestamp::now).await.unwrap();
        wait_until_next_second(&service).await;
    };
    worker.stop().await;
    // A run never begins with less than its budget.
    assert!(refused.contains("a run needs 10"), "{refused}");
    assert!(runs >= 2 && spent > 15 && spent <= 25, "{runs}: {spent}");
    let alerts = service.alerts(&monitor).await;
    assert_eq!(alerts.len(), 1, "the price stays low: {alerts:#?}");
    service.check_ledger().await;
}

/// Makes runs of a monitor now, and evaluates them; returns the positions that each searched.
pub(super) async fn manual_runs(
    service: &TestService,
    monitor: &str,
    runs: usize,
) -> Vec<Vec<usize>> {
    let worker = service.start_worker(8);
    let ticker = monitors::ticker(service.pool());
    let mut searched = Vec::new();
    for _ in 0..runs {
        let path = format!("/v1/monitors/{monitor}/run");
        let started = service.post(&path, &json!({})).await.expect(202).json();
        let scan = wait_until_decided(service, started["id"].as_str().unwrap()).await;
        let decisions = decisions(service, &scan).await;
        searched.push(decisions.iter().flat_map(searches).collect());
        ticker.evaluate_ended_runs(Timestamp::now).await.unwrap();
        wait_until_next_second(service).await;
    }
    worker.stop().await;
    searched
}

/// Manual slots are a second apart.
async fn wait_until_next_second(service: &TestService) {
    wait_until("the next second", async || {
        let age = "select extract(epoch from now() - max(slot))::bigint from monitor_slots";
        service.count(age).await >= 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_shows_that_a_price_has_risen() {
    let prices = ladder(60);
    let service = with_calendar(&prices, 5).await;
    let body = json!({
        "name": "watched",
        "schedule": {"cron": "0 6 * * *", "timezone": "UTC"},
        "scan": watching(60, 10),
        "alerts": [{"type": "price_below", "amount": 70}]
    });
    let monitor = service.create_monitor(&body).await;
    let is_armed = async || service.monitor(&monitor).await["rule_standings"][0]["armed"].clone();
    manual_runs(&service, &monitor, 1).await;
    assert_eq!(service.alerts(&monitor).await.len(), 1);
    assert_eq!(is_armed().await, false);
    // Dearer than the limit, and not by so much that it is doubted.
    let dearer = prices.iter().map(|price| price.map(|price| price + 30));
    sell(&service, dearer.collect());
    manual_runs(&service, &monitor, 1).await;
    assert_eq!(is_armed().await, true);
    assert_eq!(service.alerts(&monitor).await.len(), 1);
}
