//! Rules with `confirm`: a price is searched once more before it fires (monitors.md, rules 85 to 89).
//! Beside each the marketplace's own ledger.

mod late;
mod next;
mod rotation;
mod shown;

use std::collections::HashMap;

use farescan::contract::SearchStatus;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::past::{Seen, of_dates, today};
use super::{AlertTest, MOMENT, fares, monitor};
use crate::monitors::{tick, ticker};
use crate::support::app::{KEY, ring, tenant};
use crate::support::reply::{Gate, Reply};
use crate::support::service::assert_counts_add_up;

/// What the searches of a date find one after another; the last one stays. A price of 0: the search
/// does not complete.
type Prices = &'static [u64];

fn answer(price: u64, asked: &Value) -> Reply {
    match price {
        0 => Reply::search_incomplete("blocked_page"),
        price => fares(&[price], asked),
    }
}

impl AlertTest {
    /// Sells each date at its prices.
    fn sell(&self, dates: &'static [Prices]) {
        let first = today().saturating_add(30.days());
        let mut calls = HashMap::<usize, usize>::new();
        self.respond_with(move |asked| {
            let date: Date = asked["departure_date"].as_str().unwrap().parse().unwrap();
            let index = usize::try_from((date - first).get_days()).unwrap();
            let call = calls.entry(index).or_default();
            let price = dates[index][(*call).min(dates[index].len() - 1)];
            *call += 1;
            answer(price, asked)
        });
    }

    /// Runs the next slot until its rules were evaluated for the first time.
    async fn first_half(&self, id: &str) -> (Timestamp, Value) {
        let slot = self.next_slot(id).await;
        self.tick(slot).await;
        self.all_ended().await;
        assert_eq!(self.tick(slot + MOMENT).await.evaluated, 1);
        (slot, self.slot(id, slot).await)
    }

    /// Evaluates the run again after its confirming searches.
    async fn second_half(&self, id: &str, slot: Timestamp) -> Value {
        self.all_ended().await;
        self.tick(slot + MOMENT * 2).await;
        self.slot(id, slot).await
    }

    async fn slot(&self, id: &str, slot: Timestamp) -> Value {
        let slots = self.slots(id).await;
        slots
            .into_iter()
            .find(|row| row["slot"] == json!(slot))
            .unwrap()
    }

    async fn run_twice(&self, id: &str) -> Value {
        let (slot, _) = self.first_half(id).await;
        self.second_half(id, slot).await
    }

    /// The scan of a slot, with all sums checked against the marketplace's ledger.
    async fn checked_scan(&self, slot: &Value) -> Value {
        let scan = self.scan(slot["scan_id"].as_str().unwrap()).await;
        assert_counts_add_up(&scan);
        self.check_ledger().await;
        scan
    }

    async fn is_armed(&self, id: &str) -> bool {
        let monitor = self.get(&format!("/v1/monitors/{id}")).await;
        monitor["rule_standings"][0]["armed"] != json!(false)
    }
}

fn below(amount: u64) -> Value {
    json!([{"type": "price_below", "amount": amount, "confirm": 1}])
}

fn judged(slot: &Value) -> [&Value; 2] {
    ["fired", "unconfirmed"].map(|name| &slot["judged"][name])
}

/// Fixed dates, so that the runs of a monitor search the same items.
fn dates(count: i64, rules: &Value) -> Value {
    let dates: Vec<_> = (0..count)
        .map(|days| today().saturating_add((30 + days).days()))
        .collect();
    if count == 1 {
        let mut body = monitor(1, rules);
        body["scan"]["request"]["departure_date"] = json!(dates[0]);
        return body;
    }
    of_dates(&dates, rules)
}

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
async fn four_processes_confirm_a_price_once() {
    let test = AlertTest::open().await;
    let id = test.monitor(&dates(2, &below(200))).await;
    test.sell(&[&[150], &[300]]);
    let before = test.upstream.count();
    let slot = test.next_slot(&id).await;
    test.tick(slot).await;
    test.all_ended().await;
    for moment in [1, 2] {
        let tickers = [(); 4].map(|()| ticker(test.pool()));
        let passes = tickers
            .iter()
            .map(|ticker| tick(ticker, slot + MOMENT * moment));
        for pass in futures::future::join_all(passes).await {
            assert_eq!(pass.unwrap().failed, 0);
        }
        test.all_ended().await;
    }
    test.tick(slot + MOMENT * 3).await;
    assert_eq!(judged(&test.slot(&id, slot).await), [&json!(1), &json!(0)]);
    assert_eq!(test.upstream.count() - before, 3);
    assert_eq!(test.alerts(&id).await.len(), 1);
    test.close().await;
}

