//! The ledger before the first byte.

use farescan::ids::AttemptId;
use farescan::queue::hold::{Cause, hold_scan};
use farescan::queue::store::{self, Verdict};
use jiff::Timestamp;

use super::yard::{Yard, degraded, ok, rejected, scan_of};

#[tokio::test]
async fn a_call_is_on_record_with_its_place_before_it_is_sent() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(3).max_requests(3)).await;
    let calls = yard.call(worker, 2).await;
    assert_eq!(yard.attempt(calls[0]).await, "1 open");
    let seen = yard.scan(scan).await;
    assert_eq!((seen.status.as_str(), seen.requests_spent), ("running", 2));
    assert_eq!(
        yard.states(scan).await,
        [("calling".to_owned(), 2), ("pending".to_owned(), 1)].into()
    );
}

#[tokio::test]
async fn asked_again_because_the_answer_was_lost_it_is_begun_once() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(1)).await;
    let claim = yard.claim(worker, 1).await[0].claim;
    let asked = [(claim, AttemptId::new())];
    for _ in 0..2 {
        assert_eq!(
            store::begin(&yard.pool, &asked, Timestamp::now())
                .await
                .unwrap(),
            [Verdict::Begun]
        );
    }
    assert_eq!(yard.scan(scan).await.requests_spent, 1);
    let another = [(claim, AttemptId::new())];
    assert_eq!(
        store::begin(&yard.pool, &another, Timestamp::now())
            .await
            .unwrap(),
        [Verdict::Gone]
    );
}

#[tokio::test]
async fn two_claims_of_one_item_in_one_batch_make_one_call() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(20).max_requests(20)).await;
    let first = yard.claim(worker, 20).await;
    // The caller pauses and resumes while the first claims still wait to be put on record.
    yard.run("update scan_items set state = 'held', worker_id = null")
        .await;
    yard.run(
        "update scan_items set state = 'pending', turn = (select virtual_time from lanes) + position;
         update lanes set next_at = clock_timestamp()",
    )
    .await;
    let second = yard.claim(worker, 20).await;
    let both: Vec<_> = first.iter().chain(&second).cloned().collect();
    let verdicts = yard.begin(&both).await;
    assert_eq!(verdicts[..20], [Verdict::Gone; 20]);
    assert_eq!(verdicts[20..], [Verdict::Begun; 20]);
    let on_record: Vec<i32> = sqlx::query_scalar("select distinct number from attempts")
        .fetch_all(&yard.pool)
        .await
        .unwrap();
    assert_eq!(on_record, [2], "the older claims are not on record");
    assert_eq!(yard.scan(scan).await.requests_spent, 20);
}

#[tokio::test]
async fn a_probe_of_an_open_circuit_is_one_claim_of_one_item() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    yard.submit(scan_of(2)).await;
    let first = yard.claim(worker, 2).await;
    yard.run("update scan_items set state = 'held', worker_id = null")
        .await;
    yard.run(
        "update scan_items set state = 'pending', turn = (select virtual_time from lanes) + position;
         update lanes set next_at = clock_timestamp()",
    )
    .await;
    let second = yard.claim(worker, 2).await;
    yard.run("update circuits set opened_at = now(), probe_at = now() - interval '1 s'")
        .await;
    let both: Vec<_> = first.iter().chain(&second).cloned().collect();
    let verdicts = yard.begin(&both).await;
    let count = |wanted| {
        verdicts
            .iter()
            .filter(|verdict| **verdict == wanted)
            .count()
    };
    assert_eq!(
        (
            count(Verdict::Begun),
            count(Verdict::Stopped),
            count(Verdict::Gone)
        ),
        (1, 1, 2),
        "{verdicts:?}"
    );
}

#[tokio::test]
async fn one_claim_with_two_attempt_ids_makes_one_call() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(1)).await;
    let claim = yard.claim(worker, 1).await[0].claim;
    let asked = [(claim, AttemptId::new()), (claim, AttemptId::new())];
    let verdicts = store::begin(&yard.pool, &asked, Timestamp::now())
        .await
        .unwrap();
    assert_eq!(
        verdicts
            .iter()
            .filter(|verdict| **verdict == Verdict::Begun)
            .count(),
        1,
        "{verdicts:?}"
    );
    assert_eq!(yard.scan(scan).await.requests_spent, 1);
}

