//! A price that is not found again hides no other: the next one is searched (monitors.md, rule 87).
//! And a key that is refused ends the run (rule 89).

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{MOMENT, Prices, below, dates, judged};
use crate::alerts::{AlertTest, fares};
use crate::monitors::{tick, ticker};
use crate::support::reply::{Gate, Reply};

impl AlertTest {
    /// Runs the next slot with its confirming searches, however often it chooses prices.
    async fn run_to_end(&self, id: &str) -> Value {
        let (slot, mut shown) = self.first_half(id).await;
        for _ in 0..4 {
            if shown["judged"] != Value::Null {
                break;
            }
            shown = self.second_half(id, slot).await;
        }
        shown
    }
}

/// One date errs in each run, and another one costs 100 in truth.
#[tokio::test(flavor = "multi_thread")]
async fn a_date_that_errs_in_each_run_hides_no_other() {
    // The second search of the wrong price finds another one, or does not complete.
    const WRONG: [&[Prices]; 2] = [&[&[50, 300], &[100]], &[&[50, 0], &[100]]];
    let test = AlertTest::open().await;
    let mut alerts = Vec::new();
    for wrong in WRONG {
        for _ in 0..2 {
            let id = test.monitor(&dates(2, &below(200))).await;
            test.sell(wrong);
            let before = test.upstream.count();
            let slot = test.run_to_end(&id).await;
            assert_eq!(test.upstream.count() - before, 4, "{slot}");
            test.checked_scan(&slot).await;
            let fired = test.alerts(&id).await;
            alerts.push(fired.first().map(|alert| alert["price"].clone()));
        }
    }
    assert_eq!(alerts, [(); 4].map(|()| Some(json!(100))));
    test.close().await;
}

