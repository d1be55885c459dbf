//! `begin` and `record` in a running worker, with locked rows and database errors.

use std::sync::Arc;
use std::time::Duration;

use farescan::commands::RequestContext;
use farescan::config::WorkerConfig;
use farescan::contract::scans::{ItemState, ScanStatus};
use farescan::ids::ScanId;
use farescan::scans::control::{pause, resume};
use farescan::scans::submit;
use farescan::search::CallerKey;
use farescan::upstream::Client;
use farescan::worker::WorkerDeps;
use serde_json::{Map, json};
use sqlx::AssertSqlSafe;

use super::fixture::{RunningWorker, WorkerFixture, fares};
use crate::faults::ledger::LedgerCheck;
use crate::faults::process::FarescanProcess;
use crate::faults::spool_files;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;

/// A worker whose lease lets claims wait for half a minute before their begin.
fn start_worker_with_long_lease(fixture: &WorkerFixture) -> RunningWorker {
    RunningWorker::start(WorkerDeps {
        pool: fixture.pool().clone(),
        ring: Arc::clone(&fixture.ring),
        upstream: Client::new(&fixture.upstream.config()).unwrap(),
        config: WorkerConfig {
            lease_seconds: 60,
            worker_concurrency: 64,
            ..WorkerConfig::default()
        },
    })
}

/// How many items of a scan meet an SQL condition.
async fn items_that(fixture: &WorkerFixture, scan: ScanId, are: &str) -> i64 {
    let sql = format!(
        "select count(*) from scan_items where scan_id = '{}' and {are}",
        scan.uuid()
    );
    value!(fixture.pool(), AssertSqlSafe(sql))
}

