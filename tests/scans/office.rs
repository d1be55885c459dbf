//! A service that takes orders, and a worker that is worked by hand.

use farescan::contract::SearchStatus;
use farescan::ids::AttemptId;
use farescan::queue::WorkerId;
use farescan::queue::store::{self, Claimed, Ending, FinishedCall, Verdict, Visit};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sqlx::AssertSqlSafe;

use crate::support::app::{Answer, KEY, TestApp, TestAppBuilder};
use crate::support::db::TestDb;

pub struct Office {
    pub db: TestDb,
    pub app: TestApp,
    worker: WorkerId,
}

/// What a search comes to.
#[derive(Clone, Copy)]
pub enum Comes {
    /// With this best price in dollars.
    Ok(u32),
    Empty,
    Partial(u32),
    Degraded(&'static str),
    Refused,
    /// Stays on record as sent.
    NotYet,
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

impl Office {
    pub async fn open() -> Self {
        Self::with(TestApp::builder()).await
    }

    /// With a service that differs from the usual one.
    pub async fn with(service: TestAppBuilder) -> Self {
        let db = TestDb::new().await;
        let app = service.database(&db).start().await;
        let worker = sqlx::query_scalar(
            "insert into workers (lease_until) values (clock_timestamp() + interval '1 hour') returning worker_id",
        );
        let worker = WorkerId(worker.fetch_one(db.pool()).await.unwrap());
        Self { db, app, worker }
    }

    /// Orders a scan; its id.
    pub async fn order(&self, body: &Value) -> String {
        let answer = self.app.post("/v1/scans", body).await;
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Orders a scan and has all its items searched.
    pub async fn done(&self, body: &Value, comes: impl Fn(usize) -> Comes) -> String {
        let id = self.order(body).await;
        self.work(comes).await;
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

    pub async fn post_as(&self, key: &str, path: &str, body: &Value) -> Answer {
        self.app
            .send(
                self.app
                    .request("POST", path)
                    .header("x-api-key", key)
                    .json(body),
            )
            .await
    }

    pub async fn get_as(&self, key: &str, path: &str) -> Answer {
        self.app
            .send(self.app.request("GET", path).header("x-api-key", key))
            .await
    }

    pub async fn post_once(&self, once: &str, path: &str, body: &Value) -> Answer {
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

    /// Searches all items that can be claimed; `comes` is given their positions.
    pub async fn work(&self, comes: impl Fn(usize) -> Comes) {
        loop {
            let claims = self.claim().await;
            if claims.is_empty() {
                return;
            }
            for claimed in claims {
                let position = self.begin(&claimed).await;
                self.end(&claimed, comes(position)).await;
            }
        }
    }

    /// Claims all that can be claimed.
    pub async fn claim(&self) -> Vec<Claimed> {
        match store::claim(self.db.pool(), self.worker, 500)
            .await
            .unwrap()
        {
            Visit::Claims(claims, _) => claims,
            Visit::Fenced => panic!("fenced"),
        }
    }

    /// Puts a claim on record as sent; its position.
    pub async fn begin(&self, claimed: &Claimed) -> usize {
        assert_eq!(self.try_begin(claimed).await, Verdict::Begun);
        let position: i32 =
            sqlx::query_scalar("select position from scan_items where item_id = $1")
                .bind(claimed.claim.item.uuid())
                .fetch_one(self.db.pool())
                .await
                .unwrap();
        position.try_into().unwrap()
    }

    pub async fn try_begin(&self, claimed: &Claimed) -> Verdict {
        store::begin(
            self.db.pool(),
            &[(claimed.claim, AttemptId::new())],
            Timestamp::now(),
        )
        .await
        .unwrap()[0]
    }

    pub async fn end(&self, claimed: &Claimed, comes: Comes) {
        let now = Timestamp::now();
        let call = match comes {
            Comes::NotYet => return,
            Comes::Ok(price) => done(claimed, now, SearchStatus::Ok, None, Some(price)),
            Comes::Partial(price) => done(
                claimed,
                now,
                SearchStatus::Partial,
                Some("search_truncated"),
                Some(price),
            ),
            Comes::Empty => done(claimed, now, SearchStatus::Empty, None, None),
            Comes::Degraded(reason) => {
                done(claimed, now, SearchStatus::Degraded, Some(reason), None)
            }
            Comes::Refused => FinishedCall {
                ending: Ending::Failed,
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

    /// How many rows every table has.
    pub async fn rows(&self) -> Vec<(String, i64)> {
        let mut rows = Vec::new();
        for table in self.tables().await {
            let count = sqlx::query_scalar(AssertSqlSafe(format!("select count(*) from {table}")));
            rows.push((table, count.fetch_one(self.db.pool()).await.unwrap()));
        }
        rows
    }

    /// The whole database as text, to search for what must not be in it.
    pub async fn dump(&self) -> String {
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
    claimed: &Claimed,
    now: Timestamp,
    status: SearchStatus,
    reason: Option<&str>,
    price: Option<u32>,
) -> FinishedCall {
    let header = |word: &str| Map::from_iter([("x-search-status".to_owned(), json!(word))]);
    FinishedCall {
        tenant_id: claimed.claim.tenant.uuid(),
        item_id: claimed.claim.item.uuid(),
        number: claimed.claim.number,
        attempt_id: None,
        ended_at: now,
        ending: Ending::Done,
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
