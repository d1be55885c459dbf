//! A caller, a database, a scripted marketplace, and workers on demand.

use std::sync::Arc;
use std::time::Duration;

use farescan::commands::RequestContext;
use farescan::config::{DatabaseConfig, PaceConfig, WorkerConfig};
use farescan::contract::scans::{Item, Scan};
use farescan::db::{self, Database};
use farescan::ids::{ScanId, TenantId};
use farescan::scans::{cancel, read, retry, submit};
use farescan::search::CallerKey;
use farescan::tenants::{self, Keyring};
use farescan::upstream::{Client, UpstreamConfig};
use farescan::worker::{self, WorkerDeps, WorkerError};
use jiff::Timestamp;
use serde_json::{Value, json};
use sqlx::PgPool;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use crate::support::app::{KEY, ring, ring_text};
use crate::support::db::{TestDb, accept_new_tenants};
use crate::support::upstream::ScriptedServer;
use crate::support::{WAIT_LIMIT, wait_until};

/// The lease of a worker in the test's process, in seconds. No test kills such a worker, so the
/// lease must outlast a pause of the machine.
pub const LEASE_SECONDS: u32 = 20;

/// A caller, its database and the marketplace; tests start the workers.
pub struct WorkerFixture {
    pub db: FixtureDatabase,
    pub upstream: ScriptedServer,
    pub ring: Arc<Keyring>,
    pub pace: PaceConfig,
    /// The spool folder of the processes.
    pub spool: TempDir,
    key: CallerKey,
}

/// The database of a fixture: one on the shared server, or one at a URL.
pub enum FixtureDatabase {
    Shared(Box<TestDb>),
    Own(String, Box<Database>),
}

impl FixtureDatabase {
    pub fn pool(&self) -> &PgPool {
        match self {
            Self::Shared(db) => db.pool(),
            Self::Own(_, database) => database.pool(),
        }
    }

    pub fn url(&self) -> &str {
        match self {
            Self::Shared(db) => db.url(),
            Self::Own(url, _) => url,
        }
    }
}

/// A running worker.
pub struct RunningWorker {
    stop: CancellationToken,
    task: JoinHandle<Result<(), WorkerError>>,
}

impl RunningWorker {
    pub fn start(deps: WorkerDeps) -> Self {
        let stop = CancellationToken::new();
        Self {
            task: tokio::spawn(worker::run(deps, stop.clone())),
            stop,
        }
    }

    /// Stops the worker as SIGTERM does.
    pub fn request_stop(&self) {
        self.stop.cancel();
    }

    pub async fn join(self) {
        tokio::time::timeout(WAIT_LIMIT, self.task)
            .await
            .expect("the worker ends")
            .unwrap()
            .unwrap();
    }

    pub async fn stop(self) {
        self.request_stop();
        self.join().await;
    }
}

impl WorkerFixture {
    pub async fn new() -> Self {
        Self::on_database(FixtureDatabase::Shared(Box::new(TestDb::new().await))).await
    }

    /// A fixture whose caller has this key.
    pub async fn with_key(key: &str) -> Self {
        Self {
            key: CallerKey::new(key),
            ..Self::new().await
        }
    }

    /// A fixture on a server of the test's own.
    pub async fn on(url: &str) -> Self {
        let config = DatabaseConfig {
            url: Some(url.into()),
            ..DatabaseConfig::default()
        };
        let database = Database::open(&config).await.unwrap();
        db::migrate(database.pool()).await.unwrap();
        accept_new_tenants(database.pool()).await;
        Self::on_database(FixtureDatabase::Own(url.to_owned(), Box::new(database))).await
    }

    async fn on_database(db: FixtureDatabase) -> Self {
        Self {
            db,
            upstream: ScriptedServer::start().await,
            ring: Arc::new(ring()),
            pace: PaceConfig {
                flights_per_minute: 60_000,
                hotels_per_minute: 60_000,
                max_in_flight: 100,
            },
            spool: TempDir::new().unwrap(),
            key: CallerKey::new(KEY),
        }
    }

    pub fn pool(&self) -> &PgPool {
        self.db.pool()
    }

    pub fn start_worker(&self) -> RunningWorker {
        self.start_worker_against(&self.upstream.config())
    }

