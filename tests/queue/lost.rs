//! Calls whose worker went away, and answers that come all the same.

use farescan::queue::store::{self, FinishedCall};

use super::yard::{Yard, degraded, ok, priced, scan_of};

#[tokio::test]
async fn a_claim_that_was_not_sent_goes_back_and_a_call_is_lost() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(2)).await;
    let calling = yard.call(worker, 1).await[0];
    let claimed = yard.claim(worker, 1).await[0].claim;
    assert_eq!(yard.give_up(&[calling, claimed]).await, 1);
    assert_eq!(yard.item(calling.item).await, "done degraded worker_lost");
    assert_eq!(yard.attempt(calling).await, "1 degraded worker_lost");
    assert_eq!(yard.item(claimed.item).await, "pending");
    let again = yard.call(worker, 1).await[0];
    assert!(
        again.item == claimed.item && again.number > claimed.number,
        "a claim's number is never used again"
    );
    assert_eq!(
        yard.give_up(&[calling, claimed]).await,
        0,
        "an old claim touches no newer one"
    );
    yard.record(&[ok(again)]).await;
    let seen = yard.scan(scan).await;
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
async fn a_late_answer_completes_what_was_lost() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(1)).await;
    let call = yard.call(worker, 1).await[0];
    yard.give_up(&[call]).await;
    assert_eq!(yard.scan(scan).await.status, "incomplete");
    assert_eq!(yard.record(&[priced(call, "75")]).await, 1);
    assert_eq!(yard.item(call.item).await, "done ok");
    assert_eq!(yard.attempt(call).await, "1 ok");
    let seen = yard.scan(scan).await;
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
        yard.record(&[degraded(call)]).await,
        0,
        "only a lost call can be late"
    );
}

#[tokio::test]
async fn a_late_answer_spares_a_retry_that_has_not_begun() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(3).max_attempts(2)).await;
    let calls = yard.call(worker, 3).await;
    yard.give_up(&calls).await;
    assert_eq!(yard.states(scan).await, [("delayed".to_owned(), 3)].into());
    yard.record(&[ok(calls[0])]).await;
    yard.lane("select release_delayed(now(), $1, 'flights', 10)::text")
        .await;
    yard.record(&[ok(calls[1])]).await;
    let claim = yard.claim(worker, 5).await;
    assert_eq!(claim.len(), 1);
    yard.record(&[ok(calls[2])]).await;
    assert_eq!(yard.begin(&claim).await, [store::Verdict::Gone]);
    let seen = yard.scan(scan).await;
    assert_eq!(
        (seen.status.as_str(), seen.ok, seen.requests_spent),
        ("completed", 3, 3)
    );
}

#[tokio::test]
async fn a_late_answer_behind_a_newer_attempt_is_kept_with_its_attempt_alone() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(1).max_attempts(2)).await;
    let first = yard.call(worker, 1).await[0];
    yard.give_up(&[first]).await;
    yard.lane("select release_delayed(now(), $1, 'flights', 10)::text")
        .await;
    let second = yard.call(worker, 1).await[0];
    assert_eq!(
        yard.record(&[priced(first, "10")]).await,
        1,
        "its answer and observation are kept"
    );
    assert_eq!(yard.item(first.item).await, "calling");
    assert_eq!(yard.attempt(first).await, "1 ok");
    yard.record(&[priced(second, "20")]).await;
    let seen = yard.scan(scan).await;
    assert_eq!(
        (seen.ok, seen.requests_spent, seen.best_price.as_deref()),
        (1, 2, Some("20"))
    );
    assert_eq!(
        yard.record(&[FinishedCall {
            billed: 0,
            ..ok(first)
        }])
        .await,
        0
    );
}

#[tokio::test]
async fn a_late_degraded_answer_leaves_the_retry_to_come() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    yard.submit(scan_of(1).max_attempts(2)).await;
    let call = yard.call(worker, 1).await[0];
    yard.give_up(&[call]).await;
    yard.record(&[degraded(call)]).await;
    assert_eq!(yard.item(call.item).await, "delayed");
    assert_eq!(yard.attempt(call).await, "1 degraded upstream_timeout");
}

#[tokio::test]
async fn what_a_dead_worker_held_is_found_and_what_a_live_one_holds_is_not() {
    let yard = Yard::new().await;
    let (dead, alive) = (yard.worker().await, yard.worker().await);
    yard.submit(scan_of(4)).await;
    let lost = yard.call(dead, 2).await;
    yard.call(alive, 2).await;
    sqlx::query("update workers set lease_until = clock_timestamp() where worker_id = $1")
        .bind(dead.0)
        .execute(&yard.pool)
        .await
        .unwrap();
    assert_eq!(
        store::orphans(&yard.pool, 10, &store::BusyLanes::default())
            .await
            .unwrap(),
        [],
        "a lease that has run out is looked at before it is believed"
    );
    let bury = |lease: &'static str| {
        let pool = yard.pool.clone();
        async move {
            sqlx::query_scalar::<_, i64>("select bury_workers($1::text::interval)")
                .bind(lease)
                .fetch_one(&pool)
                .await
                .unwrap()
        }
    };
    assert_eq!(
        bury("1 year").await,
        0,
        "the database itself has not been up for so long"
    );
    assert_eq!(bury("0").await, 1);
    let orphans = store::orphans(&yard.pool, 10, &store::BusyLanes::default())
        .await
        .unwrap();
    assert_eq!(orphans.len(), 1);
    let mut items = orphans[0].items.clone();
    let mut expected: Vec<_> = lost.iter().map(|claim| claim.item.uuid()).collect();
    items.sort_unstable();
    expected.sort_unstable();
    assert_eq!(items, expected);
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_found_by_its_worker() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(3)).await;
    let held = yard.claim(worker, 1).await[0].claim;
    yard.claim(worker, 2).await; // this answer never arrived
    let held = [(held.item.uuid(), held.number)];
    assert_eq!(
        store::strays(&yard.pool, worker, &held, 60.0)
            .await
            .unwrap(),
        [],
        "it may still be on its way"
    );
    let strays = store::strays(&yard.pool, worker, &held, 0.0).await.unwrap();
    assert_eq!((strays.len(), strays[0].items.len()), (1, 2));
    store::give_up(&yard.pool, &strays[0], jiff::Timestamp::now())
        .await
        .unwrap();
    assert_eq!(
        yard.states(scan).await,
        [("claimed".to_owned(), 1), ("pending".to_owned(), 2)].into()
    );
}

#[tokio::test]
async fn a_retry_of_a_cancelled_scan_never_becomes_pending() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(1).max_attempts(2)).await;
    let call = yard.call(worker, 1).await[0];
    yard.cancel(scan).await;
    yard.give_up(&[call]).await;
    assert_eq!(yard.item(call.item).await, "cancelled");
    assert_eq!(yard.scan(scan).await.cancelled, 1);
}
