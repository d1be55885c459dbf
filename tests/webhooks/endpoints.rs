//! Endpoints that are switched off, on again, moved and closed.

use farescan::contract::webhooks::{DeliveryReason, DeliveryStatus, OffReason};
use farescan::webhooks::{Sender, WebhookError, endpoint, resend};
use jiff::Timestamp;

use super::post::{Post, address, deliver, guard, lock};
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::Upstream;

#[tokio::test(flavor = "multi_thread")]
async fn five_days_without_a_success_switch_it_off_and_it_can_be_switched_on() {
    let post = Post::open().await;
    let (receiver, monitor) = post.receiver("down.test").await;
    receiver.on_any().reply(Reply::status(500));
    let deliverer = post.deliverer();
    let first = post.enqueue(monitor).await;
    for number in 1..=8 {
        post.tried(first, number).await;
        post.due_now(first).await;
    }
    assert_eq!(
        post.ended(first).await.delivery.reason,
        Some(DeliveryReason::TriesSpent)
    );
    let id = post.enqueue(monitor).await;
    let waits = post.enqueue(monitor).await;
    post.tried(waits, 1).await;
    for number in 1..=7 {
        post.tried(id, number).await;
        if number < 7 {
            post.due_now(id).await;
        }
    }
    assert!(post.endpoint(monitor).await.unwrap().off_at.is_none());
    let days = "update webhook_endpoints set failing_since = now() - interval '5 days'";
    sqlx::query(days).execute(post.pool()).await.unwrap();
    post.due_now(id).await;
    assert_eq!(
        post.ended(id).await.delivery.reason,
        Some(DeliveryReason::TriesSpent)
    );
    let webhook = post.endpoint(monitor).await.unwrap();
    assert_eq!(webhook.off_reason, Some(OffReason::Failing));
    assert!(webhook.off_at.is_some());
    assert_eq!(
        post.ended(waits).await.delivery.reason,
        Some(DeliveryReason::EndpointOff),
        "what waited is not tried any more"
    );

    let calls = receiver.count();
    let meanwhile = post.enqueue(monitor).await;
    let seen = post.detail(meanwhile).await.delivery;
    assert_eq!(
        (seen.status, seen.reason, seen.try_count),
        (DeliveryStatus::Failed, Some(DeliveryReason::EndpointOff), 0)
    );
    let refused = post.resend(meanwhile).await.unwrap_err();
    let expected = format!(
        "this monitor's webhook is switched off (`failing`): nothing was delivered for five days; switch it on with \
         POST /v1/monitors/{monitor}/enable-webhook, or give it another URL with PATCH /v1/monitors/{monitor}"
    );
    assert_eq!(refused.to_string(), expected);

    receiver.on_any().reply(Reply::status(200));
    let mut conn = post.pool().acquire().await.unwrap();
    endpoint::enable(&mut lock(&mut conn, post.tenant, monitor).await)
        .await
        .unwrap();
    let webhook = post.endpoint(monitor).await.unwrap();
    assert_eq!((webhook.off_at, webhook.failing_since), (None, None));
    for id in [meanwhile, id] {
        let before = post.detail(id).await.delivery.try_count;
        post.resend(id).await.unwrap();
        let seen = post.ended(id).await;
        assert_eq!(
            (seen.delivery.status, seen.delivery.try_count),
            (DeliveryStatus::Delivered, before + 1)
        );
        assert_eq!(
            receiver.calls().last().unwrap().header("webhook-id"),
            id.to_string(),
            "the same message"
        );
    }
    assert_eq!(
        receiver.count(),
        calls + 2,
        "nothing was sent while it was off"
    );
    assert!(post.endpoint(monitor).await.unwrap().delivered_at.is_some());
    deliverer.stop().await;
}

