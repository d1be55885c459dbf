//! Calls on their way into the ledger, in a running worker.

use std::sync::Arc;
use std::time::Duration;

use farescan::config::WorkerConfig;
use farescan::contract::scans::{ItemState, ScanStatus};
use farescan::ids::ScanId;
use farescan::scans::control::{pause, resume};
use farescan::scans::{Desk, submit};
use farescan::search::CallerKey;
use farescan::upstream::Client;
use farescan::worker::WorkerDeps;
use serde_json::{Map, json};
use sqlx::AssertSqlSafe;

use super::stage::{Running, Stage, fares};
use crate::faults::books::Books;
use crate::faults::process::Serve;
use crate::faults::spooled;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;

/// A worker whose claims may wait for half a minute before they are begun.
fn patient_worker(stage: &Stage) -> Running {
    Running::start(WorkerDeps {
        pool: stage.pool().clone(),
        ring: Arc::clone(&stage.ring),
        upstream: Client::new(&stage.upstream.config()).unwrap(),
        config: WorkerConfig {
            lease_seconds: 60,
            worker_concurrency: 64,
            ..WorkerConfig::default()
        },
    })
}

/// How many items of a scan are so.
async fn items_that(stage: &Stage, scan: ScanId, are: &str) -> i64 {
    let sql = format!(
        "select count(*) from scan_items where scan_id = '{}' and {are}",
        scan.uuid()
    );
    sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_one(stage.pool())
        .await
        .unwrap()
}

