//! Commands on a monitor.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{monitor, with};
use crate::account::rotate::{NEW_KEY, rotate_to, stored_keys};
use crate::support::app::{HttpResponse, KEY};
use crate::support::{SearchOutcome, TestService, array, billed, text};

const DAY: SignedDuration = SignedDuration::from_hours(24);

async fn command(service: &TestService, id: &str, word: &str) -> HttpResponse {
    service
        .ask("POST", &format!("/v1/monitors/{id}/{word}"), None)
        .await
}

async fn patch(service: &TestService, id: &str, body: Value) -> HttpResponse {
    service
        .ask("PATCH", &format!("/v1/monitors/{id}"), Some(&body))
        .await
}

#[tokio::test]
async fn an_update_leaves_absent_fields_unchanged() {
    let service = TestService::start().await;
    let rules = json!([{"type": "new_low", "days": 30}]);
    let id = service
        .create_monitor(&with(
            &json!({"alerts": rules, "max_requests_per_month": 100}),
        ))
        .await;
    let made = service.monitor(&id).await;

    let renamed = patch(&service, &id, json!({"name": "another"}))
        .await
        .expect(200);
    let mut renamed = renamed.json();
    assert_eq!(
        renamed["forecast"]["requests_per_run"],
        json!({"least": 1, "most": 2})
    );
    for field in ["forecast", "updated_at"] {
        renamed[field] = made[field].clone();
    }
    assert_eq!(renamed["name"], "another");
    renamed["name"] = made["name"].clone();
    assert_eq!(renamed, made);

    let schedule = json!({"cron": "15 18 * * *", "timezone": "Asia/Tokyo"});
    let moved = patch(
        &service,
        &id,
        json!({"schedule": schedule, "alerts": [], "max_requests_per_month": null}),
    )
    .await
    .json();
    assert_eq!(
        (&moved["schedule"], &moved["alerts"], &moved["scan"]),
        (&schedule, &json!([]), &made["scan"])
    );
    assert_eq!(moved["requests"]["max_per_month"], Value::Null);
    let next = service.next_slot(&id).await;
    assert_eq!(
        next.in_tz("Asia/Tokyo")
            .unwrap()
            .strftime("%H:%M")
            .to_string(),
        "18:15"
    );
    assert!(next > Timestamp::now());

    // null counts as absent for fields that cannot be removed.
    let same = patch(&service, &id, json!({"name": null, "scan": null})).await;
    assert_eq!((same.status, &same.json()["scan"]), (200, &made["scan"]));
}

#[tokio::test]
async fn an_invalid_update_changes_nothing() {
    let service = TestService::start().await;
    let id = service.create_monitor(&monitor()).await;
    let before = service.dump_database().await;
    for (body, says) in [
        (
            json!({"schedule": {"cron": "* * * * *", "timezone": "UTC"}}),
            "`schedule.cron`: found",
        ),
        (
            json!({"schedule": {"cron": "0 6 * * *"}}),
            "`schedule.timezone` is missing",
        ),
        (
            json!({"scan": {"endpoint": "flights/oneway", "request": {}}}),
            "`scan.request.from_airport` is missing",
        ),
        (
            json!({"alerts": [{"type": "parity_gap_percent", "percent": 1, "baseline": "us"}]}),
            "`alerts[0].type`: found",
        ),
        (
            json!({"name": "x", "max_requests_per_month": -1}),
            "`max_requests_per_month`: found -1",
        ),
        (
            json!({"status": "paused"}),
            "in monitors; its fields are `name`, `schedule`",
        ),
    ] {
        let answer = patch(&service, &id, body.clone()).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{body}");
        assert!(
            answer.message().contains(says),
            "{body}: {}",
            answer.message()
        );
    }
    assert_eq!(service.dump_database().await, before);
}