/// At most three dates of a rule are searched once more in a run.
#[tokio::test(flavor = "multi_thread")]
async fn three_prices_of_a_rule_are_searched_again() {
    const WRONG: [(&[Prices], u64); 2] = [
        (&[&[50, 300], &[60, 300], &[70]], 1),
        (&[&[50, 300], &[60, 300], &[70, 300]], 0),
    ];
    let test = AlertTest::open().await;
    for (wrong, fired) in WRONG {
        let id = test.monitor(&dates(3, &below(200))).await;
        test.sell(wrong);
        let before = test.upstream.count();
        let slot = test.run_to_end(&id).await;
        assert_eq!(judged(&slot)[0], &json!(fired), "{slot}");
        assert_eq!(test.upstream.count() - before, 6);
    }
    let id = test.monitor(&dates(4, &below(200))).await;
    test.sell(&[&[50, 300], &[60, 300], &[70, 300], &[80]]);
    let before = test.upstream.count();
    let slot = test.run_to_end(&id).await;
    assert_eq!(judged(&slot), [&json!(0), &json!(1)], "{slot}");
    assert_eq!(test.upstream.count() - before, 7);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_price_is_searched_within_the_budget() {
    let test = AlertTest::open().await;
    let mut body = dates(2, &below(200));
    // One attempt may take two requests; the last one may be missing.
    body["scan"]["max_requests"] = json!(3);
    body["scan"]["retry"] = json!({"max_attempts": 1});
    let id = test.monitor(&body).await;
    test.sell(&[&[50, 0], &[100]]);
    let before = test.upstream.count();
    let slot = test.run_to_end(&id).await;
    assert_eq!(judged(&slot), [&json!(0), &json!(1)], "{slot}");
    assert!(test.upstream.count() - before <= 3);
    let reason = slot["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("too few requests"), "{slot}");
    test.close().await;
}

/// The process dies while it orders the second of two prices.
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_two_prices_loses_nothing() {
    let test = AlertTest::open().await;
    let id = test.monitor(&dates(2, &below(200))).await;
    test.sell(&[&[50, 300], &[100]]);
    let (slot, _) = test.first_half(&id).await;
    test.all_ended().await;
    let dies = "create function dies() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
                create constraint trigger dies after update of confirmation on monitor_slots deferrable initially deferred
                for each row execute function dies();";
    execute!(test.pool(), dies);
    let before = test.upstream.count();
    let pass = tick(&ticker(test.pool()), slot + MOMENT * 2).await.unwrap();
    assert_eq!((pass.evaluated, pass.failed), (0, 1));
    let open = "select (select count(*) from scans where finished_at is null)
                     + (select count(*) from scan_items where earlier is not null)";
    assert_eq!(test.count(open).await, 0);
    execute!(test.pool(), "drop trigger dies on monitor_slots");
    test.wait_until_free(&id).await;
    let waiting = test.second_half(&id, slot).await;
    assert_eq!(waiting["judged"], Value::Null);
    assert_eq!(
        waiting["confirmation"]["items"].as_array().unwrap().len(),
        2
    );
    let shown = test.second_half(&id, slot).await;
    assert_eq!(judged(&shown), [&json!(1), &json!(0)], "{shown}");
    assert_eq!(test.upstream.count() - before, 1);
    test.close().await;
}

fn refused() -> Reply {
    Reply::status(401).with_json(json!({"message": "Invalid API key"}))
}

const REFUSED: &str = "select count(*) from lanes where pause_reason = 'key_rejected'";

/// The key is refused during the confirming search: the other rules of the run do not wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_confirmation_ends_with_the_first_answer() {
    let test = AlertTest::open().await;
    let rules = json!([below(200)[0], {"type": "price_below", "amount": 160}]);
    let id = test.monitor(&dates(1, &rules)).await;
    let mut calls = 0;
    test.respond_with(move |asked| {
        calls += 1;
        if calls == 1 {
            fares(&[150], asked)
        } else {
            refused()
        }
    });
    let slot = test.next_slot(&id).await;
    test.tick(slot).await;
    test.all_ended().await;
    test.tick(slot + MOMENT).await;
    test.wait_for_count(REFUSED, 1).await;
    let shown = test.end_refused(&id, slot, 10).await;
    assert_eq!(judged(&shown), [&json!(1), &json!(1)], "{shown}");
    assert!(
        shown["reason"].as_str().unwrap().contains("key_rejected"),
        "{shown}"
    );
    let alerts = test.alerts(&id).await;
    assert_eq!(alerts.len(), 1);
    assert_eq!(alerts[0]["price"], 150);
    let item = &test.items(shown["scan_id"].as_str().unwrap()).await[0];
    assert_eq!(item["best_price"], 150, "{item}");
    test.close().await;
}

/// A run with three dates, the first of which costs 150, and whose key is refused for the others.
async fn refused_run(test: &AlertTest, rules: &Value) -> (String, Timestamp) {
    let id = test.monitor(&dates(3, rules)).await;
    let mut calls = 0;
    test.respond_with(move |asked| {
        calls += 1;
        if calls == 1 {
            fares(&[150], asked)
        } else {
            refused()
        }
    });
    let slot = test.next_slot(&id).await;
    test.tick(slot).await;
    test.wait_for_count(REFUSED, 1).await;
    test.wait_for_count(IN_FLIGHT, 0).await;
    (id, slot)
}

const IN_FLIGHT: &str = "select count(*) from scan_items where worker_id is not null";

impl AlertTest {
    /// Ends the run so many minutes after its slot. Its reason is there at once; it is evaluated by
    /// the next pass.
    async fn end_refused(&self, id: &str, slot: Timestamp, minutes: i64) -> Value {
        let now = slot + SignedDuration::from_mins(minutes);
        assert_eq!(self.tick(now).await.evaluated, 0);
        let ended = self.slot(id, slot).await;
        assert_eq!(
            (&ended["judged"], &ended["reason"]),
            (&Value::Null, &json!("the run was ended: key_rejected"))
        );
        self.all_ended().await;
        assert_eq!(self.tick(now + MOMENT).await.evaluated, 1);
        self.slot(id, slot).await
    }

    /// Whether the run goes on so many minutes after its slot.
    async fn goes_on(&self, slot: Timestamp, minutes: i64) -> bool {
        let now = slot + SignedDuration::from_mins(minutes);
        assert_eq!(self.tick(now).await.evaluated, 0);
        let live = "select count(*) from scans where finished_at is null";
        self.count(live).await == 1
    }
}

fn below_in_cells() -> Value {
    json!([{"type": "price_below", "amount": 200, "scope": "cell"}])
}

/// A key that is refused in the middle of a run: what was found is evaluated.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_key_is_refused_is_evaluated() {
    let test = AlertTest::open().await;
    let (id, slot) = refused_run(&test, &below_in_cells()).await;
    // It may be mended soon.
    assert!(test.goes_on(slot, 5).await);
    let shown = test.end_refused(&id, slot, 11).await;
    assert_eq!(judged(&shown), [&json!(1), &json!(0)], "{shown}");
    assert_eq!(shown["reason"], "the run was ended: key_rejected");
    let alerts = test.alerts(&id).await;
    assert_eq!(alerts.len(), 1);
    test.close().await;
}

