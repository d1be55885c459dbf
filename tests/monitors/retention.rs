//! The retention of alerts and slots.

use farescan::config::RetentionConfig;
use farescan::upkeep::retention::{RemovedRows, remove_expired};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::{at, monitor, with};
use crate::support::{SearchOutcome, TestService, billed, text};

const DAY: SignedDuration = SignedDuration::from_hours(24);
const MOMENT: SignedDuration = SignedDuration::from_secs(1);

fn days(alert: u32) -> RetentionConfig {
    RetentionConfig {
        alert_retention_days: alert,
        answer_retention_days: 0,
        ..RetentionConfig::default()
    }
}

impl TestService {
    async fn remove_expired(&self, days_kept: u32, now: Timestamp) -> RemovedRows {
        remove_expired(self.db.pool(), &days(days_kept), now)
            .await
            .unwrap()
    }

    /// Inserts a decided slot.
    async fn insert_slot(&self, id: &str, slot: &str, kind: &str, outcome: &str, more: &str) {
        let id: farescan::ids::MonitorId = id.parse().unwrap();
        let sql = format!(
            "insert into monitor_slots (tenant_id, monitor_id, slot, kind, outcome, decided_at, scan_id, evaluated_at)
             select tenant_id, monitor_id, $2::timestamptz, $3, $4, $2::timestamptz, {more} from monitors where monitor_id = $1"
        );
        assert_eq!(
            execute!(
                self.db.pool(),
                AssertSqlSafe(sql),
                id.uuid(),
                jiff_sqlx::Timestamp::from(at(slot)),
                kind,
                outcome
            ),
            1
        );
    }

    async fn slot_times(&self, id: &str) -> Vec<String> {
        let mut times: Vec<_> = self
            .slots(id)
            .await
            .iter()
            .map(|slot| text(&slot["slot"]))
            .collect();
        times.reverse();
        times
    }
}

#[tokio::test]
async fn alerts_and_slots_expire_but_the_newest_slot_stays() {
    let service = TestService::start().await;
    let rules = json!({"alerts": [{"type": "price_below", "amount": 200, "rearm_percent": 0}], "max_requests_per_month": 40});
    let id = service.create_monitor(&with(&rules)).await;
    let first = service.next_slot(&id).await;
    for (slot, price) in [(first, 150), (first + DAY, 250), (first + DAY * 2, 140)] {
        service.tick(slot).await;
        service.complete_all(|_| SearchOutcome::Ok(price)).await;
        assert_eq!(service.tick(slot + MOMENT).await.evaluated, 1);
    }
    let events = service.page("/v1/alerts").await;
    assert_eq!(events.len(), 2);
    let year = DAY * 365;
    let fired = at(events[1]["fired_at"].as_str().unwrap());
    assert_eq!(
        service.remove_expired(365, first + year).await,
        RemovedRows::default(),
        "nothing expires before the limit"
    );
    let retired = service.remove_expired(365, fired + year + MOMENT).await;
    assert_eq!((retired.alerts, retired.slots), (1, 1));
    assert_eq!(service.get("/v1/alerts").await["data"], json!([events[0]]));
    assert_eq!(service.slots(&id).await.len(), 2);
    let before = service.monitor(&id).await;
    // Long after all limits.
    let retired = service.remove_expired(365, first + year * 3).await;
    assert_eq!((retired.alerts, retired.slots), (1, 1));
    assert_eq!(service.get("/v1/alerts").await["data"], json!([]));
    assert_eq!(service.slots(&id).await, [before["last_slot"].clone()]);
    let after = service.monitor(&id).await;
    assert_eq!(
        (&after["last_slot"], &after["next_slot"]),
        (&before["last_slot"], &before["next_slot"])
    );
    let usage = service.get("/v1/usage?group=monitor").await;
    assert_eq!(billed(&usage), 3, "usage does not change");
    // The next slot is decided as usual.
    let next = service.next_slot(&id).await;
    service.tick(next).await;
    assert_eq!(service.outcomes(&id).await, ["ran", "ran"]);
}