#[tokio::test]
async fn a_pause_destroys_the_key_and_a_resume_brings_one() {
    let service = TestService::start().await;
    let id = service.create_monitor(&monitor()).await;
    let slot = service.next_slot(&id).await;
    for _ in 0..2 {
        let paused = command(&service, &id, "pause").await;
        assert_eq!(paused.status, 200);
        let paused = paused.json();
        assert_eq!(
            (&paused["status"], &paused["status_reason"]),
            (&json!("paused"), &json!("by_caller"))
        );
        assert_eq!(
            (&paused["next_slot"], &paused["key_custody"]),
            (&Value::Null, &Value::Null)
        );
    }
    assert!(stored_keys(&service.db).await.is_empty());
    assert_eq!(service.tick(slot + DAY).await.decided, 0);
    // An update of a paused monitor leaves it paused.
    let changed = patch(
        &service,
        &id,
        json!({"schedule": {"cron": "0 7 * * *", "timezone": "UTC"}}),
    )
    .await
    .json();
    assert_eq!(
        (&changed["status"], &changed["next_slot"]),
        (&json!("paused"), &Value::Null)
    );

    for _ in 0..2 {
        let resumed = command(&service, &id, "resume").await.expect(200);
        let resumed = resumed.json();
        assert_eq!(
            (&resumed["status"], &resumed["key_custody"]),
            (&json!("active"), &json!({"until": null}))
        );
    }
    let next = service.next_slot(&id).await;
    assert!(next > Timestamp::now(), "skipped slots are not caught up");
    assert_eq!(service.slots(&id).await, Vec::<Value>::new());
    assert_eq!(
        stored_keys(&service.db)
            .await
            .into_iter()
            .map(|(_, key)| key)
            .collect::<Vec<_>>(),
        [KEY]
    );
    service.tick(next).await;
    assert_eq!(service.outcomes(&id).await, ["ran"]);
}

#[tokio::test]
async fn a_manual_run_is_recorded_as_a_manual_slot() {
    let service = TestService::start().await;
    let id = service
        .create_monitor(&with(&json!({"max_requests_per_month": 2})))
        .await;
    let next = service.next_slot(&id).await;
    command(&service, &id, "pause").await;
    let once = |word: &'static str| {
        let path = format!("/v1/monitors/{id}/run");
        let request = service
            .request("POST", &path)
            .header("x-api-key", KEY)
            .header("idempotency-key", word);
        service.send(request)
    };
    let first = once("a").await.expect(202);
    let scan = first.json();
    assert_eq!(
        (first.header("location"), &scan["monitor_id"]),
        (
            &*format!("/v1/scans/{}", scan["id"].as_str().unwrap()),
            &json!(id)
        )
    );
    let today = Timestamp::now().in_tz("Europe/London").unwrap().date();
    let day: jiff::civil::Date = scan["request"]["departure_date"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((6..=7).contains(&(day - today).get_days()), "{day}");
    let again = once("a").await;
    assert_eq!(
        (again.json(), again.header("idempotent-replayed")),
        (scan.clone(), "true")
    );

    let busy = once("b").await;
    assert_eq!(busy.kind(), "409 invalid_state");
    let in_the_way = format!(
        "the previous run has not ended: its scan {} is queued",
        scan["id"].as_str().unwrap()
    );
    assert!(
        busy.message().starts_with(&in_the_way),
        "{}",
        busy.message()
    );
    service.complete_all(|_| SearchOutcome::Ok(100)).await;
    assert_eq!(once("c").await.status, 202);
    service.complete_all(|_| SearchOutcome::Ok(100)).await;
    let spent = once("d").await;
    assert_eq!(spent.kind(), "409 invalid_state");
    assert!(
        spent
            .message()
            .contains("the monitor has spent 2 of 2 requests this month"),
        "{}",
        spent.message()
    );

    let slots = service.slots(&id).await;
    let kinds: Vec<_> = slots
        .iter()
        .map(|slot| (&slot["kind"], &slot["outcome"]))
        .collect();
    assert_eq!(kinds, [(&json!("manual"), &json!("ran")); 2]);
    assert_eq!(slots[1]["scan_id"], scan["id"]);
    assert_eq!(
        service.monitor(&id).await["requests"],
        json!({"this_month": 2, "max_per_month": 2})
    );
    command(&service, &id, "resume").await;
    assert_eq!(
        service.next_slot(&id).await,
        next,
        "the schedule is unchanged"
    );
    // Manual runs are evaluated too.
    assert_eq!(service.tick(Timestamp::now()).await.evaluated, 2);
}

#[tokio::test]
async fn a_deleted_monitor_is_gone_and_its_scans_stay() {
    let service = TestService::start().await;
    let id = service.create_monitor(&monitor()).await;
    let slot = service.next_slot(&id).await;
    service.tick(slot).await;
    let scan = text(&service.slots(&id).await[0]["scan_id"]);
    let path = format!("/v1/monitors/{id}");
    assert_eq!(service.ask("DELETE", &path, None).await.status, 204);
    for (method, path) in [
        ("GET", path.clone()),
        ("DELETE", path.clone()),
        ("GET", format!("{path}/slots")),
    ] {
        assert_eq!(
            service.ask(method, &path, None).await.kind(),
            "404 not_found"
        );
    }
    assert_eq!(service.tick(slot + DAY).await.decided, 0);
    service.complete_all(|_| SearchOutcome::Ok(100)).await;
    let seen = service.scan(&scan).await;
    assert_eq!(
        (&seen["status"], &seen["monitor_id"]),
        (&json!("completed"), &json!(id))
    );
    assert!(stored_keys(&service.db).await.is_empty());
    assert_eq!(service.count("select count(*) from monitor_slots").await, 0);
}

