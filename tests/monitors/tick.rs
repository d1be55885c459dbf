//! What becomes of a slot.

use farescan::queue::hold::{Cause, hold_scan};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{monitor, tick, ticker, with};
use crate::scans::office::{Comes, Office};

const DAY: SignedDuration = SignedDuration::from_hours(24);
const MOMENT: SignedDuration = SignedDuration::from_secs(1);

#[tokio::test]
async fn a_slot_makes_one_scan_with_its_dates_worked_out() {
    let office = Office::open().await;
    let id = office.watch(&monitor()).await;
    let slot = office.next_slot(&id).await;
    let before = office.tick(slot - MOMENT).await;
    assert_eq!(
        (before.decided, before.next),
        (0, Some(slot)),
        "not before its time"
    );
    assert_eq!(office.tick(slot).await.decided, 1);
    assert_eq!(office.tick(slot).await.decided, 0, "once");

    let slots = office.slots(&id).await;
    assert_eq!(slots.len(), 1);
    let scan = office.scan(slots[0]["scan_id"].as_str().unwrap()).await;
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
    assert_eq!(office.monitor(&id).await["last_slot"], slots[0]);
    assert_eq!(office.next_slot(&id).await.duration_since(slot), DAY);
    let of_monitor = office.get(&format!("/v1/scans?monitor_id={id}")).await;
    assert_eq!(of_monitor["data"].as_array().unwrap().len(), 1);
    let priority = office
        .count("select count(*) from scans where priority = 'scheduled' and monitor_id is not null")
        .await;
    assert_eq!(priority, 1, "behind what somebody waits for");

    // Its end wipes the key of the scan, and not the monitor's.
    office.work(|_| Comes::Ok(150)).await;
    assert_eq!(
        office.scan(scan["id"].as_str().unwrap()).await["key_custody"],
        Value::Null
    );
    assert_eq!(
        office.monitor(&id).await["key_custody"],
        json!({"until": null})
    );
    let pass = office.tick(slot + MOMENT).await;
    assert_eq!((pass.decided, pass.judged), (0, 1));
    assert_eq!(
        office.tick(slot + MOMENT).await.judged,
        0,
        "a run is judged once"
    );
    assert_eq!(
        office
            .count("select count(*) from monitor_slots where judged_at is not null")
            .await,
        1
    );
}

#[tokio::test]
async fn what_was_missed_runs_once_and_the_rest_is_on_record() {
    let office = Office::open().await;
    let id = office
        .watch(&with(
            &json!({"schedule": {"cron": "0 * * * *", "timezone": "UTC"}}),
        ))
        .await;
    let first = office.next_slot(&id).await;
    // Everything was down for five slots and a bit.
    let back = first + SignedDuration::from_mins(4 * 60 + 40);
    assert_eq!(office.tick(back).await.decided, 1);
    let slots = office.slots(&id).await;
    let newest = first + SignedDuration::from_hours(4);
    let told: Vec<_> = slots
        .iter()
        .map(|slot| {
            (
                slot["slot"].clone(),
                slot["outcome"].as_str().unwrap().to_owned(),
            )
        })
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
    assert_eq!(told, expected);
    assert_eq!(office.count("select count(*) from scans").await, 1);
    assert_eq!(
        office.next_slot(&id).await,
        newest + SignedDuration::from_hours(1)
    );
}

/// A quarter of an hour for months: recorded in pieces, and the newest still runs.
#[tokio::test]
async fn very_many_missed_slots_are_recorded_piece_by_piece() {
    let office = Office::open().await;
    let id = office
        .watch(&with(
            &json!({"schedule": {"cron": "*/15 * * * *", "timezone": "UTC"}}),
        ))
        .await;
    let first = office.next_slot(&id).await;
    let back = first + SignedDuration::from_mins(15 * 2_499 + 2);
    let mut passes = 0;
    while office.tick(back).await.decided > 0 {
        passes += 1;
    }
    assert_eq!(passes, 3);
    assert_eq!(
        office
            .count("select count(*) from monitor_slots where outcome = 'missed'")
            .await,
        2_499
    );
    assert_eq!(
        office
            .count(
                "select count(*) from monitor_slots where outcome = 'ran' and scan_id is not null"
            )
            .await,
        1
    );
    assert_eq!(
        office
            .count("select count(distinct slot) from monitor_slots")
            .await,
        2_500
    );
}

