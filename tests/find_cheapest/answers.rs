//! What is searched, and what the answer says.

use farescan::planner::{BoundSearch, Ends, Known, Misses, Wanted, play};
use rust_decimal::Decimal;
use serde_json::json;

use super::replay::unknown_dates;
use super::{
    assert_shows, check_sum, column, day_of, decisions, finding, history_passes, ladder, risk, run,
    searches, sell, wait_until_decided, with_calendar,
};
use crate::support::db::require_key_acceptance;
use crate::support::reply::Reply;
use crate::support::service::{Rng, TestService, day, fares, fares_with, with};
use crate::support::upstream::fare;

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_calendar_needs_few_searches() {
    let mut prices = ladder(60);
    let service = with_calendar(&prices, 3).await;
    let preview = service.post("/v1/scans/preview", &finding(60)).await.json();
    // The cheapest dates have risen since, and one beside them has fallen.
    prices[29..=31].fill(Some(73));
    prices[33] = Some(66);
    sell(&service, prices);
    let scan = run(&service, &finding(60)).await;
    let strategy = &scan["strategy"];
    let best =
        json!({"item": scan["best"]["item"], "date": day(29), "price": 60, "currency": "USD"});
    let counted = json!({"questions": 1188, "missed": 39});
    assert_shows(
        strategy,
        &json!({"find": "cheapest", "max_risk": 0.05, "stored_prices": 60, "ended_by": "nothing_below",
                "best": best, "counted": counted}),
    );
    let searched = strategy["searched"].as_u64().unwrap();
    assert!((4..=20).contains(&searched), "{scan:#}");
    assert!(risk(&scan) > 0.0 && risk(&scan) <= 0.05, "{scan:#}");
    assert_shows(&scan, &json!({"status": "completed"}));
    assert_eq!(scan["items"]["total"], strategy["searched"]);
    // Some prices have changed, so more was searched than unchanged ones would have needed.
    let range = &preview["requests"];
    assert_shows(range, &json!({"least": 2, "most": 120}));
    let expected = range["expected"].as_u64().unwrap();
    assert!((2..=searched).contains(&expected), "{preview:#}");

    let decisions = decisions(&service, &scan).await;
    assert_shows(strategy, &json!({"decisions": decisions.len()}));
    let (last, others) = decisions.split_last().unwrap();
    let best = json!({"position": 28, "price": 60});
    assert_shows(
        last,
        &json!({"searches": [], "risk": risk(&scan), "best": best}),
    );
    assert_shows(&decisions[0], &json!({"best": null}));
    // The ledger of the marketplace: the decisions' searches, decision after decision.
    let calls = service.upstream.calls();
    let called: Vec<_> = calls[60..].iter().map(|call| day_of(&call.body)).collect();
    for (number, decision) in others.iter().enumerate() {
        assert_shows(
            decision,
            &json!({"reason": "lowest_bound", "number": number + 1}),
        );
        let mut called = called[2 * number..2 * number + 2].to_vec();
        let mut decided = searches(decision);
        called.sort_unstable();
        decided.sort_unstable();
        assert_eq!(called, decided, "{decision:#}");
    }
}