/// Waits until all items of a scan are so.
async fn until_all(stage: &Stage, scan: ScanId, count: i64, are: &str) {
    for _ in 0..24_000 {
        if items_that(stage, scan, are).await == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("waited in vain until all are {are}");
}

/// Somebody else has the row of the neighbour's scan, so its call waits to begin, and all calls after it. Meanwhile another scan is paused
/// and resumed.
#[tokio::test(flavor = "multi_thread")]
async fn paused_and_resumed_beside_a_blocked_begin_it_calls_once() {
    let stage = Stage::new().await;
    let warmer = patient_worker(&stage);
    let warm = stage.submit(1, &json!({})).await;
    stage.ended(warm).await;
    warmer.stop().await;

    let neighbour = stage.submit(1, &json!({"label": "neighbour"})).await;
    let mut lock = farescan::db::begin(stage.pool()).await.unwrap();
    sqlx::query("select from scans where scan_id = $1 for update")
        .bind(neighbour.uuid())
        .execute(&mut *lock)
        .await
        .unwrap();
    let worker = patient_worker(&stage);
    until_all(&stage, neighbour, 1, "state = 'claimed'").await;
    let scan = stage.submit(20, &json!({})).await;
    until_all(&stage, scan, 20, "state = 'claimed'").await;
    pause::pause(stage.desk(), scan).await.unwrap();
    resume::resume(stage.desk(), scan, &Map::new(), None)
        .await
        .unwrap();
    until_all(&stage, scan, 20, "state = 'claimed' and attempt = 2").await;
    lock.rollback().await.unwrap();

    let seen = stage.ended(scan).await;
    stage.ended(neighbour).await;
    println!(
        "20 items, each with two claims that waited: {} calls",
        stage.upstream.count() - 2
    );
    assert_eq!(
        (seen.status, seen.items.ok, seen.requests.spent),
        (ScanStatus::Completed, 20, 20)
    );
    assert_eq!(stage.upstream.count(), 22, "each item is called once");
    worker.stop().await;
    println!("{}", Books::compare(&stage).await.complete());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_the_database_refuses_stops_no_other_call() {
    let stage = Stage::new().await;
    let refuse = "create function refuse() returns trigger language plpgsql as $$ begin
                      if (select position from scan_items where item_id = new.item_id) = 7 then
                          raise exception 'this row cannot be stored' using errcode = '22023';
                      end if;
                      return new;
                  end $$;
                  create trigger refuse before insert on attempts for each row execute function refuse()";
    sqlx::raw_sql(refuse).execute(stage.pool()).await.unwrap();
    let scan = stage.submit(20, &json!({})).await;
    let worker = stage.worker();
    let seen = stage.ended(scan).await;
    assert_eq!(
        (
            seen.status,
            seen.items.ok,
            seen.items.failed,
            seen.requests.spent
        ),
        (ScanStatus::Incomplete, 19, 1, 19)
    );
    let items = stage.items(scan).await;
    let failed = items
        .iter()
        .find(|item| item.state == ItemState::Failed)
        .unwrap();
    assert_eq!(failed.reason.as_deref(), Some("not_on_record"));
    assert!(
        failed
            .error
            .as_deref()
            .is_some_and(|error| error.contains("this row cannot be stored")),
        "{failed:#?}"
    );
    assert_eq!(stage.upstream.count(), 19, "nothing was sent for it");
    worker.stop().await;
    println!("{}", Books::compare(&stage).await.complete());
}

/// A right that is missing refuses every claim alike.
#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_the_database_itself_fails_no_item() {
    let stage = Stage::new().await;
    let refuse = "create sequence refused;
                  create function refuse() returns trigger language plpgsql as $$ begin
                      perform nextval('refused');
                      raise exception 'permission denied' using errcode = '42501';
                  end $$;
                  create trigger refuse before insert on attempts for each row execute function refuse()";
    sqlx::raw_sql(refuse).execute(stage.pool()).await.unwrap();
    let scan = stage.submit(5, &json!({})).await;
    let worker = stage.worker();
    for _ in 0..6_000 {
        // Each claim was refused by itself, and came again.
        if stage.count("select last_value from refused").await > 20 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(
        items_that(&stage, scan, "state not in ('pending', 'claimed')").await,
        0
    );
    sqlx::raw_sql("drop trigger refuse on attempts")
        .execute(stage.pool())
        .await
        .unwrap();
    let seen = stage.ended(scan).await;
    assert_eq!((seen.items.ok, stage.upstream.count()), (5, 5));
    worker.stop().await;
}

/// The marketplace refuses one call at once and another late, after the caller has mended his key and resumed.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_refusal_of_before_the_resume_stops_nothing() {
    let stage = Stage::new().await;
    let gate = Gate::closed();
    let refusal = Reply::status(401).with_json(json!({"message": "Invalid API key"}));
    let (mut asked, held) = (0, gate.clone());
    stage.upstream.on_any().answer(move |call| {
        asked += 1;
        match asked {
            1 => refusal.clone().held_by(&held),
            2 => refusal.clone(),
            _ => Reply::json(json!([fare(120, &call.body)])),
        }
    });
    let scan = stage.submit(2, &json!({})).await;
    let worker = patient_worker(&stage);
    stage
        .scan_when(scan, "the lane is paused", |scan| {
            scan.status == ScanStatus::Paused
        })
        .await;
    resume::resume(stage.desk(), scan, &Map::new(), None)
        .await
        .unwrap();
    stage
        .scan_when(scan, "the one is asked again", |scan| scan.items.ok == 1)
        .await;
    gate.open();
    let seen = stage.ended(scan).await;
    assert_eq!(
        (seen.status, seen.items.ok, stage.upstream.count()),
        (ScanStatus::Completed, 2, 4)
    );
    worker.stop().await;
}

/// As after the promotion of a standby that had not heard of them.
#[tokio::test(flavor = "multi_thread")]
async fn calls_whose_rows_are_lost_meanwhile_are_not_made_again() {
    let stage = Stage::new().await;
    let gate = Gate::closed();
    stage
        .upstream
        .on_any()
        .reply(Reply::json(json!([fare(120, &json!({}))])).held_by(&gate));
    let scan = stage.submit(10, &json!({})).await;
    let worker = stage.worker();
    stage.upstream.wait_for_in_flight(10).await;
    sqlx::raw_sql(
        "delete from attempts;
         update scan_items set calls = 0, counted_calls = 0, requests_spent = 0, state = 'claimed';
         update scans set requests_spent = 0, status = 'queued', started_at = null",
    )
    .execute(stage.pool())
    .await
    .unwrap();
    gate.open();
    let seen = stage.ended(scan).await;
    assert_eq!(
        (seen.items.ok, seen.requests.spent, stage.upstream.count()),
        (10, 10, 10)
    );
    worker.stop().await;
    println!("{}", Books::compare(&stage).await.complete());
}

/// Two callers' answers come together, and somebody else has the row of the one's scan.
async fn beside_a_locked_scan(stage: &Stage, gate: &Gate) -> i64 {
    let other = CallerKey::new("another-key-0123456789");
    let desk = Desk {
        key: &other,
        ..stage.desk()
    };
    let free = submit::submit(desk, &stage.pace, fares(3).as_object().unwrap(), None)
        .await
        .unwrap()
        .answer
        .id;
    let locked = stage.submit(3, &json!({})).await;
    stage.upstream.wait_for_in_flight(6).await;
    let mut lock = farescan::db::begin(stage.pool()).await.unwrap();
    sqlx::query("select from scans where scan_id = $1 for update")
        .bind(locked.uuid())
        .execute(&mut *lock)
        .await
        .unwrap();
    gate.open();
    until_all(stage, free, 3, "state = 'done'").await;
    let waiting = items_that(stage, locked, "state = 'calling'").await;
    lock.rollback().await.unwrap();
    stage.ended(locked).await;
    waiting
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_stored_keeps_no_other_back() {
    let stage = Stage::new().await;
    let gate = Gate::closed();
    stage
        .upstream
        .on_any()
        .reply(Reply::json(json!([fare(120, &json!({}))])).held_by(&gate));
    let worker = patient_worker(&stage);
    assert_eq!(
        beside_a_locked_scan(&stage, &gate).await,
        3,
        "those of the locked scan wait"
    );
    worker.stop().await;
    println!("{}", Books::compare(&stage).await.complete());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_the_spool_keeps_no_other_back() {
    let stage = Stage::new().await;
    let gate = Gate::closed();
    stage
        .upstream
        .on_any()
        .reply(Reply::json(json!([fare(120, &json!({}))])).held_by(&gate));
    let worker = Serve::worker(&stage, 16, &[("FARESCAN_LEASE_SECONDS", "60")]);
    assert_eq!(
        beside_a_locked_scan(&stage, &gate).await,
        3,
        "those of the locked scan wait"
    );
    spooled::wait_for(&stage, 0).await;
    worker.kill();
    println!("{}", Books::compare(&stage).await.complete());
}