    /// Starts a worker against another marketplace than the scripted one.
    pub fn start_worker_against(&self, upstream: &UpstreamConfig) -> RunningWorker {
        let deps = WorkerDeps {
            pool: self.pool().clone(),
            ring: Arc::clone(&self.ring),
            upstream: Client::new(upstream).unwrap(),
            config: WorkerConfig {
                lease_seconds: LEASE_SECONDS,
                ..WorkerConfig::default()
            },
        };
        RunningWorker::start(deps)
    }

    /// The context of the caller's requests.
    pub fn context(&self) -> RequestContext<'_> {
        RequestContext {
            pool: self.pool(),
            ring: &self.ring,
            key: &self.key,
            now: Timestamp::now(),
        }
    }

    /// Submits a scan of this many dates of one route, with more fields of the body.
    pub async fn submit(&self, dates: i64, more: &Value) -> ScanId {
        let mut body = fares(dates);
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.submit_body(&body).await
    }

    pub async fn submit_body(&self, body: &Value) -> ScanId {
        submit::submit(self.context(), &self.pace, body.as_object().unwrap(), None)
            .await
            .unwrap()
            .response
            .id
    }

    pub async fn cancel(&self, scan: ScanId) {
        cancel::cancel(self.context(), scan).await.unwrap();
    }

    pub async fn retry(&self, scan: ScanId, body: &Value) {
        retry::retry(self.context(), scan, body.as_object().unwrap(), None)
            .await
            .unwrap();
    }

    pub async fn tenant(&self) -> TenantId {
        let mut connection = self.pool().acquire().await.unwrap();
        tenants::store::find(&mut connection, &self.ring, &self.key, Timestamp::now())
            .await
            .unwrap()
            .unwrap()
    }

    pub async fn scan(&self, scan: ScanId) -> Scan {
        read::scan(self.pool(), self.tenant().await, scan)
            .await
            .unwrap()
            .unwrap()
    }

    /// Waits until the scan meets a condition.
    pub async fn wait_for_scan(
        &self,
        scan: ScanId,
        what: &str,
        condition: impl Fn(&Scan) -> bool,
    ) -> Scan {
        self.wait_for_scan_within(WAIT_LIMIT, scan, what, condition)
            .await
    }

    async fn wait_for_scan_within(
        &self,
        time: Duration,
        scan: ScanId,
        what: &str,
        condition: impl Fn(&Scan) -> bool,
    ) -> Scan {
        let end = tokio::time::Instant::now() + time;
        loop {
            let seen = self.scan(scan).await;
            if condition(&seen) {
                return seen;
            }
            assert!(
                tokio::time::Instant::now() < end,
                "timed out waiting until {what}: {seen:#?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn wait_until_ended(&self, scan: ScanId) -> Scan {
        self.wait_until_ended_within(scan, WAIT_LIMIT).await
    }

    pub async fn wait_until_ended_within(&self, scan: ScanId, time: Duration) -> Scan {
        self.wait_for_scan_within(time, scan, "the scan has ended", |scan| {
            scan.finished_at.is_some()
        })
        .await
    }

    /// The scan's items by position.
    pub async fn items(&self, scan: ScanId) -> Vec<Item> {
        let query = farescan::contract::scans::ItemsQuery::from_query([("limit", "500")]).unwrap();
        read::items(self.pool(), self.tenant().await, scan, &query)
            .await
            .unwrap()
            .unwrap()
            .data
    }

    /// Submits a scan of this many dates, has a worker complete it and stops the worker.
    pub async fn complete_scan(&self, dates: i64) {
        let worker = self.start_worker();
        self.wait_until_ended(self.submit(dates, &json!({})).await)
            .await;
        worker.stop().await;
    }

    /// Waits until a query returns this number.
    pub async fn wait_for_count(&self, sql: &'static str, wanted: i64) {
        wait_until(sql, async || self.count(sql).await == wanted).await;
    }

    /// The number that a query returns.
    pub async fn count(&self, sql: &'static str) -> i64 {
        value!(self.pool(), sql)
    }
}

/// A fare scan of consecutive future dates.
pub fn fares(dates: i64) -> Value {
    let first = Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date()
        .saturating_add(jiff::Span::new().days(30));
    let last = first.saturating_add(jiff::Span::new().days(dates - 1));
    json!({
        "endpoint": "flights/oneway",
        "request": {"from_airport": "TLV", "to_airport": "LHR", "currency": "USD"},
        "sweep": {"departure_date": {"from": first.to_string(), "to": last.to_string()}},
    })
}
