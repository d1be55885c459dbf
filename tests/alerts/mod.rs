//! Alerts end to end: monitors, a running worker and the scripted marketplace; the test sets the
//! times of slots.

mod confirm;
mod exactly_once;
mod implausible;
mod kill;
mod lists;
mod notify;
pub mod past;
mod plan;
mod price_sequences;
mod size;
mod stale;
mod unreadable;
mod updates;

use farescan::contract::Endpoint;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::app::{KEY, ring};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{TestService, array};
use crate::webhooks::harness;
use crate::worker::fixture::RunningWorker;

const MOMENT: SignedDuration = SignedDuration::from_secs(1);

/// A service with a running worker.
pub struct AlertTest {
    service: TestService,
    worker: RunningWorker,
}

impl std::ops::Deref for AlertTest {
    type Target = TestService;

    fn deref(&self) -> &TestService {
        &self.service
    }
}

impl AlertTest {
    pub async fn open() -> Self {
        Self::of(TestService::start().await)
    }

    pub fn of(service: TestService) -> Self {
        let worker = service.start_worker(8);
        Self { service, worker }
    }

    pub async fn close(self) {
        self.worker.stop().await;
    }

    /// Sets the response to searches from now on.
    pub fn respond_with(&self, answer: impl FnMut(&Value) -> Reply + Send + 'static) {
        let mut answer = answer;
        self.upstream
            .on(Endpoint::FlightsOneway)
            .answer(move |call| answer(&call.body));
    }

    /// Decides the monitor's next slot, completes its scan, evaluates the rules and returns the
    /// slot.
    pub async fn run(&self, id: &str) -> Value {
        let slot = self.next_slot(id).await;
        self.tick(slot).await;
        self.all_ended().await;
        self.tick(slot + MOMENT).await;
        self.slots(id)
            .await
            .into_iter()
            .find(|row| row["slot"] == json!(slot))
            .unwrap()
    }

    pub async fn all_ended(&self) {
        let live = "select count(*) from scans where finished_at is null";
        self.wait_for_count(live, 0).await;
    }

    /// Creates a monitor with a webhook and returns its id.
    pub async fn monitor(&self, body: &Value) -> String {
        let id = self.create_monitor(body).await;
        let pool = self.pool();
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
            .get(&format!("/v1/deliveries?monitor_id={id}&limit=500"))
            .await;
        let mut events = Vec::new();
        for delivery in array(&page["data"]) {
            assert_eq!(
                (&delivery["event_type"], &delivery["status"]),
                (&json!("monitor.alerts"), &json!("pending"))
            );
            let shown = self
                .get(&format!(
                    "/v1/deliveries/{}",
                    delivery["id"].as_str().unwrap()
                ))
                .await;
            events.push(shown["payload"].clone());
        }
        events
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

/// A monitor of one fixed date: all runs see the same product.
pub fn of_one_date(rules: &Value) -> Value {
    let mut body = monitor(1, rules);
    body["scan"]["request"]["departure_date"] = json!("2030-02-01");
    body
}

pub fn fares(prices: &[u64], asked: &Value) -> Reply {
    Reply::json(prices.iter().map(|price| fare(*price, asked)).collect())
}

/// Listed alerts as recorded and sent: without their delivery, which all of them have.
pub fn as_sent(listed: &[Value]) -> Value {
    let sent = listed.iter().map(|alert| {
        let mut alert = alert.clone();
        let delivery = alert.as_object_mut().unwrap().remove("delivery_id");
        assert!(delivery.is_some(), "{alert}");
        alert
    });
    sent.collect()
}

pub fn time(value: &Value) -> Timestamp {
    crate::monitors::at(value.as_str().unwrap())
}
