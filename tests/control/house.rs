//! A service, a worker on demand and a scripted marketplace behind both.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use farescan::config::WorkerConfig;
use farescan::upstream::Client;
use farescan::worker::WorkerDeps;
use serde_json::{Value, json};

use crate::faults::books::Books;
use crate::support::PATIENCE;
use crate::support::app::{Answer, KEY, TestApp, TestAppBuilder, ring};
use crate::support::db::TestDb;
use crate::worker::stage::{LEASE_SECONDS, Running};

pub struct House {
    pub db: TestDb,
    pub app: TestApp,
}

/// A fare scan over the first dates of 2030.
pub fn fares(dates: usize) -> Value {
    crate::scans::office::fares(dates)
}

/// A fare scan with more fields of the order.
pub fn order(dates: usize, more: &Value) -> Value {
    let mut order = fares(dates);
    order
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    order
}

/// The same scan from another airport, so that its calls are told from others' in the ledger.
pub fn from(airport: &str, mut order: Value) -> Value {
    order["request"]["from_airport"] = json!(airport);
    order
}

/// The n-th airport code that no airport has.
pub fn airport(number: usize) -> String {
    let letter = |place: usize| char::from(b'A' + u8::try_from(place % 26).unwrap());
    ['Z', letter(number / 26), letter(number)].iter().collect()
}

/// The same numbers in every run, different for every seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

impl House {
    pub async fn open() -> Self {
        Self::with(TestApp::builder()).await
    }

    /// The marketplace's ledger and the database agree on this, and no call was lost. To be called when nothing is in flight.
    pub async fn books(&self) -> Books {
        Books::between(&self.app.upstream, self.db.pool())
            .await
            .complete()
    }

    /// With a service that differs from the usual one.
    pub async fn with(service: TestAppBuilder) -> Self {
        let db = TestDb::new().await;
        let app = service.database(&db).start().await;
        Self { db, app }
    }

    /// A worker that makes at most so many calls at once.
    pub fn worker(&self, concurrency: u16) -> Running {
        Running::start(WorkerDeps {
            pool: self.db.pool().clone(),
            ring: Arc::new(ring()),
            upstream: Client::new(&self.app.upstream.config()).unwrap(),
            config: WorkerConfig {
                worker_concurrency: concurrency,
                lease_seconds: LEASE_SECONDS,
                ..WorkerConfig::default()
            },
        })
    }

    /// Orders a scan; its id.
    pub async fn order(&self, body: &Value) -> String {
        self.order_as(KEY, body).await
    }

    pub async fn order_as(&self, key: &str, body: &Value) -> String {
        let answer = self
            .app
            .send(
                self.app
                    .request("POST", "/v1/scans")
                    .header("x-api-key", key)
                    .json(body),
            )
            .await;
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// One scan through, so that the marketplace has accepted the key and more than one scan may be underway.
    pub async fn warm(&self) {
        let id = self.order(&from("YYY", fares(1))).await;
        self.ended(&id).await;
    }

    /// A word over a scan that is taken.
    pub async fn say(&self, id: &str, word: &str, body: &Value) -> Value {
        let answer = self.app.post(&format!("/v1/scans/{id}/{word}"), body).await;
        assert!(
            matches!(answer.status, 200 | 202),
            "{word}: {}",
            answer.text()
        );
        answer.json()
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.app
            .send(self.app.request("DELETE", path).header("x-api-key", KEY))
            .await
    }

    pub async fn get(&self, path: &str) -> Value {
        let answer = self.app.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    pub async fn scan(&self, id: &str) -> Value {
        self.get(&format!("/v1/scans/{id}")).await
    }

    /// The items of a scan.
    pub async fn items(&self, id: &str) -> Vec<Value> {
        self.get(&format!("/v1/scans/{id}/items?limit=500")).await["data"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// The scan once it is so.
    pub async fn scan_when(&self, id: &str, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        let end = tokio::time::Instant::now() + PATIENCE;
        loop {
            let seen = self.scan(id).await;
            if so(&seen) {
                return seen;
            }
            assert!(
                tokio::time::Instant::now() < end,
                "waited in vain until {what}: {seen:#}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn ended(&self, id: &str) -> Value {
        self.scan_when(id, "the scan has ended", |scan| {
            scan["finished_at"].is_string()
        })
        .await
    }

    /// The scan once none of its calls is in flight.
    pub async fn still(&self, id: &str) -> Value {
        self.scan_when(id, "no call is in flight", |scan| {
            scan["items"]["running"] == 0
        })
        .await
    }

    /// How often each date was asked from an airport, by the marketplace's ledger.
    pub fn asked(&self, airport: &str) -> BTreeMap<String, usize> {
        let mut asked = BTreeMap::new();
        for call in self
            .app
            .upstream
            .calls()
            .iter()
            .filter(|call| call.body["from_airport"] == airport)
        {
            *asked
                .entry(call.body["departure_date"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
        asked
    }

    /// How many calls came from an airport.
    pub fn calls(&self, airport: &str) -> usize {
        self.asked(airport).values().sum()
    }

    pub async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql)
            .fetch_one(self.db.pool())
            .await
            .unwrap()
    }
}

/// Every item is counted once, by what became of it.
pub fn adds_up(scan: &Value) {
    let items = scan["items"].as_object().unwrap();
    let parts: u64 = items
        .iter()
        .filter(|(name, _)| *name != "total")
        .map(|(_, count)| count.as_u64().unwrap())
        .sum();
    assert_eq!(json!(parts), items["total"], "{scan:#}");
}
