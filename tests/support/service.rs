//! The service under test: its database, its API and a scripted marketplace. Its items are processed
//! by a worker ([`TestService::start_worker`]) or step by step ([`super::steps`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use farescan::config::WorkerConfig;
use farescan::queue::WorkerId;
use farescan::upstream::Client;
use farescan::worker::WorkerDeps;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use tokio::sync::OnceCell;

use super::WAIT_LIMIT;
use super::app::{HttpResponse, KEY, TestApp, TestAppBuilder, ring};
use super::db::TestDb;
use crate::faults::ledger::LedgerCheck;
use crate::worker::fixture::{LEASE_SECONDS, RunningWorker};

pub struct TestService {
    pub db: TestDb,
    pub app: TestApp,
    /// The worker whose steps the test takes.
    pub(super) worker: OnceCell<WorkerId>,
}

/// A fare scan over the first dates of 2030.
pub fn fares(dates: usize) -> Value {
    json!({
        "endpoint": "flights/oneway",
        "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {"departure_date": {"from": "2030-01-01", "to": day(dates)}}
    })
}

/// The n-th day of 2030, from 1.
pub fn day(number: usize) -> String {
    let days = jiff::Span::new().days(i64::try_from(number).unwrap() - 1);
    (jiff::civil::date(2030, 1, 1) + days).to_string()
}

/// An object with more fields.
pub fn with(mut body: Value, more: &Value) -> Value {
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    body
}

/// A fare scan with more fields of the scan request.
pub fn fares_with(dates: usize, more: &Value) -> Value {
    with(fares(dates), more)
}

/// The same scan from another airport, which identifies its calls in the ledger.
pub fn departing_from(airport: &str, mut body: Value) -> Value {
    body["request"]["from_airport"] = json!(airport);
    body
}

/// The n-th airport whose code begins with S; tests use no other ones of them.
pub fn airport_code(number: usize) -> String {
    let letter = |place: usize| char::from(b'A' + u8::try_from(place % 26).unwrap());
    let codes = (0..26 * 26).map(|place| ['S', letter(place / 26), letter(place)]);
    let codes = codes.map(|letters| letters.iter().collect::<String>());
    codes
        .filter(|code| farescan_ask::places::exists(code))
        .nth(number)
        .unwrap()
}

/// A deterministic random number generator.
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

impl std::ops::Deref for TestService {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.app
    }
}

/// A busy machine may refuse a request for a moment, which has changed nothing: then it is sent again.
async fn when_not_busy(ask: impl AsyncFn() -> HttpResponse) -> HttpResponse {
    loop {
        let answer = ask().await;
        if answer.status != 503 {
            return answer;
        }
    }
}

impl TestService {
    pub async fn start() -> Self {
        Self::start_with(TestApp::builder()).await
    }

    /// Starts a service that differs from the default one.
    pub async fn start_with(builder: TestAppBuilder) -> Self {
        let db = TestDb::new().await;
        let app = builder.database(&db).start().await;
        Self::of(db, app)
    }

    pub fn of(db: TestDb, app: TestApp) -> Self {
        let worker = OnceCell::new();
        Self { db, app, worker }
    }

    pub fn pool(&self) -> &sqlx::PgPool {
        self.db.pool()
    }

    /// Checks that the marketplace's ledger and the database agree and no call was lost. Call it
    /// only when no call is in flight.
    pub async fn check_ledger(&self) -> LedgerCheck {
        LedgerCheck::run_on(&self.upstream, self.db.pool())
            .await
            .without_losses()
    }

    /// Starts a worker that makes at most `concurrency` calls at once.
    pub fn start_worker(&self, concurrency: u16) -> RunningWorker {
        RunningWorker::start(WorkerDeps {
            pool: self.db.pool().clone(),
            ring: Arc::new(ring()),
            upstream: Client::new(&self.upstream.config()).unwrap(),
            config: WorkerConfig {
                worker_concurrency: concurrency,
                lease_seconds: LEASE_SECONDS,
                ..WorkerConfig::default()
            },
        })
    }

    /// Submits a scan; returns its id.
    pub async fn submit(&self, body: &Value) -> String {
        self.submit_as(KEY, body).await
    }

    pub async fn submit_as(&self, key: &str, body: &Value) -> String {
        let submitted = when_not_busy(async || self.post_as(key, "/v1/scans", body).await);
        submitted.await.created(202)
    }

    /// Creates a monitor; returns its id.
    pub async fn create_monitor(&self, body: &Value) -> String {
        let created = when_not_busy(async || self.post("/v1/monitors", body).await);
        created.await.created(201)
    }

    /// Completes one scan, so that the marketplace has accepted the key and several scans may be
    /// live.
    pub async fn accept_key(&self) {
        let id = self.submit(&departing_from("YYY", fares(1))).await;
        self.wait_until_ended(&id).await;
    }

    /// Sends a command on a scan, which must succeed.
    pub async fn command(&self, id: &str, command: &str, body: &Value) -> Value {
        let path = format!("/v1/scans/{id}/{command}");
        let answer = when_not_busy(async || self.post(&path, body).await).await;
        assert!(
            matches!(answer.status, 200 | 202),
            "{command}: {}",
            answer.text()
        );
        answer.json()
    }

