//! `begin`: each call is recorded before its first byte is sent.

use farescan::ids::AttemptId;
use farescan::queue::pause_scan::{PauseCause, pause_scan};
use farescan::queue::store::{self, BeginVerdict};
use jiff::Timestamp;

use super::fixture::{QueueFixture, degraded, ok, rejected, scan_of};

#[tokio::test]
async fn a_call_is_recorded_and_charged_before_it_is_sent() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(3).max_requests(3)).await;
    let calls = fixture.claim_and_begin(worker, 2).await;
    assert_eq!(fixture.attempt(calls[0]).await, "1 open");
    let seen = fixture.scan(scan).await;
    assert_eq!((seen.status.as_str(), seen.requests_spent), ("running", 2));
    assert_eq!(
        fixture.count_by_state(scan).await,
        [("calling".to_owned(), 2), ("pending".to_owned(), 1)].into()
    );
}

#[tokio::test]
async fn a_repeated_begin_begins_a_call_once() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(1)).await;
    let claim = fixture.claim(worker, 1).await[0].claim;
    let calls = [(claim, AttemptId::new())];
    for _ in 0..2 {
        assert_eq!(
            store::begin(&fixture.pool, &calls, &[], Timestamp::now())
                .await
                .unwrap(),
            [BeginVerdict::Begun]
        );
    }
    assert_eq!(fixture.scan(scan).await.requests_spent, 1);
    let another = [(claim, AttemptId::new())];
    assert_eq!(
        store::begin(&fixture.pool, &another, &[], Timestamp::now())
            .await
            .unwrap(),
        [BeginVerdict::ClaimLost]
    );
}

#[tokio::test]
async fn two_claims_of_an_item_in_one_batch_begin_one_call() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(20).max_requests(20)).await;
    let first = fixture.claim(worker, 20).await;
    // The caller pauses and resumes while the first claims still wait for their begin.
    fixture
        .execute("update scan_items set state = 'held', worker_id = null")
        .await;
    fixture.execute(
        "update scan_items set state = 'pending', turn = (select virtual_time from lanes) + position;
         update lanes set next_at = clock_timestamp()",
    )
    .await;
    let second = fixture.claim(worker, 20).await;
    let both: Vec<_> = first.iter().chain(&second).cloned().collect();
    let verdicts = fixture.begin(&both).await;
    assert_eq!(verdicts[..20], [BeginVerdict::ClaimLost; 20]);
    assert_eq!(verdicts[20..], [BeginVerdict::Begun; 20]);
    let on_record: Vec<i32> = values!(&fixture.pool, "select distinct number from attempts");
    assert_eq!(on_record, [2], "the older claims are not on record");
    assert_eq!(fixture.scan(scan).await.requests_spent, 20);
}

#[tokio::test]
async fn an_open_circuit_lets_one_claim_of_one_item_begin() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    fixture.submit(scan_of(2)).await;
    let first = fixture.claim(worker, 2).await;
    fixture
        .execute("update scan_items set state = 'held', worker_id = null")
        .await;
    fixture.execute(
        "update scan_items set state = 'pending', turn = (select virtual_time from lanes) + position;
         update lanes set next_at = clock_timestamp()",
    )
    .await;
    let second = fixture.claim(worker, 2).await;
    fixture
        .execute("update circuits set opened_at = now(), probe_at = now() - interval '1 s'")
        .await;
    let both: Vec<_> = first.iter().chain(&second).cloned().collect();
    let verdicts = fixture.begin(&both).await;
    let count = |wanted| {
        verdicts
            .iter()
            .filter(|verdict| **verdict == wanted)
            .count()
    };
    assert_eq!(
        (
            count(BeginVerdict::Begun),
            count(BeginVerdict::Stopped),
            count(BeginVerdict::ClaimLost)
        ),
        (1, 1, 2),
        "{verdicts:?}"
    );
}

#[tokio::test]
async fn one_claim_with_two_attempt_ids_begins_one_call() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(1)).await;
    let claim = fixture.claim(worker, 1).await[0].claim;
    let calls = [(claim, AttemptId::new()), (claim, AttemptId::new())];
    let verdicts = store::begin(&fixture.pool, &calls, &[], Timestamp::now())
        .await
        .unwrap();
    assert_eq!(
        verdicts
            .iter()
            .filter(|verdict| **verdict == BeginVerdict::Begun)
            .count(),
        1,
        "{verdicts:?}"
    );
    assert_eq!(fixture.scan(scan).await.requests_spent, 1);
}

