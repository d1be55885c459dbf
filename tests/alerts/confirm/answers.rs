//! What one more search finds, and what becomes of it.

use farescan::contract::SearchStatus;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::{below, dates, judged};
use crate::alerts::past::{Seen, of_dates, today};
use crate::alerts::{AlertTest, MOMENT, fares};
use crate::support::app::{KEY, ring, tenant};

#[tokio::test(flavor = "multi_thread")]
async fn a_price_that_is_found_again_fires_with_both_prices() {
    let test = AlertTest::open().await;
    let id = test.monitor(&dates(3, &below(200))).await;
    test.sell(&[&[300], &[150, 160], &[250]]);
    let before = test.upstream.count();
    let (slot, waiting) = test.first_half(&id).await;
    let items = test.items(waiting["scan_id"].as_str().unwrap()).await;
    assert_eq!(waiting["judged"], Value::Null);
    assert_eq!(waiting["confirmation"]["items"], json!([items[1]["id"]]));
    assert_eq!(test.events(&id).await.len(), 0);

    let slot = test.second_half(&id, slot).await;
    assert_eq!(judged(&slot), [&json!(1), &json!(0)], "{slot}");
    assert_eq!(test.upstream.count() - before, 4);
    let scan = test.checked_scan(&slot).await;
    assert_eq!(
        (
            &scan["status"],
            &scan["requests"]["spent"],
            &scan["best"]["price"]
        ),
        (&json!("completed"), &json!(4), &json!(160)),
        "{scan}"
    );
    let alerts = test.alerts(&id).await;
    let item = &test.items(scan["id"].as_str().unwrap()).await[1];
    assert_eq!(alerts.len(), 1);
    assert_eq!(
        [
            &alerts[0]["price"],
            &alerts[0]["found_first"]["price"],
            &alerts[0]["confirmed_at"],
            &alerts[0]["item_id"]
        ],
        [&json!(160), &json!(150), &item["observed_at"], &item["id"]],
        "{}",
        alerts[0]
    );
    assert_eq!(
        (&item["best_price"], &item["attempts"]),
        (&json!(160), &json!(2))
    );
    let path = format!(
        "/v1/history/flights?from_airport=TLV&to_airport=LHR&departure_date={}",
        today().saturating_add(31.days())
    );
    assert_eq!(test.column(&path, "price").await, [160, 150]);
    assert_eq!(test.tick(Timestamp::now()).await.evaluated, 0);

    // It has fired, and is not armed again by the same price: no search is made twice.
    let before = test.upstream.count();
    let slot = test.run(&id).await;
    assert_eq!(judged(&slot), [&json!(0), &json!(0)]);
    assert_eq!(slot.get("confirmation"), None);
    assert_eq!(test.upstream.count() - before, 3);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_that_is_gone_fires_nothing_and_the_new_one_counts() {
    let test = AlertTest::open().await;
    let id = test.monitor(&dates(1, &below(200))).await;
    test.sell(&[&[150, 300, 150]]);
    let slot = test.run_twice(&id).await;
    assert_eq!(judged(&slot), [&json!(0), &json!(0)], "{slot}");
    let scan = test.checked_scan(&slot).await;
    assert_eq!(scan["best"]["price"], 300);
    assert!(test.is_armed(&id).await);
    assert_eq!(judged(&test.run_twice(&id).await), [&json!(1), &json!(0)]);
    assert_eq!(test.alerts(&id).await.len(), 1);
    test.close().await;
}

/// The rule sees the lowest price of the scan. Another date may have become that, unconfirmed.
#[tokio::test(flavor = "multi_thread")]
async fn a_price_that_was_not_searched_again_hides_no_confirmed_one() {
    let test = AlertTest::open().await;
    let id = test.monitor(&dates(2, &below(250))).await;
    test.sell(&[&[199, 201], &[200]]);
    let before = test.upstream.count();
    let slot = test.run_twice(&id).await;
    assert_eq!(judged(&slot), [&json!(1), &json!(0)], "{slot}");
    assert_eq!(test.upstream.count() - before, 3);
    let alert = &test.alerts(&id).await[0];
    assert_eq!(
        [&alert["price"], &alert["found_first"]["price"]],
        [&json!(201), &json!(199)],
        "{alert}"
    );
    assert!(!test.is_armed(&id).await);
    test.close().await;
}

/// The first answer counts while its price is searched once more.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_confirms_its_only_price_is_not_stale() {
    let test = AlertTest::open().await;
    for (kept_hours_before, fired) in [(1, 0), (48, 1)] {
        let rules = json!([below(200)[0], {"type": "stale", "runs": 1}]);
        let (id, slot, _, gate) = test.waiting(&dates(1, &rules)).await;
        let next = test.next_slot(&id).await;
        let kept_at = next - jiff::SignedDuration::from_hours(kept_hours_before);
        let changed = execute!(
            test.pool(),
            "update scan_items set earlier = jsonb_set(earlier, '{kept_at}', to_jsonb($1::text)) where earlier is not null",
            kept_at.to_string()
        );
        assert_eq!(changed, 1);
        test.tick(next).await;
        assert_eq!(test.outcomes(&id).await[0], "overlap");
        let shown = test.slot(&id, next).await;
        assert_eq!(shown["judged"]["fired"], json!(fired), "{shown}");
        gate.open();
        test.second_half(&id, slot).await;
    }
    test.close().await;
}

