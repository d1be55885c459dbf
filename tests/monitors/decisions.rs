//! A slot is decided once, even if the clocks of processes differ, and every slot is recorded.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use serde_json::{Value, json};

use super::{monitor, with};
use crate::support::{SearchOutcome, TestService};

const DAY: SignedDuration = SignedDuration::from_hours(24);
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// A process whose clock is ahead decides the slot; the update goes to a process with a correct
/// clock.
#[tokio::test]
async fn an_update_does_not_repeat_a_decided_slot() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let id = service.create_monitor(&monitor()).await;
    let path = format!("/v1/monitors/{id}");
    let slot = service.next_slot(&id).await;
    service.tick(slot).await;

    let same = json!({"schedule": monitor()["schedule"]});
    let changed = service.ask("PATCH", &path, Some(&same)).await;
    assert_eq!(
        (changed.status, &changed.json()["next_slot"]),
        (200, &json!(slot + DAY)),
        "{}",
        changed.text()
    );
    let moved = json!({"schedule": {"cron": "0 6,18 * * *", "timezone": "Europe/London"}});
    service.ask("PATCH", &path, Some(&moved)).await;
    assert!(service.next_slot(&id).await > slot);

    assert_eq!(
        service
            .ask("POST", &format!("{path}/pause"), None)
            .await
            .status,
        200
    );
    assert_eq!(
        service
            .ask("POST", &format!("{path}/resume"), None)
            .await
            .status,
        200
    );
    let next = service.next_slot(&id).await;
    assert!(next > slot);
    service.complete_all(|_| SearchOutcome::Ok(100)).await;
    service.tick(next).await;
    assert_eq!(service.outcomes(&id).await, ["ran", "ran"]);
}

/// Even if the next slot was set back.
#[tokio::test]
async fn a_recorded_slot_is_not_decided_again() {
    let service = TestService::start().await;
    let id = service.create_monitor(&monitor()).await;
    let slot = service.next_slot(&id).await;
    service.tick(slot).await;
    service.complete_all(|_| SearchOutcome::Ok(100)).await;
    set_next(&service, slot).await;
    service.tick(slot).await;
    assert_eq!(service.outcomes(&id).await, ["ran"]);
    assert_eq!(service.next_slot(&id).await, slot + DAY);
    // Also if newer slots are due.
    set_next(&service, slot).await;
    service.tick(slot + DAY * 2).await;
    service.tick(slot + DAY * 2).await;
    assert_eq!(service.outcomes(&id).await, ["ran", "missed", "ran"]);
}

#[tokio::test]
async fn a_pause_records_all_earlier_slots() {
    let service = TestService::start().await;
    let id = service
        .create_monitor(&with(
            &json!({"schedule": {"cron": "0 * * * *", "timezone": "UTC"}}),
        ))
        .await;
    let first = service.next_slot(&id).await - HOUR * 5;
    set_next(&service, first).await;
    assert_eq!(
        service
            .ask("POST", &format!("/v1/monitors/{id}/pause"), None)
            .await
            .status,
        200
    );
    let slots = service.slots(&id).await;
    let events: Vec<_> = slots
        .iter()
        .rev()
        .map(|slot| (slot["slot"].clone(), slot["outcome"].clone()))
        .collect();
    let expected: Vec<_> = (0..events.len().max(5))
        .map(|hour| {
            (
                json!(first + HOUR * i32::try_from(hour).unwrap()),
                json!("missed"),
            )
        })
        .collect();
    assert_eq!(events, expected);
    assert_eq!(
        slots[0]["reason"],
        "the monitor was paused before the slot was decided"
    );
}

async fn set_next(service: &TestService, slot: Timestamp) {
    execute!(
        service.pool(),
        "update monitors set next_slot = $1",
        slot.to_sqlx()
    );
}

#[tokio::test]
async fn a_run_leaves_out_past_dates() {
    let service = TestService::start().await;
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
    let range = service
        .create_monitor(&with(
            &json!({"scan": fixed(json!({"from": day(3), "to": day(9), "step_days": 2}))}),
        ))
        .await;
    service.accept_key_by_steps().await;
    let list = service
        .create_monitor(&with(
            &json!({"scan": fixed(json!([day(3), day(6), day(9)]))}),
        ))
        .await;
    let mut slot = service.next_slot(&range).await;
    let mut searched = Vec::new();
    for _ in 0..12 {
        service.tick(slot).await;
        let dates = async |id: &str| {
            let newest = service.slots(id).await[0].clone();
            match newest["scan_id"].as_str() {
                Some(scan) => service.scan(scan).await["items"]["total"].as_u64().unwrap(),
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
        service.complete_all(|_| SearchOutcome::Ok(100)).await;
        slot += DAY;
    }
    searched.dedup();
    assert_eq!(searched, [(4, 3), (3, 2), (2, 2), (2, 1), (1, 1), (0, 0)]);

    // Errors of unchanged fields do not refuse an update: all dates lie a century back.
    let back = r#"update monitors set scan = replace(scan::text, '"20', '"19')::json"#;
    execute!(service.pool(), back);
    for id in [&range, &list] {
        let path = format!("/v1/monitors/{id}");
        let before = service.monitor(id).await;
        for change in [
            json!({"alerts": [{"type": "new_low", "days": 30}]}),
            json!({"schedule": before["schedule"]}),
            json!({"name": "later"}),
        ] {
            let changed = service.ask("PATCH", &path, Some(&change)).await;
            assert_eq!(changed.status, 200, "{change}: {}", changed.text());
        }
    }
}

/// A tenant with very many runs does not delay a tenant with one.
#[tokio::test]
async fn runs_are_evaluated_round_robin_over_tenants() {
    let service = TestService::start().await;
    let many = service.create_monitor(&monitor()).await;
    let few = service
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
    execute!(service.pool(), slots, many);
    assert_eq!(service.tick(Timestamp::now()).await.evaluated, 200);
    let judged: Vec<(uuid::Uuid, i64)> = rows!(
        service.pool(),
        "select monitor_id, count(*) from monitor_slots where evaluated_at is not null group by 1 order by 2"
    );
    let few = few["id"]
        .as_str()
        .unwrap()
        .parse::<farescan::ids::MonitorId>()
        .unwrap()
        .uuid();
    assert_eq!(judged, [(few, 1), (many, 199)]);
}
