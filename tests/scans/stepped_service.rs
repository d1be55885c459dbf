//! A service whose queue the test drives step by step.

use farescan::contract::SearchStatus;
use farescan::ids::AttemptId;
use farescan::queue::WorkerId;
use farescan::queue::store::{self, BeginVerdict, CallEnding, CallRecord, ClaimResult, ClaimRow};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sqlx::AssertSqlSafe;

use crate::support::app::{HttpResponse, KEY, TestApp, TestAppBuilder};
use crate::support::db::TestDb;

pub struct SteppedService {
    pub db: TestDb,
    pub app: TestApp,
    worker: WorkerId,
}

/// The outcome of a search.
#[derive(Clone, Copy)]
pub enum SearchOutcome {
    /// With a best price in dollars.
    Ok(u32),
    Empty,
    Partial(u32),
    Degraded(&'static str),
    Failed,
    /// The call stays on record as sent.
    InFlight,
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
    jiff::civil::date(2030, 1, 1)
        .checked_add(days)
        .unwrap()
        .to_string()
}

impl SteppedService {
    pub async fn start() -> Self {
        Self::start_with(TestApp::builder()).await
    }

    /// Starts a service that differs from the default one.
    pub async fn start_with(builder: TestAppBuilder) -> Self {
        let db = TestDb::new().await;
        let app = builder.database(&db).start().await;
        let worker = sqlx::query_scalar(
            "insert into workers (lease_until) values (clock_timestamp() + interval '1 hour') returning worker_id",
        );
        let worker = WorkerId(worker.fetch_one(db.pool()).await.unwrap());
        Self { db, app, worker }
    }

