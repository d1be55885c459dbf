//! How many prices are confirmed, and what does not cover them.

use serde_json::{Value, json};

use super::{below, dates, judged};
use crate::alerts::{AlertTest, MOMENT, fares};
use crate::support::reply::Reply;

/// A quota may be exhausted for weeks, and the other rules of the run would wait too.
#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_waits_for_long_confirms_nothing() {
    let test = AlertTest::open().await;
    test.respond_with(|asked| fares(&[150], asked));
    for (pause, judgement, reason) in [
        ("1 hour", [json!(0), json!(1)], Some("quota_exhausted")),
        ("1 minute", [json!(1), json!(0)], None),
    ] {
        let id = test.monitor(&dates(1, &below(200))).await;
        let slot = test.next_slot(&id).await;
        test.tick(slot).await;
        test.all_ended().await;
        let before = test.upstream.count();
        execute!(
            test.pool(),
            "update lanes set paused_until = clock_timestamp() + $1::interval, pause_reason = 'quota_exhausted'",
            pause
        );
        test.tick(slot + MOMENT).await;
        let shown = test.slot(&id, slot).await;
        execute!(
            test.pool(),
            "update lanes set paused_until = null, pause_reason = null, next_at = clock_timestamp()"
        );
        let shown = match reason {
            Some(reason) => {
                let expected = format!("prices were not confirmed: {reason}");
                assert_eq!(shown["reason"], json!(expected), "{shown}");
                assert_eq!(test.upstream.count(), before);
                shown
            }
            None => {
                assert_eq!(shown["judged"], Value::Null, "{shown}");
                execute!(test.pool(), "notify farescan_lane");
                test.second_half(&id, slot).await
            }
        };
        assert_eq!(judged(&shown), judgement.each_ref(), "{shown}");
    }
    test.close().await;
}

