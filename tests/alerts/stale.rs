//! Slots that come while the run before goes on.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::MOMENT;
use crate::scans::office::Office;

/// A monitor over dates that are answered one by one, by the test, and told as stale after three.
struct Slow {
    office: Office,
    id: String,
    answered: i32,
}

impl Slow {
    async fn begin() -> Self {
        let office = Office::open().await;
        let id = office
            .watch(&super::monitor(30, &json!([{"type": "stale", "runs": 3}])))
            .await;
        let mut slow = Self {
            office,
            id,
            answered: 0,
        };
        assert_eq!(slow.slot().await, ("ran".to_owned(), None));
        slow
    }

    /// The next slot comes. Its outcome, and how often its rules fired; `None`: it is not judged.
    async fn slot(&mut self) -> (String, Option<u64>) {
        let slot = self.next().await;
        self.office.tick(slot).await;
        self.last().await
    }

    async fn next(&self) -> Timestamp {
        self.office.next_slot(&self.id).await
    }

    async fn last(&self) -> (String, Option<u64>) {
        let slots = self.office.slots(&self.id).await;
        (
            slots[0]["outcome"].as_str().unwrap().to_owned(),
            slots[0]["judged"]["fired"].as_u64(),
        )
    }

    /// The next search of the run comes to this, an hour before the next slot.
    async fn answers(&mut self, search_status: &str) {
        let before = self.next().await - SignedDuration::from_hours(1);
        let ended = sqlx::query(
            "update scan_items set state = 'done', search_status = $1, results = 1, calls = 1, observed_at = $2::timestamptz,
                    best_price = case when $1 = 'ok' then 200 end, currency = case when $1 = 'ok' then 'USD' end
             where position = $3",
        );
        let ended = ended
            .bind(search_status)
            .bind(before.to_string())
            .bind(self.answered);
        assert_eq!(
            ended
                .execute(self.office.db.pool())
                .await
                .unwrap()
                .rows_affected(),
            1
        );
        self.answered += 1;
    }

    /// The run ends, some of it unanswered.
    async fn ends(&self) {
        let before = self.next().await - SignedDuration::from_hours(1);
        let pool = self.office.db.pool();
        sqlx::raw_sql("update scan_items set state = 'cancelled' where state <> 'done'")
            .execute(pool)
            .await
            .unwrap();
        let ended = "update scans set status = 'completed', ok = total, finished_at = $1::timestamptz where finished_at is null";
        sqlx::query(ended)
            .bind(before.to_string())
            .execute(pool)
            .await
            .unwrap();
        self.office.tick(before + MOMENT).await;
    }

    async fn alerts(&self) -> Vec<Value> {
        self.office
            .get(&format!("/v1/monitors/{}/alerts", self.id))
            .await["data"]
            .as_array()
            .unwrap()
            .clone()
    }
}

fn overlap(fired: u64) -> (String, Option<u64>) {
    ("overlap".to_owned(), Some(fired))
}

/// It takes longer than eight slots, and is answered all the time.
#[tokio::test]
async fn a_long_run_that_is_answered_is_not_stale() {
    let mut slow = Slow::begin().await;
    for _ in 0..8 {
        slow.answers("ok").await;
        assert_eq!(slow.slot().await, overlap(0));
    }
    slow.ends().await;
    // The same again: nothing was counted.
    assert_eq!(slow.slot().await, ("ran".to_owned(), None));
    assert_eq!(slow.alerts().await, Vec::<Value>::new());
}

/// A rejected key leaves its run paused for ever: that has to be told while it hangs, and once.
#[tokio::test]
async fn a_run_that_hangs_without_an_answer_is_stale() {
    let mut slow = Slow::begin().await;
    assert_eq!(slow.slot().await, overlap(0));
    assert_eq!(slow.slot().await, overlap(0));
    assert_eq!(slow.slot().await, overlap(1));
    assert_eq!(slow.slot().await, overlap(0));
    let alerts = slow.alerts().await;
    assert_eq!(
        (alerts.len(), &alerts[0]["type"], &alerts[0]["threshold"]),
        (1, &json!("stale"), &json!(3))
    );
    assert_eq!(alerts[0]["state_after"]["runs_without_answer"], 3);
}

/// Half of it was answered, and then nothing was: slots count from there. What did not complete is no answer.
#[tokio::test]
async fn a_run_that_stops_being_answered_is_stale() {
    let mut slow = Slow::begin().await;
    slow.answers("ok").await;
    slow.answers("empty").await;
    assert_eq!(slow.slot().await, overlap(0));
    for fired in [0, 0, 1] {
        slow.answers("degraded").await;
        slow.answers("partial").await;
        assert_eq!(slow.slot().await, overlap(fired));
    }
    // It goes on: what was told once is not told again, and its end arms the rule.
    slow.answers("ok").await;
    assert_eq!(slow.slot().await, overlap(0));
    slow.ends().await;
    assert_eq!(slow.slot().await, ("ran".to_owned(), None));
    for fired in [0, 0, 1] {
        assert_eq!(slow.slot().await, overlap(fired));
    }
}

/// A run that the caller began just before a slot is no reason to count that slot; nor are slots that nobody was there for.
#[tokio::test]
async fn a_slot_counts_from_the_slot_of_the_schedule_before_it() {
    let office = Office::open().await;
    let id = office
        .watch(&super::monitor(30, &json!([{"type": "stale", "runs": 1}])))
        .await;
    let mut slow = Slow {
        office,
        id,
        answered: 0,
    };
    assert_eq!(slow.slot().await, ("ran".to_owned(), None));
    slow.answers("ok").await;
    slow.ends().await;
    let hour_before = slow.next().await - SignedDuration::from_hours(1);
    assert_eq!(
        slow.office
            .ask("POST", &format!("/v1/monitors/{}/run", slow.id), None)
            .await
            .status,
        202
    );
    let move_it = "update monitor_slots set slot = $1::timestamptz where kind = 'manual'";
    sqlx::query(move_it)
        .bind((hour_before + MOMENT).to_string())
        .execute(slow.office.db.pool())
        .await
        .unwrap();
    assert_eq!(slow.slot().await, overlap(0));
    // A day without an answer is one.
    assert_eq!(slow.slot().await, overlap(1));
}
