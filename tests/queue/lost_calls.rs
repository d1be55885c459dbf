//! Calls whose worker died, and answers that arrive afterwards.

use farescan::queue::store::{self, CallRecord};

use super::fixture::{QueueFixture, degraded, ok, priced, scan_of};

#[tokio::test]
async fn abandoning_requeues_a_claim_and_loses_a_call() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(2)).await;
    let calling = fixture.claim_and_begin(worker, 1).await[0];
    let claimed = fixture.claim(worker, 1).await[0].claim;
    assert_eq!(fixture.abandon(&[calling, claimed]).await, 1);
    assert_eq!(
        fixture.item(calling.item).await,
        "done degraded worker_lost"
    );
    assert_eq!(fixture.attempt(calling).await, "1 degraded worker_lost");
    assert_eq!(fixture.item(claimed.item).await, "pending");
    let again = fixture.claim_and_begin(worker, 1).await[0];
    assert!(
        again.item == claimed.item && again.number > claimed.number,
        "a claim's number is never used again"
    );
    assert_eq!(
        fixture.abandon(&[calling, claimed]).await,
        0,
        "an old claim touches no newer one"
    );
    fixture.record(&[ok(again)]).await;
    let seen = fixture.scan(scan).await;
    assert_eq!(
        (
            seen.status.as_str(),
            seen.ok,
            seen.degraded,
            seen.requests_spent
        ),
        ("incomplete", 1, 1, 2)
    );
}

#[tokio::test]
async fn a_late_answer_completes_a_lost_item() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(1)).await;
    let call = fixture.claim_and_begin(worker, 1).await[0];
    fixture.abandon(&[call]).await;
    assert_eq!(fixture.scan(scan).await.status, "incomplete");
    assert_eq!(fixture.record(&[priced(call, "75")]).await, 1);
    assert_eq!(fixture.item(call.item).await, "done ok");
    assert_eq!(fixture.attempt(call).await, "1 ok");
    let seen = fixture.scan(scan).await;
    assert_eq!(
        (
            seen.status.as_str(),
            seen.ok,
            seen.degraded,
            seen.best_price.as_deref()
        ),
        ("completed", 1, 0, Some("75"))
    );
    assert_eq!(
        fixture.record(&[degraded(call)]).await,
        0,
        "only a lost call can be late"
    );
}

#[tokio::test]
async fn a_late_answer_cancels_a_retry_that_has_not_begun() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(3).max_attempts(2)).await;
    let calls = fixture.claim_and_begin(worker, 3).await;
    fixture.abandon(&calls).await;
    assert_eq!(
        fixture.count_by_state(scan).await,
        [("delayed".to_owned(), 3)].into()
    );
    fixture.record(&[ok(calls[0])]).await;
    fixture
        .lane_value("select release_delayed(now(), $1, 'flights', 10)::text")
        .await;
    fixture.record(&[ok(calls[1])]).await;
    let claim = fixture.claim(worker, 5).await;
    assert_eq!(claim.len(), 1);
    fixture.record(&[ok(calls[2])]).await;
    assert_eq!(
        fixture.begin(&claim).await,
        [store::BeginVerdict::ClaimLost]
    );
    let seen = fixture.scan(scan).await;
    assert_eq!(
        (seen.status.as_str(), seen.ok, seen.requests_spent),
        ("completed", 3, 3)
    );
}

#[tokio::test]
async fn a_late_answer_does_not_change_an_item_with_a_newer_attempt() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(1).max_attempts(2)).await;
    let first = fixture.claim_and_begin(worker, 1).await[0];
    fixture.abandon(&[first]).await;
    fixture
        .lane_value("select release_delayed(now(), $1, 'flights', 10)::text")
        .await;
    let second = fixture.claim_and_begin(worker, 1).await[0];
    assert_eq!(
        fixture.record(&[priced(first, "10")]).await,
        1,
        "its answer and observation are stored"
    );
    assert_eq!(fixture.item(first.item).await, "calling");
    assert_eq!(fixture.attempt(first).await, "1 ok");
    fixture.record(&[priced(second, "20")]).await;
    let seen = fixture.scan(scan).await;
    assert_eq!(
        (seen.ok, seen.requests_spent, seen.best_price.as_deref()),
        (1, 2, Some("20"))
    );
    assert_eq!(
        fixture
            .record(&[CallRecord {
                billed: 0,
                ..ok(first)
            }])
            .await,
        0
    );
}

