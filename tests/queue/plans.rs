//! What a move reads does not grow with what is in flight, on a database that was never analysed as on one that was. Counted in pages.

use std::fmt::Write as _;
use std::time::Duration;

use farescan::ids::AttemptId;
use farescan::queue::WorkerId;
use farescan::queue::store::Claimed;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::yard::{Yard, ok, scan_of};
use crate::support::PATIENCE;

/// Calls of one move.
const BATCH: usize = 100;
/// Calls in flight beside it.
const IN_FLIGHT: i32 = 5_000;
/// Pages that one call may touch: its rows in six tables and their indexes, and what is written.
const PAGES_OF_A_CALL: i64 = 120;

/// Pages that a statement touches, in all statements of its functions.
async fn pages(connection: &mut PgConnection, sql: &str) -> i64 {
    let explain = format!("explain (analyze, buffers, format json) {sql}");
    let plan: Value = sqlx::query_scalar(AssertSqlSafe(explain))
        .fetch_one(connection)
        .await
        .unwrap();
    let plan = &plan[0]["Plan"];
    plan["Shared Hit Blocks"].as_i64().unwrap() + plan["Shared Read Blocks"].as_i64().unwrap()
}

fn begin_sql(claims: &[Claimed]) -> String {
    let list =
        |of: &dyn Fn(&Claimed) -> String| claims.iter().map(of).collect::<Vec<_>>().join(",");
    format!(
        "select * from begin_within_circuits(now(), '{{{}}}', '{{{}}}', '{{{}}}', '{{{}}}', '{{{}}}')",
        list(&|one| one.claim.worker.0.to_string()),
        list(&|one| one.claim.tenant.uuid().to_string()),
        list(&|one| one.claim.item.uuid().to_string()),
        list(&|one| one.claim.number.to_string()),
        list(&|_| AttemptId::new().uuid().to_string()),
    )
}

fn record_sql(claims: &[Claimed]) -> String {
    let calls: Vec<_> = claims.iter().map(|one| ok(one.claim)).collect();
    format!("select * from record_calls(now(), '{}')", json!(calls))
}

/// Has so many more calls in flight.
async fn fly(yard: &Yard, worker: WorkerId, calls: i32) {
    let scan = yard.submit(scan_of(calls)).await;
    let mut sql = String::new();
    write!(
        sql,
        "update scan_items set state = 'calling', attempt = 1, calls = 1, counted_calls = 1, requests_spent = 1, worker_id = {0},
                               claimed_at = now() where scan_id = '{1}';
         update scans set status = 'running', requests_spent = {2} where scan_id = '{1}';
         insert into attempts (tenant_id, item_id, number, attempt_id, scan_id, worker_id, started_at)
         select tenant_id, item_id, 1, gen_random_uuid(), scan_id, worker_id, now() from scan_items where scan_id = '{1}'",
        worker.0,
        scan.uuid(),
        calls
    )
    .unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(&yard.pool)
        .await
        .unwrap();
}

/// Pages of a begin of 100, and of their record, on a connection that has done both once: the first time it reads the catalogue too.
async fn measured(yard: &Yard, worker: WorkerId, connection: &mut PgConnection) -> (i64, i64) {
    let mut seen = (0, 0);
    for _ in 0..2 {
        yard.submit(scan_of(i32::try_from(BATCH).unwrap())).await;
        let claims = yard.claim(worker, BATCH).await;
        assert_eq!(claims.len(), BATCH);
        seen = (
            pages(connection, &begin_sql(&claims)).await,
            pages(connection, &record_sql(&claims)).await,
        );
        let open: i64 =
            sqlx::query_scalar("select count(*) from scan_items where state = 'claimed' or calls > 0 and state = 'pending'")
                .fetch_one(&mut *connection)
                .await
                .unwrap();
        assert_eq!(open, 0, "all of them began and were recorded");
    }
    seen
}

/// Tables are counted once their sessions have reported what they changed, a second later or so.
async fn until_analysed(yard: &Yard) {
    let counted = "select count(*) from pg_class where relname = 'scan_items' and reltuples >= $1";
    let known = async {
        loop {
            yard.run("select analyse_grown()").await;
            let tables: i64 = sqlx::query_scalar(counted)
                .bind(IN_FLIGHT)
                .fetch_one(&yard.pool)
                .await
                .unwrap();
            if tables == 1 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, known)
        .await
        .expect("the tables are counted");
}

/// A connection that has planned nothing yet: one of the pool may keep a plan of the empty tables.
async fn fresh(yard: &Yard) -> PgConnection {
    PgConnection::connect_with(&yard.pool.connect_options())
        .await
        .unwrap()
}

#[tokio::test]
async fn begin_and_record_read_the_same_whatever_is_in_flight() {
    let yard = Yard::with_lane(60_000.0, 20_000).await;
    let worker = yard.worker().await;
    let mut first = fresh(&yard).await;
    let alone = measured(&yard, worker, &mut first).await;
    fly(&yard, worker, IN_FLIGHT).await;
    let mut second = fresh(&yard).await;
    let beside = measured(&yard, worker, &mut second).await;
    // As the sweep does. Until then the check of a foreign key, whose statement is the database's own, keeps on a connection that was there
    // before to the plan that it made on the empty tables.
    until_analysed(&yard).await;
    let analysed = measured(&yard, worker, &mut first).await;
    println!(
        "pages of a begin and a record of {BATCH}: alone {alone:?}, beside {IN_FLIGHT} in flight {beside:?}, analysed {analysed:?}"
    );
    let most = i64::try_from(BATCH).unwrap() * PAGES_OF_A_CALL;
    for (begin, record) in [beside, analysed] {
        assert!(begin <= most, "a begin reads {begin} pages");
        assert!(record <= most, "a record reads {record} pages");
    }
}
