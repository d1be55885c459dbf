//! Failover: a promoted standby lacks the rows of calls in flight, connections lead to a former
//! primary, and the schema is of another version.

use std::fs::File;

use farescan::config::DatabaseConfig;
use farescan::db::{Database, is_unavailable};
use serde_json::json;

use super::ledger::LedgerCheck;
use super::process::FarescanProcess;
use super::spool_files;
use crate::support::db::{PrivatePg, TestDb};
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::worker::fixture::WorkerFixture;

const CALLS: u16 = 4;

/// Restarts the server as a standby and promotes it.
pub(super) async fn promote(server: &mut PrivatePg, fixture: &WorkerFixture) {
    server.stop_fast().await;
    let signal = server.data_dir().join("standby.signal");
    File::create(&signal).unwrap();
    server.chown_to_server(&signal);
    server.restart().await;
    // An old connection of the pool is broken, which its next use detects.
    for _ in 0..600 {
        if let Ok(true) = sqlx::query_scalar("select pg_promote()")
            .fetch_one(fixture.pool())
            .await
        {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the standby is not promoted");
}

/// Deletes the rows of calls that the standby had not received.
pub(super) async fn delete_calls(fixture: &WorkerFixture) {
    execute!(fixture.pool(), "delete from attempts;
         update scan_items set state = 'pending', attempt = 0, calls = 0, counted_calls = 0, requests_spent = 0, worker_id = null;
         update scans set requests_spent = 0, status = 'queued', started_at = null;
         delete from daily_usage;
         update lanes set next_at = clock_timestamp(), virtual_time = 0");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_promotion_answers_are_stored_before_claims() {
    let mut server = PrivatePg::start().await;
    let fixture = WorkerFixture::on(&server.url()).await;
    let (first, others) = (Gate::closed(), Gate::closed());
    let (mut calls, gates) = (0, (first.clone(), others.clone()));
    fixture.upstream.answer(move |call| {
        calls += 1;
        let gate = if calls == 1 { &gates.0 } else { &gates.1 };
        Reply::json(json!([fare(120, &call.body)])).gated_by(gate)
    });
    let service =
        FarescanProcess::start_worker(&fixture, CALLS, &[("FARESCAN_LEASE_SECONDS", "60")]);
    let scan = fixture.submit(CALLS.into(), &json!({})).await;
    fixture.upstream.wait_for_in_flight(CALLS.into()).await;
    promote(&mut server, &fixture).await;
    delete_calls(&fixture).await;
    first.open();
    fixture
        .wait_for_scan(scan, "the first answer is stored", |scan| {
            scan.items.ok == 1
        })
        .await;
    service.wait_for_log("standby promoted").await;
    others.open();
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!(
        (seen.items.ok, seen.requests.spent),
        (u32::from(CALLS), u32::from(CALLS))
    );
    assert_eq!(
        fixture.upstream.count(),
        usize::from(CALLS),
        "none is called again"
    );
    service.kill();
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_process_stores_spooled_answers_before_it_claims() {
    let mut server = PrivatePg::start().await;
    let fixture = WorkerFixture::on(&server.url()).await;
    let gate = fixture.upstream.answer_fares_after_gate();
    let service = FarescanProcess::start_worker(&fixture, CALLS, &[]);
    let scan = fixture.submit(CALLS.into(), &json!({})).await;
    fixture.upstream.wait_for_in_flight(CALLS.into()).await;
    server.stop_fast().await;
    gate.open();
    spool_files::wait_for(&fixture, CALLS.into()).await;
    service.kill();
    server.restart().await;
    delete_calls(&fixture).await;
    let successor = FarescanProcess::start_worker(&fixture, CALLS, &[]);
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!(
        (seen.items.ok, seen.requests.spent),
        (u32::from(CALLS), u32::from(CALLS))
    );
    assert_eq!(
        fixture.upstream.count(),
        usize::from(CALLS),
        "none is called again"
    );
    successor.kill();
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
}

/// A read-only session, like one on a primary that has become a standby.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_connection_is_not_used_again() {
    let db = TestDb::new().await;
    let config = DatabaseConfig {
        max_connections: 2,
        ..db.config()
    };
    let database = Database::open(&config).await.unwrap();
    let pool = database.pool();
    execute!(pool, "set default_transaction_read_only = on");
    while pool.num_idle() == 0 {
        tokio::task::yield_now().await; // The connection is being returned to the pool.
    }
    let write = async || {
        sqlx::query("insert into workers (lease_until) values (now())")
            .execute(pool)
            .await
    };
    let refused = write().await.unwrap_err();
    assert_eq!(
        refused
            .as_database_error()
            .and_then(|error| error.code())
            .as_deref(),
        Some("25006")
    );
    assert!(is_unavailable(&refused), "it may recover soon");
    write().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_table_or_column_is_a_transient_error() {
    let db = TestDb::new().await;
    for sql in [
        "select no_such_function()",
        "select no_such_column from scans",
        "select from no_such_table",
    ] {
        let error = sqlx::query(sql).execute(db.pool()).await.unwrap_err();
        assert!(is_unavailable(&error), "{error}");
    }
    let wrong = sqlx::query("select 1 / 0")
        .execute(db.pool())
        .await
        .unwrap_err();
    assert!(!is_unavailable(&wrong), "{wrong}");
}