#[tokio::test]
async fn a_rotation_seals_the_new_key_for_its_runs() {
    let service = TestService::start().await;
    let (active, paused) = (
        service.create_monitor(&monitor()).await,
        service.create_monitor(&monitor()).await,
    );
    command(&service, &paused, "pause").await;
    let slot = service.next_slot(&active).await;
    let rotated = rotate_to(&service, KEY, NEW_KEY).await;
    assert_eq!(
        (rotated.status, &rotated.json()["held_keys"]),
        (200, &json!(1))
    );
    service.tick(slot).await;
    let keys: Vec<_> = stored_keys(&service.db)
        .await
        .into_iter()
        .map(|(_, key)| key)
        .collect();
    assert_eq!(keys, [NEW_KEY, NEW_KEY], "the monitor's and its run's");
    assert_eq!(
        service
            .ask("GET", &format!("/v1/monitors/{active}"), None)
            .await
            .kind(),
        "404 not_found"
    );
    let resumed = service
        .ask_as(
            NEW_KEY,
            "POST",
            &format!("/v1/monitors/{paused}/resume"),
            None,
        )
        .await;
    assert_eq!(resumed.json()["status"], "active");
}

#[tokio::test]
async fn usage_can_be_grouped_by_monitor() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let (one, two) = (
        service.create_monitor(&monitor()).await,
        service.create_monitor(&monitor()).await,
    );
    let slot = service.next_slot(&one).await;
    for day in 0..3 {
        service.tick(slot + DAY * day).await;
        if day == 0 {
            command(&service, &two, "pause").await;
        }
        service.complete_all(|_| SearchOutcome::Ok(100)).await;
    }
    let rows = |usage: &Value| {
        let row = |row: &Value| (row["key"].clone(), row["billed"].as_u64().unwrap());
        array(&usage["data"]).iter().map(row).collect::<Vec<_>>()
    };
    let all = service.get("/v1/usage?group=monitor").await;
    assert_eq!(
        rows(&all),
        [(Value::Null, 1), (json!(two), 1), (json!(one), 3)]
    );
    assert_eq!(billed(&all), 5);
    let first = service.get("/v1/usage?group=monitor&limit=1").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = service
        .get(&format!("/v1/usage?group=monitor&cursor={cursor}"))
        .await;
    assert_eq!(
        (rows(&first), rows(&rest)),
        (rows(&all)[..2].to_vec(), rows(&all)[2..].to_vec())
    );
    // A cursor of the list by scan does not fit.
    let scans = service.get("/v1/usage?group=scan&limit=1").await;
    let other = format!(
        "/v1/usage?group=monitor&cursor={}",
        scans["next_cursor"].as_str().unwrap()
    );
    assert_eq!(service.app.get(&other).await.kind(), "400 invalid_request");
    assert_eq!(
        service.get(&format!("/v1/scans?monitor_id={one}")).await["data"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(
        service.app.get("/v1/scans?monitor_id=scn_1").await.kind(),
        "400 invalid_request"
    );
}

/// The budget of a watch does not fit all of its dates: the error names it, and both ways out do.
#[tokio::test]
async fn the_end_of_a_watch_says_what_to_do_with_its_budget() {
    let service = TestService::start().await;
    let sweep = json!({"departure_date": {"from": "+30d", "to": "+59d"}});
    let scan = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"}, "sweep": sweep,
        "strategy": {"watch": "cheapest"}, "max_requests": 18
    });
    let id = service.create_monitor(&with(&json!({"scan": scan}))).await;
    let path = format!("/v1/monitors/{id}");
    let without = |names: &[&str]| {
        let mut scan = scan.clone();
        scan.as_object_mut()
            .unwrap()
            .retain(|name, _| !names.contains(&name.as_str()));
        json!({"scan": scan})
    };
    let refused = service
        .ask("PATCH", &path, Some(&without(&["strategy"])))
        .await;
    assert_eq!(
        (refused.kind().as_str(), refused.message().as_str()),
        (
            "400 invalid_request",
            "`scan.max_requests`: found 18; expected at least the number of items, 30: one request each; leave it out for no limit, or add a `strategy` that searches fewer"
        )
    );
    let mut find = without(&[]);
    find["scan"]["strategy"] = json!({"find": "cheapest"});
    for body in [find, without(&["strategy", "max_requests"])] {
        service.ask("PATCH", &path, Some(&body)).await.expect(200);
    }
}
