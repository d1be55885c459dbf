//! Upgrades of a database in use: its functions are replaced beside a running process, never by
//! older ones, and rows of the first version stay.

use farescan::db;
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::PgPool;
use sqlx::migrate::Migrator;

use crate::faults::process::FarescanProcess;
use crate::support::app::{KEY, TestApp};
use crate::support::db::{TestDb, begin_holding};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{TestService, wait_until};
use crate::worker::fixture::{WorkerFixture, fares};

/// The last numbered migration of the first version.
const FIRST_VERSION: i64 = 20_261_124_000_005;

/// The definition of a function that every submit calls.
async fn definition(pool: &PgPool) -> String {
    value!(pool, "select pg_get_functiondef('wake_lane'::regproc)")
}

/// Replaces the function's body by one that notifies no worker, and says that it is of `version`.
async fn replace_function(pool: &PgPool, version: i32) -> String {
    let notify = "perform pg_notify('farescan_lane', '');";
    let ours = definition(pool).await;
    assert!(ours.contains(notify), "{ours}");
    let other = ours.replace(notify, "null; -- of another version");
    execute!(pool, sqlx::AssertSqlSafe(other));
    let mark = "update installation set functions_version = $1, functions_digest = ''";
    assert_eq!(execute!(pool, mark, version), 1);
    definition(pool).await
}