#[tokio::test]
async fn a_slot_whose_predecessor_still_runs_is_skipped() {
    let office = Office::open().await;
    let id = office.watch(&monitor()).await;
    let slot = office.next_slot(&id).await;
    office.tick(slot).await;
    office.tick(slot + DAY).await;
    assert_eq!(office.outcomes(&id).await, ["overlap", "ran"]);
    office.work(|_| Comes::Empty).await;
    office.tick(slot + DAY + DAY).await;
    assert_eq!(office.outcomes(&id).await, ["ran", "overlap", "ran"]);
    assert_eq!(office.count("select count(*) from scans").await, 2);
}

#[tokio::test]
async fn a_month_has_a_ceiling_also_for_runs_that_were_deleted() {
    let office = Office::open().await;
    // Two requests a run at most, and one in fact: what is left caps the run.
    let id = office
        .watch(&with(&json!({"max_requests_per_month": 3, "schedule": {"cron": "0 6 10-14 * *", "timezone": "UTC"}})))
        .await;
    let mut slot = office.next_slot(&id).await;
    // From the first of the five on.
    while slot.in_tz("UTC").unwrap().day() != 10 {
        office.tick(slot).await;
        office.work(|_| Comes::Ok(100)).await;
        slot = office.next_slot(&id).await;
    }
    let before = office.slots(&id).await.len();
    for _ in 0..5 {
        office.tick(slot).await;
        office.work(|_| Comes::Ok(100)).await;
        slot = office.next_slot(&id).await;
        let newest = office.slots(&id).await[0].clone();
        if let Some(scan) = newest["scan_id"].as_str() {
            assert_eq!(
                office
                    .ask("DELETE", &format!("/v1/scans/{scan}"), None)
                    .await
                    .status,
                204
            );
        }
    }
    let outcomes = office.outcomes(&id).await;
    let of_month: Vec<_> = outcomes[..outcomes.len() - before]
        .iter()
        .rev()
        .map(String::as_str)
        .collect();
    assert_eq!(
        of_month,
        ["ran", "ran", "ran", "monthly_ceiling", "monthly_ceiling"]
    );
    let newest = &office.slots(&id).await[0];
    let reason = "3 of `max_requests_per_month`, 3, are spent this month, and the run needs 1: raise it, or wait for the next month";
    assert_eq!(newest["reason"], reason);
    // The next month begins anew.
    office.tick(slot).await;
    assert_eq!(office.outcomes(&id).await[0], "ran");
}

#[tokio::test]
async fn a_scan_that_cannot_be_made_any_more_is_on_record_with_its_reason() {
    let office = Office::open().await;
    let soon = Timestamp::now()
        .in_tz("UTC")
        .unwrap()
        .date()
        .checked_add(jiff::Span::new().days(3))
        .unwrap();
    let scan = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": soon.to_string()}
    });
    let id = office.watch(&with(&json!({"scan": scan}))).await;
    let mut slot = office.next_slot(&id).await;
    let end = slot + DAY * 7;
    while slot < end {
        office.tick(slot).await;
        office.work(|_| Comes::Ok(100)).await;
        slot = office.next_slot(&id).await;
    }
    let newest = &office.slots(&id).await[0];
    assert_eq!(newest["outcome"], "failed");
    let reason = newest["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("`scan.request.departure_date` holds")
            && reason.contains("has not passed"),
        "{reason}"
    );
}