#[tokio::test]
async fn the_ceiling_holds_and_what_finds_no_room_is_held() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(5).max_requests(3)).await;
    let claims = yard.claim(worker, 4).await;
    let verdicts = yard.begin(&claims).await;
    assert_eq!(
        verdicts
            .iter()
            .filter(|verdict| **verdict == Verdict::Begun)
            .count(),
        3
    );
    assert_eq!(
        verdicts
            .iter()
            .filter(|verdict| **verdict == Verdict::NoRoom)
            .count(),
        1
    );
    assert!(
        hold_scan(&yard.pool, yard.tenant, scan, &Cause::BudgetSpent)
            .await
            .unwrap()
    );
    assert_eq!(
        yard.states(scan).await,
        [("calling".to_owned(), 3), ("held".to_owned(), 2)].into()
    );
    let seen = yard.scan(scan).await;
    assert_eq!(
        (seen.status.as_str(), seen.status_reason.as_deref()),
        ("paused", Some("budget_spent"))
    );
    assert!(
        !hold_scan(&yard.pool, yard.tenant, scan, &Cause::BudgetSpent)
            .await
            .unwrap(),
        "once is enough"
    );
    assert_eq!(yard.claim(worker, 4).await.len(), 0);
}

#[tokio::test]
async fn a_scan_with_room_left_is_not_held_for_its_budget() {
    let yard = Yard::new().await;
    let scan = yard.submit(scan_of(5).max_requests(5)).await;
    assert!(
        !hold_scan(&yard.pool, yard.tenant, scan, &Cause::BudgetSpent)
            .await
            .unwrap()
    );
    assert_eq!(yard.scan(scan).await.status, "queued");
}

#[tokio::test]
async fn a_second_try_takes_a_second_place_or_is_not_made() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(2).max_requests(3)).await;
    let calls = yard.call(worker, 2).await;
    assert!(store::second_place(&yard.pool, calls[0]).await.unwrap());
    assert!(
        !store::second_place(&yard.pool, calls[1]).await.unwrap(),
        "the third request was the last"
    );
    assert_eq!(yard.attempt(calls[0]).await, "2 open");
    assert_eq!(yard.attempt(calls[1]).await, "1 open");
    assert_eq!(yard.scan(scan).await.requests_spent, 3);
}

#[tokio::test]
async fn no_second_try_after_a_cancel_or_after_the_call_was_given_up() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(2)).await;
    let calls = yard.call(worker, 2).await;
    yard.give_up(&calls[..1]).await;
    assert!(!store::second_place(&yard.pool, calls[0]).await.unwrap());
    yard.cancel(scan).await;
    assert!(!store::second_place(&yard.pool, calls[1]).await.unwrap());
    assert_eq!(yard.scan(scan).await.requests_spent, 2);
}

#[tokio::test]
async fn nothing_begins_after_a_cancel() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(3)).await;
    let claims = yard.claim(worker, 2).await;
    yard.cancel(scan).await;
    assert_eq!(yard.begin(&claims).await, [Verdict::Gone, Verdict::Gone]);
    assert_eq!(yard.scan(scan).await.requests_spent, 0);
}

#[tokio::test]
async fn a_lane_that_stopped_since_the_claim_begins_nothing() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(3)).await;
    let call = yard.call(worker, 1).await[0];
    let claims = yard.claim(worker, 2).await;
    yard.record(&[rejected(call)]).await;
    assert_eq!(
        yard.begin(&claims).await,
        [Verdict::Stopped, Verdict::Stopped]
    );
    yard.give_up(
        &claims
            .iter()
            .map(|claimed| claimed.claim)
            .collect::<Vec<_>>(),
    )
    .await;
    assert_eq!(yard.states(scan).await, [("pending".to_owned(), 3)].into());
}

#[tokio::test]
async fn a_dead_worker_begins_nothing() {
    let yard = Yard::new().await;
    let (dead, other) = (yard.worker().await, yard.worker().await);
    yard.submit(scan_of(3)).await;
    let claims = yard.claim(dead, 2).await;
    let theirs = yard.claim(other, 1).await;
    sqlx::query("update workers set dead = true where worker_id = $1")
        .bind(dead.0)
        .execute(&yard.pool)
        .await
        .unwrap();
    assert_eq!(yard.begin(&claims).await, [Verdict::Gone, Verdict::Gone]);
    assert_eq!(yard.begin(&theirs).await, [Verdict::Begun]);
}

#[tokio::test]
async fn a_place_that_was_not_used_is_given_back() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(2)).await;
    let calls = yard.call(worker, 2).await;
    store::second_place(&yard.pool, calls[0]).await.unwrap();
    // One second try was skipped after its place was taken; one call never reached the marketplace.
    yard.record(&[
        ok(calls[0]),
        farescan::queue::store::FinishedCall {
            billed: 0,
            ..degraded(calls[1])
        },
    ])
    .await;
    assert_eq!(yard.scan(scan).await.requests_spent, 1);
    assert_eq!(yard.attempt(calls[0]).await, "1 ok");
    assert_eq!(yard.attempt(calls[1]).await, "0 degraded upstream_timeout");
}