/// Waits until `count` items of a scan meet an SQL condition.
async fn wait_until_all(fixture: &WorkerFixture, scan: ScanId, count: i64, are: &str) {
    for _ in 0..24_000 {
        if items_that(fixture, scan, are).await == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("timed out waiting until {count} items are {are}");
}

/// Another transaction locks the neighbour's scan row, so its call and all later ones wait to
/// begin. Meanwhile another scan is paused and resumed.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_and_resume_beside_a_blocked_begin_calls_once() {
    let fixture = WorkerFixture::new().await;
    let warmer = start_worker_with_long_lease(&fixture);
    let first = fixture.submit(1, &json!({})).await;
    fixture.wait_until_ended(first).await;
    warmer.stop().await;

    let neighbour = fixture.submit(1, &json!({"label": "neighbour"})).await;
    let mut lock = crate::support::db::begin_holding(fixture.pool()).await;
    execute!(
        &mut *lock,
        "select from scans where scan_id = $1 for update",
        neighbour.uuid()
    );
    let worker = start_worker_with_long_lease(&fixture);
    wait_until_all(&fixture, neighbour, 1, "state = 'claimed'").await;
    let scan = fixture.submit(20, &json!({})).await;
    wait_until_all(&fixture, scan, 20, "state = 'claimed'").await;
    pause::pause(fixture.context(), scan).await.unwrap();
    resume::resume(fixture.context(), scan, &Map::new(), None)
        .await
        .unwrap();
    wait_until_all(&fixture, scan, 20, "state = 'claimed' and attempt = 2").await;
    lock.rollback().await.unwrap();

    let seen = fixture.wait_until_ended(scan).await;
    fixture.wait_until_ended(neighbour).await;
    println!(
        "20 items, each with two claims that waited: {} calls",
        fixture.upstream.count() - 2
    );
    assert_eq!(
        (seen.status, seen.items.ok, seen.requests.spent),
        (ScanStatus::Completed, 20, 20)
    );
    assert_eq!(fixture.upstream.count(), 22, "each item is called once");
    worker.stop().await;
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_the_database_rejects_stops_no_other_call() {
    let fixture = WorkerFixture::new().await;
    let refuse = "create function refuse() returns trigger language plpgsql as $$ begin
                      if (select position from scan_items where item_id = new.item_id) = 7 then
                          raise exception 'this row cannot be stored' using errcode = '22023';
                      end if;
                      return new;
                  end $$;
                  create trigger refuse before insert on attempts for each row execute function refuse()";
    execute!(fixture.pool(), refuse);
    let scan = fixture.submit(20, &json!({})).await;
    let worker = fixture.start_worker();
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!(
        (
            seen.status,
            seen.items.ok,
            seen.items.failed,
            seen.requests.spent
        ),
        (ScanStatus::Incomplete, 19, 1, 19)
    );
    let items = fixture.items(scan).await;
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
    assert_eq!(fixture.upstream.count(), 19, "nothing was sent for it");
    worker.stop().await;
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}

/// A missing privilege rejects every claim alike.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_database_privilege_fails_no_item() {
    let fixture = WorkerFixture::new().await;
    let refuse = "create sequence refused;
                  create function refuse() returns trigger language plpgsql as $$ begin
                      perform nextval('refused');
                      raise exception 'permission denied' using errcode = '42501';
                  end $$;
                  create trigger refuse before insert on attempts for each row execute function refuse()";
    execute!(fixture.pool(), refuse);
    let scan = fixture.submit(5, &json!({})).await;
    let worker = fixture.start_worker();
    for _ in 0..6_000 {
        // Each claim was rejected by itself and claimed again.
        if fixture.count("select last_value from refused").await > 20 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(
        items_that(&fixture, scan, "state not in ('pending', 'claimed')").await,
        0
    );
    execute!(fixture.pool(), "drop trigger refuse on attempts");
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!((seen.items.ok, fixture.upstream.count()), (5, 5));
    worker.stop().await;
}

/// The marketplace rejects one call at once and another late, after the caller has replaced the key
/// and resumed.
#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_from_before_the_resume_does_not_pause_again() {
    let fixture = WorkerFixture::new().await;
    let gate = Gate::closed();
    let refusal = Reply::status(401).with_json(json!({"message": "Invalid API key"}));
    let (mut calls, gate_of_first) = (0, gate.clone());
    fixture.upstream.answer(move |call| {
        calls += 1;
        match calls {
            1 => refusal.clone().gated_by(&gate_of_first),
            2 => refusal.clone(),
            _ => Reply::json(json!([fare(120, &call.body)])),
        }
    });
    let scan = fixture.submit(2, &json!({})).await;
    let worker = start_worker_with_long_lease(&fixture);
    fixture
        .wait_for_scan(scan, "the lane is paused", |scan| {
            scan.status == ScanStatus::Paused
        })
        .await;
    resume::resume(fixture.context(), scan, &Map::new(), None)
        .await
        .unwrap();
    fixture
        .wait_for_scan(scan, "one item is searched again", |scan| {
            scan.items.ok == 1
        })
        .await;
    gate.open();
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!(
        (seen.status, seen.items.ok, fixture.upstream.count()),
        (ScanStatus::Completed, 2, 4)
    );
    worker.stop().await;
}

/// As after the promotion of a standby that had not received the calls' rows.
#[tokio::test(flavor = "multi_thread")]
async fn calls_whose_rows_are_lost_are_not_repeated() {
    let fixture = WorkerFixture::new().await;
    let gate = fixture.upstream.answer_fares_after_gate();
    let scan = fixture.submit(10, &json!({})).await;
    let worker = fixture.start_worker();
    fixture.upstream.wait_for_in_flight(10).await;
    execute!(
        fixture.pool(),
        "delete from attempts;
         update scan_items set calls = 0, counted_calls = 0, requests_spent = 0, state = 'claimed';
         update scans set requests_spent = 0, status = 'queued', started_at = null;
         delete from daily_usage"
    );
    gate.open();
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!(
        (seen.items.ok, seen.requests.spent, fixture.upstream.count()),
        (10, 10, 10)
    );
    worker.stop().await;
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}