#[tokio::test]
async fn a_late_degraded_answer_keeps_the_retry() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    fixture.submit(scan_of(1).max_attempts(2)).await;
    let call = fixture.claim_and_begin(worker, 1).await[0];
    fixture.abandon(&[call]).await;
    fixture.record(&[degraded(call)]).await;
    assert_eq!(fixture.item(call.item).await, "delayed");
    assert_eq!(fixture.attempt(call).await, "1 degraded upstream_timeout");
}

#[tokio::test]
async fn only_a_dead_workers_claims_are_orphaned() {
    let fixture = QueueFixture::new().await;
    let (dead, alive) = (fixture.worker().await, fixture.worker().await);
    fixture.submit(scan_of(4)).await;
    let lost = fixture.claim_and_begin(dead, 2).await;
    fixture.claim_and_begin(alive, 2).await;
    execute!(
        &fixture.pool,
        "update workers set lease_until = clock_timestamp() where worker_id = $1",
        dead.0
    );
    assert_eq!(
        store::orphaned_claims(&fixture.pool, 10, &store::LockedLanes::default())
            .await
            .unwrap(),
        [],
        "an expired lease alone does not orphan a claim"
    );
    let expire = |lease: &'static str| {
        let pool = fixture.pool.clone();
        async move { value!(&pool, "select expire_workers($1::text::interval)", lease, => i64) }
    };
    assert_eq!(
        expire("1 year").await,
        0,
        "the database has not been up for that long"
    );
    assert_eq!(expire("0").await, 1);
    let orphaned_claims = store::orphaned_claims(&fixture.pool, 10, &store::LockedLanes::default())
        .await
        .unwrap();
    assert_eq!(orphaned_claims.len(), 1);
    let mut items = orphaned_claims[0].items.clone();
    let mut expected: Vec<_> = lost.iter().map(|claim| claim.item.uuid()).collect();
    items.sort_unstable();
    expected.sort_unstable();
    assert_eq!(items, expected);
}

#[tokio::test]
async fn a_worker_finds_claims_that_it_never_received() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(3)).await;
    let received = fixture.claim(worker, 1).await[0].claim;
    fixture.claim(worker, 2).await; // the worker never receives these claims
    let received = [(received.item.uuid(), received.number)];
    assert_eq!(
        store::leaked_claims(&fixture.pool, worker, &received, 60.0)
            .await
            .unwrap(),
        [],
        "the response may still arrive"
    );
    let leaked_claims = store::leaked_claims(&fixture.pool, worker, &received, 0.0)
        .await
        .unwrap();
    assert_eq!((leaked_claims.len(), leaked_claims[0].items.len()), (1, 2));
    store::abandon(&fixture.pool, &leaked_claims[0], jiff::Timestamp::now())
        .await
        .unwrap();
    assert_eq!(
        fixture.count_by_state(scan).await,
        [("claimed".to_owned(), 1), ("pending".to_owned(), 2)].into()
    );
}

#[tokio::test]
async fn a_retry_of_a_cancelled_scan_never_becomes_pending() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(1).max_attempts(2)).await;
    let call = fixture.claim_and_begin(worker, 1).await[0];
    fixture.cancel(scan).await;
    fixture.abandon(&[call]).await;
    assert_eq!(fixture.item(call.item).await, "cancelled");
    assert_eq!(fixture.scan(scan).await.cancelled, 1);
}
