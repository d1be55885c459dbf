//! `stale` rules while the previous run has not ended.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::MOMENT;
use crate::support::{TestService, text};

/// A monitor whose searches the test answers one by one; stale after three slots.
struct SlowRun {
    service: TestService,
    id: String,
    answered: i32,
}

impl SlowRun {
    async fn begin() -> Self {
        let service = TestService::start().await;
        let id = service
            .create_monitor(&super::monitor(30, &json!([{"type": "stale", "runs": 3}])))
            .await;
        let mut run = Self {
            service,
            id,
            answered: 0,
        };
        assert_eq!(run.tick_next_slot().await, ("ran".to_owned(), None));
        run
    }

    /// Decides the next slot. Returns its outcome and how often its rules fired; `None` if not
    /// evaluated.
    async fn tick_next_slot(&mut self) -> (String, Option<u64>) {
        let slot = self.next_slot().await;
        self.service.tick(slot).await;
        self.last_outcome().await
    }

    async fn next_slot(&self) -> Timestamp {
        self.service.next_slot(&self.id).await
    }

    async fn last_outcome(&self) -> (String, Option<u64>) {
        let slots = self.service.slots(&self.id).await;
        (
            text(&slots[0]["outcome"]),
            slots[0]["judged"]["fired"].as_u64(),
        )
    }

    /// Ends the next search of the run with this status, an hour before the next slot.
    async fn answer_next(&mut self, search_status: &str) {
        let before = self.next_slot().await - SignedDuration::from_hours(1);
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
                .execute(self.service.pool())
                .await
                .unwrap()
                .rows_affected(),
            1
        );
        self.answered += 1;
    }

    /// Ends the run and cancels its other searches.
    async fn end(&self) {
        let before = self.next_slot().await - SignedDuration::from_hours(1);
        let pool = self.service.pool();
        execute!(
            pool,
            "update scan_items set state = 'cancelled' where state <> 'done'"
        );
        let ended = "update scans set status = 'completed', ok = total, finished_at = $1::timestamptz where finished_at is null";
        execute!(pool, ended, before.to_string());
        self.service.tick(before + MOMENT).await;
    }
}

fn overlap(fired: u64) -> (String, Option<u64>) {
    ("overlap".to_owned(), Some(fired))
}

/// It lasts longer than eight slots.
#[tokio::test]
async fn a_slow_run_with_answers_is_not_stale() {
    let mut run = SlowRun::begin().await;
    for _ in 0..8 {
        run.answer_next("ok").await;
        assert_eq!(run.tick_next_slot().await, overlap(0));
    }
    run.end().await;
    // No slot was counted.
    assert_eq!(run.tick_next_slot().await, ("ran".to_owned(), None));
    assert_eq!(run.service.alerts(&run.id).await, Vec::<Value>::new());
}

/// A rejected key pauses its run for ever: the alert must fire meanwhile, once.
#[tokio::test]
async fn a_hanging_run_without_answers_is_stale() {
    let mut run = SlowRun::begin().await;
    assert_eq!(run.tick_next_slot().await, overlap(0));
    assert_eq!(run.tick_next_slot().await, overlap(0));
    assert_eq!(run.tick_next_slot().await, overlap(1));
    assert_eq!(run.tick_next_slot().await, overlap(0));
    let alerts = run.service.alerts(&run.id).await;
    assert_eq!(
        (alerts.len(), &alerts[0]["type"], &alerts[0]["threshold"]),
        (1, &json!("stale"), &json!(3))
    );
    assert_eq!(alerts[0]["state_after"]["runs_without_answer"], 3);
}

/// Slots count from the last answer. A degraded search is no answer.
#[tokio::test]
async fn a_run_that_stops_getting_answers_is_stale() {
    let mut run = SlowRun::begin().await;
    run.answer_next("ok").await;
    run.answer_next("empty").await;
    assert_eq!(run.tick_next_slot().await, overlap(0));
    for fired in [0, 0, 1] {
        run.answer_next("degraded").await;
        run.answer_next("partial").await;
        assert_eq!(run.tick_next_slot().await, overlap(fired));
    }
    // The run continues: the rule does not fire again, and the end of the run rearms it.
    run.answer_next("ok").await;
    assert_eq!(run.tick_next_slot().await, overlap(0));
    run.end().await;
    assert_eq!(run.tick_next_slot().await, ("ran".to_owned(), None));
    for fired in [0, 0, 1] {
        assert_eq!(run.tick_next_slot().await, overlap(fired));
    }
}

/// A manual run just before a slot does not count against it, and missed slots do not count.
#[tokio::test]
async fn stale_counts_from_the_previous_slot_of_the_schedule() {
    let service = TestService::start().await;
    let id = service
        .create_monitor(&super::monitor(30, &json!([{"type": "stale", "runs": 1}])))
        .await;
    let mut run = SlowRun {
        service,
        id,
        answered: 0,
    };
    assert_eq!(run.tick_next_slot().await, ("ran".to_owned(), None));
    run.answer_next("ok").await;
    run.end().await;
    let hour_before = run.next_slot().await - SignedDuration::from_hours(1);
    assert_eq!(
        run.service
            .ask("POST", &format!("/v1/monitors/{}/run", run.id), None)
            .await
            .status,
        202
    );
    let move_it = "update monitor_slots set slot = $1::timestamptz where kind = 'manual'";
    execute!(
        run.service.pool(),
        move_it,
        (hour_before + MOMENT).to_string()
    );
    assert_eq!(run.tick_next_slot().await, overlap(0));
    // A day without an answer counts.
    assert_eq!(run.tick_next_slot().await, overlap(1));
}