/// The lane pauses when the next search would need the reserve, until the plan's reset in weeks.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_plan_does_not_cover_is_not_confirmed() {
    let test = AlertTest::open().await;
    let rules = json!([{"type": "price_below", "amount": 200, "scope": "cell", "confirm": 1}]);
    test.respond_with(|asked| fares(&[150], asked));
    for (remaining, reset, calls, fired) in [
        (100, "20 days", 0, 0),
        (103, "20 days", 2, 2),
        (103, "1 minute", 4, 4),
    ] {
        let id = test.monitor(&dates(4, &rules)).await;
        let slot = test.next_slot(&id).await;
        test.tick(slot).await;
        test.all_ended().await;
        let before = test.upstream.count();
        let plan = "update lanes set plan_limit = 1000, plan_remaining = $1, keep_in_reserve = 100,
                                     plan_reset_at = clock_timestamp() + $2::interval";
        execute!(test.pool(), plan, remaining, reset);
        test.tick(slot + MOMENT).await;
        let no_plan = "update lanes set plan_limit = null, plan_remaining = null, keep_in_reserve = 0, plan_reset_at = null,
                                        paused_until = null, pause_reason = null, next_at = clock_timestamp()";
        if calls == 0 {
            let shown = test.slot(&id, slot).await;
            let reason = shown["reason"].as_str().unwrap();
            assert!(reason.contains("or the plan leaves too few"), "{shown}");
            assert_eq!(judged(&shown), [&json!(0), &json!(4)], "{shown}");
        } else {
            execute!(test.pool(), no_plan);
            let shown = test.second_half(&id, slot).await;
            assert_eq!(
                judged(&shown),
                [&json!(fired), &json!(4 - fired)],
                "{shown}"
            );
        }
        assert_eq!(test.upstream.count() - before, calls);
        execute!(test.pool(), no_plan);
    }
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_cells_of_a_rule_are_confirmed_in_a_run() {
    let test = AlertTest::open().await;
    let rules = json!([{"type": "price_below", "amount": 200, "scope": "cell", "confirm": 1}]);
    let id = test.monitor(&dates(12, &rules)).await;
    test.respond_with(|asked| fares(&[150], asked));
    let before = test.upstream.count();
    let slot = test.run_twice(&id).await;
    assert_eq!(judged(&slot), [&json!(10), &json!(2)], "{slot}");
    assert_eq!(test.upstream.count() - before, 22);
    test.checked_scan(&slot).await;
    // The other two are still armed.
    let slot = test.run_twice(&id).await;
    assert_eq!(judged(&slot), [&json!(2), &json!(0)], "{slot}");
    assert_eq!(test.upstream.count() - before, 36);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn confirming_searches_stay_within_the_limits_and_the_slot_says_so() {
    let test = AlertTest::open().await;
    let rules = json!([{"type": "price_below", "amount": 200, "scope": "cell", "confirm": 1}]);
    test.respond_with(|asked| fares(&[150], asked));
    for (scan, month, calls, fired) in [
        (Some(4), None, 4, 0),
        (Some(5), None, 5, 1),
        (Some(7), None, 6, 2),
        (None, Some(4), 4, 0),
        (None, Some(5), 5, 1),
        (Some(8), Some(7), 6, 2),
    ] {
        let mut body = dates(4, &rules);
        body["scan"]["max_requests"] = json!(scan);
        body["max_requests_per_month"] = json!(month);
        let id = test.monitor(&body).await;
        let before = test.upstream.count();
        let slot = test.run_twice(&id).await;
        assert_eq!(judged(&slot), [&json!(fired), &json!(4 - fired)], "{slot}");
        assert_eq!(test.upstream.count() - before, calls);
        let reason = slot["reason"].as_str().unwrap();
        assert!(
            reason.contains("were not confirmed: `max_requests`"),
            "{slot}"
        );
        test.checked_scan(&slot).await;
    }
    test.close().await;
}

/// Second tries may spend the budget, but never stop the scan.
#[tokio::test(flavor = "multi_thread")]
async fn a_confirming_search_that_meets_server_errors_ends_within_the_limit() {
    let test = AlertTest::open().await;
    let mut body = dates(1, &below(200));
    body["scan"]["max_requests"] = json!(3);
    let id = test.monitor(&body).await;
    let mut calls = 0;
    test.respond_with(move |asked| {
        calls += 1;
        if calls == 1 {
            return fares(&[150], asked);
        }
        Reply::status(500)
    });
    let slot = test.run_twice(&id).await;
    assert_eq!(judged(&slot), [&json!(0), &json!(1)], "{slot}");
    let scan = test.checked_scan(&slot).await;
    assert_eq!(
        (&scan["status"], &scan["requests"]["spent"]),
        (&json!("completed"), &json!(3))
    );
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn confirm_is_checked_and_forecast() {
    let test = AlertTest::open().await;
    let preview = async |body: &Value| {
        let answer = test.post("/v1/monitors/preview", body).await;
        (answer.status, answer.json())
    };
    for (rule, path) in [
        (
            json!({"type": "new_low", "days": 30, "confirm": 2}),
            "alerts[0].confirm",
        ),
        (
            json!({"type": "new_low", "days": 30, "confirm": true}),
            "alerts[0].confirm",
        ),
        (
            json!({"type": "sold_out", "confirm": 1}),
            "alerts[0].confirm",
        ),
        (json!({"type": "stale", "confirm": 1}), "alerts[0].confirm"),
    ] {
        let (status, shown) = preview(&dates(2, &json!([rule]))).await;
        assert_eq!(
            (status, &shown["error"]["details"][0]["field"]),
            (400, &json!(path)),
            "{shown}"
        );
    }
    let mut watch = dates(2, &below(200));
    watch["scan"]["strategy"] = json!({"watch": "cheapest"});
    watch["scan"]["max_requests"] = json!(2);
    let (status, shown) = preview(&watch).await;
    assert_eq!(
        (status, &shown["error"]["details"][0]["field"]),
        (400, &json!("alerts[0].confirm")),
        "{shown}"
    );

    let cells = json!([{"type": "new_low", "days": 30, "scope": "cell", "confirm": 1}, {"type": "new_low", "days": 30, "confirm": 1}]);
    for (rules, max, most) in [
        (
            json!([{"type": "new_low", "days": 30, "confirm": 0}]),
            None,
            40,
        ),
        (
            json!([{"type": "new_low", "days": 30, "confirm": 1}]),
            None,
            46,
        ),
        (cells.clone(), None, 66),
        (cells, Some(50), 50),
    ] {
        let mut body = dates(20, &rules);
        body["scan"]["max_requests"] = json!(max);
        let (_, shown) = preview(&body).await;
        let requests = &shown["forecast"]["requests_per_run"];
        assert_eq!(*requests, json!({"least": 20, "most": most}), "{rules}");
        let month = &shown["forecast"]["requests_per_month"];
        let slots = shown["forecast"]["slots"].as_u64().unwrap();
        assert_eq!(*month, json!({"least": 20 * slots, "most": most * slots}));
    }
    test.close().await;
}