#[tokio::test]
async fn max_requests_is_never_exceeded_and_pauses_the_scan() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(5).max_requests(3)).await;
    let claims = fixture.claim(worker, 4).await;
    let verdicts = fixture.begin(&claims).await;
    assert_eq!(
        verdicts
            .iter()
            .filter(|verdict| **verdict == BeginVerdict::Begun)
            .count(),
        3
    );
    assert_eq!(
        verdicts
            .iter()
            .filter(|verdict| **verdict == BeginVerdict::BudgetSpent)
            .count(),
        1
    );
    assert!(
        pause_scan(
            &fixture.pool,
            fixture.tenant,
            scan,
            &PauseCause::BudgetSpent
        )
        .await
        .unwrap()
    );
    assert_eq!(
        fixture.count_by_state(scan).await,
        [("calling".to_owned(), 3), ("held".to_owned(), 2)].into()
    );
    let seen = fixture.scan(scan).await;
    assert_eq!(
        (seen.status.as_str(), seen.status_reason.as_deref()),
        ("paused", Some("budget_spent"))
    );
    assert!(
        !pause_scan(
            &fixture.pool,
            fixture.tenant,
            scan,
            &PauseCause::BudgetSpent
        )
        .await
        .unwrap(),
        "once is enough"
    );
    assert_eq!(fixture.claim(worker, 4).await.len(), 0);
}

#[tokio::test]
async fn a_scan_with_budget_left_is_not_paused_for_it() {
    let fixture = QueueFixture::new().await;
    let scan = fixture.submit(scan_of(5).max_requests(5)).await;
    assert!(
        !pause_scan(
            &fixture.pool,
            fixture.tenant,
            scan,
            &PauseCause::BudgetSpent
        )
        .await
        .unwrap()
    );
    assert_eq!(fixture.scan(scan).await.status, "queued");
}

#[tokio::test]
async fn a_second_try_needs_a_second_request_of_the_budget() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(2).max_requests(3)).await;
    let calls = fixture.claim_and_begin(worker, 2).await;
    assert!(store::reserve_retry(&fixture.pool, calls[0]).await.unwrap());
    assert!(
        !store::reserve_retry(&fixture.pool, calls[1]).await.unwrap(),
        "the third request was the last"
    );
    assert_eq!(fixture.attempt(calls[0]).await, "2 open");
    assert_eq!(fixture.attempt(calls[1]).await, "1 open");
    assert_eq!(fixture.scan(scan).await.requests_spent, 3);
}

#[tokio::test]
async fn no_second_try_after_a_cancel_or_an_abandoned_call() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(2)).await;
    let calls = fixture.claim_and_begin(worker, 2).await;
    fixture.abandon(&calls[..1]).await;
    assert!(!store::reserve_retry(&fixture.pool, calls[0]).await.unwrap());
    fixture.cancel(scan).await;
    assert!(!store::reserve_retry(&fixture.pool, calls[1]).await.unwrap());
    assert_eq!(fixture.scan(scan).await.requests_spent, 2);
}

#[tokio::test]
async fn nothing_begins_after_a_cancel() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(3)).await;
    let claims = fixture.claim(worker, 2).await;
    fixture.cancel(scan).await;
    assert_eq!(
        fixture.begin(&claims).await,
        [BeginVerdict::ClaimLost, BeginVerdict::ClaimLost]
    );
    assert_eq!(fixture.scan(scan).await.requests_spent, 0);
}

#[tokio::test]
async fn a_lane_stopped_after_the_claim_begins_nothing() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(3)).await;
    let call = fixture.claim_and_begin(worker, 1).await[0];
    let claims = fixture.claim(worker, 2).await;
    fixture.record(&[rejected(call)]).await;
    assert_eq!(
        fixture.begin(&claims).await,
        [BeginVerdict::Stopped, BeginVerdict::Stopped]
    );
    fixture
        .abandon(
            &claims
                .iter()
                .map(|claimed| claimed.claim)
                .collect::<Vec<_>>(),
        )
        .await;
    assert_eq!(
        fixture.count_by_state(scan).await,
        [("pending".to_owned(), 3)].into()
    );
}

#[tokio::test]
async fn a_dead_worker_begins_nothing() {
    let fixture = QueueFixture::new().await;
    let (dead, other) = (fixture.worker().await, fixture.worker().await);
    fixture.submit(scan_of(3)).await;
    let claims = fixture.claim(dead, 2).await;
    let theirs = fixture.claim(other, 1).await;
    execute!(
        &fixture.pool,
        "update workers set dead = true where worker_id = $1",
        dead.0
    );
    assert_eq!(
        fixture.begin(&claims).await,
        [BeginVerdict::ClaimLost, BeginVerdict::ClaimLost]
    );
    assert_eq!(fixture.begin(&theirs).await, [BeginVerdict::Begun]);
}

#[tokio::test]
async fn an_unused_request_is_returned_to_the_budget() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(2)).await;
    let calls = fixture.claim_and_begin(worker, 2).await;
    store::reserve_retry(&fixture.pool, calls[0]).await.unwrap();
    // One second try was skipped after its request was reserved; one call never reached the
    // marketplace.
    fixture
        .record(&[
            ok(calls[0]),
            farescan::queue::store::CallRecord {
                billed: 0,
                ..degraded(calls[1])
            },
        ])
        .await;
    assert_eq!(fixture.scan(scan).await.requests_spent, 1);
    assert_eq!(fixture.attempt(calls[0]).await, "1 ok");
    assert_eq!(
        fixture.attempt(calls[1]).await,
        "0 degraded upstream_timeout"
    );
}
