//! The decision of slots.

use farescan::queue::pause_scan::{PauseCause, pause_scan};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{monitor, tick, ticker, with};
use crate::support::{SearchOutcome, TestService, array, text};

const DAY: SignedDuration = SignedDuration::from_hours(24);
const MOMENT: SignedDuration = SignedDuration::from_secs(1);

#[tokio::test]
async fn a_slot_starts_one_scan_with_resolved_dates() {
    let service = TestService::start().await;
    let id = service.create_monitor(&monitor()).await;
    let slot = service.next_slot(&id).await;
    let before = service.tick(slot - MOMENT).await;
    assert_eq!(
        (before.decided, before.next),
        (0, Some(slot)),
        "not due yet"
    );
    assert_eq!(service.tick(slot).await.decided, 1);
    assert_eq!(service.tick(slot).await.decided, 0, "once");

    let slots = service.slots(&id).await;
    assert_eq!(slots.len(), 1);
    let scan = service.scan(slots[0]["scan_id"].as_str().unwrap()).await;
    let date = slot
        .in_tz("Europe/London")
        .unwrap()
        .date()
        .checked_add(jiff::Span::new().days(7))
        .unwrap();
    assert_eq!(
        slots[0],
        json!({
            "slot": slot, "kind": "schedule", "outcome": "ran", "reason": null, "scan_id": scan["id"], "decided_at": slot,
            "judged": null
        })
    );
    assert_eq!(scan["request"]["departure_date"], date.to_string());
    assert_eq!(
        (&scan["monitor_id"], &scan["status"]),
        (&json!(id), &json!("queued"))
    );
    assert_eq!(service.monitor(&id).await["last_slot"], slots[0]);
    assert_eq!(service.next_slot(&id).await.duration_since(slot), DAY);
    let of_monitor = service.get(&format!("/v1/scans?monitor_id={id}")).await;
    assert_eq!(array(&of_monitor["data"]).len(), 1);
    let priority = service
        .count("select count(*) from scans where priority = 'scheduled' and monitor_id is not null")
        .await;
    assert_eq!(priority, 1, "lower than an interactive scan");

    // The end of the scan wipes the scan's key, but not the monitor's.
    service.complete_all(|_| SearchOutcome::Ok(150)).await;
    assert_eq!(
        service.scan(scan["id"].as_str().unwrap()).await["key_custody"],
        Value::Null
    );
    assert_eq!(
        service.monitor(&id).await["key_custody"],
        json!({"until": null})
    );
    let pass = service.tick(slot + MOMENT).await;
    assert_eq!((pass.decided, pass.evaluated), (0, 1));
    assert_eq!(
        service.tick(slot + MOMENT).await.evaluated,
        0,
        "a run is evaluated once"
    );
    assert_eq!(
        service
            .count("select count(*) from monitor_slots where evaluated_at is not null")
            .await,
        1
    );
}

#[tokio::test]
async fn the_newest_missed_slot_runs_and_the_others_are_recorded() {
    let service = TestService::start().await;
    let id = service
        .create_monitor(&with(
            &json!({"schedule": {"cron": "0 * * * *", "timezone": "UTC"}}),
        ))
        .await;
    let first = service.next_slot(&id).await;
    // An outage of a little more than five slots.
    let back = first + SignedDuration::from_mins(4 * 60 + 40);
    assert_eq!(service.tick(back).await.decided, 1);
    let slots = service.slots(&id).await;
    let newest = first + SignedDuration::from_hours(4);
    let decided: Vec<_> = slots
        .iter()
        .map(|slot| (slot["slot"].clone(), text(&slot["outcome"])))
        .collect();
    let expected: Vec<_> = (0..5)
        .rev()
        .map(|hour| {
            let slot = first + SignedDuration::from_hours(hour);
            (
                json!(slot),
                if slot == newest { "late" } else { "missed" }.to_owned(),
            )
        })
        .collect();
    assert_eq!(decided, expected);
    assert_eq!(service.count("select count(*) from scans").await, 1);
    assert_eq!(
        service.next_slot(&id).await,
        newest + SignedDuration::from_hours(1)
    );
}

