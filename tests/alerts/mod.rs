//! Alerts through everything: monitors, a running worker, the scripted marketplace; slots come at times that the test gives.

mod changes;
mod killed;
mod lists;
mod once;
mod paths;
mod poisoned;
mod size;
mod stale;

use std::sync::Arc;
use std::time::Duration;

use farescan::config::WorkerConfig;
use farescan::contract::Endpoint;
use farescan::upstream::Client;
use farescan::worker::WorkerDeps;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::scans::office::Office;
use crate::support::PATIENCE;
use crate::support::app::{KEY, ring};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::webhooks::post;
use crate::worker::stage::Running;

const MOMENT: SignedDuration = SignedDuration::from_secs(1);

/// An office with a worker at work.
pub struct Watch {
    pub office: Office,
    worker: Running,
}

impl Watch {
    pub async fn open() -> Self {
        let office = Office::open().await;
        let worker = Running::start(WorkerDeps {
            pool: office.db.pool().clone(),
            ring: Arc::new(ring()),
            upstream: Client::new(&office.app.upstream.config()).unwrap(),
            config: WorkerConfig {
                lease_seconds: 2,
                ..WorkerConfig::default()
            },
        });
        Self { office, worker }
    }

    pub async fn close(self) {
        self.worker.stop().await;
    }

    /// What searches are answered from now on.
    pub fn market(&self, answer: impl FnMut(&Value) -> Reply + Send + 'static) {
        let mut answer = answer;
        self.office
            .app
            .upstream
            .on(Endpoint::FlightsOneway)
            .answer(move |call| answer(&call.body));
    }

    /// The monitor's next slot comes, its scan runs and is judged. Gives the slot as it stands then.
    pub async fn run(&self, id: &str) -> Value {
        let slot = self.office.next_slot(id).await;
        self.office.tick(slot).await;
        self.all_ended().await;
        self.office.tick(slot + MOMENT).await;
        self.office
            .slots(id)
            .await
            .into_iter()
            .find(|row| row["slot"] == json!(slot))
            .unwrap()
    }

    pub async fn all_ended(&self) {
        let end = tokio::time::Instant::now() + PATIENCE;
        while self
            .office
            .count("select count(*) from scans where finished_at is null")
            .await
            > 0
        {
            assert!(
                tokio::time::Instant::now() < end,
                "waited in vain until the scans have ended"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// A scan through, so that the marketplace has accepted the key and more than one may be underway.
    pub async fn warm(&self) {
        self.office.order(&crate::scans::office::fares(1)).await;
        self.all_ended().await;
    }

    /// Makes a monitor with a webhook; its id.
    pub async fn monitor(&self, body: &Value) -> String {
        let id = self.office.watch(body).await;
        let pool = self.office.db.pool();
        let tenant = post::tenant(pool, KEY).await;
        post::open_for(
            &ring(),
            pool,
            tenant,
            id.parse().unwrap(),
            "http://hooks.test/",
        )
        .await;
        id
    }

    /// What the monitor's webhook is to be told, newest first. Nobody delivers here.
    pub async fn told(&self, id: &str) -> Vec<Value> {
        let page = self
            .office
            .get(&format!("/v1/deliveries?monitor_id={id}&limit=500"))
            .await;
        let mut told = Vec::new();
        for delivery in page["data"].as_array().unwrap() {
            assert_eq!(
                (&delivery["event_type"], &delivery["status"]),
                (&json!("monitor.alerts"), &json!("pending"))
            );
            let shown = self
                .office
                .get(&format!(
                    "/v1/deliveries/{}",
                    delivery["id"].as_str().unwrap()
                ))
                .await;
            told.push(shown["payload"].clone());
        }
        told
    }

    /// Changes a monitor.
    pub async fn change(&self, id: &str, patch: &Value) {
        let answer = self
            .office
            .ask("PATCH", &format!("/v1/monitors/{id}"), Some(patch))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// A monitor's alerts, newest first.
    pub async fn alerts(&self, id: &str) -> Vec<Value> {
        self.office
            .get(&format!("/v1/monitors/{id}/alerts?limit=500"))
            .await["data"]
            .as_array()
            .unwrap()
            .clone()
    }
}

/// A monitor of one fare, or of so many dates, with these rules.
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
