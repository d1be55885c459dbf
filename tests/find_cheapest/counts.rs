//! How often a question would have been missed is counted once for each scan of everything
//! (scans.md, rules 50 to 52).

use farescan::scans::question::DueWork;
use serde_json::json;
use sqlx::PgPool;

use super::{
    assert_shows, finding, history_passes, ladder, make_older, risk, run, sell, with_calendar,
};
use crate::support::service::{TestService, fares};
use crate::support::steps::do_due;
use crate::support::wait_until;

/// Questions and misses of a setting with patience, by what was known.
async fn counted(pool: &PgPool, known: &str, percent: i16) -> Option<(i32, i32)> {
    let rows: Vec<(i32, i32)> = rows!(
        pool,
        "select questions, missed from question_counts where known = $1 and percent_a_day = $2 and is_patient",
        known,
        percent
    );
    rows.first().copied()
}

async fn scan_all(service: &TestService, dates: usize) {
    let worker = service.start_worker(8);
    let id = service.submit(&fares(dates)).await;
    service.wait_until_ended(&id).await;
    worker.stop().await;
}

/// Counts until so many scans are left.
async fn count_until_left(service: &TestService, left: i64) {
    wait_until("the other scans are counted", async || {
        do_due(service.pool(), DueWork::Replays).await.unwrap();
        service.count("select count(*) from due_replays").await == left
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_scan_of_everything_is_counted_once_with_what_was_known_before() {
    let mut prices = ladder(30);
    let service = with_calendar(&prices, 0).await;
    count_until_left(&service, 0).await;
    history_passes(service.pool(), 7).await;
    // Only a setting of 10 % a day lets this date be the cheapest.
    prices[2] = Some(45);
    sell(&service, prices);
    scan_all(&service, 30).await;
    scan_all(&service, 9).await;
    let at_once = (0..4).map(|_| do_due(service.pool(), DueWork::Replays));
    let all = futures::future::join_all(at_once).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    count_until_left(&service, 0).await;
    let pool = service.pool();
    assert_eq!(counted(pool, "little", 6).await, Some((1, 0)), "the first");
    assert_eq!(counted(pool, "7_days", 6).await, Some((1, 1)));
    let questions = "select max(questions)::bigint from question_counts";
    assert_eq!(
        service.count(questions).await,
        1,
        "nine items are no question"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_callers_own_count_is_declared_once_it_is_of_thirty_questions() {
    let service = with_calendar(&ladder(40), 3).await;
    for (questions, expected) in [
        (29, json!({"questions": 1188, "missed": 39})),
        (40, json!({"questions": 40, "missed": 1})),
    ] {
        execute!(
            service.pool(),
            "insert into question_counts select tenant_id, 'flights', '3_days', 4, true, $1, 1 from tenants
             on conflict (tenant_id, api, known, percent_a_day, is_patient) do update set questions = excluded.questions",
            questions
        );
        make_older(service.pool(), 3).await;
        let scan = run(&service, &finding(40)).await;
        assert_shows(&scan["strategy"], &json!({ "counted": expected }));
        let share = expected["missed"].as_f64().unwrap() / expected["questions"].as_f64().unwrap();
        assert!((risk(&scan) - share).abs() < 1e-4, "{scan:#}");
    }
}

/// A scan that fails to be played does not stop the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_scan_that_cannot_be_counted_now_does_not_stop_the_others() {
    let service = with_calendar(&ladder(12), 0).await;
    scan_all(&service, 12).await;
    let mut lock = crate::support::db::begin_holding(service.pool()).await;
    execute!(
        &mut *lock,
        "select from due_replays order by tenant_id, scan_id limit 1 for update"
    );
    count_until_left(&service, 1).await;
    lock.rollback().await.unwrap();
    count_until_left(&service, 0).await;
}