/// Months of slots every 15 minutes: the newest one still runs.
#[tokio::test]
async fn very_many_missed_slots_are_recorded_in_batches() {
    let service = TestService::start().await;
    let id = service
        .create_monitor(&with(
            &json!({"schedule": {"cron": "*/15 * * * *", "timezone": "UTC"}}),
        ))
        .await;
    let first = service.next_slot(&id).await;
    let back = first + SignedDuration::from_mins(15 * 2_499 + 2);
    let mut passes = 0;
    while service.tick(back).await.decided > 0 {
        passes += 1;
    }
    assert_eq!(passes, 3);
    assert_eq!(
        service
            .count("select count(*) from monitor_slots where outcome = 'missed'")
            .await,
        2_499
    );
    assert_eq!(
        service
            .count(
                "select count(*) from monitor_slots where outcome = 'ran' and scan_id is not null"
            )
            .await,
        1
    );
    assert_eq!(
        service
            .count("select count(distinct slot) from monitor_slots")
            .await,
        2_500
    );
}

#[tokio::test]
async fn a_slot_whose_predecessor_still_runs_is_skipped() {
    let service = TestService::start().await;
    let id = service.create_monitor(&monitor()).await;
    let slot = service.next_slot(&id).await;
    service.tick(slot).await;
    service.tick(slot + DAY).await;
    assert_eq!(service.outcomes(&id).await, ["overlap", "ran"]);
    service.complete_all(|_| SearchOutcome::Empty).await;
    service.tick(slot + DAY + DAY).await;
    assert_eq!(service.outcomes(&id).await, ["ran", "overlap", "ran"]);
    assert_eq!(service.count("select count(*) from scans").await, 2);
}

#[tokio::test]
async fn the_monthly_limit_also_counts_deleted_runs() {
    let service = TestService::start().await;
    // A run may take two requests and takes one; the rest of the month caps the run.
    let id = service
        .create_monitor(&with(&json!({"max_requests_per_month": 3, "schedule": {"cron": "0 6 10-14 * *", "timezone": "UTC"}})))
        .await;
    let mut slot = service.next_slot(&id).await;
    // From the first of the five slots on.
    while slot.in_tz("UTC").unwrap().day() != 10 {
        service.tick(slot).await;
        service.complete_all(|_| SearchOutcome::Ok(100)).await;
        slot = service.next_slot(&id).await;
    }
    let before = service.slots(&id).await.len();
    for _ in 0..5 {
        service.tick(slot).await;
        service.complete_all(|_| SearchOutcome::Ok(100)).await;
        slot = service.next_slot(&id).await;
        let newest = service.slots(&id).await[0].clone();
        if let Some(scan) = newest["scan_id"].as_str() {
            assert_eq!(
                service
                    .ask("DELETE", &format!("/v1/scans/{scan}"), None)
                    .await
                    .status,
                204
            );
        }
    }
    let outcomes = service.outcomes(&id).await;
    let of_month: Vec<_> = outcomes[..outcomes.len() - before]
        .iter()
        .rev()
        .map(String::as_str)
        .collect();
    assert_eq!(
        of_month,
        ["ran", "ran", "ran", "monthly_ceiling", "monthly_ceiling"]
    );
    let newest = &service.slots(&id).await[0];
    let reason = "the monitor has spent 3 of 3 requests this month and a run needs 1; raise `max_requests_per_month` or wait for the next month";
    assert_eq!(newest["reason"], reason);
    // The next month starts at zero.
    service.tick(slot).await;
    assert_eq!(service.outcomes(&id).await[0], "ran");
}

#[tokio::test]
async fn a_slot_with_an_invalid_scan_fails_with_its_reason() {
    let service = TestService::start().await;
    let soon = Timestamp::now()
        .in_tz("UTC")
        .unwrap()
        .date()
        .checked_add(jiff::Span::new().days(3))
        .unwrap();
    let scan = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": soon.to_string()}
    });
    let id = service.create_monitor(&with(&json!({"scan": scan}))).await;
    let mut slot = service.next_slot(&id).await;
    let end = slot + DAY * 7;
    while slot < end {
        service.tick(slot).await;
        service.complete_all(|_| SearchOutcome::Ok(100)).await;
        slot = service.next_slot(&id).await;
    }
    let newest = &service.slots(&id).await[0];
    assert_eq!(newest["outcome"], "failed");
    let reason = newest["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("`scan.request.departure_date`: found")
            && reason.contains("has not passed"),
        "{reason}"
    );
}