/// The marketplace has not accepted the key yet, so one scan may be underway: the other slot waits for room, until its next slot comes.
#[tokio::test]
async fn a_slot_waits_for_room_and_a_bound_of_the_caller_is_on_record() {
    for has_room in [true, false] {
        let office = Office::open().await;
        let ids = [
            office.watch(&monitor()).await,
            office.watch(&monitor()).await,
        ];
        let slot = office.next_slot(&ids[0]).await;
        // One scan less than a caller may have underway.
        let live = "insert into scans (tenant_id, scan_id, endpoint, api, request, sweep, priority, max_attempts, retry_delay, status, total,
                                       created_at)
                    select tenant_id, gen_random_uuid(), 'flights/oneway', 'flights', '{}', '{}', 'interactive', 1, '1 minute', 'queued', 1, now()
                    from tenants, generate_series(1, 99)";
        sqlx::raw_sql(live).execute(office.db.pool()).await.unwrap();
        let pass = office.tick(slot).await;
        assert_eq!(
            (pass.decided, pass.next),
            (1, Some(slot + SignedDuration::from_secs(30)))
        );
        assert_eq!(office.tick(slot + MOMENT).await.decided, 0);
        if has_room {
            office.work(|_| Comes::Ok(100)).await;
        }
        let later = slot + SignedDuration::from_mins(4);
        assert_eq!(office.tick(later).await.decided, usize::from(has_room));
        // Seldomer by and by.
        let hour = slot + SignedDuration::from_hours(1);
        let pass = office.tick(hour).await;
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
            office.tick(slot + DAY).await;
        }
        let of_slot = async |id: &str| {
            office
                .slots(id)
                .await
                .into_iter()
                .find(|row| row["slot"] == json!(slot))
                .unwrap()
        };
        let mut told = [of_slot(&ids[0]).await, of_slot(&ids[1]).await];
        told.sort_by_key(|slot| slot["outcome"].to_string());
        assert_eq!(
            (&told[0]["slot"], &told[1]["slot"]),
            (&json!(slot), &json!(slot))
        );
        if has_room {
            assert_eq!(
                (&told[0]["outcome"], &told[1]["outcome"]),
                (&json!("ran"), &json!("ran"))
            );
            let reasons: Vec<_> = told
                .iter()
                .map(|slot| slot["reason"].as_str().map_or(0, str::len))
                .collect();
            assert!(
                reasons.contains(&0) && reasons.iter().any(|length| *length > 0),
                "one had to wait and says so: {told:?}"
            );
        } else {
            assert_eq!(
                (&told[0]["outcome"], &told[1]["outcome"]),
                (&json!("failed"), &json!("ran"))
            );
            assert!(
                told[0]["reason"]
                    .as_str()
                    .unwrap()
                    .starts_with("until the next slot came there was no room"),
                "{}",
                told[0]
            );
        }
    }
}

