//! Alerts end to end: monitors, a running worker and the scripted marketplace; the test sets the
//! times of slots.

mod exactly_once;
mod kill;
mod lists;
mod price_sequences;
mod size;
mod stale;
mod unreadable;
mod updates;

use std::sync::Arc;
use std::time::Duration;

use farescan::config::WorkerConfig;
use farescan::contract::Endpoint;
use farescan::upstream::Client;
use farescan::worker::WorkerDeps;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::scans::stepped_service::SteppedService;
use crate::support::WAIT_LIMIT;
use crate::support::app::{KEY, ring};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::webhooks::harness;
use crate::worker::fixture::RunningWorker;

const MOMENT: SignedDuration = SignedDuration::from_secs(1);

/// A service with a running worker.
pub struct AlertTest {
    pub service: SteppedService,
    worker: RunningWorker,
}

impl AlertTest {
    pub async fn open() -> Self {
        let service = SteppedService::start().await;
        let worker = RunningWorker::start(WorkerDeps {
            pool: service.db.pool().clone(),
            ring: Arc::new(ring()),
            upstream: Client::new(&service.app.upstream.config()).unwrap(),
            config: WorkerConfig {
                lease_seconds: 2,
                ..WorkerConfig::default()
            },
        });
        Self { service, worker }
    }

    pub async fn close(self) {
        self.worker.stop().await;
    }

    /// Sets the response to searches from now on.
    pub fn respond_with(&self, answer: impl FnMut(&Value) -> Reply + Send + 'static) {
        let mut answer = answer;
        self.service
            .app
            .upstream
            .on(Endpoint::FlightsOneway)
            .answer(move |call| answer(&call.body));
    }

    /// Decides the monitor's next slot, completes its scan, evaluates the rules and returns the
    /// slot.
    pub async fn run(&self, id: &str) -> Value {
        let slot = self.service.next_slot(id).await;
        self.service.tick(slot).await;
        self.all_ended().await;
        self.service.tick(slot + MOMENT).await;
        self.service
            .slots(id)
            .await
            .into_iter()
            .find(|row| row["slot"] == json!(slot))
            .unwrap()
    }

    pub async fn all_ended(&self) {
        let end = tokio::time::Instant::now() + WAIT_LIMIT;
        while self
            .service
            .count("select count(*) from scans where finished_at is null")
            .await
            > 0
        {
            assert!(
                tokio::time::Instant::now() < end,
                "timed out waiting for the scans to end"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Completes a scan, so that the marketplace has accepted the key and several scans may run.
    pub async fn accept_key(&self) {
        self.service
            .submit(&crate::scans::stepped_service::fares(1))
            .await;
        self.all_ended().await;
    }

    /// Creates a monitor with a webhook and returns its id.
    pub async fn monitor(&self, body: &Value) -> String {
        let id = self.service.create_monitor(body).await;
        let pool = self.service.db.pool();
        let tenant = harness::tenant(pool, KEY).await;
        harness::open_for(
            &ring(),
            pool,
            tenant,
            id.parse().unwrap(),
            "http://hooks.test/",
        )
        .await;
        id
    }

    /// The pending events for the monitor's webhook, newest first. No deliverer runs here.
    pub async fn events(&self, id: &str) -> Vec<Value> {
        let page = self
            .service
            .get(&format!("/v1/deliveries?monitor_id={id}&limit=500"))
            .await;
        let mut events = Vec::new();
        for delivery in page["data"].as_array().unwrap() {
            assert_eq!(
                (&delivery["event_type"], &delivery["status"]),
                (&json!("monitor.alerts"), &json!("pending"))
            );
            let shown = self
                .service
                .get(&format!(
                    "/v1/deliveries/{}",
                    delivery["id"].as_str().unwrap()
                ))
                .await;
            events.push(shown["payload"].clone());
        }
        events
    }

    /// Updates a monitor.
    pub async fn patch(&self, id: &str, patch: &Value) {
        let answer = self
            .service
            .ask("PATCH", &format!("/v1/monitors/{id}"), Some(patch))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// A monitor's alerts, newest first.
    pub async fn alerts(&self, id: &str) -> Vec<Value> {
        self.service
            .get(&format!("/v1/monitors/{id}/alerts?limit=500"))
            .await["data"]
            .as_array()
            .unwrap()
            .clone()
    }
}

/// A monitor of one date or several dates, with these rules.
pub fn monitor(dates: i64, rules: &Value) -> Value {
    let mut body = crate::monitors::with(&json!({"alerts": rules}));
    body["scan"] = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "currency": "USD"},
        "sweep": {"departure_date": {"from": "+30d", "to": format!("+{}d", 29 + dates)}}
    });
    if dates == 1 {
        body["scan"]["request"]["departure_date"] = json!("+30d");
        body["scan"].as_object_mut().unwrap().remove("sweep");
    }
    body
}

pub fn fares(prices: &[u64], asked: &Value) -> Reply {
    Reply::json(prices.iter().map(|price| fare(*price, asked)).collect())
}

pub fn time(value: &Value) -> Timestamp {
    crate::monitors::at(value.as_str().unwrap())
}