    /// Submits a scan; returns its id.
    pub async fn submit(&self, body: &Value) -> String {
        let answer = self.app.post("/v1/scans", body).await;
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Submits a scan and completes all its items.
    pub async fn submit_and_complete(
        &self,
        body: &Value,
        outcome: impl Fn(usize) -> SearchOutcome,
    ) -> String {
        let id = self.submit(body).await;
        self.complete_all(outcome).await;
        id
    }

    pub async fn get(&self, path: &str) -> Value {
        let answer = self.app.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    pub async fn scan(&self, id: &str) -> Value {
        self.get(&format!("/v1/scans/{id}")).await
    }

    /// One field of each item of a page.
    pub async fn column(&self, path: &str, field: &str) -> Vec<Value> {
        let page = self.get(path).await;
        page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item[field].clone())
            .collect()
    }

    pub async fn post_as(&self, key: &str, path: &str, body: &Value) -> HttpResponse {
        self.app
            .send(
                self.app
                    .request("POST", path)
                    .header("x-api-key", key)
                    .json(body),
            )
            .await
    }

    pub async fn get_as(&self, key: &str, path: &str) -> HttpResponse {
        self.app
            .send(self.app.request("GET", path).header("x-api-key", key))
            .await
    }

    pub async fn post_with_key(&self, once: &str, path: &str, body: &Value) -> HttpResponse {
        self.app
            .send(
                self.app
                    .request("POST", path)
                    .header("x-api-key", KEY)
                    .header("idempotency-key", once)
                    .json(body),
            )
            .await
    }

    /// Completes all items that can be claimed; `outcome` receives their positions.
    pub async fn complete_all(&self, outcome: impl Fn(usize) -> SearchOutcome) {
        loop {
            let claims = self.claim().await;
            if claims.is_empty() {
                return;
            }
            for claimed in claims {
                let position = self.begin(&claimed).await;
                self.finish(&claimed, outcome(position)).await;
            }
        }
    }

    /// Claims all items that can be claimed.
    pub async fn claim(&self) -> Vec<ClaimRow> {
        match store::claim(self.db.pool(), self.worker, 500)
            .await
            .unwrap()
        {
            ClaimResult::Claims(claims, _) => claims,
            ClaimResult::Fenced => panic!("fenced"),
        }
    }

    /// Records a claim as sent; returns its position.
    pub async fn begin(&self, claimed: &ClaimRow) -> usize {
        assert_eq!(self.try_begin(claimed).await, BeginVerdict::Begun);
        let position: i32 =
            sqlx::query_scalar("select position from scan_items where item_id = $1")
                .bind(claimed.claim.item.uuid())
                .fetch_one(self.db.pool())
                .await
                .unwrap();
        position.try_into().unwrap()
    }

    pub async fn try_begin(&self, claimed: &ClaimRow) -> BeginVerdict {
        store::begin(
            self.db.pool(),
            &[(claimed.claim, AttemptId::new())],
            Timestamp::now(),
        )
        .await
        .unwrap()[0]
    }

    pub async fn finish(&self, claimed: &ClaimRow, outcome: SearchOutcome) {
        let now = Timestamp::now();
        let call = match outcome {
            SearchOutcome::InFlight => return,
            SearchOutcome::Ok(price) => done(claimed, now, SearchStatus::Ok, None, Some(price)),
            SearchOutcome::Partial(price) => done(
                claimed,
                now,
                SearchStatus::Partial,
                Some("search_truncated"),
                Some(price),
            ),
            SearchOutcome::Empty => done(claimed, now, SearchStatus::Empty, None, None),
            SearchOutcome::Degraded(reason) => {
                done(claimed, now, SearchStatus::Degraded, Some(reason), None)
            }
            SearchOutcome::Failed => CallRecord {
                ending: CallEnding::Failed,
                may_retry: false,
                search_status: None,
                error: Some("no such airport".to_owned()),
                http_status: Some(422),
                ..done(
                    claimed,
                    now,
                    SearchStatus::Degraded,
                    Some("invalid_request"),
                    None,
                )
            },
        };
        let mut conn = self.db.pool().acquire().await.unwrap();
        assert_eq!(
            store::record_calls(&mut conn, &[&call], now)
                .await
                .unwrap()
                .len(),
            1
        );
    }

    async fn tables(&self) -> Vec<String> {
        let names = "select relname::text from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace order by 1";
        sqlx::query_scalar(names)
            .fetch_all(self.db.pool())
            .await
            .unwrap()
    }

    /// The number of rows of every table.
    pub async fn row_counts(&self) -> Vec<(String, i64)> {
        let mut rows = Vec::new();
        for table in self.tables().await {
            let count = sqlx::query_scalar(AssertSqlSafe(format!("select count(*) from {table}")));
            rows.push((table, count.fetch_one(self.db.pool()).await.unwrap()));
        }
        rows
    }

    /// The whole database as text, to search it for secrets.
    pub async fn dump_database(&self) -> String {
        let mut dump = String::new();
        for table in self.tables().await {
            let rows = sqlx::query_scalar(AssertSqlSafe(format!(
                "select coalesce(string_agg(t::text, ' '), '') from {table} t"
            )));
            let text: String = rows.fetch_one(self.db.pool()).await.unwrap();
            dump.push_str(&text);
        }
        dump
    }
}

fn done(
    claimed: &ClaimRow,
    now: Timestamp,
    status: SearchStatus,
    reason: Option<&str>,
    price: Option<u32>,
) -> CallRecord {
    let header = |word: &str| Map::from_iter([("x-search-status".to_owned(), json!(word))]);
    CallRecord {
        tenant_id: claimed.claim.tenant.uuid(),
        item_id: claimed.claim.item.uuid(),
        number: claimed.claim.number,
        attempt_id: None,
        ended_at: now,
        ending: CallEnding::Done,
        may_retry: status == SearchStatus::Degraded,
        http_status: Some(200),
        search_status: Some(status),
        reason: reason.map(str::to_owned),
        error: None,
        search_headers: header(status.as_str()),
        latency_ms: 12,
        billed: 1,
        results: (status != SearchStatus::Degraded).then_some(i32::from(price.is_some())),
        best_price: price.map(|price| price.to_string()),
        currency: price.map(|_| "USD".to_owned()),
        pause_reason: None,
        pause_seconds: None,
    }
}