/// Before the marketplace has accepted the key, one scan may run: the other slot waits for it, at
/// most until its next slot.
#[tokio::test]
async fn a_slot_waits_at_the_limit_of_its_tenant() {
    for has_room in [true, false] {
        let service = TestService::start().await;
        let ids = [
            service.create_monitor(&monitor()).await,
            service.create_monitor(&monitor()).await,
        ];
        let slot = service.next_slot(&ids[0]).await;
        // One scan less than the limit of the tenant.
        let live = "insert into scans (tenant_id, scan_id, endpoint, api, request, sweep, priority, max_attempts, retry_delay, status, total,
                                       created_at)
                    select tenant_id, gen_random_uuid(), 'flights/oneway', 'flights', '{}', '{}', 'interactive', 1, '1 minute', 'queued', 1, now()
                    from tenants, generate_series(1, 99)";
        execute!(service.pool(), live);
        let pass = service.tick(slot).await;
        assert_eq!(
            (pass.decided, pass.next),
            (1, Some(slot + SignedDuration::from_secs(30)))
        );
        assert_eq!(service.tick(slot + MOMENT).await.decided, 0);
        if has_room {
            service.complete_all(|_| SearchOutcome::Ok(100)).await;
        }
        let later = slot + SignedDuration::from_mins(4);
        assert_eq!(service.tick(later).await.decided, usize::from(has_room));
        // The interval of checks grows.
        let hour = slot + SignedDuration::from_hours(1);
        let pass = service.tick(hour).await;
        assert_eq!(
            (pass.decided, pass.next),
            (
                0,
                Some(if has_room {
                    slot + DAY
                } else {
                    hour + SignedDuration::from_mins(5)
                })
            )
        );
        if !has_room {
            service.tick(slot + DAY).await;
        }
        let of_slot = async |id: &str| {
            service
                .slots(id)
                .await
                .into_iter()
                .find(|row| row["slot"] == json!(slot))
                .unwrap()
        };
        let mut decided = [of_slot(&ids[0]).await, of_slot(&ids[1]).await];
        decided.sort_by_key(|slot| slot["outcome"].to_string());
        assert_eq!(
            (&decided[0]["slot"], &decided[1]["slot"]),
            (&json!(slot), &json!(slot))
        );
        if has_room {
            assert_eq!(
                (&decided[0]["outcome"], &decided[1]["outcome"]),
                (&json!("ran"), &json!("ran"))
            );
            let reasons: Vec<_> = decided
                .iter()
                .map(|slot| slot["reason"].as_str().map_or(0, str::len))
                .collect();
            assert!(
                reasons.contains(&0) && reasons.iter().any(|length| *length > 0),
                "one slot waited and has a reason: {decided:?}"
            );
        } else {
            assert_eq!(
                (&decided[0]["outcome"], &decided[1]["outcome"]),
                (&json!("failed"), &json!("ran"))
            );
            assert!(
                decided[0]["reason"]
                    .as_str()
                    .unwrap()
                    .starts_with("the account stayed at its limit of unfinished work"),
                "{}",
                decided[0]
            );
        }
    }
}

/// It would never end without its caller and would block all later slots.
#[tokio::test]
async fn the_next_slot_ends_a_run_that_has_spent_its_budget() {
    let service = TestService::start().await;
    let mut scan = monitor()["scan"].clone();
    scan["sweep"] = json!({"to_airport": ["LHR", "CDG"]});
    scan["request"] = json!({"from_airport": "TLV", "departure_date": "+7d"});
    scan["max_requests"] = json!(2);
    let id = service.create_monitor(&with(&json!({"scan": scan}))).await;
    let slot = service.next_slot(&id).await;
    service.tick(slot).await;
    let run = text(&service.slots(&id).await[0]["scan_id"]);
    let claims = service.claim().await;
    service.begin(&claims[0]).await;
    service.finish(&claims[0], SearchOutcome::Ok(100)).await;
    // As if the retry of a server error had spent the other request.
    execute!(service.pool(), "update scans set requests_spent = 2");
    let tenant: uuid::Uuid = value!(service.pool(), "select tenant_id from scans");
    assert!(
        pause_scan(
            service.pool(),
            tenant.into(),
            run.parse().unwrap(),
            &PauseCause::BudgetSpent
        )
        .await
        .unwrap()
    );
    assert_eq!(service.scan(&run).await["status_reason"], "budget_spent");
    service.tick(slot + DAY).await;
    assert_eq!(service.outcomes(&id).await, ["ran", "ran"]);
    let ended = service.scan(&run).await;
    assert_eq!(
        (
            &ended["status"],
            &ended["items"]["ok"],
            &ended["items"]["cancelled"]
        ),
        (&json!("cancelled"), &json!(1), &json!(1))
    );
    // A run that its caller has paused is not ended.
    let run = text(&service.slots(&id).await[0]["scan_id"]);
    service
        .ask("POST", &format!("/v1/scans/{run}/pause"), None)
        .await;
    service.tick(slot + DAY + DAY).await;
    assert_eq!(service.outcomes(&id).await, ["overlap", "ran", "ran"]);
}