/// The key of a run in its second hour is refused: its caller has ten minutes for another key.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_run_has_ten_minutes_for_another_key() {
    let test = AlertTest::open().await;
    let (id, slot) = refused_run(&test, &below_in_cells()).await;
    // Slots of tests are in the future; so are these calls, which took two minutes.
    let calls = "update attempts a set started_at = s.slot + interval '98 minutes', ended_at = s.slot + interval '100 minutes'
                 from monitor_slots s where s.tenant_id = a.tenant_id and s.scan_id = a.scan_id";
    assert!(execute!(test.pool(), calls) >= 2);
    assert!(test.goes_on(slot, 101).await);
    assert!(test.goes_on(slot, 109).await);
    let shown = test.end_refused(&id, slot, 111).await;
    assert_eq!(judged(&shown), [&json!(1), &json!(0)], "{shown}");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_or_one_without_rules_waits_for_a_good_key() {
    let test = AlertTest::open().await;
    let (id, slot) = refused_run(&test, &below_in_cells()).await;
    let scan = test.slot(&id, slot).await["scan_id"].clone();
    let scan = scan.as_str().unwrap();
    test.command(scan, "pause", &json!({})).await;
    assert!(test.goes_on(slot, 60).await);
    assert_eq!(test.scan(scan).await["status_reason"], "by_caller");
    test.close().await;

    let test = AlertTest::open().await;
    let (_, slot) = refused_run(&test, &json!([])).await;
    assert!(test.goes_on(slot, 60).await);
    test.close().await;
}

/// A call is in flight when the run is ended: the reason is there at once, and only once.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_run_is_evaluated_after_its_last_call() {
    let test = AlertTest::open().await;
    let id = test.monitor(&dates(2, &below_in_cells())).await;
    let gate = Gate::closed();
    let (held, mut calls) = (gate.clone(), 0);
    test.respond_with(move |asked| {
        calls += 1;
        if calls == 1 {
            fares(&[150], asked).gated_by(&held)
        } else {
            refused()
        }
    });
    let slot = test.next_slot(&id).await;
    test.tick(slot).await;
    test.wait_for_count(REFUSED, 1).await;
    test.wait_for_count(IN_FLIGHT, 1).await;
    let ended = json!("the run was ended: key_rejected");
    for minutes in [11, 12] {
        assert!(test.goes_on(slot, minutes).await);
        let shown = test.slot(&id, slot).await;
        assert_eq!((&shown["judged"], &shown["reason"]), (&Value::Null, &ended));
    }
    gate.open();
    test.all_ended().await;
    test.tick(slot + SignedDuration::from_mins(13)).await;
    let shown = test.slot(&id, slot).await;
    assert_eq!(judged(&shown), [&json!(1), &json!(0)], "{shown}");
    assert_eq!(shown["reason"], ended);
    test.close().await;
}
