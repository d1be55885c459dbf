//! How long alerts and slots are kept.

use farescan::config::RetentionConfig;
use farescan::queue::retain::{Retired, retire};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::{at, monitor, with};
use crate::scans::office::{Comes, Office};

const DAY: SignedDuration = SignedDuration::from_hours(24);
const MOMENT: SignedDuration = SignedDuration::from_secs(1);

fn days(alert: u32) -> RetentionConfig {
    RetentionConfig {
        alert_retention_days: alert,
        answer_retention_days: 0,
        ..RetentionConfig::default()
    }
}

impl Office {
    async fn retire(&self, days_kept: u32, now: Timestamp) -> Retired {
        retire(self.db.pool(), &days(days_kept), now).await.unwrap()
    }

    /// What is decided of a monitor's slot, as if it had come at this time.
    async fn decided(&self, id: &str, slot: &str, kind: &str, outcome: &str, more: &str) {
        let id: farescan::ids::MonitorId = id.parse().unwrap();
        let sql = format!(
            "insert into monitor_slots (tenant_id, monitor_id, slot, kind, outcome, decided_at, scan_id, judged_at)
             select tenant_id, monitor_id, $2::timestamptz, $3, $4, $2::timestamptz, {more} from monitors where monitor_id = $1"
        );
        let row = sqlx::query(AssertSqlSafe(sql))
            .bind(id.uuid())
            .bind(jiff_sqlx::Timestamp::from(at(slot)))
            .bind(kind)
            .bind(outcome);
        assert_eq!(
            row.execute(self.db.pool()).await.unwrap().rows_affected(),
            1
        );
    }

    async fn times(&self, id: &str) -> Vec<String> {
        let mut times: Vec<_> = self
            .slots(id)
            .await
            .iter()
            .map(|slot| slot["slot"].as_str().unwrap().to_owned())
            .collect();
        times.reverse();
        times
    }
}

