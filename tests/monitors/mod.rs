//! Monitors: created, updated and read over HTTP; ticks decide their slots at times that the test
//! sets.

pub mod backtest;
mod control;
mod create;
mod decisions;
mod kill;
mod notify;
mod parity;
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

use crate::support::app::ring;
use crate::support::service;
use crate::support::{TestService, text};

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
    service::with(monitor(), more)
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
        public_url: None,
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

impl TestService {
    pub async fn monitor(&self, id: &str) -> Value {
        self.get(&format!("/v1/monitors/{id}")).await
    }

    /// Updates a monitor.
    pub async fn patch(&self, id: &str, patch: &Value) {
        let path = format!("/v1/monitors/{id}");
        self.ask("PATCH", &path, Some(patch)).await.expect(200);
    }

    /// A monitor's alerts, newest first.
    pub async fn alerts(&self, id: &str) -> Vec<Value> {
        self.page(&format!("/v1/monitors/{id}/alerts?limit=500"))
            .await
    }

    /// The time of its next slot.
    pub async fn next_slot(&self, id: &str) -> Timestamp {
        at(self.monitor(id).await["next_slot"].as_str().unwrap())
    }

    /// Its decided slots, newest first.
    pub async fn slots(&self, id: &str) -> Vec<Value> {
        self.page(&format!("/v1/monitors/{id}/slots?limit=500"))
            .await
    }

    pub async fn outcomes(&self, id: &str) -> Vec<String> {
        self.slots(id)
            .await
            .iter()
            .map(|slot| text(&slot["outcome"]))
            .collect()
    }

    /// One tick at a time; no monitor may fail.
    pub async fn tick(&self, now: Timestamp) -> Pass {
        let pass = tick(&ticker(self.db.pool()), now).await.unwrap();
        assert_eq!(pass.failed, 0);
        pass
    }
}
