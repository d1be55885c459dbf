//! The caller's key is rotated while prices are confirmed: nothing is lost, and nothing called twice.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{answer, below, dates, judged};
use crate::account::rotate::{NEW_KEY, rotate_to};
use crate::alerts::{AlertTest, MOMENT};
use crate::monitors::{tick, ticker};
use crate::support::app::KEY;
use crate::support::array;
use crate::support::reply::{Gate, Reply};

impl AlertTest {
    /// Answers every search with this price, and the second one through the gate. The check of a new
    /// key is no search.
    fn sell_once_more(&self, gate: &Gate) {
        let (held, mut searches) = (gate.clone(), 0);
        self.respond_with(move |asked| {
            if asked.get("departure_date").is_none() {
                return Reply::status(422).with_json(json!({"detail": []}));
            }
            searches += 1;
            let reply = answer(150, asked);
            if searches == 2 {
                reply.gated_by(&held)
            } else {
                reply
            }
        });
    }

    /// The keys of the searches that the marketplace got, in order.
    fn keys_of_searches(&self) -> Vec<String> {
        let calls = self.upstream.calls().into_iter();
        let searches = calls.filter(|call| call.body.get("departure_date").is_some());
        searches.map(|call| call.key).collect()
    }

    async fn of_new_key(&self, path: &str) -> Value {
        self.get_as(NEW_KEY, path).await.expect(200).json()
    }

    /// Evaluates the run, and checks with the new key that it fired on a confirmed price.
    async fn fires_for_new_key(&self, id: &str, slot: Timestamp) {
        self.all_ended().await;
        assert_eq!(self.tick(slot + MOMENT * 2).await.evaluated, 1);
        let slots = self.of_new_key(&format!("/v1/monitors/{id}/slots")).await;
        assert_eq!(
            judged(&slots["data"][0]),
            [&json!(1), &json!(0)],
            "{slots:#}"
        );
        let alerts = self.of_new_key(&format!("/v1/monitors/{id}/alerts")).await;
        let alerts = array(&alerts["data"]);
        assert_eq!(alerts.len(), 1);
        assert_eq!(
            (&alerts[0]["price"], &alerts[0]["found_first"]["price"]),
            (&json!(150), &json!(150))
        );
        let scan = slots["data"][0]["scan_id"].as_str().unwrap();
        let scan = self.of_new_key(&format!("/v1/scans/{scan}")).await;
        assert_eq!(
            (&scan["status"], &scan["requests"]["spent"]),
            (&json!("completed"), &json!(2)),
            "{scan:#}"
        );
        self.check_ledger().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmation_in_flight_ends_with_the_key_that_it_began_with() {
    let test = AlertTest::open().await;
    let id = test.monitor(&dates(1, &below(200))).await;
    let before = test.keys_of_searches().len();
    let gate = Gate::closed();
    test.sell_once_more(&gate);
    let (slot, _) = test.first_half(&id).await;
    test.upstream.wait_for_in_flight(1).await;
    rotate_to(&test, KEY, NEW_KEY).await.expect(200);
    gate.open();
    test.fires_for_new_key(&id, slot).await;
    assert_eq!(test.keys_of_searches()[before..], [KEY, KEY]);
    // The next run has the new key.
    let monitor = test.of_new_key(&format!("/v1/monitors/{id}")).await;
    let next = crate::alerts::time(&monitor["next_slot"]);
    test.tick(next).await;
    test.all_ended().await;
    assert_eq!(test.keys_of_searches()[before..], [KEY, KEY, NEW_KEY]);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_confirmation_is_searched_with_the_new_key() {
    let test = AlertTest::open().await;
    let id = test.monitor(&dates(1, &below(200))).await;
    let before = test.keys_of_searches().len();
    let gate = Gate::closed();
    gate.open();
    test.sell_once_more(&gate);
    let slot = test.next_slot(&id).await;
    test.tick(slot).await;
    test.all_ended().await;
    // Without a worker the confirmation waits.
    let AlertTest { service, worker } = test;
    worker.stop().await;
    let ticker = ticker(service.pool());
    let pass = tick(&ticker, slot + MOMENT).await.unwrap();
    assert_eq!(pass.evaluated, 1);
    let waits = "select count(*) from scan_items where earlier is not null and state = 'pending'";
    assert_eq!(service.count(waits).await, 1);
    rotate_to(&service, KEY, NEW_KEY).await.expect(200);
    assert_eq!(service.count(waits).await, 1);
    let worker = service.start_worker(8);
    let test = AlertTest { service, worker };
    test.fires_for_new_key(&id, slot).await;
    assert_eq!(test.keys_of_searches()[before..], [KEY, NEW_KEY]);
    test.close().await;
}