/// The connection dies after all writes of the order, before the commit.
#[tokio::test(flavor = "multi_thread")]
async fn an_uncommitted_confirmation_leaves_nothing() {
    let test = AlertTest::open().await;
    let id = test.monitor(&dates(2, &below(200))).await;
    test.sell(&[&[150], &[300]]);
    let slot = test.next_slot(&id).await;
    test.tick(slot).await;
    test.all_ended().await;
    let dies = "create function dies() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
                create constraint trigger dies after update of confirmation on monitor_slots deferrable initially deferred
                for each row execute function dies();";
    execute!(test.pool(), dies);
    let before = test.upstream.count();
    let pass = tick(&ticker(test.pool()), slot + MOMENT).await.unwrap();
    assert_eq!((pass.evaluated, pass.failed), (0, 1));
    let written = "select (select count(*) from scans where finished_at is null or confirming is not null)
                        + (select count(*) from scan_items where earlier is not null)
                        + (select count(*) from monitor_slots where confirmation is not null)
                        + (select count(*) from key_grants g join scans s using (tenant_id, grant_id) where g.wiped_at is null)";
    assert_eq!(test.count(written).await, 0);
    execute!(test.pool(), "drop trigger dies on monitor_slots");
    test.wait_until_free(&id).await;
    assert_eq!(test.tick(slot + MOMENT).await.evaluated, 1);
    assert_eq!(
        judged(&test.second_half(&id, slot).await),
        [&json!(1), &json!(0)]
    );
    assert_eq!(test.upstream.count() - before, 1);
    test.close().await;
}

impl AlertTest {
    /// The session that died may hold the monitor's lock for a moment.
    async fn wait_until_free(&self, id: &str) {
        let id: farescan::ids::MonitorId = id.parse().unwrap();
        crate::support::wait_until("the monitor is free", async || {
            let sql = "select monitor_id from monitors where monitor_id = $1 for update nowait";
            sqlx::query(sql)
                .bind(id.uuid())
                .execute(self.pool())
                .await
                .is_ok()
        })
        .await;
    }

