//! A caller, a database, a marketplace, and workers on demand.

use std::sync::Arc;
use std::time::Duration;

use farescan::config::{DatabaseConfig, PaceConfig, WorkerConfig};
use farescan::contract::scans::{Item, Scan};
use farescan::db::{self, Database};
use farescan::ids::{ScanId, TenantId};
use farescan::scans::{Desk, cancel, read, retry, submit};
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

use crate::support::PATIENCE;
use crate::support::db::{TestDb, accept_at_once};
use crate::support::upstream::Upstream;

/// The key of the stage's caller.
pub const KEY: &str = "test-key-0123456789";

/// The lease of a worker of this process. Nobody kills it, so nothing has to be found lost; a machine that stands still for some seconds must
/// not make it so.
pub const LEASE_SECONDS: u32 = 20;

/// Everything but the worker.
pub struct Stage {
    pub db: Place,
    pub upstream: Upstream,
    pub ring: Arc<Keyring>,
    pub pace: PaceConfig,
    /// Where processes of it keep what the database cannot take.
    pub spool: TempDir,
    key: CallerKey,
}

/// Where the tables are.
pub enum Place {
    Shared(Box<TestDb>),
    Own(String, Box<Database>),
}

impl Place {
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

/// A worker that runs.
pub struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<(), WorkerError>>,
}

impl Running {
    pub fn start(deps: WorkerDeps) -> Self {
        let stop = CancellationToken::new();
        Self {
            task: tokio::spawn(worker::run(deps, stop.clone())),
            stop,
        }
    }

    /// As SIGTERM does.
    pub fn tell_to_stop(&self) {
        self.stop.cancel();
    }

    pub async fn ended(self) {
        tokio::time::timeout(PATIENCE, self.task)
            .await
            .expect("the worker ends")
            .unwrap()
            .unwrap();
    }

    pub async fn stop(self) {
        self.tell_to_stop();
        self.ended().await;
    }
}

impl Stage {
    pub async fn new() -> Self {
        Self::in_place(Place::Shared(Box::new(TestDb::new().await))).await
    }

    /// For a caller with this key.
    pub async fn with_key(key: &str) -> Self {
        Self {
            key: CallerKey::new(key),
            ..Self::new().await
        }
    }

    /// On a server of the test's own.
    pub async fn on(url: &str) -> Self {
        let config = DatabaseConfig {
            url: Some(url.into()),
            ..DatabaseConfig::default()
        };
        let database = Database::open(&config).await.unwrap();
        db::migrate(database.pool()).await.unwrap();
        accept_at_once(database.pool()).await;
        Self::in_place(Place::Own(url.to_owned(), Box::new(database))).await
    }

    async fn in_place(db: Place) -> Self {
        Self {
            db,
            upstream: Upstream::start().await,
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

    pub fn worker(&self) -> Running {
        self.worker_of(&self.upstream.config())
    }

    /// A worker that asks another marketplace than the scripted one.
    pub fn worker_of(&self, upstream: &UpstreamConfig) -> Running {
        let deps = WorkerDeps {
            pool: self.pool().clone(),
            ring: Arc::clone(&self.ring),
            upstream: Client::new(upstream).unwrap(),
            config: WorkerConfig {
                lease_seconds: LEASE_SECONDS,
                ..WorkerConfig::default()
            },
        };
        Running::start(deps)
    }

    /// The caller, as the parts of the job API know him.
    pub fn desk(&self) -> Desk<'_> {
        Desk {
            pool: self.pool(),
            ring: &self.ring,
            key: &self.key,
            now: Timestamp::now(),
        }
    }

    /// A scan of this many dates of one route, with more fields of the order.
    pub async fn submit(&self, dates: i64, more: &Value) -> ScanId {
        let mut order = fares(dates);
        order
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.order(&order).await
    }

    pub async fn order(&self, order: &Value) -> ScanId {
        submit::submit(self.desk(), &self.pace, order.as_object().unwrap(), None)
            .await
            .unwrap()
            .answer
            .id
    }

    pub async fn cancel(&self, scan: ScanId) {
        cancel::cancel(self.desk(), scan).await.unwrap();
    }

    pub async fn retry(&self, scan: ScanId, order: &Value) {
        retry::retry(self.desk(), scan, order.as_object().unwrap(), None)
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

    /// The scan once it is so.
    pub async fn scan_when(&self, scan: ScanId, what: &str, so: impl Fn(&Scan) -> bool) -> Scan {
        self.scan_within(PATIENCE, scan, what, so).await
    }

    async fn scan_within(
        &self,
        time: Duration,
        scan: ScanId,
        what: &str,
        so: impl Fn(&Scan) -> bool,
    ) -> Scan {
        let end = tokio::time::Instant::now() + time;
        loop {
            let seen = self.scan(scan).await;
            if so(&seen) {
                return seen;
            }
            assert!(
                tokio::time::Instant::now() < end,
                "waited in vain until {what}: {seen:#?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn ended(&self, scan: ScanId) -> Scan {
        self.ended_within(scan, PATIENCE).await
    }

    pub async fn ended_within(&self, scan: ScanId, time: Duration) -> Scan {
        self.scan_within(time, scan, "the scan has ended", |scan| {
            scan.finished_at.is_some()
        })
        .await
    }

    /// Its items in the order of their positions.
    pub async fn items(&self, scan: ScanId) -> Vec<Item> {
        let query = farescan::contract::scans::ItemsQuery::from_query([("limit", "500")]).unwrap();
        read::items(self.pool(), self.tenant().await, scan, &query)
            .await
            .unwrap()
            .unwrap()
            .data
    }

    /// A scan of this many dates, asked by a worker that is stopped then.
    pub async fn ended_by_a_worker(&self, dates: i64) {
        let worker = self.worker();
        self.ended(self.submit(dates, &json!({})).await).await;
        worker.stop().await;
    }

    /// Waits until a number in the database is this one.
    pub async fn becomes(&self, sql: &'static str, wanted: i64) {
        let end = tokio::time::Instant::now() + PATIENCE;
        while self.count(sql).await != wanted {
            assert!(
                tokio::time::Instant::now() < end,
                "waited in vain until {wanted}: {sql}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// One number from the database.
    pub async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql)
            .fetch_one(self.pool())
            .await
            .unwrap()
    }
}

/// The same ring in every process of a test.
pub fn ring() -> Keyring {
    Keyring::parse(&ring_text()).unwrap()
}

/// The ring as a setting.
pub fn ring_text() -> String {
    format!("test:{}", "42".repeat(32))
}

/// A fare scan of consecutive dates that are still to come.
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
