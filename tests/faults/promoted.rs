//! Failover: a standby is promoted that had not heard of the calls that are in flight, connections lead to what is no primary any more,
//! and the schema is another version's.

use std::fs::File;

use farescan::config::DatabaseConfig;
use farescan::db::{Database, is_away};
use serde_json::json;

use super::books::Books;
use super::process::Serve;
use super::spooled;
use crate::support::db::{PrivatePg, TestDb};
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::worker::stage::Stage;

const CALLS: u16 = 4;

/// Stops the server and starts it as a standby, which is then promoted.
async fn promote(server: &mut PrivatePg, stage: &Stage) {
    server.stop_fast().await;
    let signal = server.data_dir().join("standby.signal");
    File::create(&signal).unwrap();
    server.give(&signal);
    server.restart().await;
    // A connection of before is broken, which its pool finds out when it is asked.
    for _ in 0..600 {
        if let Ok(true) = sqlx::query_scalar("select pg_promote()")
            .fetch_one(stage.pool())
            .await
        {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the standby is not promoted");
}

/// What the standby does not know of calls that had begun just then.
async fn forget_calls(stage: &Stage) {
    sqlx::raw_sql(
        "delete from attempts;
         update scan_items set state = 'pending', attempt = 0, calls = 0, counted_calls = 0, requests_spent = 0, worker_id = null;
         update scans set requests_spent = 0, status = 'queued', started_at = null;
         update lanes set next_at = clock_timestamp(), virtual_time = 0",
    )
    .execute(stage.pool())
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_promotion_it_stores_what_it_holds_before_it_claims() {
    let mut server = PrivatePg::start().await;
    let stage = Stage::on(&server.url()).await;
    let (first, others) = (Gate::closed(), Gate::closed());
    let (mut asked, held) = (0, (first.clone(), others.clone()));
    stage.upstream.on_any().answer(move |call| {
        asked += 1;
        let gate = if asked == 1 { &held.0 } else { &held.1 };
        Reply::json(json!([fare(120, &call.body)])).held_by(gate)
    });
    let service = Serve::worker(&stage, CALLS, &[("FARESCAN_LEASE_SECONDS", "60")]);
    let scan = stage.submit(CALLS.into(), &json!({})).await;
    stage.upstream.wait_for_in_flight(CALLS.into()).await;
    promote(&mut server, &stage).await;
    forget_calls(&stage).await;
    first.open();
    stage
        .scan_when(scan, "the first answer is stored", |scan| {
            scan.items.ok == 1
        })
        .await;
    service.says("a standby was promoted").await;
    others.open();
    let seen = stage.ended(scan).await;
    assert_eq!(
        (seen.items.ok, seen.requests.spent),
        (u32::from(CALLS), u32::from(CALLS))
    );
    assert_eq!(
        stage.upstream.count(),
        usize::from(CALLS),
        "none is called again"
    );
    service.kill();
    println!("{}", Books::compare(&stage).await.complete());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_process_stores_what_a_dead_one_spooled_before_it_claims() {
    let mut server = PrivatePg::start().await;
    let stage = Stage::on(&server.url()).await;
    let gate = Gate::closed();
    stage
        .upstream
        .on_any()
        .reply(Reply::json(json!([fare(120, &json!({}))])).held_by(&gate));
    let service = Serve::worker(&stage, CALLS, &[]);
    let scan = stage.submit(CALLS.into(), &json!({})).await;
    stage.upstream.wait_for_in_flight(CALLS.into()).await;
    server.stop_fast().await;
    gate.open();
    spooled::wait_for(&stage, CALLS.into()).await;
    service.kill();
    server.restart().await;
    forget_calls(&stage).await;
    let heir = Serve::worker(&stage, CALLS, &[]);
    let seen = stage.ended(scan).await;
    assert_eq!(
        (seen.items.ok, seen.requests.spent),
        (u32::from(CALLS), u32::from(CALLS))
    );
    assert_eq!(
        stage.upstream.count(),
        usize::from(CALLS),
        "none is called again"
    );
    heir.kill();
    println!("{}", Books::compare(&stage).await.complete());
}

/// A session that takes no writes any more, as those of a primary that has become a standby.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_takes_no_writes_is_not_used_again() {
    let db = TestDb::new().await;
    let config = DatabaseConfig {
        max_connections: 2,
        ..db.config()
    };
    let database = Database::open(&config).await.unwrap();
    let pool = database.pool();
    sqlx::query("set default_transaction_read_only = on")
        .execute(pool)
        .await
        .unwrap();
    while pool.num_idle() == 0 {
        tokio::task::yield_now().await; // It is on its way back.
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
    assert!(is_away(&refused), "it may be well soon");
    write().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_version_has_dropped_is_not_refused_for_good() {
    let db = TestDb::new().await;
    for sql in [
        "select no_such_function()",
        "select no_such_column from scans",
        "select from no_such_table",
    ] {
        let error = sqlx::query(sql).execute(db.pool()).await.unwrap_err();
        assert!(is_away(&error), "{error}");
    }
    let wrong = sqlx::query("select 1 / 0")
        .execute(db.pool())
        .await
        .unwrap_err();
    assert!(!is_away(&wrong), "{wrong}");
}
