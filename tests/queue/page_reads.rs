//! The pages that `begin` and `record` read do not grow with the calls in flight, on a database
//! that was never analysed or was.

use std::fmt::Write as _;
use std::time::Duration;

use farescan::ids::AttemptId;
use farescan::queue::WorkerId;
use farescan::queue::store::ClaimRow;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::fixture::{QueueFixture, ok, scan_of};
use crate::support::WAIT_LIMIT;

/// Calls in one batch.
const BATCH: usize = 100;
/// Calls in flight besides the batch.
const IN_FLIGHT: i32 = 5_000;
/// Pages that one call may touch: its rows in six tables, their indexes, and the writes.
const PAGES_OF_A_CALL: i64 = 120;

/// Pages that a statement touches, in all statements of its functions.
async fn pages(connection: &mut PgConnection, sql: &str) -> i64 {
    let explain = format!("explain (analyze, buffers, format json) {sql}");
    let plan: Value = value!(connection, AssertSqlSafe(explain));
    let plan = &plan[0]["Plan"];
    plan["Shared Hit Blocks"].as_i64().unwrap() + plan["Shared Read Blocks"].as_i64().unwrap()
}

fn begin_sql(claims: &[ClaimRow]) -> String {
    let list =
        |of: &dyn Fn(&ClaimRow) -> String| claims.iter().map(of).collect::<Vec<_>>().join(",");
    format!(
        "select * from begin_calls(now(), '{{{}}}', '{{{}}}', '{{{}}}', '{{{}}}', '{{{}}}', '{{}}')",
        list(&|one| one.claim.worker.0.to_string()),
        list(&|one| one.claim.tenant.uuid().to_string()),
        list(&|one| one.claim.item.uuid().to_string()),
        list(&|one| one.claim.number.to_string()),
        list(&|_| AttemptId::new().uuid().to_string()),
    )
}

/// The two statements that record calls.
fn record_sql(claims: &[ClaimRow]) -> [String; 2] {
    let calls: Vec<_> = claims.iter().map(|one| ok(one.claim)).collect();
    let keys = claims.iter().map(|one| {
        let claim = one.claim;
        format!(
            "('{}'::uuid, '{}'::uuid, {})",
            claim.tenant.uuid(),
            claim.item.uuid(),
            claim.number
        )
    });
    let open = format!(
        "select o.* from (select array_agg(t) as t, array_agg(i) as i, array_agg(n) as n, array_agg(null::uuid) as a
                          from (values {}) as x (t, i, n)) x, open_calls(x.t, x.i, x.n, x.a) o",
        keys.collect::<Vec<_>>().join(",")
    );
    [
        open,
        format!(
            "select record_calls(now(), '{}', '{{}}', false)",
            json!(calls)
        ),
    ]
}

/// Puts `calls` more calls in flight.
async fn add_calls_in_flight(fixture: &QueueFixture, worker: WorkerId, calls: i32) {
    let scan = fixture.submit(scan_of(calls)).await;
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
    execute!(&fixture.pool, AssertSqlSafe(sql));
}

/// Pages of a `begin` of [`BATCH`] calls and of their `record`. It runs both twice: the first run
/// on a connection also reads the catalogue.
async fn measure_pages(
    fixture: &QueueFixture,
    worker: WorkerId,
    connection: &mut PgConnection,
) -> (i64, i64) {
    let mut seen = (0, 0);
    for _ in 0..2 {
        fixture.submit(scan_of(i32::try_from(BATCH).unwrap())).await;
        let claims = fixture.claim(worker, BATCH).await;
        assert_eq!(claims.len(), BATCH);
        let [open, record] = record_sql(&claims);
        seen = (
            pages(connection, &begin_sql(&claims)).await,
            pages(connection, &open).await + pages(connection, &record).await,
        );
        let open: i64 = value!(
            &mut *connection,
            "select count(*) from scan_items where state = 'claimed' or calls > 0 and state = 'pending'"
        );
        assert_eq!(open, 0, "all of them began and were recorded");
    }
    seen
}

/// Analyses the tables. Sessions report their changes about a second later, so it repeats until the
/// statistics are current.
async fn wait_until_analysed(fixture: &QueueFixture) {
    let counted = "select count(*) from pg_class where relname = 'scan_items' and reltuples >= $1";
    let known = async {
        loop {
            fixture.execute("select analyze_grown_tables()").await;
            let tables: i64 = value!(&fixture.pool, counted, IN_FLIGHT);
            if tables == 1 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, known)
        .await
        .expect("the tables are analysed");
}

/// A connection without cached plans: one of the pool may have a plan made for the empty tables.
async fn new_connection(fixture: &QueueFixture) -> PgConnection {
    PgConnection::connect_with(&fixture.pool.connect_options())
        .await
        .unwrap()
}

#[tokio::test]
async fn begin_and_record_costs_do_not_grow_with_calls_in_flight() {
    let fixture = QueueFixture::with_lane(60_000.0, 20_000).await;
    let worker = fixture.worker().await;
    let mut first = new_connection(&fixture).await;
    let alone = measure_pages(&fixture, worker, &mut first).await;
    add_calls_in_flight(&fixture, worker, IN_FLIGHT).await;
    let mut second = new_connection(&fixture).await;
    let beside = measure_pages(&fixture, worker, &mut second).await;
    // The sweep does this too. Until then, an older connection checks foreign keys with a plan made
    // for the empty tables.
    wait_until_analysed(&fixture).await;
    let analysed = measure_pages(&fixture, worker, &mut first).await;
    println!(
        "pages of a begin and a record of {BATCH}: alone {alone:?}, beside {IN_FLIGHT} in flight {beside:?}, analysed {analysed:?}"
    );
    let most = i64::try_from(BATCH).unwrap() * PAGES_OF_A_CALL;
    for (begin, record) in [beside, analysed] {
        assert!(begin <= most, "a begin reads {begin} pages");
        assert!(record <= most, "a record reads {record} pages");
    }
}
