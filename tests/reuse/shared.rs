//! Equal searches that are in flight or due at the same time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use farescan::ids::AttemptId;
use farescan::queue::store::{self, BeginVerdict};
use jiff::Timestamp;
use serde_json::json;

use super::{check_sum, reusing, run};
use crate::support::SearchOutcome;
use crate::support::db;
use crate::support::reply::{Gate, Reply};
use crate::support::service::{Rng, TestService, departing_from, fares, fares_with, with};
use crate::support::upstream::fare;

#[tokio::test(flavor = "multi_thread")]
async fn equal_searches_in_flight_are_bought_once() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    service.accept_key().await;
    let before = service.upstream.count();
    let gate = service.upstream.answer_fares_after_gate();
    let first = service.submit(&reusing(3)).await;
    service.upstream.wait_for_in_flight(3).await;
    let second = service.submit(&reusing(3)).await;
    let waiting = "select count(*) from shared_searches where waits";
    service.wait_for_count(waiting, 3).await;
    gate.open();
    let (first, second) = (
        service.wait_until_ended(&first).await,
        service.wait_until_ended(&second).await,
    );
    assert_eq!(service.upstream.count() - before, 3);
    assert_eq!(first["requests"]["spent"], 3);
    assert_eq!(
        second["requests"],
        json!({
            "planned": 3, "spent": 0, "max": null,
            "avoided": {"reused": 0, "joined": 3, "not_needed": 0}
        })
    );
    check_sum(&service, &first).await;
    check_sum(&service, &second).await;
    // What has ended leaves nothing behind.
    service
        .wait_for_count("select count(*) from shared_searches", 0)
        .await;
    worker.stop().await;
    service.check_ledger().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_without_an_age_joins_nothing() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    service.accept_key().await;
    let before = service.upstream.count();
    let gate = service.upstream.answer_fares_after_gate();
    service.submit(&reusing(2)).await;
    service.upstream.wait_for_in_flight(2).await;
    service.submit(&fares(2)).await;
    service.upstream.wait_for_in_flight(4).await;
    gate.open();
    worker.stop().await;
    assert_eq!(service.upstream.count() - before, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waited_for_a_search_that_did_not_complete_searches_itself() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    service.accept_key().await;
    let gate = Gate::closed();
    service.upstream.replies([
        Reply::search_incomplete("upstream_timeout").gated_by(&gate),
        Reply::json(json!([fare(120, &json!({}))])),
    ]);
    let first = service.submit(&reusing(1)).await;
    service.upstream.wait_for_in_flight(1).await;
    let second = service.submit(&reusing(1)).await;
    let waiting = "select count(*) from shared_searches where waits";
    service.wait_for_count(waiting, 1).await;
    gate.open();
    let (first, second) = (
        service.wait_until_ended(&first).await,
        service.wait_until_ended(&second).await,
    );
    assert_eq!(first["items"]["degraded"], 1);
    assert_eq!(
        (&second["items"]["ok"], &second["requests"]["spent"]),
        (&json!(1), &json!(1))
    );
    worker.stop().await;
    service.check_ledger().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_process_that_died() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let first = service.submit(&reusing(1)).await;
    // This worker never completes its call.
    let claimed = service.claim().await;
    service.begin(&claimed[0]).await;
    let second = service.submit(&reusing(1)).await;
    let worker = service.start_worker(8);
    let waiting = "select count(*) from shared_searches where waits";
    service.wait_for_count(waiting, 1).await;
    sqlx::query(
        "update workers set lease_until = now() - interval '1 minute' where worker_id = $1",
    )
    .bind(claimed[0].claim.worker.0)
    .execute(service.pool())
    .await
    .unwrap();
    let lost = service.wait_until_ended(&first).await;
    assert_eq!(lost["items"]["degraded"], 1);
    let second = service.wait_until_ended(&second).await;
    assert_eq!(
        (&second["items"]["ok"], &second["requests"]["spent"]),
        (&json!(1), &json!(1))
    );
    worker.stop().await;
}

