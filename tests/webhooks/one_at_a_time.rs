//! One try at a time per receiver, and no receiver delays another.

use std::time::Duration;

use farescan::contract::webhooks::DeliveryStatus;
use farescan::upkeep::sweeper::Sweeper;
use farescan::webhooks::{self, LockFor, MonitorLock, Outgoing, endpoint};
use jiff::Timestamp;
use serde_json::json;

use super::harness::WebhookTest;
use crate::support::reply::Reply;

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_receiver_takes_one_permit_and_delays_no_other() {
    let hooks = WebhookTest::open().await;
    let (hangs, slow) = hooks.receiver("hangs.test").await;
    hangs.reply(Reply::hang());
    let (quick, fast) = hooks.receiver("quick.test").await;
    quick.reply(Reply::status(200).delay(Duration::from_millis(2)));
    for _ in 0..20 {
        hooks.enqueue(slow).await;
    }
    let mut ids = Vec::new();
    for _ in 0..50 {
        ids.push(hooks.enqueue(fast).await);
    }
    let two = [hooks.deliverer(), hooks.deliverer()];
    hangs.wait_for_in_flight(1).await;
    let open = "select coalesce(max(n), 0) from (select count(*) as n from delivery_tries t join deliveries d on d.delivery_id = t.delivery_id
                where t.ended_at is null group by d.monitor_id) open";
    let mut most = 0;
    for id in ids {
        assert_eq!(
            hooks.ended(id).await.delivery.status,
            DeliveryStatus::Delivered
        );
        most = most.max(hooks.count(open).await);
    }
    // The next try follows at once, not at the next poll: true for most even on a slow machine.
    let waits = "select percentile_disc(0.5) within group (order by wait_ms) from (
                     select (extract(epoch from t.started_at - lag(t.ended_at) over (order by t.started_at)) * 1000)::bigint as wait_ms
                     from delivery_tries t join deliveries d on d.delivery_id = t.delivery_id where d.status = 'delivered') waits";
    let wait = hooks.count(waits).await;
    println!("50 deliveries to one receiver beside one that hangs: {wait} ms between two of them");
    assert!(wait < 5_000, "{wait} ms");
    assert_eq!(
        (quick.count(), most),
        (50, 1),
        "each once, with one try at a time per receiver"
    );
    for deliverer in two {
        deliverer.stop().await;
    }
}

/// During a try, and while a transaction is open.
#[tokio::test(flavor = "multi_thread")]
async fn deliveries_enqueued_meanwhile_are_sent() {
    let hooks = WebhookTest::open().await;
    let (receiver, monitor) = hooks.receiver("steady.test").await;
    receiver.reply(Reply::status(200).delay(Duration::from_millis(5)));
    let deliverer = hooks.deliverer();
    let mut open = Vec::new();
    for round in 0..40 {
        let mut tx = farescan::db::begin(hooks.pool()).await.unwrap();
        let data = json!({"round": round});
        let lock = MonitorLock::acquire(&mut tx, hooks.tenant, monitor, LockFor::Webhook)
            .await
            .unwrap();
        let id = webhooks::enqueue(
            &mut lock.unwrap().endpoint(),
            &Outgoing::new("monitor.alerts"),
            &data,
            Timestamp::now(),
        )
        .await
        .unwrap()
        .unwrap();
        tokio::time::sleep(Duration::from_millis(round % 7)).await;
        if round % 5 == 4 {
            tx.rollback().await.unwrap();
        } else {
            tx.commit().await.unwrap();
            open.push(id);
        }
    }
    for id in &open {
        assert_eq!(
            hooks.ended(*id).await.delivery.status,
            DeliveryStatus::Delivered
        );
    }
    assert_eq!(
        (open.len(), receiver.count()),
        (32, 32),
        "only committed deliveries"
    );
    let rounds: Vec<_> = receiver
        .calls()
        .iter()
        .map(|call| call.body["data"]["round"].as_u64().unwrap())
        .collect();
    assert!(rounds.is_sorted(), "in their order: {rounds:?}");
    deliverer.stop().await;
}

#[tokio::test]
async fn a_monitor_without_a_webhook_has_no_delivery() {
    let hooks = WebhookTest::open().await;
    let mut tx = farescan::db::begin(hooks.pool()).await.unwrap();
    let none = MonitorLock::acquire(
        &mut tx,
        hooks.tenant,
        farescan::ids::MonitorId::new(),
        LockFor::Webhook,
    )
    .await
    .unwrap();
    assert!(none.is_none());
    let (monitor, _) = hooks.webhook("http://nowhere.test/").await;
    let mut lock = MonitorLock::acquire(&mut tx, hooks.tenant, monitor, LockFor::Webhook)
        .await
        .unwrap()
        .unwrap();
    let huge = json!({"x": "x".repeat(webhooks::MAX_BODY)});
    let how = Outgoing::new("monitor.alerts");
    let refused = webhooks::enqueue(&mut lock.endpoint(), &how, &huge, Timestamp::now()).await;
    endpoint::close(&mut lock, Timestamp::now()).await.unwrap();
    assert!(
        webhooks::enqueue(&mut lock.endpoint(), &how, &json!({}), Timestamp::now())
            .await
            .unwrap()
            .is_none()
    );
    tx.commit().await.unwrap();
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("at most 1048576 bytes can be sent")
    );
    assert_eq!(hooks.count("select count(*) from deliveries").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_ended_deliveries_are_removed_and_pending_ones_stay() {
    let hooks = WebhookTest::open().await;
    let (receiver, monitor) = hooks.receiver("old.test").await;
    receiver.replies([Reply::status(200), Reply::status(500)]);
    let deliverer = hooks.deliverer();
    let old = hooks.enqueue(monitor).await;
    hooks.ended(old).await;
    let pending = hooks.enqueue(monitor).await;
    hooks.tried(pending, 1).await;
    deliverer.stop().await;
    let sql = "update deliveries set ended_at = ended_at - interval '91 days', created_at = created_at - interval '91 days'";
    execute!(hooks.pool(), sql);
    let mut sweeper = Sweeper::new(hooks.pool().clone(), Duration::from_secs(30));
    sweeper.run_once(false).await.unwrap();
    assert_eq!(hooks.count("select count(*) from deliveries").await, 1);
    assert_eq!(
        hooks.detail(pending).await.delivery.status,
        DeliveryStatus::Pending
    );
    assert_eq!(
        hooks.count("select count(*) from delivery_tries").await,
        1,
        "tries are deleted with their delivery"
    );
}