/// A receiver that is asked seldom has all the tries of a delivery, however long ago the last success was.
#[tokio::test(flavor = "multi_thread")]
async fn one_failure_after_a_long_pause_does_not_switch_it_off() {
    let post = Post::open().await;
    let (receiver, monitor) = post.receiver("seldom.test").await;
    receiver
        .on_any()
        .replies([Reply::status(500), Reply::status(500), Reply::status(200)]);
    let days = "update webhook_endpoints set failing_since = now() - interval '30 days'";
    sqlx::query(days).execute(post.pool()).await.unwrap();
    let deliverer = post.deliverer();
    let id = post.enqueue(monitor).await;
    for number in 1..=2 {
        post.tried(id, number).await;
        post.due_now(id).await;
    }
    assert_eq!(
        post.ended(id).await.delivery.status,
        DeliveryStatus::Delivered
    );
    let webhook = post.endpoint(monitor).await.unwrap();
    assert_eq!((webhook.off_at, webhook.failing_since), (None, None));
    deliverer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gone_ends_all_that_waits_and_a_new_place_begins_anew() {
    let post = Post::open().await;
    let (receiver, monitor) = post.receiver("gone.test").await;
    receiver
        .on_any()
        .replies([Reply::status(500), Reply::status(410)]);
    let deliverer = post.deliverer();
    let waits = post.enqueue(monitor).await;
    post.tried(waits, 1).await;
    let gone = post.enqueue(monitor).await;
    assert_eq!(
        post.ended(gone).await.delivery.reason,
        Some(DeliveryReason::Gone)
    );
    assert_eq!(
        post.ended(waits).await.delivery.reason,
        Some(DeliveryReason::EndpointOff)
    );
    let mut tx = farescan::db::begin(post.pool()).await.unwrap();
    let test = resend::test(
        &mut lock(&mut tx, post.tenant, monitor).await,
        Timestamp::now(),
    )
    .await
    .unwrap_err();
    tx.rollback().await.unwrap();
    assert!(matches!(test, WebhookError::InvalidState(_)));
    for words in [
        "(`gone`): its receiver answered 410",
        &format!("POST /v1/monitors/{monitor}/enable-webhook"),
    ] {
        assert!(test.to_string().contains(words), "{test}");
    }

    let other = Upstream::start().await;
    other.on_any().reply(Reply::status(200));
    post.names.lead("other.test", &[&[address(&other)]]);
    let mut conn = post.pool().acquire().await.unwrap();
    endpoint::change_url(
        &mut lock(&mut conn, post.tenant, monitor).await,
        "http://other.test/",
    )
    .await
    .unwrap();
    post.resend(gone).await.unwrap();
    assert_eq!(
        post.ended(gone).await.delivery.status,
        DeliveryStatus::Delivered
    );
    assert_eq!((receiver.count(), other.count()), (2, 1));
    deliverer.stop().await;
}

/// Moved in the middle of a try: what the old place says then, says nothing of the new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_try_to_the_old_place_does_not_switch_the_new_one_off() {
    for (status, failures) in [(410, 0), (410, 7), (500, 7), (500, 2)] {
        let post = Post::open().await;
        let (old, monitor) = post.receiver("old.test").await;
        let gate = Gate::closed();
        old.on_any().reply(
            Reply::status(status)
                .header("retry-after", "9000")
                .held_by(&gate),
        );
        let new = Upstream::start().await;
        new.on_any().reply(Reply::status(204));
        post.names.lead("new.test", &[&[address(&new)]]);
        let (tried, behind) = (post.enqueue(monitor).await, post.enqueue(monitor).await);
        let begun = "update deliveries set failures = $2 where delivery_id = $1";
        sqlx::query(begun)
            .bind(tried.uuid())
            .bind(failures)
            .execute(post.pool())
            .await
            .unwrap();
        let days = "update webhook_endpoints set failing_since = now() - interval '30 days'";
        sqlx::query(days).execute(post.pool()).await.unwrap();
        // As patient as a service: the receiver is held for as long as this test takes.
        let sender = Sender::with_names(guard(), std::sync::Arc::new(post.names.clone())).unwrap();
        let deliverer = deliver(post.pool(), sender);
        old.wait_for_in_flight(1).await;
        let mut tx = farescan::db::begin(post.pool()).await.unwrap();
        endpoint::change_url(
            &mut lock(&mut tx, post.tenant, monitor).await,
            "http://new.test/",
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
        gate.open();
        let seen = post.tried(tried, 1).await;
        assert_eq!(
            (seen.tries[0].http_status, seen.delivery.status),
            (Some(status), DeliveryStatus::Pending),
            "{failures}"
        );
        let wait = seen
            .delivery
            .next_try_at
            .unwrap()
            .duration_since(seen.tries[0].ended_at.unwrap())
            .as_secs();
        assert!(
            wait <= 6,
            "the new place is not the one that asked for time: {wait} s"
        );
        let webhook = post.endpoint(monitor).await.unwrap();
        assert_eq!(
            (webhook.off_reason, webhook.failing_since),
            (None, None),
            "{status} after {failures}"
        );
        assert_eq!(
            post.count("select max(failures)::bigint from deliveries")
                .await,
            i64::from(failures),
            "nor is it a failure of the new place"
        );
        post.due_now(tried).await;
        for id in [tried, behind] {
            assert_eq!(
                post.ended(id).await.delivery.status,
                DeliveryStatus::Delivered
            );
        }
        assert_eq!((old.count(), new.count()), (1, 2));
        deliverer.stop().await;
    }
}

/// What the new place says counts again, from its first try on.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_place_that_is_gone_is_switched_off() {
    let post = Post::open().await;
    let (receiver, monitor) = post.receiver("old.test").await;
    receiver.on_any().reply(Reply::status(410));
    let mut conn = post.pool().acquire().await.unwrap();
    endpoint::change_url(
        &mut lock(&mut conn, post.tenant, monitor).await,
        "http://old.test/other",
    )
    .await
    .unwrap();
    let deliverer = post.deliverer();
    let id = post.enqueue(monitor).await;
    assert_eq!(
        post.ended(id).await.delivery.reason,
        Some(DeliveryReason::Gone)
    );
    assert_eq!(
        post.endpoint(monitor).await.unwrap().off_reason,
        Some(OffReason::Gone)
    );
    endpoint::enable(&mut lock(&mut conn, post.tenant, monitor).await)
        .await
        .unwrap();
    post.resend(id).await.unwrap();
    post.tried(id, 2).await;
    assert_eq!(
        post.endpoint(monitor).await.unwrap().off_reason,
        Some(OffReason::Gone),
        "and so does what it says once it is on again"
    );
    deliverer.stop().await;
}

