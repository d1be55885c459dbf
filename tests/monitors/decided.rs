//! A slot is decided once, also beside clocks that differ, and what came is on record.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use serde_json::{Value, json};

use super::{monitor, with};
use crate::scans::office::{Comes, Office};

const DAY: SignedDuration = SignedDuration::from_hours(24);
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// A process whose clock is ahead has decided the slot; one whose clock is not is asked for changes.
#[tokio::test]
async fn what_was_decided_does_not_come_again_by_a_change() {
    let office = Office::open().await;
    office.warm().await;
    let id = office.watch(&monitor()).await;
    let path = format!("/v1/monitors/{id}");
    let slot = office.next_slot(&id).await;
    office.tick(slot).await;

    let same = json!({"schedule": monitor()["schedule"]});
    let changed = office.ask("PATCH", &path, Some(&same)).await;
    assert_eq!(
        (changed.status, &changed.json()["next_slot"]),
        (200, &json!(slot + DAY)),
        "{}",
        changed.text()
    );
    let moved = json!({"schedule": {"cron": "0 6,18 * * *", "timezone": "Europe/London"}});
    office.ask("PATCH", &path, Some(&moved)).await;
    assert!(office.next_slot(&id).await > slot);

    assert_eq!(
        office
            .ask("POST", &format!("{path}/pause"), None)
            .await
            .status,
        200
    );
    assert_eq!(
        office
            .ask("POST", &format!("{path}/resume"), None)
            .await
            .status,
        200
    );
    let next = office.next_slot(&id).await;
    assert!(next > slot);
    office.work(|_| Comes::Ok(100)).await;
    office.tick(next).await;
    assert_eq!(office.outcomes(&id).await, ["ran", "ran"]);
}

/// Whatever has set its next slot back: it goes on from the first that is not on record.
#[tokio::test]
async fn a_slot_that_is_on_record_is_stepped_over() {
    let office = Office::open().await;
    let id = office.watch(&monitor()).await;
    let slot = office.next_slot(&id).await;
    office.tick(slot).await;
    office.work(|_| Comes::Ok(100)).await;
    set_next(&office, slot).await;
    office.tick(slot).await;
    assert_eq!(office.outcomes(&id).await, ["ran"]);
    assert_eq!(office.next_slot(&id).await, slot + DAY);
    // And where newer ones are due.
    set_next(&office, slot).await;
    office.tick(slot + DAY * 2).await;
    office.tick(slot + DAY * 2).await;
    assert_eq!(office.outcomes(&id).await, ["ran", "missed", "ran"]);
}

#[tokio::test]
async fn a_pause_puts_every_slot_on_record_that_came_before_it() {
    let office = Office::open().await;
    let id = office
        .watch(&with(
            &json!({"schedule": {"cron": "0 * * * *", "timezone": "UTC"}}),
        ))
        .await;
    let first = office.next_slot(&id).await - HOUR * 5;
    set_next(&office, first).await;
    assert_eq!(
        office
            .ask("POST", &format!("/v1/monitors/{id}/pause"), None)
            .await
            .status,
        200
    );
    let slots = office.slots(&id).await;
    let told: Vec<_> = slots
        .iter()
        .rev()
        .map(|slot| (slot["slot"].clone(), slot["outcome"].clone()))
        .collect();
    let expected: Vec<_> = (0..told.len().max(5))
        .map(|hour| {
            (
                json!(first + HOUR * i32::try_from(hour).unwrap()),
                json!("missed"),
            )
        })
        .collect();
    assert_eq!(told, expected);
    assert_eq!(
        slots[0]["reason"],
        "the monitor was paused before it was decided"
    );
}

async fn set_next(office: &Office, slot: Timestamp) {
    sqlx::query("update monitors set next_slot = $1")
        .bind(slot.to_sqlx())
        .execute(office.db.pool())
        .await
        .unwrap();
}