#[tokio::test]
async fn slots_that_are_still_needed_stay() {
    let service = TestService::start().await;
    let (id, single) = (
        service.create_monitor(&monitor()).await,
        service.create_monitor(&monitor()).await,
    );
    service.accept_key_by_steps().await;
    service.submit(&crate::support::fares(1)).await;
    let live = "(select scan_id from scans where finished_at is null), null";
    for (slot, outcome, more) in [
        ("2030-04-29T12:00:00Z", "ran", "null, now()"),
        ("2030-04-29T13:00:00Z", "ran", live),
        ("2030-04-29T14:00:00Z", "failed", "null, null"),
        ("2030-04-29T15:00:00Z", "overlap", "null, now()"),
        ("2030-04-29T16:00:00Z", "missed", "null, null"),
        ("2030-04-29T17:00:00Z", "monthly_ceiling", "null, null"),
        // Its scan was deleted before the evaluation.
        ("2030-04-29T18:00:00Z", "late", "null, null"),
        // Already in May in the zone where the day begins first.
        ("2030-04-30T10:00:00Z", "missed", "null, null"),
        ("2030-05-20T10:00:00Z", "missed", "null, null"),
        ("2030-06-01T10:00:00Z", "missed", "null, null"),
    ] {
        service
            .insert_slot(&id, slot, "schedule", outcome, more)
            .await;
    }
    for kind in ["schedule", "manual"] {
        service
            .insert_slot(
                &single,
                "2029-01-01T00:00:00Z",
                kind,
                "missed",
                "null, null",
            )
            .await;
    }
    let now = at("2030-06-15T12:00:00Z");
    assert_eq!(
        service.remove_expired(0, now).await,
        RemovedRows::default(),
        "for good"
    );
    assert_eq!(
        service.remove_expired(60, now).await.slots,
        0,
        "slots since the middle of April"
    );
    assert_eq!(service.remove_expired(1, now).await.slots, 5);
    let kept = [
        "2030-04-29T13:00:00Z",
        "2030-04-29T14:00:00Z",
        "2030-04-30T10:00:00Z",
        "2030-05-20T10:00:00Z",
        "2030-06-01T10:00:00Z",
    ];
    assert_eq!(service.slot_times(&id).await, kept);
    assert_eq!(
        service.slot_times(&single).await.len(),
        2,
        "the newest slot of each kind"
    );
    // On the first of June it is still May where the day begins last; the last month there is
    // April.
    service
        .insert_slot(
            &id,
            "2030-04-01T12:00:00Z",
            "schedule",
            "missed",
            "null, null",
        )
        .await;
    assert_eq!(
        service
            .remove_expired(1, at("2030-06-01T11:59:59Z"))
            .await
            .slots,
        0
    );
    assert_eq!(
        service
            .remove_expired(1, at("2030-06-02T00:00:00Z"))
            .await
            .slots,
        1
    );
}

#[tokio::test]
async fn rows_expire_in_batches_that_skip_locked_rows() {
    let service = TestService::start().await;
    service.create_monitor(&monitor()).await;
    let alerts = "insert into alerts select tenant_id, md5(n::text)::uuid, monitor_id, 'stale', '2028-01-01'::timestamptz + n * interval '1 s', '{}'
                  from monitors cross join generate_series(1, 6000) n";
    let slots = "insert into monitor_slots (tenant_id, monitor_id, slot, kind, outcome, decided_at)
                 select tenant_id, monitor_id, '2028-01-01'::timestamptz + n * interval '1 s', 'manual', 'missed', now()
                 from monitors cross join generate_series(1, 6000) n";
    for sql in [alerts, slots] {
        execute!(service.pool(), sql);
    }
    let mut holder = crate::support::db::begin_holding(service.pool()).await;
    let held = "select from alerts where fired_at < '2028-01-01 00:00:11' for update";
    execute!(&mut *holder, held);
    let now = at("2030-06-15T12:00:00Z");
    let mut passes = Vec::new();
    for _ in 0..3 {
        let RemovedRows { alerts, slots, .. } = service.remove_expired(365, now).await;
        passes.push((alerts, slots));
    }
    holder.rollback().await.unwrap();
    passes.push((service.remove_expired(365, now).await.alerts, 0));
    assert_eq!(passes, [(5_000, 5_000), (990, 999), (0, 0), (10, 0)]);
    assert_eq!(
        service.get("/v1/alerts").await["data"],
        Value::Array(Vec::new())
    );
}