/// Overlapping scans of two processes, with answers that arrive in any order and fail now and then.
#[tokio::test(flavor = "multi_thread")]
async fn overlapping_scans_of_two_processes_buy_each_complete_answer_once() {
    let service = TestService::start().await;
    let workers = [service.start_worker(6), service.start_worker(6)];
    service.accept_key().await;
    let mut rng = Rng(7);
    service.upstream.answer(move |call| {
        let degraded = rng.below(8) == 0;
        let delay = std::time::Duration::from_millis(rng.below(30));
        if degraded {
            Reply::search_incomplete("upstream_timeout").delay(delay)
        } else {
            Reply::json(json!([fare(100 + rng.below(50), &call.body)])).delay(delay)
        }
    });
    let body = |dates| {
        let retry =
            json!({"max_age_seconds": 3600, "retry": {"max_attempts": 10, "delay_seconds": 0}});
        departing_from("ZZA", fares_with(dates, &retry))
    };
    let mut scans = Vec::new();
    for dates in [12, 20, 8, 20, 16, 20] {
        scans.push(service.submit(&body(dates)).await);
    }
    let mut spent = 0;
    for id in &scans {
        let scan = service.wait_until_ended(id).await;
        assert_eq!(scan["status"], "completed", "{scan:#}");
        check_sum(&service, &scan).await;
        spent += scan["requests"]["spent"].as_u64().unwrap();
    }
    for worker in workers {
        worker.stop().await;
    }
    assert_eq!(service.call_count("ZZA"), usize::try_from(spent).unwrap());
    let complete = sqlx::query_as::<_, (String, i64)>(
        "select i.first_date::text, count(*) from attempts a join scan_items i on i.item_id = a.item_id
         where a.search_status = 'ok' and i.body ->> 'from_airport' = 'ZZA' group by 1",
    )
    .fetch_all(service.pool())
    .await
    .unwrap()
    .into_iter()
    .collect::<BTreeMap<_, _>>();
    assert_eq!(complete.len(), 20);
    assert!(complete.values().all(|count| *count == 1), "{complete:?}");
    service.check_ledger().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_scan_leaves_nothing_waiting() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    service.accept_key().await;
    let gate = service.upstream.answer_fares_after_gate();
    let first = service.submit(&reusing(2)).await;
    service.upstream.wait_for_in_flight(2).await;
    let second = service.submit(&reusing(2)).await;
    service
        .wait_for_count("select count(*) from shared_searches where waits", 2)
        .await;
    service.command(&second, "cancel", &json!({})).await;
    let cancelled = service.wait_until_ended(&second).await;
    assert_eq!(cancelled["items"]["cancelled"], 2);
    gate.open();
    let first = service.wait_until_ended(&first).await;
    assert_eq!(first["items"]["ok"], 2);
    // A later scan has the answers.
    let third = run(&service, &reusing(2)).await;
    assert_eq!(third["requests"]["avoided"]["reused"], 2);
    worker.stop().await;
}

/// The longest that a search waits for one that is not made or not handed over. Without a sweep it
/// would be a minute. On a busy machine the scan itself takes longer: it is compared with another one.
const PROMPT: Duration = Duration::from_secs(5);

/// How long a scan of one search that waits for nothing takes here and now.
async fn usual_time(service: &TestService) -> Duration {
    let worker = service.start_worker(8);
    let started = Instant::now();
    let alone = service.submit(&departing_from("ZZA", reusing(1))).await;
    service.wait_until_ended(&alone).await;
    let took = started.elapsed();
    worker.stop().await;
    took
}

/// The first scan has room for two searches. The second waits for none of the others.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_search_that_is_not_made() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let usual = usual_time(&service).await;
    let limited = service
        .submit(&fares_with(
            6,
            &json!({"max_age_seconds": 600, "max_requests": 2}),
        ))
        .await;
    let second = service
        .submit(&fares_with(6, &json!({"max_age_seconds": 600})))
        .await;
    let started = Instant::now();
    let worker = service.start_worker(16);
    let second = service.wait_until_ended(&second).await;
    let took = started.elapsed();
    worker.stop().await;
    assert!(
        took < PROMPT + 6 * usual,
        "the second scan took {took:?}, another one {usual:?}"
    );
    println!("the second scan took {took:?}, another one {usual:?}");
    check_sum(&service, &second).await;
    let limited = service.scan(&limited).await;
    assert_eq!(
        (&limited["requests"]["spent"], &second["items"]["ok"]),
        (&json!(2), &json!(6)),
        "{limited:#}"
    );
}