/// Of a caller that is not accepted yet the first item is searched before the first decision.
#[tokio::test(flavor = "multi_thread")]
async fn from_nothing_every_fourth_date_comes_first_and_no_risk_is_declared() {
    let prices: Vec<_> = (0..31)
        .map(|date| Some(100 + 7 * (date * 11 % 31)))
        .collect();
    let price = |date: usize| prices[date].map(Decimal::from);
    for is_accepted in [true, false] {
        let service = TestService::start().await;
        if !is_accepted {
            require_key_acceptance(service.pool()).await;
        }
        sell(&service, prices.clone());
        let scan = run(&service, &finding(31)).await;
        let misses = Misses {
            has_prior: true,
            ..Misses::default()
        };
        let search = BoundSearch {
            wanted: Wanted::Cheapest,
            ends: Ends::Answered(misses.choose(Known::Little, 0.05)),
            most: usize::MAX,
        };
        let mut candidates = unknown_dates(jiff::civil::date(2030, 1, 1), 31);
        candidates[0].searched = (!is_accepted).then(|| price(0));
        let played = play(&search, &mut candidates, price);
        let mut expected = played.searched;
        expected.extend((!is_accepted).then_some(0));
        expected.sort_unstable();
        let calls = service.upstream.calls();
        let mut called: Vec<_> = calls.iter().map(|call| day_of(&call.body)).collect();
        called.sort_unstable();
        assert_eq!(called, expected);
        let none = json!({"risk_of_cheaper": null, "stored_prices": 0, "counted": null});
        assert_shows(&scan["strategy"], &none);
        let (best, _) = played.end.best.unwrap();
        assert_eq!(scan["strategy"]["best"]["date"], day(best + 1));
        let decisions = decisions(&service, &scan).await;
        let reasons = column(&decisions, "reason");
        assert_eq!(reasons[..2], ["every_fourth", "lowest_bound"]);
        let first = 4 * usize::from(!is_accepted);
        let grid: Vec<_> = (first..31).step_by(4).chain([30]).collect();
        assert_eq!(searches(&decisions[0]), grid);
        assert_shows(&decisions[0], &json!({"searched": u64::from(!is_accepted)}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_without_structure_are_a_high_risk() {
    let mut rng = Rng(7);
    let mut any = || Some(30 + u32::try_from(rng.below(570)).unwrap());
    let (before, now): (Vec<_>, Vec<_>) = (0..60).map(|_| (any(), any())).unzip();
    let service = with_calendar(&before, 1).await;
    sell(&service, now);
    let scan = run(&service, &with(finding(60), &json!({"max_requests": 30}))).await;
    let limited = json!({"ended_by": "limit_reached", "searched": 30, "risk_of_cheaper": 0.5});
    assert_shows(&scan["strategy"], &limited);
    assert_eq!(decisions(&service, &scan).await[0]["may_search"], 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn young_answers_are_reused_free_of_charge() {
    let service = with_calendar(&ladder(40), 0).await;
    let body = with(
        finding(40),
        &json!({"max_age_seconds": 3600, "max_requests": 1}),
    );
    let preview = service.post("/v1/scans/preview", &body).await.json();
    assert_shows(&preview, &json!({"reused": 40}));
    assert_shows(&preview["requests"], &json!({"least": 0, "expected": 0}));
    let scan = run(&service, &body).await;
    let strategy = &scan["strategy"];
    assert_eq!(scan["requests"]["spent"], 0);
    assert_shows(strategy, &json!({"searched": 0}));
    assert_eq!(strategy["best"]["price"], 60);
    assert_eq!(scan["requests"]["avoided"]["reused"], strategy["reused"]);
    assert!(strategy["reused"].as_u64().unwrap() < 20, "{scan:#}");
}

/// A price that is far below all that the date has cost lately is an error.
#[tokio::test(flavor = "multi_thread")]
async fn an_implausible_price_is_not_the_best_and_does_not_end_the_question() {
    let prices = ladder(40);
    let service = with_calendar(&prices, 0).await;
    let worker = service.start_worker(8);
    for _ in 0..3 {
        history_passes(service.pool(), 1).await;
        let again = service.submit(&fares(40)).await;
        service.wait_until_ended(&again).await;
    }
    worker.stop().await;
    history_passes(service.pool(), 1).await;
    let mut wrong = prices.clone();
    wrong[20] = Some(6);
    sell(&service, wrong);
    let scan = run(&service, &finding(40)).await;
    let strategy = &scan["strategy"];
    assert_eq!(strategy["best"]["price"], 60, "{scan:#}");
    assert_ne!(strategy["best"]["date"], day(21));
    // What that date costs is not known.
    assert_shows(strategy, &json!({"risk_of_cheaper": null}));
    let below = fares_with(40, &json!({"strategy": {"find": "below", "below": 50}}));
    let scan = run(&service, &below).await;
    assert_ne!(scan["strategy"]["ended_by"], "found", "{scan:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_item_is_searched_if_no_risk_is_accepted() {
    let service = with_calendar(&ladder(10), 5).await;
    let body = fares_with(
        10,
        &json!({"strategy": {"find": "cheapest", "max_risk": 0}}),
    );
    let scan = run(&service, &body).await;
    let all = json!({"searched": 10, "unsearched": 0, "risk_of_cheaper": 0.0, "ended_by": "nothing_left"});
    assert_shows(&scan["strategy"], &all);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_is_known_and_a_fare_in_another_currency_is_no_answer() {
    let mut prices = ladder(12);
    prices[6] = None;
    let service = with_calendar(&prices, 2).await;
    let mut body = finding(12);
    body["request"]["currency"] = json!("EUR");
    let scan = run(&service, &body).await;
    // Dollars are stored, and dollars are found.
    assert_shows(
        &scan["strategy"],
        &json!({"stored_prices": 0, "best": null}),
    );
    let scan = run(&service, &finding(12)).await;
    assert_eq!(scan["strategy"]["stored_prices"], 11);
    assert_eq!(scan["strategy"]["best"]["price"], 60);
}

/// The scan's best price is in the currency of its first answer, the question's in its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_answer_in_another_currency_hides_no_best() {
    let service = TestService::start().await;
    let mut calls = 0;
    service.upstream.answer(move |call| {
        calls += 1;
        let mut found = fare(100 + u64::try_from(day_of(&call.body)).unwrap(), &call.body);
        if calls == 1 {
            found["buy_link"] = json!("https://flights.example/?tfs=x&curr=EUR");
        }
        Reply::json(json!([found]))
    });
    let worker = service.start_worker(1);
    let id = service.submit(&finding(12)).await;
    let scan = wait_until_decided(&service, &id).await;
    worker.stop().await;
    let items = service.items(&id).await;
    let in_dollars = items.iter().filter(|item| item["currency"] == "USD");
    let cheapest = in_dollars
        .min_by_key(|item| item["best_price"].as_u64())
        .unwrap();
    let best = &scan["strategy"]["best"];
    assert_eq!(scan["best"]["currency"], "EUR", "{scan:#}");
    let expected = json!({"item": cheapest["id"], "currency": "USD", "date": day(2)});
    assert_shows(best, &expected);
    check_sum(&service, &scan).await;
}