    /// A run that waits for the answer to its confirming search.
    async fn waiting(&self, body: &Value) -> (String, Timestamp, String, Gate) {
        let id = self.monitor(body).await;
        let gate = Gate::closed();
        let (held, mut calls) = (gate.clone(), 0);
        self.respond_with(move |asked| {
            calls += 1;
            let reply = fares(&[150], asked);
            if calls > 1 {
                reply.gated_by(&held)
            } else {
                reply
            }
        });
        let (slot, waiting) = self.first_half(&id).await;
        let scan = waiting["scan_id"].as_str().unwrap().to_owned();
        self.upstream.wait_for_in_flight(1).await;
        (id, slot, scan, gate)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_slot_does_not_run_beside_a_confirmation() {
    let test = AlertTest::open().await;
    let (id, slot, _, gate) = test.waiting(&dates(1, &below(200))).await;
    let next = test.next_slot(&id).await;
    test.tick(next).await;
    assert_eq!(test.outcomes(&id).await, ["overlap", "ran"]);
    gate.open();
    assert_eq!(
        judged(&test.second_half(&id, slot).await),
        [&json!(1), &json!(0)]
    );
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_not_confirmed_after_the_next_one_has_begun() {
    let test = AlertTest::open().await;
    let id = test.monitor(&dates(1, &below(200))).await;
    test.sell(&[&[150]]);
    let first = test.next_slot(&id).await;
    ticker(test.pool())
        .decide_due_slots(|| first)
        .await
        .unwrap();
    test.all_ended().await;
    let second = test.next_slot(&id).await;
    ticker(test.pool())
        .decide_due_slots(|| second)
        .await
        .unwrap();
    test.all_ended().await;
    test.tick(second + MOMENT).await;
    let slot = test.slot(&id, first).await;
    assert_eq!(judged(&slot), [&json!(0), &json!(1)], "{slot}");
    assert_eq!(
        slot["reason"],
        "prices were not confirmed: the next run had begun"
    );
    assert_eq!(
        judged(&test.second_half(&id, second).await),
        [&json!(1), &json!(0)]
    );
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_leaves_the_answer_that_was_there() {
    let test = AlertTest::open().await;
    let (id, slot, scan, gate) = test.waiting(&dates(1, &below(200))).await;
    test.command(&scan, "cancel", &json!({})).await;
    gate.open();
    // Its call was in flight, so its answer is stored.
    assert_eq!(
        judged(&test.second_half(&id, slot).await),
        [&json!(1), &json!(0)]
    );

    // Cancelled before its call: the lane has no room for it.
    let other = test.monitor(&dates(1, &below(200))).await;
    test.respond_with(|asked| fares(&[150], asked));
    let slot = test.next_slot(&other).await;
    test.tick(slot).await;
    test.all_ended().await;
    execute!(
        test.pool(),
        "update lanes set arrival = now() + interval '1 hour', burst = 1"
    );
    test.tick(slot + MOMENT).await;
    let scan = test.slot(&other, slot).await["scan_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(test.scan(&scan).await["items"]["pending"], 1);
    test.command(&scan, "cancel", &json!({})).await;
    let slot = test.second_half(&other, slot).await;
    assert_eq!(judged(&slot), [&json!(0), &json!(1)], "{slot}");
    let ended = test.checked_scan(&slot).await;
    assert_eq!(
        (&ended["items"]["ok"], &ended["best"]["price"]),
        (&json!(1), &json!(150))
    );
    assert_eq!(test.items(&scan).await[0]["search_status"], "ok");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_may_be_paused_changed_or_deleted_meanwhile() {
    let test = AlertTest::open().await;
    // Paused before: its key is gone, so nothing is searched again.
    let id = test.monitor(&dates(1, &below(200))).await;
    test.respond_with(|asked| fares(&[150], asked));
    let slot = test.next_slot(&id).await;
    test.tick(slot).await;
    test.all_ended().await;
    let before = test.upstream.count();
    test.ask("POST", &format!("/v1/monitors/{id}/pause"), None)
        .await
        .expect(200);
    test.tick(slot + MOMENT).await;
    let shown = test.slot(&id, slot).await;
    assert_eq!(judged(&shown), [&json!(0), &json!(1)], "{shown}");
    let reason = shown["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("prices were not confirmed: the monitor's key"),
        "{reason}"
    );
    assert_eq!(test.upstream.count(), before);

    // Paused meanwhile: a run goes on.
    let (id, slot, _, gate) = test.waiting(&dates(1, &below(200))).await;
    test.ask("POST", &format!("/v1/monitors/{id}/pause"), None)
        .await
        .expect(200);
    gate.open();
    assert_eq!(
        judged(&test.second_half(&id, slot).await),
        [&json!(1), &json!(0)]
    );

    // Another rule meanwhile: it fires on nothing that was not searched once more.
    let id = test.monitor(&dates(2, &below(200))).await;
    test.sell(&[&[150], &[180]]);
    let (slot, _) = test.first_half(&id).await;
    let of_cells = json!([{"type": "price_below", "amount": 200, "scope": "cell", "confirm": 1}]);
    test.patch(&id, &json!({ "alerts": of_cells })).await;
    assert_eq!(
        judged(&test.second_half(&id, slot).await),
        [&json!(1), &json!(1)]
    );

    // Another search meanwhile: the run is not evaluated.
    let (id, slot, scan, gate) = test.waiting(&dates(1, &below(200))).await;
    let mut body = dates(1, &below(200));
    body["scan"]["request"]["to_airport"] = json!("CDG");
    test.patch(&id, &json!({"scan": body["scan"]})).await;
    gate.open();
    assert_eq!(
        judged(&test.second_half(&id, slot).await),
        [&json!(0), &json!(0)]
    );
    assert_eq!(test.items(&scan).await[0]["attempts"], 2);

    // Deleted meanwhile: the search ends, and nobody is alerted.
    let (id, slot, scan, gate) = test.waiting(&dates(1, &below(200))).await;
    test.ask("DELETE", &format!("/v1/monitors/{id}"), None)
        .await
        .expect(204);
    gate.open();
    test.all_ended().await;
    test.tick(slot + MOMENT * 2).await;
    let ended = test.scan(&scan).await;
    assert_eq!(
        (&ended["items"]["ok"], &ended["requests"]["spent"]),
        (&json!(1), &json!(2))
    );
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