/// Its slots are recorded meanwhile.
#[tokio::test]
async fn a_rejected_key_pauses_a_monitor_until_it_is_resumed() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let id = service.create_monitor(&monitor()).await;
    let slot = service.next_slot(&id).await;
    let stop = "update lanes set paused_until = 'infinity', pause_reason = 'key_rejected'";
    execute!(service.pool(), stop);
    let seen = service.monitor(&id).await;
    assert_eq!(
        (&seen["status"], &seen["status_reason"]),
        (&json!("paused"), &json!("key_rejected"))
    );
    assert_eq!(
        service.get("/v1/monitors?status=active").await["data"],
        json!([])
    );
    service.tick(slot).await;
    let newest = &service.slots(&id).await[0];
    assert_eq!(
        (&newest["outcome"], &newest["reason"]),
        (&json!("failed"), &json!("key_rejected"))
    );
    assert_eq!(
        service
            .count("select count(*) from scans where monitor_id is not null")
            .await,
        0
    );

    assert_eq!(
        service
            .ask("POST", &format!("/v1/monitors/{id}/resume"), None)
            .await
            .status,
        200
    );
    let seen = service.monitor(&id).await;
    assert_eq!(
        (&seen["status"], &seen["status_reason"]),
        (&json!("active"), &Value::Null)
    );
    service.tick(slot + DAY).await;
    service.complete_all(|_| SearchOutcome::Ok(100)).await;
    assert_eq!(service.outcomes(&id).await, ["ran", "failed"]);
}

#[tokio::test]
async fn a_run_without_its_key_does_not_affect_its_monitor() {
    let service = TestService::start().await;
    let id = service.create_monitor(&monitor()).await;
    let slot = service.next_slot(&id).await;
    service.tick(slot).await;
    let scan = text(&service.slots(&id).await[0]["scan_id"]);
    let tenant: uuid::Uuid = value!(service.pool(), "select tenant_id from scans");
    execute!(
        service.pool(),
        "update key_grants set wiped_at = now(), nonce = '', ciphertext = '' where purpose = 'scan'"
    );
    pause_scan(
        service.pool(),
        tenant.into(),
        scan.parse().unwrap(),
        &PauseCause::KeyGone,
    )
    .await
    .unwrap();
    assert_eq!(service.scan(&scan).await["status_reason"], "key_expired");
    assert_eq!(
        service
            .ask("POST", &format!("/v1/scans/{scan}/cancel"), None)
            .await
            .status,
        200
    );
    service.tick(slot + DAY).await;
    assert_eq!(service.outcomes(&id).await, ["ran", "ran"]);
    assert_eq!(
        service
            .ask("DELETE", &format!("/v1/scans/{scan}"), None)
            .await
            .status,
        204
    );
    assert_eq!(
        service.slots(&id).await[1]["scan_id"],
        Value::Null,
        "the slot stays recorded"
    );
}

/// Four processes at one slot (engine.md, rule 76).
#[tokio::test(flavor = "multi_thread")]
async fn four_processes_at_one_slot_make_one_scan() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(service.create_monitor(&monitor()).await);
    }
    let slot = service.next_slot(&ids[0]).await;
    for day in 0..5 {
        let now = slot + DAY * day;
        // Until all are decided: a pass skips monitors that another process has locked.
        let tickers = || ticker(service.pool());
        loop {
            let [a, b, c, d] = [tickers(), tickers(), tickers(), tickers()];
            let (a, b, c, d) =
                tokio::join!(tick(&a, now), tick(&b, now), tick(&c, now), tick(&d, now));
            let decided: usize = [a, b, c, d]
                .into_iter()
                .map(|pass| pass.unwrap().decided)
                .sum();
            if decided == 0 {
                break;
            }
        }
        service.complete_all(|_| SearchOutcome::Ok(100)).await;
    }
    for id in &ids {
        assert_eq!(service.outcomes(id).await, ["ran"; 5]);
    }
    let scans = service
        .count("select count(*) from scans where monitor_id is not null")
        .await;
    let slots = service
        .count("select count(distinct scan_id) from monitor_slots")
        .await;
    println!("four tickers at each of {slots} slots: {scans} scans");
    assert_eq!((scans, slots), (30, 30));
}