/// Status and text of `/readyz`.
async fn readiness(process: &FarescanProcess) -> (u16, String) {
    let listening = process.wait_for_log("listening").await;
    let url = format!("http://{}/readyz", listening["admin"].as_str().unwrap());
    let answer = crate::support::http_client()
        .get(&url)
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

async fn wait_until_ready(process: &FarescanProcess) {
    let is_ready = async || readiness(process).await.0 == 200;
    wait_until("the process is ready", is_ready).await;
}

async fn submit(process: &FarescanProcess, dates: i64) -> farescan::ids::ScanId {
    let answer = process.post("/v1/scans", &fares(dates)).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    answer.body["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn older_functions_are_replaced_beside_a_running_process() {
    let fixture = WorkerFixture::new().await;
    fixture.upstream.answer(|call| {
        Reply::json(json!([fare(120, &call.body)])).delay(std::time::Duration::from_millis(50))
    });
    let pool = fixture.pool();
    let before = FarescanProcess::start(&fixture, 2);
    let running = submit(&before, 200).await;
    wait_until_ready(&before).await;
    let ours = definition(pool).await;
    assert_ne!(replace_function(pool, 0).await, ours);

    let after = FarescanProcess::start(&fixture, 2);
    wait_until_ready(&after).await;
    assert_eq!(definition(pool).await, ours);
    wait_until_ready(&before).await;
    let submitted = [submit(&before, 5).await, submit(&after, 5).await];
    assert_eq!(fixture.wait_until_ended(running).await.items.ok, 200);
    for scan in submitted {
        assert_eq!(fixture.wait_until_ended(scan).await.items.ok, 5);
    }
    // Each of them also works alone.
    before.signal(Signal::TERM);
    assert!(before.wait_for_exit().await.success());
    let last = submit(&after, 5).await;
    assert_eq!(fixture.wait_until_ended(last).await.items.ok, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_on_older_functions_is_not_ready() {
    let fixture = WorkerFixture::new().await;
    let pool = fixture.pool();
    let ours = definition(pool).await;
    let older = replace_function(pool, 0).await;
    let mut holder = begin_holding(pool).await;
    let lock = "select pg_advisory_xact_lock(hashtextextended('farescan.functions', 0))";
    execute!(&mut *holder, lock);
    let process = FarescanProcess::start(&fixture, 2);
    // Its first try fails: the operator, or a failover, ends the session that waits.
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity
               where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory'";
    wait_until("its session is ended", async || {
        fixture.count(end).await == 1
    })
    .await;
    let (status, text) = readiness(&process).await;
    println!("{status} {text}");
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("not prepared the database yet"), "{text}");
    assert_eq!(definition(pool).await, older);

    holder.rollback().await.unwrap();
    wait_until_ready(&process).await;
    assert_eq!(definition(pool).await, ours);
    process.kill();
}

/// Replacing the functions locks `scan_items` for its trigger and `scans` after it. A process that
/// has locked `scans` and waits for `scan_items` makes a deadlock.
#[tokio::test]
async fn replacing_functions_is_done_again_after_a_deadlock() {
    let db = TestDb::new().await;
    let pool = db.pool();
    let ours = definition(pool).await;
    replace_function(pool, 0).await;
    let mut other = begin_holding(pool).await;
    // The other session waits until Postgres has ended the migration's transaction.
    execute!(&mut *other, "set local deadlock_timeout = '60s'");
    execute!(&mut *other, "set local lock_timeout = '60s'");
    execute!(&mut *other, "set local statement_timeout = '60s'");
    execute!(&mut *other, "lock table scans in row exclusive mode");
    let migration = db::migrate(pool);
    let crossing = async {
        let waits = "select count(*) from pg_locks
                     where database = (select oid from pg_database where datname = current_database())
                       and relation = 'scans'::regclass and not granted";
        wait_until("the migration waits", async || {
            let waiting: i64 = value!(pool, waits);
            waiting == 1
        })
        .await;
        // Granted only once the migration's locks are gone.
        execute!(&mut *other, "lock table scan_items in row exclusive mode");
        let current: String = value!(
            &mut *other,
            "select pg_get_functiondef('wake_lane'::regproc)"
        );
        other.rollback().await.unwrap();
        current
    };
    let (migrated, between) = tokio::join!(migration, crossing);
    assert_ne!(between, ours, "the first try was rolled back");
    migrated.unwrap();
    assert_eq!(definition(pool).await, ours);
}

#[tokio::test]
async fn newer_functions_are_never_replaced() {
    let db = TestDb::new().await;
    let theirs = replace_function(db.pool(), 99).await;
    db::migrate(db.pool()).await.unwrap();
    assert_eq!(definition(db.pool()).await, theirs);
    let version: i32 = value!(db.pool(), "select functions_version from installation");
    assert_eq!(version, 99);
}

/// Rows of the first version: a caller with an ended scan of two items, and a monitor.
const ROWS: &str = r#"
insert into tenants values ('00000000-0000-7000-8000-000000000001', now(), now());
insert into tenant_keys values ('test', '\x02db39f85b35c2afce44b8aa34c52285', '00000000-0000-7000-8000-000000000001', now());
select create_lane('00000000-0000-7000-8000-000000000001', 'flights', 60000, 100);
insert into key_grants values
    ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000002', 'scan', 'test', '', '', now(), now(), now()),
    ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000003', 'monitor', 'test', '', '', now(), now(), now());
insert into scans (tenant_id, scan_id, endpoint, api, request, sweep, label, tags, priority, upstream_limit, max_attempts, retry_delay, status,
                   total, ok, degraded, requests_spent, best_price, best_currency, best_item_id, grant_id, created_at, started_at, finished_at)
values ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000004', 'flights/oneway', 'flights',
        '{"from_airport": "TLV", "to_airport": "LHR"}', '{"departure_date": {"from": "2030-01-01", "to": "2030-01-02"}}', 'old', '{a,b}',
        'interactive', 50, 1, '1 minute', 'incomplete', 2, 1, 1, 2, 198.5, 'USD', '00000000-0000-7000-8000-000000000005',
        '00000000-0000-7000-8000-000000000002', now(), now(), now());
insert into scan_items (tenant_id, item_id, scan_id, api, position, body, first_date, state, turn, attempt, calls, counted_calls,
                        search_status, reason, requests_spent, results, best_price, currency, observed_at, latency_ms)
values ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000005', '00000000-0000-7000-8000-000000000004', 'flights', 1,
        '{"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-01"}', '2030-01-01', 'done', 1, 1, 1, 1,
        'ok', null, 1, 12, 198.5, 'USD', now(), 1610),
       ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000006', '00000000-0000-7000-8000-000000000004', 'flights', 2,
        '{"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-02"}', '2030-01-02', 'done', 2, 1, 1, 1,
        'degraded', 'blocked_page', 1, null, null, null, now(), 1610);