/// Closed in the middle of a try: the try is on record, nothing is sent any more, and the secrets are gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_closed_sends_nothing_any_more() {
    let post = Post::open().await;
    let (receiver, monitor) = post.receiver("closed.test").await;
    let gate = Gate::closed();
    receiver.on_any().reply(Reply::status(500).held_by(&gate));
    let deliverer = post.deliverer();
    let id = post.enqueue(monitor).await;
    let behind = post.enqueue(monitor).await;
    receiver.wait_for_in_flight(1).await;
    let mut tx = farescan::db::begin(post.pool()).await.unwrap();
    endpoint::close(
        &mut lock(&mut tx, post.tenant, monitor).await,
        Timestamp::now(),
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    gate.open();
    post.tried(id, 1).await;
    for id in [id, behind] {
        assert_eq!(
            post.detail(id).await.delivery.reason,
            Some(DeliveryReason::EndpointClosed)
        );
        let refused = post.resend(id).await.unwrap_err();
        assert!(
            matches!(refused, WebhookError::InvalidState(_)),
            "{refused}"
        );
    }
    assert_eq!(post.endpoint(monitor).await, None);
    assert_eq!(
        post.count("select count(*) from key_grants where purpose = 'webhook'")
            .await,
        0
    );
    assert_eq!(receiver.count(), 1);
    let mut tx = farescan::db::begin(post.pool()).await.unwrap();
    endpoint::close(
        &mut lock(&mut tx, post.tenant, monitor).await,
        Timestamp::now(),
    )
    .await
    .unwrap();
    let missing = endpoint::enable(&mut lock(&mut tx, post.tenant, monitor).await)
        .await
        .unwrap_err();
    assert!(matches!(missing, WebhookError::NoEndpoint));
    deliverer.stop().await;
}

/// Sent again while it is being tried for the last time: it begins anew, whatever comes of that try.
#[tokio::test(flavor = "multi_thread")]
async fn sent_again_in_the_middle_of_its_last_try_it_begins_anew() {
    let post = Post::open().await;
    let (receiver, monitor) = post.receiver("last.test").await;
    let gate = Gate::closed();
    receiver.on_any().reply(Reply::status(500));
    let deliverer = post.deliverer();
    let id = post.enqueue(monitor).await;
    for number in 1..=7 {
        post.tried(id, number).await;
        if number == 7 {
            receiver.on_any().reply(Reply::status(500).held_by(&gate));
        }
        post.due_now(id).await;
    }
    receiver
        .wait_for("the last try is under way", |calls| calls.len() == 8)
        .await;
    post.resend(id).await.unwrap();
    gate.open();
    let seen = post.tried(id, 8).await;
    assert_eq!(seen.delivery.status, DeliveryStatus::Pending);
    receiver.on_any().reply(Reply::status(200));
    post.due_now(id).await;
    assert_eq!(
        post.ended(id).await.delivery.status,
        DeliveryStatus::Delivered
    );
    deliverer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_its_monitor_all_of_it_goes() {
    let post = Post::open().await;
    let (receiver, monitor) = post.receiver("deleted.test").await;
    receiver.on_any().reply(Reply::status(500));
    let deliverer = post.deliverer();
    let id = post.enqueue(monitor).await;
    post.tried(id, 1).await;
    let monitors = sqlx::query("delete from monitors where monitor_id = $1").bind(monitor.uuid());
    monitors.execute(post.pool()).await.unwrap();
    for table in [
        "webhook_endpoints",
        "deliveries",
        "delivery_tries",
        "key_grants where purpose = 'webhook'",
    ] {
        let count =
            sqlx::query_scalar(sqlx::AssertSqlSafe(format!("select count(*) from {table}")));
        let count: i64 = count.fetch_one(post.pool()).await.unwrap();
        assert_eq!(count, 0, "{table}");
    }
    deliverer.stop().await;
}
