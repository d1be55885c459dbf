//! `record`: the effects of a finished call on its item, scan and lane.

use farescan::contract::SearchStatus;
use farescan::queue::pause_scan::{PauseCause, pause_scan};
use farescan::queue::store::{CallEnding, CallRecord};

use super::fixture::{QueueFixture, degraded, done, ok, priced, rejected, scan_of};

#[tokio::test]
async fn a_scan_ends_with_its_last_item_and_its_key_is_wiped() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(3)).await;
    let mut listener = sqlx::postgres::PgListener::connect_with(&fixture.pool)
        .await
        .unwrap();
    listener.listen("farescan_scan").await.unwrap();
    let calls = fixture.claim_and_begin(worker, 3).await;
    fixture
        .record(&[priced(calls[0], "120.50"), priced(calls[1], "99.9")])
        .await;
    assert_eq!(fixture.scan(scan).await.status, "running");
    assert!(!fixture.scan(scan).await.wiped);
    fixture.record(&[done(calls[2], SearchStatus::Empty)]).await;
    let seen = fixture.scan(scan).await;
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
        listener.recv().await.unwrap().payload(),
        scan.uuid().to_string()
    );
}

#[tokio::test]
async fn a_scan_with_a_degraded_partial_or_failed_item_is_incomplete() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    for spoil in [
        degraded,
        |claim| done(claim, SearchStatus::Partial),
        |claim| CallRecord {
            ending: CallEnding::Failed,
            search_status: None,
            ..degraded(claim)
        },
    ] {
        let scan = fixture.submit(scan_of(2)).await;
        let calls = fixture.claim_and_begin(worker, 2).await;
        fixture.record(&[ok(calls[0]), spoil(calls[1])]).await;
        let seen = fixture.scan(scan).await;
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
async fn a_call_recorded_twice_is_stored_once() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(2)).await;
    let calls = fixture.claim_and_begin(worker, 1).await;
    assert_eq!(fixture.record(&[ok(calls[0])]).await, 1);
    let after_one = fixture.scan(scan).await;
    assert_eq!(fixture.record(&[degraded(calls[0])]).await, 0);
    assert_eq!(fixture.scan(scan).await, after_one);
    assert_eq!(fixture.attempt(calls[0]).await, "1 ok");
}

#[tokio::test]
async fn a_degraded_item_is_retried_up_to_max_attempts() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(1).max_attempts(3)).await;
    for again in [true, true, false] {
        let call = fixture.claim_and_begin(worker, 1).await[0];
        fixture.record(&[degraded(call)]).await;
        assert_eq!(
            fixture.item(call.item).await,
            if again {
                "delayed"
            } else {
                "done degraded upstream_timeout"
            }
        );
        fixture
            .lane_value("select release_delayed(now(), $1, 'flights', 10)::text")
            .await;
    }
    let seen = fixture.scan(scan).await;
    assert_eq!(
        (seen.status.as_str(), seen.degraded, seen.requests_spent),
        ("incomplete", 1, 3)
    );
}

#[tokio::test]
async fn a_rate_limited_call_is_not_retried() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    fixture.submit(scan_of(1).max_attempts(3)).await;
    let call = fixture.claim_and_begin(worker, 1).await[0];
    fixture
        .record(&[CallRecord {
            may_retry: false,
            pause_reason: Some("rate_limited"),
            pause_seconds: Some(60.0),
            ..degraded(call)
        }])
        .await;
    assert_eq!(
        fixture.item(call.item).await,
        "done degraded upstream_timeout"
    );
    assert_eq!(
        fixture
            .lane_value("select pause_reason from lanes where tenant_id = $1")
            .await
            .as_deref(),
        Some("rate_limited")
    );
    fixture.submit(scan_of(1)).await;
    assert_eq!(fixture.claim(worker, 1).await.len(), 0);
}

#[tokio::test]
async fn a_rejected_key_requeues_its_item() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(2)).await;
    let calls = fixture.claim_and_begin(worker, 2).await;
    fixture
        .record(&[rejected(calls[0]), rejected(calls[1])])
        .await;
    assert_eq!(
        fixture.count_by_state(scan).await,
        [("pending".to_owned(), 2)].into()
    );
    assert_eq!(fixture.attempt(calls[0]).await, "1 degraded key_rejected");
    assert_eq!(fixture.claim(worker, 2).await.len(), 0);
    fixture.execute(
        "update lanes set paused_until = null, pause_reason = null, next_at = clock_timestamp()",
    )
    .await;
    let again = fixture.claim_and_begin(worker, 2).await;
    fixture.record(&[ok(again[0]), ok(again[1])]).await;
    let seen = fixture.scan(scan).await;
    assert_eq!(
        (seen.status.as_str(), seen.ok, seen.requests_spent),
        ("completed", 2, 4)
    );
}

#[tokio::test]
async fn a_cancel_keeps_answers_in_flight_and_drops_retries() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(4).max_attempts(2)).await;
    let calls = fixture.claim_and_begin(worker, 3).await;
    fixture.cancel(scan).await;
    fixture
        .record(&[ok(calls[0]), degraded(calls[1]), rejected(calls[2])])
        .await;
    assert_eq!(
        fixture.count_by_state(scan).await,
        [("cancelled".to_owned(), 3), ("done".to_owned(), 1)].into()
    );
    let seen = fixture.scan(scan).await;
    assert_eq!(
        (seen.status.as_str(), seen.ok, seen.cancelled),
        ("cancelled", 1, 3)
    );
}

#[tokio::test]
async fn a_retry_of_a_paused_scan_is_held() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(2).max_attempts(2)).await;
    let calls = fixture.claim_and_begin(worker, 1).await;
    pause_scan(
        &fixture.pool,
        fixture.tenant,
        scan,
        &PauseCause::KeyUnopened { nonce: vec![1] },
    )
    .await
    .unwrap();
    fixture.record(&[degraded(calls[0])]).await;
    assert_eq!(
        fixture.count_by_state(scan).await,
        [("held".to_owned(), 2)].into()
    );
}

#[tokio::test]
async fn the_best_price_is_recomputed_when_its_item_loses_it() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(3)).await;
    let calls = fixture.claim_and_begin(worker, 2).await;
    fixture
        .record(&[priced(calls[0], "50"), priced(calls[1], "80")])
        .await;
    assert_eq!(fixture.scan(scan).await.best_price.as_deref(), Some("50"));
    // The effect of a caller's retry on an item.
    execute!(&fixture.pool, "update scan_items set state = 'pending', counted_calls = 0, search_status = null, best_price = null,
                               turn = (select virtual_time from lanes) where item_id = $1", calls[0].item.uuid());
    fixture.execute("update scans set ok = ok - 1").await;
    let again: Vec<_> = fixture.claim_and_begin(worker, 2).await;
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
    fixture.record(&[degraded(same), ok(other)]).await;
    assert_eq!(fixture.scan(scan).await.best_price.as_deref(), Some("80"));
}
