//! Rules with `confirm`: a price is searched once more before it fires (monitors.md, rules 85 to 89).
//! Beside each the marketplace's own ledger.

mod answers;
mod late;
mod limits;
mod meanwhile;
mod next;
mod once;
mod rotation;
mod shown;

use std::collections::HashMap;

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::past::{of_dates, today};
use super::{AlertTest, MOMENT, fares, monitor};
use crate::support::reply::{Gate, Reply};
use crate::support::service::assert_counts_add_up;

/// What the searches of a date find one after another; the last one stays. A price of 0: the search
/// does not complete.
type Prices = &'static [u64];

fn answer(price: u64, asked: &Value) -> Reply {
    match price {
        0 => Reply::search_incomplete("blocked_page"),
        price => fares(&[price], asked),
    }
}

impl AlertTest {
    /// Sells each date at its prices.
    fn sell(&self, dates: &'static [Prices]) {
        let first = today().saturating_add(30.days());
        let mut calls = HashMap::<usize, usize>::new();
        self.respond_with(move |asked| {
            let date: Date = asked["departure_date"].as_str().unwrap().parse().unwrap();
            let index = usize::try_from((date - first).get_days()).unwrap();
            let call = calls.entry(index).or_default();
            let price = dates[index][(*call).min(dates[index].len() - 1)];
            *call += 1;
            answer(price, asked)
        });
    }

    /// Runs the next slot until its rules were evaluated for the first time.
    async fn first_half(&self, id: &str) -> (Timestamp, Value) {
        let slot = self.next_slot(id).await;
        self.tick(slot).await;
        self.all_ended().await;
        assert_eq!(self.tick(slot + MOMENT).await.evaluated, 1);
        (slot, self.slot(id, slot).await)
    }

    /// Evaluates the run again after its confirming searches.
    async fn second_half(&self, id: &str, slot: Timestamp) -> Value {
        self.all_ended().await;
        self.tick(slot + MOMENT * 2).await;
        self.slot(id, slot).await
    }

    async fn slot(&self, id: &str, slot: Timestamp) -> Value {
        let slots = self.slots(id).await;
        slots
            .into_iter()
            .find(|row| row["slot"] == json!(slot))
            .unwrap()
    }

    async fn run_twice(&self, id: &str) -> Value {
        let (slot, _) = self.first_half(id).await;
        self.second_half(id, slot).await
    }

    /// The scan of a slot, with all sums checked against the marketplace's ledger.
    async fn checked_scan(&self, slot: &Value) -> Value {
        let scan = self.scan(slot["scan_id"].as_str().unwrap()).await;
        assert_counts_add_up(&scan);
        self.check_ledger().await;
        scan
    }

    async fn is_armed(&self, id: &str) -> bool {
        let monitor = self.get(&format!("/v1/monitors/{id}")).await;
        monitor["rule_standings"][0]["armed"] != json!(false)
    }
}

fn below(amount: u64) -> Value {
    json!([{"type": "price_below", "amount": amount, "confirm": 1}])
}

fn judged(slot: &Value) -> [&Value; 2] {
    ["fired", "unconfirmed"].map(|name| &slot["judged"][name])
}

/// Fixed dates, so that the runs of a monitor search the same items.
fn dates(count: i64, rules: &Value) -> Value {
    let dates: Vec<_> = (0..count)
        .map(|days| today().saturating_add((30 + days).days()))
        .collect();
    if count == 1 {
        let mut body = monitor(1, rules);
        body["scan"]["request"]["departure_date"] = json!(dates[0]);
        return body;
    }
    of_dates(&dates, rules)
}

impl AlertTest {
    /// The session that died may hold the monitor's lock for a moment.
    async fn wait_until_free(&self, id: &str) {
        let id: farescan::ids::MonitorId = id.parse().unwrap();
        crate::support::wait_until("the monitor is free", async || {
            let sql = "select monitor_id from monitors where monitor_id = $1 for update nowait";
            sqlx::query(sql)
                .bind(id.uuid())
                .execute(self.pool())
                .await
                .is_ok()
        })
        .await;
    }

    /// A run that waits for the answer to its confirming search.
    async fn waiting(&self, body: &Value) -> (String, Timestamp, String, Gate) {
        let id = self.monitor(body).await;
        let gate = Gate::closed();
        let (held, mut calls) = (gate.clone(), 0);
        self.respond_with(move |asked| {
            calls += 1;
            let reply = fares(&[150], asked);
            if calls > 1 {
                reply.gated_by(&held)
            } else {
                reply
            }
        });
        let (slot, waiting) = self.first_half(&id).await;
        let scan = waiting["scan_id"].as_str().unwrap().to_owned();
        self.upstream.wait_for_in_flight(1).await;
        (id, slot, scan, gate)
    }
}