/// The process that made the call died after its record, or a row was locked.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_an_answer_that_is_not_handed_over() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let usual = usual_time(&service).await;
    let first = service.submit(&departing_from("ZZB", reusing(1))).await;
    let claimed = service.claim().await;
    service.begin(&claimed[0]).await;
    let second = service.submit(&departing_from("ZZB", reusing(1))).await;
    let worker = service.start_worker(8);
    let waiting = "select count(*) from shared_searches where waits";
    service.wait_for_count(waiting, 1).await;
    service
        .finish(&claimed[0], SearchOutcome::Degraded("upstream_timeout"))
        .await;
    let started = Instant::now();
    service.wait_until_ended(&first).await;
    let second = service.wait_until_ended(&second).await;
    let took = started.elapsed();
    worker.stop().await;
    assert!(
        took < PROMPT + 6 * usual,
        "the second scan took {took:?}, another one {usual:?}"
    );
    println!("the second scan took {took:?}, another one {usual:?}");
    assert_eq!(second["requests"]["spent"], 1, "{second:#}");
}

/// The age counts from when the locks are held, and no answer is from the future.
#[tokio::test(flavor = "multi_thread")]
async fn the_age_of_an_answer_does_not_begin_before_the_locks() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let scan = service.submit(&departing_from("ZZC", reusing(1))).await;
    let claimed = service.claim().await.remove(0);
    let mut lock = db::begin_holding(service.pool()).await;
    execute!(
        &mut *lock,
        "select from scan_items where item_id = $1 for update",
        claimed.claim.item.uuid()
    );
    let (pool, claim) = (service.pool().clone(), claimed.claim);
    let beginning = tokio::spawn(async move {
        let sharing = [claim.item.uuid()];
        let attempt = AttemptId::new();
        store::begin(&pool, &[(claim, attempt)], &sharing, Timestamp::now()).await
    });
    let blocked = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    service.wait_for_count(blocked, 1).await;
    // Another process has bought the answer meanwhile.
    let worker = service.start_worker(8);
    let bought = service.submit(&departing_from("ZZC", fares(1))).await;
    service.wait_until_ended(&bought).await;
    worker.stop().await;
    lock.rollback().await.unwrap();
    assert_eq!(beginning.await.unwrap().unwrap(), [BeginVerdict::Shared]);
    let age: f64 = value!(
        service.pool(),
        "select extract(epoch from reused_at - observed_at)::float8 from scan_items where reused_at is not null"
    );
    assert!(age >= 0.0, "the answer is {age} s old");
    assert_eq!(service.wait_until_ended(&scan).await["items"]["ok"], 1);
}

/// Only searches that may still be waited for have a row.
#[tokio::test(flavor = "multi_thread")]
async fn ended_and_retried_items_leave_nothing_behind() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let rows = "select count(*) from shared_searches";
    let scan = service.submit(&reusing(3)).await;
    assert_eq!(service.count(rows).await, 3);
    service.command(&scan, "cancel", &json!({})).await;
    assert_eq!(service.count(rows).await, 0, "a cancelled scan");
    let question = with(reusing(3), &json!({"strategy": {"find": "cheapest"}}));
    let question = service.submit(&question).await;
    service.command(&question, "cancel", &json!({})).await;
    assert_eq!(service.count(rows).await, 0, "a cancelled question");
    let scan = service.submit(&reusing(1)).await;
    // Its process dies before it has settled what it recorded.
    service
        .complete_all(|_| SearchOutcome::Degraded("upstream_timeout"))
        .await;
    let degraded = json!({"search_status": ["degraded"]});
    service.command(&scan, "retry", &degraded).await;
    assert_eq!(service.count(rows).await, 0, "a retry");
}
