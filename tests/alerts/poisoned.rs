//! What cannot be judged is on record with its reason, and holds nobody up.

use serde_json::json;

use super::{Watch, fares, monitor};

/// States that nobody can read: the rule begins anew, the others go on, and so do the slots after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_whose_states_cannot_be_read_begins_anew() {
    let watch = Watch::open().await;
    let rules = json!([{"type": "price_below", "amount": 200}, {"type": "new_low"}]);
    let id = watch.monitor(&monitor(1, &rules)).await;
    watch.market(|asked| fares(&[150], asked));
    assert_eq!(watch.run(&id).await["judged"]["fired"], 1);
    let pool = watch.office.db.pool();
    sqlx::raw_sql("update rule_states set states = 'not packed'::bytea")
        .execute(pool)
        .await
        .unwrap();
    let slot = watch.run(&id).await;
    assert_eq!(
        (&slot["judged"]["fired"], &slot["outcome"]),
        (&json!(1), &json!("ran")),
        "below 200, as if for the first time: {slot}"
    );
    let reason = slot["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("`alerts[0]` began anew") && reason.contains("`alerts[1]` began anew"),
        "{reason}"
    );
    let slot = watch.run(&id).await;
    assert_eq!(
        (&slot["judged"]["fired"], &slot["reason"]),
        (&json!(0), &json!(null))
    );
    watch.close().await;
}

/// Rules that nobody can read.
#[tokio::test(flavor = "multi_thread")]
async fn rules_that_cannot_be_read_are_told_and_hold_nobody_up() {
    let watch = Watch::open().await;
    watch.market(|asked| fares(&[150], asked));
    watch.warm().await;
    let poisoned = watch
        .monitor(&monitor(
            1,
            &json!([{"type": "price_below", "amount": 200}]),
        ))
        .await;
    let id = watch
        .monitor(&monitor(
            1,
            &json!([{"type": "price_below", "amount": 200}]),
        ))
        .await;
    let pool = watch.office.db.pool();
    let unknown =
        "update monitors set rules = '[{\"type\": \"of another version\"}]' where monitor_id = $1";
    let uuid = poisoned.parse::<farescan::ids::MonitorId>().unwrap().uuid();
    sqlx::query(unknown).bind(uuid).execute(pool).await.unwrap();
    let slot = watch.office.next_slot(&id).await;
    // A run that ends at once is judged in the pass that began it.
    let first = watch.office.tick(slot).await;
    watch.all_ended().await;
    let second = watch.office.tick(slot + super::MOMENT).await;
    assert_eq!(
        (first.judged + second.judged, first.failed + second.failed),
        (2, 0)
    );
    assert_eq!(watch.alerts(&id).await.len(), 1);
    let reason: String = sqlx::query_scalar(
        "select reason from monitor_slots where monitor_id = $1 and judged_at is not null",
    )
    .bind(uuid)
    .fetch_one(pool)
    .await
    .unwrap();
    assert!(reason.starts_with("its rules were not judged"), "{reason}");
    assert_eq!(
        watch.office.tick(slot + super::MOMENT).await.judged,
        0,
        "once"
    );
    watch.close().await;
}
