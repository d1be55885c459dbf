//! What is searched, and what the answer says.

use farescan::planner::{BoundSearch, Candidate, Ends, Known, Misses, Wanted, play};
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::{
    check_sum, column, day_of, decisions, finding, history_passes, ladder, run, sell,
    wait_until_decided, with_calendar,
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
    assert_eq!(
        strategy["best"],
        json!({"item": scan["best"]["item"], "date": day(29), "price": 60, "currency": "USD"})
    );
    let searched = strategy["searched"].as_u64().unwrap();
    assert!((4..=20).contains(&searched), "{scan:#}");
    let risk = strategy["risk_of_cheaper"].as_f64().unwrap();
    assert!(risk > 0.0 && risk <= 0.05, "{scan:#}");
    assert_eq!(
        (
            &strategy["find"],
            &strategy["max_risk"],
            &strategy["stored_prices"],
            &strategy["ended_by"]
        ),
        (
            &json!("cheapest"),
            &json!(0.05),
            &json!(60),
            &json!("nothing_below")
        )
    );
    assert_eq!(scan["status"], "completed");
    assert_eq!(scan["items"]["total"], strategy["searched"]);
    // Some prices have changed, so more was searched than unchanged ones would have needed.
    let range = &preview["requests"];
    assert_eq!((&range["least"], &range["most"]), (&json!(2), &json!(120)));
    let expected = range["expected"].as_u64().unwrap();
    assert!((2..=searched).contains(&expected), "{preview:#}");

    let decisions = decisions(&service, &scan).await;
    assert_eq!(json!(decisions.len()), strategy["decisions"]);
    assert_eq!(
        column(&decisions, "number"),
        (1..=decisions.len())
            .map(|number| json!(number))
            .collect::<Vec<_>>()
    );
    let last = decisions.last().unwrap();
    assert_eq!(
        (&last["searches"], &last["risk"]),
        (&json!([]), &json!(risk))
    );
    assert_eq!(
        strategy["counted"],
        json!({"questions": 1188, "missed": 39})
    );
    assert_eq!(last["best"], json!({"position": 28, "price": 60}));
    assert_eq!(
        decisions[0]["best"],
        Value::Null,
        "only stored prices are known"
    );
    assert!(decisions[..decisions.len() - 1].iter().all(|decision| {
        decision["reason"] == "lowest_bound" && decision["searches"].as_array().unwrap().len() == 2
    }));
    // The ledger of the marketplace: the decisions' searches, decision after decision.
    let calls = service.upstream.calls();
    let called: Vec<_> = calls[60..].iter().map(|call| day_of(&call.body)).collect();
    for (number, decision) in decisions[..decisions.len() - 1].iter().enumerate() {
        let mut called = called[2 * number..2 * number + 2].to_vec();
        let mut decided: Vec<usize> = serde_json::from_value(decision["searches"].clone()).unwrap();
        called.sort_unstable();
        decided.sort_unstable();
        assert_eq!(called, decided, "{decision:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn from_nothing_every_fourth_date_comes_first_and_no_risk_is_declared() {
    from_nothing(true).await;
}

/// Of a caller that is not accepted yet the first item is searched before the first decision.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_is_not_accepted_yet_finds_the_same() {
    from_nothing(false).await;
}

async fn from_nothing(is_accepted: bool) {
    let service = TestService::start().await;
    if !is_accepted {
        require_key_acceptance(service.pool()).await;
    }
    let prices: Vec<_> = (0..31)
        .map(|date| Some(100 + 7 * (date * 11 % 31)))
        .collect();
    sell(&service, prices.clone());
    let scan = run(&service, &finding(31)).await;
    let search = BoundSearch {
        wanted: Wanted::Cheapest,
        choice: Misses::of_flights([].into()).choose(Known::Little, 0.05),
        most: usize::MAX,
        batch: 2,
        ends: Ends::Answered,
    };
    let mut candidates = vec![Candidate::unknown(jiff::civil::date(2030, 1, 1)); 31];
    for (candidate, date) in candidates.iter_mut().zip(0..) {
        candidate.date = candidate.date.saturating_add(jiff::Span::new().days(date));
    }
    if !is_accepted {
        candidates[0].searched = Some(prices[0].map(Decimal::from));
    }
    let played = play(&search, &mut candidates, |date| {
        prices[date].map(Decimal::from)
    });
    let calls = service.upstream.calls();
    let mut called: Vec<_> = calls.iter().map(|call| day_of(&call.body)).collect();
    called.sort_unstable();
    let mut searched = played.searched.clone();
    searched.extend((!is_accepted).then_some(0));
    searched.sort_unstable();
    assert_eq!(called, searched);
    let strategy = &scan["strategy"];
    assert_eq!(
        (&strategy["risk_of_cheaper"], &strategy["stored_prices"]),
        (&Value::Null, &json!(0))
    );
    assert_eq!(
        strategy["best"]["date"],
        day(played.best.position.unwrap() + 1)
    );
    let decisions = decisions(&service, &scan).await;
    assert_eq!(
        column(&decisions, "reason")[..2],
        ["every_fourth", "lowest_bound"]
    );
    assert_eq!(column(&decisions, "searched")[0], u64::from(!is_accepted));
    assert_eq!(strategy["counted"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_without_structure_are_a_high_risk() {
    let mut rng = Rng(7);
    let mut any = || {
        (0..60)
            .map(|_| Some(30 + u32::try_from(rng.below(570)).unwrap()))
            .collect::<Vec<_>>()
    };
    let service = with_calendar(&any(), 1).await;
    sell(&service, any());
    let scan = run(&service, &with(finding(60), &json!({"max_requests": 30}))).await;
    let strategy = &scan["strategy"];
    assert_eq!(
        (&strategy["ended_by"], &strategy["searched"]),
        (&json!("limit_reached"), &json!(30))
    );
    let risk = strategy["risk_of_cheaper"].as_f64().unwrap();
    assert!(
        (0.4..=0.6).contains(&risk),
        "half of the dates are not searched: {scan:#}"
    );
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
    assert_eq!(
        (
            &preview["requests"]["least"],
            &preview["requests"]["expected"],
            &preview["reused"]
        ),
        (&json!(0), &json!(0), &json!(40))
    );
    let scan = run(&service, &body).await;
    let strategy = &scan["strategy"];
    assert_eq!(scan["requests"]["spent"], 0);
    assert_eq!(
        (&strategy["searched"], &strategy["best"]["price"]),
        (&json!(0), &json!(60))
    );
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
    assert_eq!(
        strategy["risk_of_cheaper"],
        Value::Null,
        "what that date costs is not known"
    );
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
    let strategy = &scan["strategy"];
    assert_eq!(
        (&strategy["searched"], &strategy["unsearched"]),
        (&json!(10), &json!(0))
    );
    assert_eq!(
        (&strategy["risk_of_cheaper"], &strategy["ended_by"]),
        (&json!(0.0), &json!("nothing_left"))
    );
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
    let strategy = &scan["strategy"];
    assert_eq!(
        (&strategy["stored_prices"], &strategy["best"]),
        (&json!(0), &Value::Null),
        "{scan:#}"
    );
    check_sum(&service, &scan).await;
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
    assert_eq!(
        (&best["item"], &best["currency"], &best["date"]),
        (&cheapest["id"], &json!("USD"), &json!(day(2))),
        "{scan:#}"
    );
    check_sum(&service, &scan).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_decided_is_refused() {
    let service = TestService::start().await;
    let strategy = |strategy: Value| fares_with(31, &json!({ "strategy": strategy }));
    let swept = |sweep: Value| {
        let mut body = finding(31);
        body["sweep"]
            .as_object_mut()
            .unwrap()
            .extend(sweep.as_object().unwrap().clone());
        body
    };
    for (body, path, expected) in [
        (
            strategy(json!({"find": "dearest"})),
            "strategy.find",
            "one of `cheapest`",
        ),
        (strategy(json!({"max_risk": 0.1})), "strategy.find", ""),
        (
            strategy(json!({"find": "cheapest", "max_risk": 1})),
            "strategy.max_risk",
            "a number from 0 to below 1",
        ),
        (
            strategy(json!({"find": "cheapest", "max_risk": -0.1})),
            "strategy.max_risk",
            "a number from 0 to below 1",
        ),
        (
            strategy(json!({"find": "cheapest", "coarse_step": 4})),
            "strategy.coarse_step",
            "",
        ),
        (
            swept(json!({"samples": 2})),
            "strategy.find",
            "no `sweep.samples` above 1",
        ),
        (
            swept(json!({"currency": ["USD", "EUR"]})),
            "strategy.find",
            "one currency",
        ),
        (
            swept(
                json!({"to_airport": (0..40).map(crate::support::service::airport_code).collect::<Vec<_>>()}),
            ),
            "strategy.find",
            "at most 1000 searches",
        ),
    ] {
        let mut body = body;
        if body["sweep"].get("to_airport").is_some() {
            body["request"]
                .as_object_mut()
                .unwrap()
                .remove("to_airport");
        }
        let answer = service.post("/v1/scans", &body).await;
        let text = answer.text();
        assert_eq!(answer.status, 400, "{body:#}: {text}");
        assert!(
            text.contains(path) && text.contains(expected),
            "{path}: {text}"
        );
    }
    assert_eq!(service.count("select count(*) from scans").await, 0);
}
