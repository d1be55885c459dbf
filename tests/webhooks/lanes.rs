//! One try at a time for a receiver, and no receiver in another's way.

use std::time::Duration;

use farescan::contract::webhooks::DeliveryStatus;
use farescan::webhooks::{self, LockFor, MonitorLock, endpoint};
use jiff::Timestamp;
use serde_json::json;

use super::post::Post;
use crate::support::reply::Reply;

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_takes_one_place_and_delays_nobody() {
    let post = Post::open().await;
    let (hangs, slow) = post.receiver("hangs.test").await;
    hangs.on_any().reply(Reply::hang());
    let (quick, fast) = post.receiver("quick.test").await;
    quick
        .on_any()
        .reply(Reply::status(200).delay(Duration::from_millis(2)));
    for _ in 0..20 {
        post.enqueue(slow).await;
    }
    let mut ids = Vec::new();
    for _ in 0..50 {
        ids.push(post.enqueue(fast).await);
    }
    let two = [post.deliverer(), post.deliverer()];
    hangs.wait_for_in_flight(1).await;
    let open = "select coalesce(max(n), 0) from (select count(*) as n from delivery_tries t join deliveries d on d.delivery_id = t.delivery_id
                where t.ended_at is null group by d.monitor_id) open";
    let mut most = 0;
    for id in ids {
        assert_eq!(
            post.ended(id).await.delivery.status,
            DeliveryStatus::Delivered
        );
        most = most.max(post.count(open).await);
    }
    // A try that has ended is followed by the next at once, not at the next look five seconds later: most are, however slow the machine.
    let waits = "select percentile_disc(0.5) within group (order by wait_ms) from (
                     select (extract(epoch from t.started_at - lag(t.ended_at) over (order by t.started_at)) * 1000)::bigint as wait_ms
                     from delivery_tries t join deliveries d on d.delivery_id = t.delivery_id where d.status = 'delivered') waits";
    let wait = post.count(waits).await;
    println!("50 deliveries to one receiver beside one that hangs: {wait} ms between two of them");
    assert!(wait < 5_000, "{wait} ms");
    assert_eq!(
        (quick.count(), most),
        (50, 1),
        "each once, and one try at a time for each receiver"
    );
    for deliverer in two {
        deliverer.stop().await;
    }
}

/// What is enqueued while a try is in flight, or while a transaction is open, is not forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_in_between_is_sent() {
    let post = Post::open().await;
    let (receiver, monitor) = post.receiver("steady.test").await;
    receiver
        .on_any()
        .reply(Reply::status(200).delay(Duration::from_millis(5)));
    let deliverer = post.deliverer();
    let mut open = Vec::new();
    for round in 0..40 {
        let mut tx = farescan::db::begin(post.pool()).await.unwrap();
        let data = json!({"round": round});
        let lock = MonitorLock::acquire(&mut tx, post.tenant, monitor, LockFor::Webhook)
            .await
            .unwrap();
        let id = webhooks::enqueue(
            &mut lock.unwrap(),
            "monitor.alerts",
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
            post.ended(*id).await.delivery.status,
            DeliveryStatus::Delivered
        );
    }
    assert_eq!(
        (open.len(), receiver.count()),
        (32, 32),
        "what was committed, and nothing else"
    );
    let rounds: Vec<_> = receiver
        .calls()
        .iter()
        .map(|call| call.body["data"]["round"].as_u64().unwrap())
        .collect();
    assert!(rounds.is_sorted(), "in their order: {rounds:?}");
    deliverer.stop().await;
}

/// Without a webhook there is nothing to send, and nothing on record.
#[tokio::test]
async fn a_monitor_without_a_webhook_has_no_delivery() {
    let post = Post::open().await;
    let mut tx = farescan::db::begin(post.pool()).await.unwrap();
    let none = MonitorLock::acquire(
        &mut tx,
        post.tenant,
        farescan::ids::MonitorId::new(),
        LockFor::Webhook,
    )
    .await
    .unwrap();
    assert!(none.is_none());
    let (monitor, _) = post.webhook("http://nowhere.test/").await;
    let mut lock = MonitorLock::acquire(&mut tx, post.tenant, monitor, LockFor::Webhook)
        .await
        .unwrap()
        .unwrap();
    let huge = json!({"x": "x".repeat(webhooks::MAX_BODY)});
    let refused = webhooks::enqueue(&mut lock, "monitor.alerts", &huge, Timestamp::now()).await;
    endpoint::close(&mut lock, Timestamp::now()).await.unwrap();
    assert!(
        webhooks::enqueue(&mut lock, "monitor.alerts", &json!({}), Timestamp::now())
            .await
            .unwrap()
            .is_none()
    );
    tx.commit().await.unwrap();
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("at most 1048576 can be sent")
    );
    assert_eq!(post.count("select count(*) from deliveries").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_long_ago_goes_and_what_is_pending_stays() {
    let post = Post::open().await;
    let (receiver, monitor) = post.receiver("old.test").await;
    receiver
        .on_any()
        .replies([Reply::status(200), Reply::status(500)]);
    let deliverer = post.deliverer();
    let old = post.enqueue(monitor).await;
    post.ended(old).await;
    let pending = post.enqueue(monitor).await;
    post.tried(pending, 1).await;
    deliverer.stop().await;
    let sql = "update deliveries set ended_at = ended_at - interval '91 days', created_at = created_at - interval '91 days'";
    sqlx::query(sql).execute(post.pool()).await.unwrap();
    let deliverer = post.deliverer();
    for _ in 0..2_000 {
        if post.count("select count(*) from deliveries").await == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(
        post.detail(pending).await.delivery.status,
        DeliveryStatus::Pending
    );
    assert_eq!(
        post.count("select count(*) from delivery_tries").await,
        1,
        "tries go with their delivery"
    );
    deliverer.stop().await;
}