/// The failover has lost the decision, too, that chose the searches in flight.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_a_lost_decision_are_not_repeated() {
    let fixture = WorkerFixture::new().await;
    let gate = fixture.upstream.answer_fares_after_gate();
    let question = json!({"strategy": {"find": "cheapest"}});
    let scan = fixture.submit(31, &question).await;
    let worker = fixture.start_worker();
    fixture
        .wait_for_count("select count(*) from scan_decisions", 1)
        .await;
    let chosen = fixture
        .count("select cardinality(searches)::bigint from scan_decisions")
        .await;
    fixture
        .upstream
        .wait_for_in_flight(usize::try_from(chosen).unwrap())
        .await;
    // No decision is made until the answers are stored.
    let mut sweep = crate::support::db::begin_holding(fixture.pool()).await;
    execute!(
        &mut *sweep,
        "select pg_advisory_xact_lock(hashtextextended('farescan.sweep', 0))"
    );
    execute!(
        fixture.pool(),
        "delete from attempts;
         delete from scan_decisions;
         update scan_items set calls = 0, counted_calls = 0, requests_spent = 0, attempt = 0, worker_id = null,
                               state = 'deferred';
         update scan_strategies set deferred = 31, decisions = 0, known = null, percent_a_day = null, is_patient = null,
                                     counted_questions = null, counted_missed = null, implausible = '{}';
         update scans set requests_spent = 0, status = 'queued', started_at = null;
         delete from daily_usage"
    );
    gate.open();
    let stored = "select count(*) from attempts where ended_at is not null";
    fixture.wait_for_count(stored, chosen).await;
    assert_eq!(items_that(&fixture, scan, "state = 'done'").await, chosen);
    sweep.rollback().await.unwrap();
    let seen = fixture.wait_until_ended(scan).await;
    worker.stop().await;
    let calls = fixture.upstream.calls();
    let dates: std::collections::BTreeSet<_> = calls
        .iter()
        .map(|call| call.body["departure_date"].to_string())
        .collect();
    assert_eq!(
        (dates.len(), usize::try_from(seen.requests.spent).unwrap()),
        (calls.len(), calls.len()),
        "no date is bought twice"
    );
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}

/// Ends the calls of two scans while another transaction locks one scan's row. Returns how many
/// calls of that scan are not recorded.
async fn end_calls_beside_a_locked_scan(fixture: &WorkerFixture, gate: &Gate) -> i64 {
    let other = CallerKey::new("another-key-0123456789");
    let context = RequestContext {
        key: &other,
        ..fixture.context()
    };
    let free = submit::submit(context, &fixture.pace, fares(3).as_object().unwrap(), None)
        .await
        .unwrap()
        .response
        .id;
    let locked = fixture.submit(3, &json!({})).await;
    fixture.upstream.wait_for_in_flight(6).await;
    let mut lock = crate::support::db::begin_holding(fixture.pool()).await;
    execute!(
        &mut *lock,
        "select from scans where scan_id = $1 for update",
        locked.uuid()
    );
    gate.open();
    wait_until_all(fixture, free, 3, "state = 'done'").await;
    let waiting = items_that(fixture, locked, "state = 'calling'").await;
    lock.rollback().await.unwrap();
    fixture.wait_until_ended(locked).await;
    waiting
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_stored_delays_no_other() {
    let fixture = WorkerFixture::new().await;
    let gate = fixture.upstream.answer_fares_after_gate();
    let worker = start_worker_with_long_lease(&fixture);
    assert_eq!(
        end_calls_beside_a_locked_scan(&fixture, &gate).await,
        3,
        "the answers of the locked scan wait"
    );
    worker.stop().await;
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spooled_answer_delays_no_other() {
    let fixture = WorkerFixture::new().await;
    let gate = fixture.upstream.answer_fares_after_gate();
    let worker = FarescanProcess::start_worker(&fixture, 16, &[("FARESCAN_LEASE_SECONDS", "60")]);
    assert_eq!(
        end_calls_beside_a_locked_scan(&fixture, &gate).await,
        3,
        "the answers of the locked scan wait"
    );
    spool_files::wait_for(&fixture, 0).await;
    worker.kill();
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}
