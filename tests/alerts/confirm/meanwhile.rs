//! What happens while a price is searched once more: the next slot, a cancel, changes of the monitor.

use serde_json::json;

use super::{below, dates, judged};
use crate::alerts::{AlertTest, MOMENT, fares};
use crate::monitors::ticker;

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
    let row = test.second_half(&id, slot).await;
    assert_eq!(judged(&row), [&json!(0), &json!(0)], "{row}");
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
