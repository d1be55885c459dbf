//! Monitors: created, updated and read over HTTP; ticks decide their slots at times that the test
//! sets.

mod control;
mod create;
mod decisions;
mod kill;
mod read;
mod retention;
mod tick;
mod webhook;
mod year;

use std::sync::Arc;
use std::time::Duration;

use farescan::config::PaceConfig;
use farescan::monitors::tick::Ticker;
use jiff::Timestamp;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::scans::stepped_service::{SearchOutcome, SteppedService};
use crate::support::app::{HttpResponse, KEY, ring};

/// A monitor of one fare, a week ahead, every morning in London.
pub fn monitor() -> Value {
    json!({
        "name": "a week ahead",
        "schedule": {"cron": "0 6 * * *", "timezone": "Europe/London"},
        "scan": {
            "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "+7d"}
        }
    })
}

/// The same monitor with more fields.
pub fn with(more: &Value) -> Value {
    let mut body = monitor();
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

pub fn ticker(pool: &PgPool) -> Ticker {
    let pace = PaceConfig {
        flights_per_minute: 60_000,
        hotels_per_minute: 60_000,
        max_in_flight: 1_000,
    };
    // No timeout in tests: the machine may be slow.
    Ticker {
        pool: pool.clone(),
        ring: Arc::new(ring()),
        pace,
        evaluation_timeout: Duration::from_secs(3_600),
    }
}

pub fn at(time: &str) -> Timestamp {
    time.parse().unwrap_or_else(|_| panic!("{time}"))
}

/// The results of a decision pass and an evaluation pass.
#[derive(Debug, PartialEq, Eq)]
pub struct Pass {
    pub decided: usize,
    pub evaluated: usize,
    pub failed: usize,
    pub next: Option<Timestamp>,
}

/// Both passes of a tick, at a time that the test sets.
pub async fn tick(ticker: &Ticker, now: Timestamp) -> sqlx::Result<Pass> {
    let decided = ticker.decide_due_slots(|| now).await?;
    let judged = ticker.evaluate_ended_runs(|| now).await?;
    Ok(Pass {
        decided: decided.decided,
        evaluated: judged.evaluated,
        failed: decided.failed + judged.failed,
        next: decided.next,
    })
}

impl SteppedService {
    pub async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> HttpResponse {
        self.ask_as(KEY, method, path, body).await
    }

    pub async fn ask_as(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> HttpResponse {
        let request = self.app.request(method, path).header("x-api-key", key);
        self.app
            .send(if let Some(body) = body {
                request.json(body)
            } else {
                request
            })
            .await
    }

    /// Creates a monitor and returns its id.
    pub async fn create_monitor(&self, body: &Value) -> String {
        let answer = self.ask("POST", "/v1/monitors", Some(body)).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    pub async fn monitor(&self, id: &str) -> Value {
        self.get(&format!("/v1/monitors/{id}")).await
    }

    /// The time of its next slot.
    pub async fn next_slot(&self, id: &str) -> Timestamp {
        at(self.monitor(id).await["next_slot"].as_str().unwrap())
    }

    /// Its decided slots, newest first.
    pub async fn slots(&self, id: &str) -> Vec<Value> {
        self.get(&format!("/v1/monitors/{id}/slots?limit=500"))
            .await["data"]
            .as_array()
            .unwrap()
            .clone()
    }

    pub async fn outcomes(&self, id: &str) -> Vec<String> {
        self.slots(id)
            .await
            .iter()
            .map(|slot| slot["outcome"].as_str().unwrap().to_owned())
            .collect()
    }

    /// One tick at a time; no monitor may fail.
    pub async fn tick(&self, now: Timestamp) -> Pass {
        let pass = tick(&ticker(self.db.pool()), now).await.unwrap();
        assert_eq!(pass.failed, 0);
        pass
    }

    /// Completes a scan, so that the marketplace has accepted the key and several scans may run.
    pub async fn accept_key(&self) {
        self.submit_and_complete(&crate::scans::stepped_service::fares(1), |_| {
            SearchOutcome::Ok(300)
        })
        .await;
    }

    pub async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql)
            .fetch_one(self.db.pool())
            .await
            .unwrap()
    }
}