    pub async fn get(&self, path: &str) -> Value {
        let answer = when_not_busy(async || self.app.get(path).await).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// The rows of a page.
    pub async fn page(&self, path: &str) -> Vec<Value> {
        match self.get(path).await["data"].take() {
            Value::Array(rows) => rows,
            other => panic!("{path}: {other}"),
        }
    }

    /// One field of each row of a page.
    pub async fn column(&self, path: &str, field: &str) -> Vec<Value> {
        let rows = self.page(path).await;
        rows.iter().map(|row| row[field].clone()).collect()
    }

    pub async fn scan(&self, id: &str) -> Value {
        self.get(&format!("/v1/scans/{id}")).await
    }

    /// The items of a scan.
    pub async fn items(&self, id: &str) -> Vec<Value> {
        self.page(&format!("/v1/scans/{id}/items?limit=500")).await
    }

    /// Waits until the scan satisfies the condition.
    pub async fn wait_for_scan(
        &self,
        id: &str,
        what: &str,
        condition: impl Fn(&Value) -> bool,
    ) -> Value {
        let end = tokio::time::Instant::now() + WAIT_LIMIT;
        loop {
            let scan = self.scan(id).await;
            if condition(&scan) {
                return scan;
            }
            assert!(
                tokio::time::Instant::now() < end,
                "timed out waiting until {what}: {scan:#}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn wait_until_ended(&self, id: &str) -> Value {
        self.wait_for_scan(id, "the scan has ended", |scan| {
            scan["finished_at"].is_string()
        })
        .await
    }

    /// Waits until another caller's scan has ended.
    pub async fn wait_for_scan_as(&self, key: &str, id: &str) {
        assert!(!id.is_empty(), "no scan to wait for");
        let path = format!("/v1/scans/{id}");
        super::wait_until("the scan has ended", async || {
            self.get_as(key, &path).await.json()["finished_at"].is_string()
        })
        .await;
    }

    /// Waits until none of the scan's calls is in flight.
    pub async fn wait_until_idle(&self, id: &str) -> Value {
        self.wait_for_scan(id, "no call is in flight", |scan| {
            scan["items"]["running"] == 0
        })
        .await
    }

    /// The number of calls for each date from an airport, by the marketplace's ledger.
    pub fn calls_by_date(&self, airport: &str) -> BTreeMap<String, usize> {
        let mut calls = BTreeMap::new();
        for call in self
            .upstream
            .calls()
            .iter()
            .filter(|call| call.body["from_airport"] == airport)
        {
            *calls
                .entry(call.body["departure_date"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
        calls
    }

    /// The number of calls from an airport.
    pub fn call_count(&self, airport: &str) -> usize {
        self.calls_by_date(airport).values().sum()
    }

    pub async fn count(&self, sql: &'static str) -> i64 {
        value!(self.pool(), sql)
    }

    /// Waits until a query returns this number.
    pub async fn wait_for_count(&self, sql: &'static str, count: i64) {
        super::wait_until(sql, async || self.count(sql).await == count).await;
    }

    /// Waits until the usage of a caller has so many billed requests: single searches and key checks are
    /// counted a moment after their response.
    pub async fn wait_for_requests(&self, key: &str, count: usize) -> Value {
        let end = tokio::time::Instant::now() + WAIT_LIMIT;
        loop {
            let usage = self.get_as(key, "/v1/usage").await.expect(200).json();
            if billed(&usage) == u64::try_from(count).unwrap() {
                return usage;
            }
            assert!(
                tokio::time::Instant::now() < end,
                "timed out waiting for {count} requests: {usage:#}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn tables(&self) -> Vec<String> {
        let names = "select relname::text from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace order by 1";
        values!(self.pool(), names)
    }

    /// The number of rows of every table.
    pub async fn row_counts(&self) -> Vec<(String, i64)> {
        let mut rows = Vec::new();
        for table in self.tables().await {
            let count = format!("select count(*) from {table}");
            rows.push((table, value!(self.pool(), AssertSqlSafe(count))));
        }
        rows
    }

    /// The whole database as text, to search it for secrets.
    pub async fn dump_database(&self) -> String {
        let mut dump = String::new();
        for table in self.tables().await {
            let rows = format!("select coalesce(string_agg(t::text, ' '), '') from {table} t");
            dump.push_str(&value!(self.pool(), AssertSqlSafe(rows), => String));
        }
        dump
    }
}

/// A number of both totals of a usage together, for tests that compare it with all calls.
pub fn total(usage: &Value, name: &str) -> u64 {
    let of = |api: &str| usage["totals"][api][name].as_u64().unwrap();
    of("flights") + of("hotels")
}

/// The billed requests of a usage, which must add up to what was asked.
pub fn billed(usage: &Value) -> u64 {
    let parts = ["billed", "reused", "not_needed"].map(|name| total(usage, name));
    assert_eq!(
        parts.iter().sum::<u64>(),
        total(usage, "asked"),
        "{usage:#}"
    );
    parts[0]
}

/// Asserts that the counts of a scan's items add up to the total.
pub fn assert_counts_add_up(scan: &Value) {
    let items = scan["items"].as_object().unwrap();
    let parts: u64 = items
        .iter()
        .filter(|(name, _)| *name != "total")
        .map(|(_, count)| count.as_u64().unwrap())
        .sum();
    assert_eq!(json!(parts), items["total"], "{scan:#}");
}
