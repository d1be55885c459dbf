//! Endpoints are switched off, switched on, moved and closed.

use farescan::commands::CommandError;
use farescan::contract::monitors::OffReason;
use farescan::contract::webhooks::{DeliveryReason, DeliveryStatus};
use farescan::webhooks::{Sender, endpoint, resend};
use jiff::Timestamp;

use super::harness::{WebhookTest, address, deliver, guard, lock};
use crate::support::app::ring;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::ScriptedServer;

#[tokio::test(flavor = "multi_thread")]
async fn five_days_without_success_switch_a_webhook_off() {
    let hooks = WebhookTest::open().await;
    let (receiver, monitor) = hooks.receiver("down.test").await;
    receiver.reply(Reply::status(500));
    let deliverer = hooks.deliverer();
    let first = hooks.enqueue(monitor).await;
    for number in 1..=8 {
        hooks.tried(first, number).await;
        hooks.due_now(first).await;
    }
    assert_eq!(
        hooks.ended(first).await.delivery.reason,
        Some(DeliveryReason::TriesSpent)
    );
    let id = hooks.enqueue(monitor).await;
    let waits = hooks.enqueue(monitor).await;
    hooks.tried(waits, 1).await;
    for number in 1..=7 {
        hooks.tried(id, number).await;
        if number < 7 {
            hooks.due_now(id).await;
        }
    }
    assert!(hooks.endpoint(monitor).await.unwrap().off_at.is_none());
    let days = "update webhook_endpoints set failing_since = now() - interval '5 days'";
    execute!(hooks.pool(), days);
    hooks.due_now(id).await;
    assert_eq!(
        hooks.ended(id).await.delivery.reason,
        Some(DeliveryReason::TriesSpent)
    );
    let webhook = hooks.endpoint(monitor).await.unwrap();
    assert_eq!(webhook.off_reason, Some(OffReason::Failing));
    assert!(webhook.off_at.is_some());
    assert_eq!(
        hooks.ended(waits).await.delivery.reason,
        Some(DeliveryReason::EndpointOff),
        "a pending delivery is not tried any more"
    );

    let calls = receiver.count();
    let meanwhile = hooks.enqueue(monitor).await;
    let seen = hooks.detail(meanwhile).await.delivery;
    assert_eq!(
        (seen.status, seen.reason, seen.try_count),
        (DeliveryStatus::Failed, Some(DeliveryReason::EndpointOff), 0)
    );
    let refused = hooks.resend(meanwhile).await.unwrap_err();
    let expected = format!(
        "the monitor's webhook is switched off (`failing`): nothing was delivered for five days; switch it on with \
         POST /v1/monitors/{monitor}/enable-webhook or change its URL with PATCH /v1/monitors/{monitor}"
    );
    assert_eq!(refused.to_string(), expected);

    receiver.reply(Reply::status(200));
    let mut conn = hooks.pool().acquire().await.unwrap();
    endpoint::enable(&mut lock(&mut conn, hooks.tenant, monitor).await.endpoint())
        .await
        .unwrap();
    let webhook = hooks.endpoint(monitor).await.unwrap();
    assert_eq!((webhook.off_at, webhook.failing_since), (None, None));
    for id in [meanwhile, id] {
        let before = hooks.detail(id).await.delivery.try_count;
        hooks.resend(id).await.unwrap();
        let seen = hooks.ended(id).await;
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
        "nothing was sent while the webhook was off"
    );
    assert!(
        hooks
            .endpoint(monitor)
            .await
            .unwrap()
            .delivered_at
            .is_some()
    );
    deliverer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_test_never_switches_a_webhook_off() {
    let hooks = WebhookTest::open().await;
    let (receiver, monitor) = hooks.receiver("tested.test").await;
    receiver.replies([Reply::status(500), Reply::status(500), Reply::status(410)]);
    let deliverer = hooks.deliverer();
    let send = async || {
        let mut tx = farescan::db::begin(hooks.pool()).await.unwrap();
        let mut held = lock(&mut tx, hooks.tenant, monitor).await;
        let test = resend::send_test(&mut held, Timestamp::now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        hooks.ended(test.id).await.delivery
    };
    assert_eq!(send().await.reason, Some(DeliveryReason::TestFailed));
    let webhook = hooks.endpoint(monitor).await.unwrap();
    assert_eq!((webhook.off_at, webhook.failing_since), (None, None));

    // Its real deliveries have failed for long; a test must not be the last straw.
    let days = "update webhook_endpoints set failing_since = now() - interval '30 days'";
    execute!(hooks.pool(), days);
    for reason in [DeliveryReason::TestFailed, DeliveryReason::Gone] {
        hooks.age_tests_by_a_minute().await;
        assert_eq!(send().await.reason, Some(reason));
        let webhook = hooks.endpoint(monitor).await.unwrap();
        assert_eq!(
            (webhook.off_at, webhook.off_reason),
            (None, None),
            "{reason:?}"
        );
        assert!(webhook.failing_since.is_some());
    }
    deliverer.stop().await;
}

/// The last success may be long ago if deliveries are rare.
#[tokio::test(flavor = "multi_thread")]
async fn one_failure_after_a_long_pause_does_not_switch_off() {
    let hooks = WebhookTest::open().await;
    let (receiver, monitor) = hooks.receiver("seldom.test").await;
    receiver.replies([Reply::status(500), Reply::status(500), Reply::status(200)]);
    let days = "update webhook_endpoints set failing_since = now() - interval '30 days'";
    execute!(hooks.pool(), days);
    let deliverer = hooks.deliverer();
    let id = hooks.enqueue(monitor).await;
    for number in 1..=2 {
        hooks.tried(id, number).await;
        hooks.due_now(id).await;
    }
    assert_eq!(
        hooks.ended(id).await.delivery.status,
        DeliveryStatus::Delivered
    );
    let webhook = hooks.endpoint(monitor).await.unwrap();
    assert_eq!((webhook.off_at, webhook.failing_since), (None, None));
    deliverer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_410_fails_pending_deliveries_until_the_url_changes() {
    let hooks = WebhookTest::open().await;
    let (receiver, monitor) = hooks.receiver("gone.test").await;
    receiver.replies([Reply::status(500), Reply::status(410)]);
    let deliverer = hooks.deliverer();
    let waits = hooks.enqueue(monitor).await;
    hooks.tried(waits, 1).await;
    let gone = hooks.enqueue(monitor).await;
    assert_eq!(
        hooks.ended(gone).await.delivery.reason,
        Some(DeliveryReason::Gone)
    );
    assert_eq!(
        hooks.ended(waits).await.delivery.reason,
        Some(DeliveryReason::EndpointOff)
    );
    let mut tx = farescan::db::begin(hooks.pool()).await.unwrap();
    let test = resend::send_test(
        &mut lock(&mut tx, hooks.tenant, monitor).await,
        Timestamp::now(),
    )
    .await
    .unwrap_err();
    tx.rollback().await.unwrap();
    assert!(matches!(test, CommandError::InvalidState(_)));
    for words in [
        "(`gone`): its receiver answered 410",
        &format!("POST /v1/monitors/{monitor}/enable-webhook"),
    ] {
        assert!(test.to_string().contains(words), "{test}");
    }

    let other = ScriptedServer::start().await;
    other.reply(Reply::status(200));
    hooks.names.resolve_to("other.test", &[&[address(&other)]]);
    let mut conn = hooks.pool().acquire().await.unwrap();
    endpoint::change_url(
        &mut lock(&mut conn, hooks.tenant, monitor).await.endpoint(),
        &ring(),
        "http://other.test/",
    )
    .await
    .unwrap();
    hooks.resend(gone).await.unwrap();
    assert_eq!(
        hooks.ended(gone).await.delivery.status,
        DeliveryStatus::Delivered
    );
    assert_eq!((receiver.count(), other.count()), (2, 1));
    deliverer.stop().await;
}

/// The URL changes during a try.
#[tokio::test(flavor = "multi_thread")]
async fn a_try_to_the_old_url_does_not_switch_off_the_new_one() {
    for (status, failures) in [(410, 0), (410, 7), (500, 7), (500, 2)] {
        let hooks = WebhookTest::open().await;
        let (old, monitor) = hooks.receiver("old.test").await;
        let gate = Gate::closed();
        old.reply(
            Reply::status(status)
                .header("retry-after", "9000")
                .gated_by(&gate),
        );
        let new = ScriptedServer::start().await;
        new.reply(Reply::status(204));
        hooks.names.resolve_to("new.test", &[&[address(&new)]]);
        let (tried, behind) = (hooks.enqueue(monitor).await, hooks.enqueue(monitor).await);
        let begun = "update deliveries set failures = $2 where delivery_id = $1";
        execute!(hooks.pool(), begun, tried.uuid(), failures);
        let days = "update webhook_endpoints set failing_since = now() - interval '30 days'";
        execute!(hooks.pool(), days);
        // With the default timeout: the receiver hangs until the end of the test.
        let sender =
            Sender::with_resolver(guard(), std::sync::Arc::new(hooks.names.clone())).unwrap();
        let deliverer = deliver(hooks.pool(), sender);
        old.wait_for_in_flight(1).await;
        let mut tx = farescan::db::begin(hooks.pool()).await.unwrap();
        endpoint::change_url(
            &mut lock(&mut tx, hooks.tenant, monitor).await.endpoint(),
            &ring(),
            "http://new.test/",
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
        gate.open();
        let seen = hooks.tried(tried, 1).await;
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
            "the Retry-After of the old URL does not apply: {wait} s"
        );
        let webhook = hooks.endpoint(monitor).await.unwrap();
        assert_eq!(
            (webhook.off_reason, webhook.failing_since),
            (None, None),
            "{status} after {failures}"
        );
        assert_eq!(
            hooks
                .count("select max(failures)::bigint from deliveries")
                .await,
            i64::from(failures),
            "it is not a failure of the new URL"
        );
        hooks.due_now(tried).await;
        for id in [tried, behind] {
            assert_eq!(
                hooks.ended(id).await.delivery.status,
                DeliveryStatus::Delivered
            );
        }
        assert_eq!((old.count(), new.count()), (1, 2));
        deliverer.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_410_of_the_new_url_switches_it_off() {
    let hooks = WebhookTest::open().await;
    let (receiver, monitor) = hooks.receiver("old.test").await;
    receiver.reply(Reply::status(410));
    let mut conn = hooks.pool().acquire().await.unwrap();
    endpoint::change_url(
        &mut lock(&mut conn, hooks.tenant, monitor).await.endpoint(),
        &ring(),
        "http://old.test/other",
    )
    .await
    .unwrap();
    let deliverer = hooks.deliverer();
    let id = hooks.enqueue(monitor).await;
    assert_eq!(
        hooks.ended(id).await.delivery.reason,
        Some(DeliveryReason::Gone)
    );
    assert_eq!(
        hooks.endpoint(monitor).await.unwrap().off_reason,
        Some(OffReason::Gone)
    );
    endpoint::enable(&mut lock(&mut conn, hooks.tenant, monitor).await.endpoint())
        .await
        .unwrap();
    hooks.resend(id).await.unwrap();
    hooks.tried(id, 2).await;
    assert_eq!(
        hooks.endpoint(monitor).await.unwrap().off_reason,
        Some(OffReason::Gone),
        "also after it was switched on again"
    );
    deliverer.stop().await;
}

/// The try in flight is recorded, and the secrets are destroyed.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_closed_during_a_try_sends_nothing_more() {
    let hooks = WebhookTest::open().await;
    let (receiver, monitor) = hooks.receiver("closed.test").await;
    let gate = Gate::closed();
    receiver.reply(Reply::status(500).gated_by(&gate));
    let deliverer = hooks.deliverer();
    let id = hooks.enqueue(monitor).await;
    let behind = hooks.enqueue(monitor).await;
    receiver.wait_for_in_flight(1).await;
    let mut tx = farescan::db::begin(hooks.pool()).await.unwrap();
    endpoint::close(
        &mut lock(&mut tx, hooks.tenant, monitor).await,
        Timestamp::now(),
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    gate.open();
    hooks.tried(id, 1).await;
    for id in [id, behind] {
        assert_eq!(
            hooks.detail(id).await.delivery.reason,
            Some(DeliveryReason::EndpointClosed)
        );
        let refused = hooks.resend(id).await.unwrap_err();
        assert!(
            matches!(refused, CommandError::InvalidState(_)),
            "{refused}"
        );
    }
    assert_eq!(hooks.endpoint(monitor).await, None);
    assert_eq!(
        hooks
            .count("select count(*) from key_grants where purpose = 'webhook'")
            .await,
        0
    );
    assert_eq!(receiver.count(), 1);
    let mut tx = farescan::db::begin(hooks.pool()).await.unwrap();
    endpoint::close(
        &mut lock(&mut tx, hooks.tenant, monitor).await,
        Timestamp::now(),
    )
    .await
    .unwrap();
    let missing = endpoint::enable(&mut lock(&mut tx, hooks.tenant, monitor).await.endpoint())
        .await
        .unwrap_err();
    assert!(matches!(missing, CommandError::NoWebhook));
    deliverer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resend_during_the_last_try_restarts_the_delivery() {
    let hooks = WebhookTest::open().await;
    let (receiver, monitor) = hooks.receiver("last.test").await;
    let gate = Gate::closed();
    receiver.reply(Reply::status(500));
    let deliverer = hooks.deliverer();
    let id = hooks.enqueue(monitor).await;
    for number in 1..=7 {
        hooks.tried(id, number).await;
        if number == 7 {
            receiver.reply(Reply::status(500).gated_by(&gate));
        }
        hooks.due_now(id).await;
    }
    receiver
        .wait_for("the last try is in flight", |calls| calls.len() == 8)
        .await;
    hooks.resend(id).await.unwrap();
    gate.open();
    let seen = hooks.tried(id, 8).await;
    assert_eq!(seen.delivery.status, DeliveryStatus::Pending);
    receiver.reply(Reply::status(200));
    hooks.due_now(id).await;
    assert_eq!(
        hooks.ended(id).await.delivery.status,
        DeliveryStatus::Delivered
    );
    deliverer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_and_deliveries_are_deleted_with_the_monitor() {
    let hooks = WebhookTest::open().await;
    let (receiver, monitor) = hooks.receiver("deleted.test").await;
    receiver.reply(Reply::status(500));
    let deliverer = hooks.deliverer();
    let id = hooks.enqueue(monitor).await;
    hooks.tried(id, 1).await;
    let monitors = "delete from monitors where monitor_id = $1";
    execute!(hooks.pool(), monitors, monitor.uuid());
    for table in [
        "webhook_endpoints",
        "deliveries",
        "delivery_tries",
        "key_grants where purpose = 'webhook'",
    ] {
        let count =
            sqlx::query_scalar(sqlx::AssertSqlSafe(format!("select count(*) from {table}")));
        let count: i64 = count.fetch_one(hooks.pool()).await.unwrap();
        assert_eq!(count, 0, "{table}");
    }
    deliverer.stop().await;
}