/// The second search does not complete: the first answer stays, and so does the rule.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_search_that_fails_leaves_answer_and_rule_as_they_were() {
    let test = AlertTest::open().await;
    let id = test.monitor(&dates(2, &below(200))).await;
    test.sell(&[&[150, 0, 150, 151], &[300]]);
    let (slot, waiting) = test.first_half(&id).await;
    let scan = waiting["scan_id"].as_str().unwrap().to_owned();
    let slot = test.second_half(&id, slot).await;
    assert_eq!(judged(&slot), [&json!(0), &json!(1)], "{slot}");
    let ended = test.checked_scan(&slot).await;
    assert_eq!(
        (
            &ended["status"],
            &ended["items"]["ok"],
            &ended["best"]["price"],
            &ended["requests"]["spent"]
        ),
        (&json!("completed"), &json!(2), &json!(150), &json!(3)),
        "{ended}"
    );
    let path = format!("/v1/scans/{scan}/items?expand=answer");
    let item = &test.page(&path).await[0];
    assert_eq!(
        [
            &item["search_status"],
            &item["best_price"],
            &item["attempts"],
            &item["reason"]
        ],
        [&json!("ok"), &json!(150), &json!(2), &Value::Null],
        "{item}"
    );
    assert!(item["answer"].to_string().contains("150"), "{item}");
    assert!(test.is_armed(&id).await);
    let slot = test.run_twice(&id).await;
    assert_eq!(judged(&slot), [&json!(1), &json!(0)], "{slot}");
    test.close().await;
}

/// An answer that was taken from an earlier search is confirmed by the marketplace.
#[tokio::test(flavor = "multi_thread")]
async fn a_confirming_search_takes_no_stored_answer() {
    let test = AlertTest::open().await;
    test.sell(&[&[150, 0, 155], &[300]]);
    let mut body = dates(2, &below(200));
    let scan = json!({
        "endpoint": "flights/oneway", "request": body["scan"]["request"], "sweep": body["scan"]["sweep"]
    });
    test.wait_until_ended(&test.submit(&scan).await).await;
    body["scan"]["max_age_seconds"] = json!(2_678_400);
    let id = test.monitor(&body).await;
    let before = test.upstream.count();
    for (fired, avoided, calls) in [(0, [2, 0], 1), (1, [1, 1], 2)] {
        let slot = test.run_twice(&id).await;
        assert_eq!(judged(&slot), [&json!(fired), &json!(1 - fired)], "{slot}");
        let scan = test.checked_scan(&slot).await;
        let items = test.items(scan["id"].as_str().unwrap()).await;
        let taken = items
            .iter()
            .filter(|item| item.get("reused_from").is_some());
        let searched = items
            .iter()
            .filter(|item| item.get("reused_from").is_none());
        assert_eq!([taken.count(), searched.count()], avoided, "{scan}");
        assert_eq!(scan["requests"]["avoided"]["reused"], json!(avoided[0]));
        assert_eq!(scan["requests"]["spent"], 1);
        assert_eq!(test.upstream.count() - before, calls);
    }
    assert_eq!(test.alerts(&id).await[0]["price"], 155);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_confirmed() {
    let test = AlertTest::open().await;
    for (strategy, calls) in [
        (json!({"find": "cheapest"}), None),
        (json!({"find": "cheapest", "max_risk": 0}), Some(8)),
    ] {
        let mut body = dates(7, &below(200));
        let (from, to) = (
            today().saturating_add(30.days()),
            today().saturating_add(36.days()),
        );
        body["scan"]["sweep"] = json!({"departure_date": {"from": from, "to": to}});
        body["scan"]["strategy"] = strategy;
        let cheap = json!(today().saturating_add(33.days()));
        test.respond_with(move |asked| {
            fares(
                &[if asked["departure_date"] == cheap {
                    150
                } else {
                    300
                }],
                asked,
            )
        });
        let id = test.monitor(&body).await;
        let before = test.upstream.count();
        let slot = test.next_slot(&id).await;
        test.tick(slot).await;
        test.decided().await;
        test.tick(slot + MOMENT).await;
        test.decided().await;
        let slot = test.second_half(&id, slot).await;
        assert_eq!(judged(&slot), [&json!(1), &json!(0)], "{slot}");
        let scan = test.checked_scan(&slot).await;
        let spent = test.upstream.count() - before;
        assert_eq!(scan["requests"]["spent"], json!(spent));
        assert!(calls.is_none_or(|calls| calls == spent), "{spent}");
        assert_eq!(
            test.items(scan["id"].as_str().unwrap()).await[3]["attempts"],
            2
        );
    }
    test.close().await;
}

impl AlertTest {
    /// Waits until all scans have ended, with the decisions of their strategies.
    async fn decided(&self) {
        let open = "select (select count(*) from scans where finished_at is null)
                         + (select count(*) from scan_strategies where not settled)";
        self.wait_for_count(open, 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_implausible_price_is_not_searched_again() {
    let test = AlertTest::open().await;
    let date = today().saturating_add(60.days());
    let owner = tenant(test.pool(), &ring(), KEY).await;
    let seen = (1..=3).map(|ago| Seen(date, ago, SearchStatus::Ok, Some(200)));
    test.insert_past(owner, &seen.collect::<Vec<_>>()).await;
    let id = test.monitor(&of_dates(&[date], &below(150))).await;
    test.respond_with(|asked| fares(&[60], asked));
    let before = test.upstream.count();
    let slot = test.run(&id).await;
    assert_eq!(judged(&slot), [&json!(0), &json!(0)]);
    assert_eq!(
        (
            &slot["judged"]["implausible"],
            test.upstream.count() - before
        ),
        (&json!(1), 1)
    );
    test.close().await;
}