/// A year goes by.
#[tokio::test]
async fn alerts_and_slots_go_after_a_year_and_the_newest_slot_stays() {
    let office = Office::open().await;
    let rules = json!({"alerts": [{"type": "price_below", "amount": 200, "rearm_percent": 0}], "max_requests_per_month": 40});
    let id = office.watch(&with(&rules)).await;
    let first = office.next_slot(&id).await;
    for (slot, price) in [(first, 150), (first + DAY, 250), (first + DAY * 2, 140)] {
        office.tick(slot).await;
        office.work(|_| Comes::Ok(price)).await;
        assert_eq!(office.tick(slot + MOMENT).await.judged, 1);
    }
    let told = office.get("/v1/alerts").await["data"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(told.len(), 2);
    let year = DAY * 365;
    let fired = at(told[1]["fired_at"].as_str().unwrap());
    assert_eq!(
        office.retire(365, first + year).await,
        Retired::default(),
        "not a moment before"
    );
    let retired = office.retire(365, fired + year + MOMENT).await;
    assert_eq!((retired.alerts, retired.slots), (1, 1));
    assert_eq!(office.get("/v1/alerts").await["data"], json!([told[0]]));
    assert_eq!(office.slots(&id).await.len(), 2);
    let before = office.monitor(&id).await;
    // Long after everything.
    let retired = office.retire(365, first + year * 3).await;
    assert_eq!((retired.alerts, retired.slots), (1, 1));
    assert_eq!(office.get("/v1/alerts").await["data"], json!([]));
    assert_eq!(office.slots(&id).await, [before["last_slot"].clone()]);
    let after = office.monitor(&id).await;
    assert_eq!(
        (&after["last_slot"], &after["next_slot"]),
        (&before["last_slot"], &before["next_slot"])
    );
    assert_eq!(
        office.get("/v1/usage?group=monitor").await["totals"]["requests"],
        3,
        "what was billed stays billed"
    );
    // And its next slot comes as ever.
    let next = office.next_slot(&id).await;
    office.tick(next).await;
    assert_eq!(office.outcomes(&id).await, ["ran", "ran"]);
}

/// What else is needed of slots stays, whatever was set.
#[tokio::test]
async fn slots_that_something_goes_by_stay() {
    let office = Office::open().await;
    let (id, single) = (
        office.watch(&monitor()).await,
        office.watch(&monitor()).await,
    );
    office.warm().await;
    office.order(&crate::scans::office::fares(1)).await;
    let live = "(select scan_id from scans where finished_at is null), null";
    for (slot, outcome, more) in [
        ("2030-04-29T12:00:00Z", "ran", "null, now()"),
        ("2030-04-29T13:00:00Z", "ran", live),
        ("2030-04-29T14:00:00Z", "failed", "null, null"),
        ("2030-04-29T15:00:00Z", "overlap", "null, now()"),
        ("2030-04-29T16:00:00Z", "missed", "null, null"),
        ("2030-04-29T17:00:00Z", "monthly_ceiling", "null, null"),
        // Its scan was deleted before it was judged.
        ("2030-04-29T18:00:00Z", "late", "null, null"),
        // In May already, where the day begins first.
        ("2030-04-30T10:00:00Z", "missed", "null, null"),
        ("2030-05-20T10:00:00Z", "missed", "null, null"),
        ("2030-06-01T10:00:00Z", "missed", "null, null"),
    ] {
        office.decided(&id, slot, "schedule", outcome, more).await;
    }
    for kind in ["schedule", "manual"] {
        office
            .decided(
                &single,
                "2029-01-01T00:00:00Z",
                kind,
                "missed",
                "null, null",
            )
            .await;
    }
    let now = at("2030-06-15T12:00:00Z");
    assert_eq!(office.retire(0, now).await, Retired::default(), "for good");
    assert_eq!(
        office.retire(60, now).await.slots,
        0,
        "since the middle of April"
    );
    assert_eq!(office.retire(1, now).await.slots, 5);
    let kept = [
        "2030-04-29T13:00:00Z",
        "2030-04-29T14:00:00Z",
        "2030-04-30T10:00:00Z",
        "2030-05-20T10:00:00Z",
        "2030-06-01T10:00:00Z",
    ];
    assert_eq!(office.times(&id).await, kept);
    assert_eq!(
        office.times(&single).await.len(),
        2,
        "its newest, both of them"
    );
    // On the first of June it is May yet where the day begins last, and the last month is April there.
    office
        .decided(
            &id,
            "2030-04-01T12:00:00Z",
            "schedule",
            "missed",
            "null, null",
        )
        .await;
    assert_eq!(office.retire(1, at("2030-06-01T11:59:59Z")).await.slots, 0);
    assert_eq!(office.retire(1, at("2030-06-02T00:00:00Z")).await.slots, 1);
}

/// Some in a pass, and whoever holds a row is not waited for.
#[tokio::test]
async fn much_of_it_goes_piece_by_piece_and_waits_for_nobody() {
    let office = Office::open().await;
    office.watch(&monitor()).await;
    let alerts = "insert into alerts select tenant_id, md5(n::text)::uuid, monitor_id, 'stale', '2028-01-01'::timestamptz + n * interval '1 s', '{}'
                  from monitors cross join generate_series(1, 6000) n";
    let slots = "insert into monitor_slots (tenant_id, monitor_id, slot, kind, outcome, decided_at)
                 select tenant_id, monitor_id, '2028-01-01'::timestamptz + n * interval '1 s', 'manual', 'missed', now()
                 from monitors cross join generate_series(1, 6000) n";
    for sql in [alerts, slots] {
        sqlx::raw_sql(sql).execute(office.db.pool()).await.unwrap();
    }
    let mut holder = farescan::db::begin(office.db.pool()).await.unwrap();
    let held = "select from alerts where fired_at < '2028-01-01 00:00:11' for update";
    sqlx::query(held).execute(&mut *holder).await.unwrap();
    let now = at("2030-06-15T12:00:00Z");
    let mut passes = Vec::new();
    for _ in 0..3 {
        let Retired { alerts, slots, .. } = office.retire(365, now).await;
        passes.push((alerts, slots));
    }
    holder.rollback().await.unwrap();
    passes.push((office.retire(365, now).await.alerts, 0));
    assert_eq!(passes, [(5_000, 5_000), (990, 999), (0, 0), (10, 0)]);
    assert_eq!(
        office.get("/v1/alerts").await["data"],
        Value::Array(Vec::new())
    );
}