/// What would never go on without its caller does not stand in the way for months.
#[tokio::test]
async fn a_run_that_has_spent_its_budget_is_ended_by_the_next_slot() {
    let office = Office::open().await;
    let mut scan = monitor()["scan"].clone();
    scan["sweep"] = json!({"to_airport": ["LHR", "CDG"]});
    scan["request"] = json!({"from_airport": "TLV", "departure_date": "+7d"});
    scan["max_requests"] = json!(2);
    let id = office.watch(&with(&json!({"scan": scan}))).await;
    let slot = office.next_slot(&id).await;
    office.tick(slot).await;
    let run = office.slots(&id).await[0]["scan_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let claims = office.claim().await;
    office.begin(&claims[0]).await;
    office.end(&claims[0], Comes::Ok(100)).await;
    // As if the second try of a server error had taken the other place.
    sqlx::raw_sql("update scans set requests_spent = 2")
        .execute(office.db.pool())
        .await
        .unwrap();
    let tenant: uuid::Uuid = sqlx::query_scalar("select tenant_id from scans")
        .fetch_one(office.db.pool())
        .await
        .unwrap();
    assert!(
        hold_scan(
            office.db.pool(),
            tenant.into(),
            run.parse().unwrap(),
            &Cause::BudgetSpent
        )
        .await
        .unwrap()
    );
    assert_eq!(office.scan(&run).await["status_reason"], "budget_spent");
    office.tick(slot + DAY).await;
    assert_eq!(office.outcomes(&id).await, ["ran", "ran"]);
    let ended = office.scan(&run).await;
    assert_eq!(
        (
            &ended["status"],
            &ended["items"]["ok"],
            &ended["items"]["cancelled"]
        ),
        (&json!("cancelled"), &json!(1), &json!(1))
    );
    // One that its caller holds is the caller's.
    let run = office.slots(&id).await[0]["scan_id"]
        .as_str()
        .unwrap()
        .to_owned();
    office
        .ask("POST", &format!("/v1/scans/{run}/pause"), None)
        .await;
    office.tick(slot + DAY + DAY).await;
    assert_eq!(office.outcomes(&id).await, ["overlap", "ran", "ran"]);
}

/// As a scan: its lane waits for a good key, and so does it. Its slots come and are on record.
#[tokio::test]
async fn a_rejected_key_pauses_it_until_a_resume_brings_a_good_one() {
    let office = Office::open().await;
    office.warm().await;
    let id = office.watch(&monitor()).await;
    let slot = office.next_slot(&id).await;
    let stop = "update lanes set paused_until = 'infinity', pause_reason = 'key_rejected'";
    sqlx::raw_sql(stop).execute(office.db.pool()).await.unwrap();
    let seen = office.monitor(&id).await;
    assert_eq!(
        (&seen["status"], &seen["status_reason"]),
        (&json!("paused"), &json!("key_rejected"))
    );
    assert_eq!(
        office.get("/v1/monitors?status=active").await["data"],
        json!([])
    );
    office.tick(slot).await;
    let newest = &office.slots(&id).await[0];
    assert_eq!(
        (&newest["outcome"], &newest["reason"]),
        (&json!("failed"), &json!("key_rejected"))
    );
    assert_eq!(
        office
            .count("select count(*) from scans where monitor_id is not null")
            .await,
        0
    );

    assert_eq!(
        office
            .ask("POST", &format!("/v1/monitors/{id}/resume"), None)
            .await
            .status,
        200
    );
    let seen = office.monitor(&id).await;
    assert_eq!(
        (&seen["status"], &seen["status_reason"]),
        (&json!("active"), &Value::Null)
    );
    office.tick(slot + DAY).await;
    office.work(|_| Comes::Ok(100)).await;
    assert_eq!(office.outcomes(&id).await, ["ran", "failed"]);
}

/// A run whose key is gone pauses for itself; the monitor's key and its slots are no part of that.
#[tokio::test]
async fn a_run_has_a_life_of_its_own() {
    let office = Office::open().await;
    let id = office.watch(&monitor()).await;
    let slot = office.next_slot(&id).await;
    office.tick(slot).await;
    let scan = office.slots(&id).await[0]["scan_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let tenant: uuid::Uuid = sqlx::query_scalar("select tenant_id from scans")
        .fetch_one(office.db.pool())
        .await
        .unwrap();
    sqlx::raw_sql("update key_grants set wiped_at = now(), nonce = '', ciphertext = '' where purpose = 'scan'")
        .execute(office.db.pool())
        .await
        .unwrap();
    hold_scan(
        office.db.pool(),
        tenant.into(),
        scan.parse().unwrap(),
        &Cause::KeyGone,
    )
    .await
    .unwrap();
    assert_eq!(office.scan(&scan).await["status_reason"], "key_expired");
    assert_eq!(
        office
            .ask("POST", &format!("/v1/scans/{scan}/cancel"), None)
            .await
            .status,
        200
    );
    office.tick(slot + DAY).await;
    assert_eq!(office.outcomes(&id).await, ["ran", "ran"]);
    assert_eq!(
        office
            .ask("DELETE", &format!("/v1/scans/{scan}"), None)
            .await
            .status,
        204
    );
    assert_eq!(
        office.slots(&id).await[1]["scan_id"],
        Value::Null,
        "the slot stays on record"
    );
}

/// Four processes at one slot (engine.md, the table of faults).
#[tokio::test(flavor = "multi_thread")]
async fn four_processes_at_one_slot_make_one_scan() {
    let office = Office::open().await;
    office.warm().await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(office.watch(&monitor()).await);
    }
    let slot = office.next_slot(&ids[0]).await;
    for day in 0..5 {
        let now = slot + DAY * day;
        // Until all have been decided: a pass leaves what another process is at.
        let tickers = || ticker(office.db.pool());
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
        office.work(|_| Comes::Ok(100)).await;
    }
    for id in &ids {
        assert_eq!(office.outcomes(id).await, ["ran"; 5]);
    }
    let scans = office
        .count("select count(*) from scans where monitor_id is not null")
        .await;
    let slots = office
        .count("select count(distinct scan_id) from monitor_slots")
        .await;
    println!("four tickers at each of {slots} slots: {scans} scans");
    assert_eq!((scans, slots), (30, 30));
}