insert into attempts (tenant_id, item_id, number, attempt_id, scan_id, worker_id, started_at, ended_at, http_status, search_status)
values ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000005', 1, gen_random_uuid(),
        '00000000-0000-7000-8000-000000000004', 1, now(), now(), 200, 'ok');
insert into monitors (tenant_id, monitor_id, name, cron, timezone, scan, api, rules, paused, grant_id, created_at, updated_at)
values ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000007', 'a week ahead', '0 6 * * *', 'Europe/London',
        '{"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "+7d"}}', 'flights',
        '[{"type": "price_below", "price": 200}]', true, '00000000-0000-7000-8000-000000000003', now(), now());
"#;

/// A database that the version with this last migration has made, with rows.
pub(super) async fn earlier_version(last: i64) -> TestDb {
    let db = TestDb::empty().await;
    let all = sqlx::migrate!("./migrations");
    let first = all.iter().filter(|one| one.version <= last);
    let first = Migrator::with_migrations(first.cloned().collect());
    first.run(db.pool()).await.unwrap();
    // Its functions had the names of today's. Files that need the newer schema are left out.
    for file in std::fs::read_dir("migrations/functions").unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sql") {
            let text = std::fs::read_to_string(&path).unwrap();
            let functions = format!("set local check_function_bodies = off; {text}");
            let created = sqlx::raw_sql(sqlx::AssertSqlSafe(functions))
                .execute(db.pool())
                .await;
            let code = created
                .as_ref()
                .err()
                .and_then(|error| error.as_database_error()?.code());
            assert!(
                matches!(code.as_deref(), None | Some("42703" | "42704" | "42P01")),
                "{}: {created:?}",
                path.display()
            );
        }
    }
    execute!(db.pool(), ROWS);
    replace_function(db.pool(), 0).await;
    db
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_the_first_version_keeps_its_rows() {
    let db = earlier_version(FIRST_VERSION).await;
    let mut stored = Vec::new();
    for table in [
        "tenants",
        "tenant_keys",
        "key_grants",
        "lanes",
        "scans",
        "scan_items",
        "attempts",
        "monitors",
    ] {
        let rows = format!("select to_jsonb(t) from {table} t");
        let rows: Vec<Value> = values!(db.pool(), sqlx::AssertSqlSafe(rows));
        assert!(!rows.is_empty(), "{table}");
        stored.extend(rows.into_iter().map(|row| (table, row)));
    }
    db::migrate(db.pool()).await.unwrap();
    for (table, row) in &stored {
        let same = format!("select count(*) from {table} t where to_jsonb(t) @> $1");
        let same: i64 = value!(db.pool(), sqlx::AssertSqlSafe(same), row);
        assert_eq!(same, 1, "{table}: {row}");
    }

    let app = TestApp::builder().database(&db).start().await;
    let service = TestService::of(db, app);
    let scan = "scn_00000000000070008000000000000004";
    let shown = service.scan(scan).await;
    assert_eq!(
        (&shown["status"], &shown["items"]["ok"], &shown["label"]),
        (&json!("incomplete"), &json!(1), &json!("old")),
        "{shown}"
    );
    let items = service.items(scan).await;
    let of = |field: &str| {
        items
            .iter()
            .map(|item| item[field].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("search_status"), [json!("ok"), json!("degraded")]);
    let monitors = service.column("/v1/monitors", "name").await;
    assert_eq!(monitors, [json!("a week ahead")]);

    let worker = service.start_worker(2);
    let retried = service
        .app
        .post(
            &format!("/v1/scans/{scan}/retry"),
            &json!({"search_status": ["degraded"]}),
        )
        .await;
    assert_eq!(retried.status, 202, "{}", retried.text());
    let ended = service.wait_until_ended(scan).await;
    assert_eq!(ended["items"]["ok"], 2, "{ended}");
    let new = service.submit(&crate::support::fares(2)).await;
    assert_eq!(service.wait_until_ended(&new).await["items"]["ok"], 2);
    worker.stop().await;
    assert_eq!(
        service.column("/v1/scans", "id").await,
        [json!(new), json!(scan)]
    );
    assert!(
        service
            .app
            .upstream
            .calls()
            .iter()
            .all(|call| call.key == KEY)
    );
}

/// The last numbered migration of the version with a model of prices, and two phases.
const MODEL_VERSION: i64 = 20_261_124_000_023;

/// Its strategies: two phases that have ended, two phases of which one item waits, a question that has
/// ended and one that has not begun, with a view that shows their columns; and monitors.
const STRATEGIES: &str = r#"
create view shown_scans as select s.tenant_id, s.scan_id, t.coarse_step, t.refine, t.pairs from scans s left join scan_strategies t using (tenant_id, scan_id);
insert into scans (tenant_id, scan_id, endpoint, api, request, sweep, label, tags, priority, upstream_limit, max_attempts, retry_delay, status,
                   total, ok, grant_id, created_at, finished_at)
select s.tenant_id, x.id::uuid, s.endpoint, s.api, s.request, s.sweep, x.label, '{}', s.priority, 50, 1, '1 minute', x.status, x.total, x.ok,
       case when x.status = 'queued' then null else s.grant_id end, now(), case when x.status <> 'queued' then now() end
from scans s, (values ('00000000-0000-7000-8000-000000000014', 'phases', 'completed', 1, 1), ('00000000-0000-7000-8000-000000000024', 'waiting', 'queued', 2, 1),
                      ('00000000-0000-7000-8000-000000000034', 'question', 'completed', 1, 1), ('00000000-0000-7000-8000-000000000044', 'new', 'queued', 1, 0)) as x (id, label, status, total, ok);
insert into scan_items (tenant_id, item_id, scan_id, api, position, body, first_date, state, turn, search_status)
select '00000000-0000-7000-8000-000000000001', gen_random_uuid(), x.scan::uuid, 'flights', x.position,
       '{"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-02"}', '2030-01-02', x.state, x.position, case x.state when 'done' then 'empty' end
from (values ('00000000-0000-7000-8000-000000000014', 0, 'done'), ('00000000-0000-7000-8000-000000000014', 1, 'skipped'),
             ('00000000-0000-7000-8000-000000000024', 0, 'done'), ('00000000-0000-7000-8000-000000000024', 1, 'deferred'),
             ('00000000-0000-7000-8000-000000000034', 0, 'done'), ('00000000-0000-7000-8000-000000000044', 0, 'deferred')) as x (scan, position, state);
insert into scan_strategies (tenant_id, scan_id, coarse_step, refine, dates, inner_items, combinations, deferred, skipped, find, max_risk, batch, currency,
                             decisions, ended_by, settled, watch, budget, pairs)
select '00000000-0000-7000-8000-000000000001', x.id::uuid, 4, 2, 2, 1, 2, x.deferred, x.skipped, x.find, x.risk, x.batch, x.currency, x.decisions, x.ended,
       x.ended is not null, x.watch, x.budget, 3
from (values ('00000000-0000-7000-8000-000000000014', 1, 1, null, null::float8, null::integer, null, 2, 'phases_ended', null, null::integer),
             ('00000000-0000-7000-8000-000000000024', 1, null, null, null, null, null, 0, null, null, null),
             ('00000000-0000-7000-8000-000000000034', 0, 0, 'cheapest', 0.05, 2, 'USD', 2, 'risk_accepted', null, null),
             ('00000000-0000-7000-8000-000000000044', 1, null, null, null, 2, 'USD', 0, null, 'every_date', 2)) as x (id, deferred, skipped, find, risk, batch, currency, decisions, ended, watch, budget);
insert into scan_decisions (tenant_id, scan_id, number, decided_at, reason, searches, known, searched, stored_positions, stored_prices, stored_at, found_positions,
                            found_prices, unanswered)
select '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000034', x.number, now(), x.reason, '{}', 0, 0, '{}', '{}', '{}', '{}', '{}', '{}'
from (values (1, 'likeliest_cheaper'), (2, 'risk_accepted')) as x (number, reason);
insert into monitors (tenant_id, monitor_id, name, cron, timezone, scan, api, rules, paused, grant_id, created_at, updated_at)
select m.tenant_id, x.id::uuid, x.name, m.cron, m.timezone, (m.scan::jsonb || x.more::jsonb)::json, m.api, m.rules, true, m.grant_id, now(), now()
from monitors m, (values ('00000000-0000-7000-8000-000000000017', 'every date', '{"strategy": {"watch": "every_date"}, "max_requests": 5}'),
                         ('00000000-0000-7000-8000-000000000027', 'phases', '{"strategy": {"coarse_step": 4, "refine": 2}, "max_requests": 9}'),
                         ('00000000-0000-7000-8000-000000000037', 'samples', '{"strategy": {"coarse_step": 4, "refine": 2}, "max_requests": 9, "sweep": {"samples": 3}}')) as x (id, name, more);
"#;

#[tokio::test(flavor = "multi_thread")]
async fn strategies_of_the_version_with_a_model_are_converted() {
    let db = earlier_version(MODEL_VERSION).await;
    execute!(db.pool(), "drop view if exists shown_scans");
    for statement in STRATEGIES.split(";\n") {
        if !statement.trim().is_empty() {
            execute!(db.pool(), sqlx::AssertSqlSafe(statement.to_owned()));
        }
    }
    db::migrate(db.pool()).await.unwrap();
    let app = TestApp::builder().database(&db).start().await;
    let service = TestService::of(db, app);
    let id = |number: u8| format!("scn_000000000000700080000000000000{number}");
    let phases = service.scan(&id(14)).await;
    assert_eq!(
        (&phases["status"], &phases["strategy"]),
        (&json!("completed"), &Value::Null),
        "{phases:#}"
    );
    let question = service.scan(&id(34)).await;
    assert_eq!(question["strategy"]["ended_by"], "nothing_better");
    let decisions = service
        .get(&format!("/v1/scans/{}/decisions", id(34)))
        .await;
    assert_eq!(
        decisions["data"][0]["reason"], "lowest_bound",
        "{decisions:#}"
    );
    assert_eq!(service.scan(&id(44)).await["strategy"]["watch"], "cheapest");
    // What waited for its second phase is searched.
    let waiting = "select state from scan_items where position = 1 and scan_id = '00000000-0000-7000-8000-000000000024'";
    let state: String = value!(service.pool(), waiting);
    assert_eq!(state, "pending");
    let mut strategies = Vec::new();
    for number in [17, 27, 37] {
        let monitor = format!("mon_000000000000700080000000000000{number}");
        let scan = service.monitor(&monitor).await["scan"].clone();
        strategies.push((scan["strategy"].clone(), scan["max_requests"].clone()));
    }
    assert_eq!(
        strategies,
        [
            (json!({"watch": "cheapest"}), json!(5)),
            (json!({"find": "cheapest"}), json!(9)),
            (Value::Null, Value::Null)
        ]
    );
}

/// A process of the release before calls the same functions: a changed argument or result needs a
/// new name until that release is gone. `create or replace` refuses a changed result anyway.
#[tokio::test]
async fn functions_keep_their_arguments_and_results() {
    let db = TestDb::new().await;
    let signatures: Vec<String> = values!(
        db.pool(),
        "select p.proname || '(' || pg_get_function_arguments(p.oid) || ') -> ' || pg_get_function_result(p.oid)
         from pg_proc p
         where p.pronamespace = current_schema()::regnamespace
           and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
         order by 1"
    );
    insta::assert_snapshot!(signatures.join("\n"));
}