/// Dates of a fixed range pass one after the other: the rest is for sale still.
#[tokio::test]
async fn dates_that_have_passed_are_left_out_of_a_run() {
    let office = Office::open().await;
    let today = Timestamp::now().in_tz("Etc/GMT+12").unwrap().date();
    let day = |days: i32| {
        today
            .checked_add(jiff::Span::new().days(days))
            .unwrap()
            .to_string()
    };
    let fixed = |sweep: Value| {
        json!({"endpoint": "flights/roundtrip", "request": {"from_airport": "TLV", "to_airport": "LHR", "return_date": day(30)},
               "sweep": {"departure_date": sweep}})
    };
    let range = office
        .watch(&with(
            &json!({"scan": fixed(json!({"from": day(3), "to": day(9), "step_days": 2}))}),
        ))
        .await;
    office.warm().await;
    let list = office
        .watch(&with(
            &json!({"scan": fixed(json!([day(3), day(6), day(9)]))}),
        ))
        .await;
    let mut slot = office.next_slot(&range).await;
    let mut searched = Vec::new();
    for _ in 0..12 {
        office.tick(slot).await;
        let dates = async |id: &str| {
            let newest = office.slots(id).await[0].clone();
            match newest["scan_id"].as_str() {
                Some(scan) => office.scan(scan).await["items"]["total"].as_u64().unwrap(),
                None => {
                    assert_eq!(newest["outcome"], "failed");
                    assert!(
                        newest["reason"]
                            .as_str()
                            .unwrap()
                            .contains("has not passed"),
                        "{newest}"
                    );
                    0
                }
            }
        };
        searched.push((dates(&range).await, dates(&list).await));
        office.work(|_| Comes::Ok(100)).await;
        slot += DAY;
    }
    searched.dedup();
    assert_eq!(searched, [(4, 3), (3, 2), (2, 2), (2, 1), (1, 1), (0, 0)]);

    // What a change does not touch does not refuse it, though all of it lies a century back.
    let back = r#"update monitors set scan = replace(scan::text, '"20', '"19')::json"#;
    sqlx::raw_sql(back).execute(office.db.pool()).await.unwrap();
    for id in [&range, &list] {
        let path = format!("/v1/monitors/{id}");
        let before = office.monitor(id).await;
        for change in [
            json!({"alerts": [{"type": "new_low"}]}),
            json!({"schedule": before["schedule"]}),
            json!({"name": "later"}),
        ] {
            let changed = office.ask("PATCH", &path, Some(&change)).await;
            assert_eq!(changed.status, 200, "{change}: {}", changed.text());
        }
    }
}

/// A caller with very many runs to judge is not before one with one.
#[tokio::test]
async fn runs_are_judged_in_turns_of_their_callers() {
    let office = Office::open().await;
    let many = office.watch(&monitor()).await;
    let few = office
        .ask_as(
            "another-key-0123456789",
            "POST",
            "/v1/monitors",
            Some(&monitor()),
        )
        .await
        .json();
    let slots = "insert into monitor_slots (tenant_id, monitor_id, slot, kind, outcome, reason, decided_at)
                 select tenant_id, monitor_id, now() - n * interval '1 hour', 'schedule', 'failed', 'a test', now()
                 from monitors, generate_series(1, case when monitor_id = $1 then 1000 else 1 end) n";
    let many = many.parse::<farescan::ids::MonitorId>().unwrap().uuid();
    sqlx::query(slots)
        .bind(many)
        .execute(office.db.pool())
        .await
        .unwrap();
    assert_eq!(office.tick(Timestamp::now()).await.judged, 200);
    let judged: Vec<(uuid::Uuid, i64)> =
        sqlx::query_as("select monitor_id, count(*) from monitor_slots where judged_at is not null group by 1 order by 2")
            .fetch_all(office.db.pool())
            .await
            .unwrap();
    let few = few["id"]
        .as_str()
        .unwrap()
        .parse::<farescan::ids::MonitorId>()
        .unwrap()
        .uuid();
    assert_eq!(judged, [(few, 1), (many, 199)]);
}
