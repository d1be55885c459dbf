//! Unreadable rules and states are recorded with a reason and do not block other runs.

use serde_json::json;

use super::{AlertTest, fares, monitor};

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_state_is_reset() {
    let test = AlertTest::open().await;
    let rules = json!([{"type": "price_below", "amount": 200}, {"type": "new_low", "days": 30}]);
    let id = test.monitor(&monitor(1, &rules)).await;
    test.respond_with(|asked| fares(&[150], asked));
    assert_eq!(test.run(&id).await["judged"]["fired"], 1);
    let pool = test.pool();
    execute!(pool, "update rule_states set states = 'not packed'::bytea");
    let slot = test.run(&id).await;
    assert_eq!(
        (&slot["judged"]["fired"], &slot["outcome"]),
        (&json!(1), &json!("ran")),
        "below 200, as if for the first time: {slot}"
    );
    let reason = slot["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("state of `alerts[0]` was unreadable")
            && reason.contains("state of `alerts[1]` was unreadable"),
        "{reason}"
    );
    let slot = test.run(&id).await;
    assert_eq!(
        (&slot["judged"]["fired"], &slot["reason"]),
        (&json!(0), &json!(null))
    );
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_rules_are_recorded_and_block_no_other_run() {
    let test = AlertTest::open().await;
    test.respond_with(|asked| fares(&[150], asked));
    test.accept_key().await;
    let poisoned = test
        .monitor(&monitor(
            1,
            &json!([{"type": "price_below", "amount": 200}]),
        ))
        .await;
    let id = test
        .monitor(&monitor(
            1,
            &json!([{"type": "price_below", "amount": 200}]),
        ))
        .await;
    let pool = test.pool();
    let unknown =
        "update monitors set rules = '[{\"type\": \"of another version\"}]' where monitor_id = $1";
    let uuid = poisoned.parse::<farescan::ids::MonitorId>().unwrap().uuid();
    execute!(pool, unknown, uuid);
    let slot = test.next_slot(&id).await;
    // A run that ends at once may be evaluated in the tick that started it.
    let first = test.tick(slot).await;
    test.all_ended().await;
    let second = test.tick(slot + super::MOMENT).await;
    assert_eq!(
        (
            first.evaluated + second.evaluated,
            first.failed + second.failed
        ),
        (2, 0)
    );
    assert_eq!(test.alerts(&id).await.len(), 1);
    let reason: String = value!(
        pool,
        "select reason from monitor_slots where monitor_id = $1 and evaluated_at is not null",
        uuid
    );
    assert!(
        reason.starts_with("the alert rules were not evaluated"),
        "{reason}"
    );
    assert_eq!(test.tick(slot + super::MOMENT).await.evaluated, 0, "once");
    test.close().await;
}
