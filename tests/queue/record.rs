//! What finished calls leave behind.

use farescan::contract::SearchStatus;
use farescan::queue::hold::{Cause, hold_scan};
use farescan::queue::store::{Ending, FinishedCall};

use super::yard::{Yard, degraded, done, ok, priced, rejected, scan_of};

#[tokio::test]
async fn a_scan_ends_with_its_last_item_and_its_key_is_wiped() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(3)).await;
    let mut told = sqlx::postgres::PgListener::connect_with(&yard.pool)
        .await
        .unwrap();
    told.listen("farescan_scan").await.unwrap();
    let calls = yard.call(worker, 3).await;
    yard.record(&[priced(calls[0], "120.50"), priced(calls[1], "99.9")])
        .await;
    assert_eq!(yard.scan(scan).await.status, "running");
    assert!(!yard.scan(scan).await.wiped);
    yard.record(&[done(calls[2], SearchStatus::Empty)]).await;
    let seen = yard.scan(scan).await;
    assert_eq!(
        (
            seen.status.as_str(),
            seen.ok,
            seen.empty,
            seen.finished,
            seen.wiped
        ),
        ("completed", 2, 1, true, true)
    );
    assert_eq!(seen.best_price.as_deref(), Some("99.9"));
    assert_eq!(
        told.recv().await.unwrap().payload(),
        scan.uuid().to_string()
    );
}

#[tokio::test]
async fn a_scan_with_a_degraded_partial_or_failed_item_is_incomplete() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    for spoil in [
        degraded,
        |claim| done(claim, SearchStatus::Partial),
        |claim| FinishedCall {
            ending: Ending::Failed,
            search_status: None,
            ..degraded(claim)
        },
    ] {
        let scan = yard.submit(scan_of(2)).await;
        let calls = yard.call(worker, 2).await;
        yard.record(&[ok(calls[0]), spoil(calls[1])]).await;
        let seen = yard.scan(scan).await;
        assert_eq!(
            (
                seen.status.as_str(),
                seen.ok,
                seen.degraded + seen.partial + seen.failed
            ),
            ("incomplete", 1, 1)
        );
    }
}

#[tokio::test]
async fn recording_twice_stores_once() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(2)).await;
    let calls = yard.call(worker, 1).await;
    assert_eq!(yard.record(&[ok(calls[0])]).await, 1);
    let after_one = yard.scan(scan).await;
    assert_eq!(yard.record(&[degraded(calls[0])]).await, 0);
    assert_eq!(yard.scan(scan).await, after_one);
    assert_eq!(yard.attempt(calls[0]).await, "1 ok");
}

#[tokio::test]
async fn a_degraded_item_is_tried_as_often_as_its_scan_allows() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(1).max_attempts(3)).await;
    for again in [true, true, false] {
        let call = yard.call(worker, 1).await[0];
        yard.record(&[degraded(call)]).await;
        assert_eq!(
            yard.item(call.item).await,
            if again {
                "delayed"
            } else {
                "done degraded upstream_timeout"
            }
        );
        yard.lane("select release_delayed(now(), $1, 'flights', 10)::text")
            .await;
    }
    let seen = yard.scan(scan).await;
    assert_eq!(
        (seen.status.as_str(), seen.degraded, seen.requests_spent),
        ("incomplete", 1, 3)
    );
}

#[tokio::test]
async fn a_rate_limit_or_a_spent_quota_is_not_tried_again() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    yard.submit(scan_of(1).max_attempts(3)).await;
    let call = yard.call(worker, 1).await[0];
    yard.record(&[FinishedCall {
        may_retry: false,
        pause_reason: Some("rate_limited"),
        pause_seconds: Some(60.0),
        ..degraded(call)
    }])
    .await;
    assert_eq!(yard.item(call.item).await, "done degraded upstream_timeout");
    assert_eq!(
        yard.lane("select pause_reason from lanes where tenant_id = $1")
            .await
            .as_deref(),
        Some("rate_limited")
    );
    yard.submit(scan_of(1)).await;
    assert_eq!(yard.claim(worker, 1).await.len(), 0);
}

#[tokio::test]
async fn a_rejected_key_leaves_the_item_as_if_it_had_not_been_asked() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(2)).await;
    let calls = yard.call(worker, 2).await;
    yard.record(&[rejected(calls[0]), rejected(calls[1])]).await;
    assert_eq!(yard.states(scan).await, [("pending".to_owned(), 2)].into());
    assert_eq!(yard.attempt(calls[0]).await, "1 degraded key_rejected");
    assert_eq!(yard.claim(worker, 2).await.len(), 0);
    yard.run(
        "update lanes set paused_until = null, pause_reason = null, next_at = clock_timestamp()",
    )
    .await;
    let again = yard.call(worker, 2).await;
    yard.record(&[ok(again[0]), ok(again[1])]).await;
    let seen = yard.scan(scan).await;
    assert_eq!(
        (seen.status.as_str(), seen.ok, seen.requests_spent),
        ("completed", 2, 4)
    );
}

#[tokio::test]
async fn what_was_calling_at_a_cancel_is_kept_and_what_it_would_retry_is_not() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(4).max_attempts(2)).await;
    let calls = yard.call(worker, 3).await;
    yard.cancel(scan).await;
    yard.record(&[ok(calls[0]), degraded(calls[1]), rejected(calls[2])])
        .await;
    assert_eq!(
        yard.states(scan).await,
        [("cancelled".to_owned(), 3), ("done".to_owned(), 1)].into()
    );
    let seen = yard.scan(scan).await;
    assert_eq!(
        (seen.status.as_str(), seen.ok, seen.cancelled),
        ("cancelled", 1, 3)
    );
}

#[tokio::test]
async fn under_a_pause_a_retry_is_held() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(2).max_attempts(2)).await;
    let calls = yard.call(worker, 1).await;
    hold_scan(
        &yard.pool,
        yard.tenant,
        scan,
        &Cause::KeyUnopened { nonce: vec![1] },
    )
    .await
    .unwrap();
    yard.record(&[degraded(calls[0])]).await;
    assert_eq!(yard.states(scan).await, [("held".to_owned(), 2)].into());
}

#[tokio::test]
async fn the_best_price_goes_when_its_item_loses_it() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(3)).await;
    let calls = yard.call(worker, 2).await;
    yard.record(&[priced(calls[0], "50"), priced(calls[1], "80")])
        .await;
    assert_eq!(yard.scan(scan).await.best_price.as_deref(), Some("50"));
    // What a retry by the caller does to an item.
    sqlx::query(
        "update scan_items set state = 'pending', counted_calls = 0, search_status = null, best_price = null,
                               turn = (select virtual_time from lanes) where item_id = $1",
    )
    .bind(calls[0].item.uuid())
    .execute(&yard.pool)
    .await
    .unwrap();
    yard.run("update scans set ok = ok - 1").await;
    let again: Vec<_> = yard.call(worker, 2).await;
    let same = again
        .iter()
        .find(|claim| claim.item == calls[0].item)
        .copied()
        .unwrap();
    let other = again
        .iter()
        .find(|claim| claim.item != calls[0].item)
        .copied()
        .unwrap();
    yard.record(&[degraded(same), ok(other)]).await;
    assert_eq!(yard.scan(scan).await.best_price.as_deref(), Some("80"));
}
