//! The caller's word over a monitor.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{monitor, with};
use crate::account::rotate::{NEW, held_keys, rotate_to};
use crate::scans::office::{Comes, Office};
use crate::support::app::{Answer, KEY};

const DAY: SignedDuration = SignedDuration::from_hours(24);

async fn say(office: &Office, id: &str, word: &str) -> Answer {
    office
        .ask("POST", &format!("/v1/monitors/{id}/{word}"), None)
        .await
}

async fn patch(office: &Office, id: &str, body: Value) -> Answer {
    office
        .ask("PATCH", &format!("/v1/monitors/{id}"), Some(&body))
        .await
}

#[tokio::test]
async fn what_a_change_does_not_name_stays() {
    let office = Office::open().await;
    let rules = json!([{"type": "new_low"}]);
    let id = office
        .watch(&with(
            &json!({"alerts": rules, "max_requests_per_month": 100}),
        ))
        .await;
    let made = office.monitor(&id).await;

    let renamed = patch(&office, &id, json!({"name": "another"})).await;
    assert_eq!(renamed.status, 200, "{}", renamed.text());
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
        &office,
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
    let next = office.next_slot(&id).await;
    assert_eq!(
        next.in_tz("Asia/Tokyo")
            .unwrap()
            .strftime("%H:%M")
            .to_string(),
        "18:15"
    );
    assert!(next > Timestamp::now());

    // null is the same as absent where nothing can be taken away.
    let same = patch(&office, &id, json!({"name": null, "scan": null})).await;
    assert_eq!((same.status, &same.json()["scan"]), (200, &made["scan"]));
}

#[tokio::test]
async fn a_change_that_cannot_be_changes_nothing() {
    let office = Office::open().await;
    let id = office.watch(&monitor()).await;
    let before = office.dump().await;
    for (body, says) in [
        (
            json!({"schedule": {"cron": "* * * * *", "timezone": "UTC"}}),
            "`schedule.cron` holds",
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
            "`alerts[0].type` holds",
        ),
        (
            json!({"name": "x", "max_requests_per_month": -1}),
            "`max_requests_per_month` holds -1",
        ),
        (
            json!({"status": "paused"}),
            "no such field in monitors; its fields are `name`, `schedule`",
        ),
    ] {
        let answer = patch(&office, &id, body.clone()).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{body}");
        assert!(
            answer.message().contains(says),
            "{body}: {}",
            answer.message()
        );
    }
    assert_eq!(office.dump().await, before);
}

#[tokio::test]
async fn a_pause_destroys_the_key_and_a_resume_brings_one() {
    let office = Office::open().await;
    let id = office.watch(&monitor()).await;
    let slot = office.next_slot(&id).await;
    for _ in 0..2 {
        let paused = say(&office, &id, "pause").await;
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
    assert!(held_keys(&office.db).await.is_empty());
    assert_eq!(office.tick(slot + DAY).await.decided, 0);
    // Changed while it is paused, it stays so.
    let changed = patch(
        &office,
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
        let resumed = say(&office, &id, "resume").await;
        assert_eq!(resumed.status, 200, "{}", resumed.text());
        let resumed = resumed.json();
        assert_eq!(
            (&resumed["status"], &resumed["key_custody"]),
            (&json!("active"), &json!({"until": null}))
        );
    }
    let next = office.next_slot(&id).await;
    assert!(
        next > Timestamp::now(),
        "what the pause skipped is not caught up"
    );
    assert_eq!(office.slots(&id).await, Vec::<Value>::new());
    assert_eq!(
        held_keys(&office.db)
            .await
            .into_iter()
            .map(|(_, key)| key)
            .collect::<Vec<_>>(),
        [KEY]
    );
    office.tick(next).await;
    assert_eq!(office.outcomes(&id).await, ["ran"]);
}

#[tokio::test]
async fn a_run_now_is_a_slot_of_its_own_kind() {
    let office = Office::open().await;
    let id = office
        .watch(&with(&json!({"max_requests_per_month": 2})))
        .await;
    let next = office.next_slot(&id).await;
    say(&office, &id, "pause").await;
    let once = |word: &'static str| {
        let path = format!("/v1/monitors/{id}/run");
        let request = office
            .app
            .request("POST", &path)
            .header("x-api-key", KEY)
            .header("idempotency-key", word);
        office.app.send(request)
    };
    let first = once("a").await;
    assert_eq!(first.status, 202, "{}", first.text());
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
        "the run before has not ended: its scan {} is queued",
        scan["id"].as_str().unwrap()
    );
    assert!(
        busy.message().starts_with(&in_the_way),
        "{}",
        busy.message()
    );
    office.work(|_| Comes::Ok(100)).await;
    assert_eq!(once("c").await.status, 202);
    office.work(|_| Comes::Ok(100)).await;
    let spent = once("d").await;
    assert_eq!(spent.kind(), "409 invalid_state");
    assert!(
        spent
            .message()
            .contains("2 of `max_requests_per_month`, 2, are spent this month"),
        "{}",
        spent.message()
    );

    let slots = office.slots(&id).await;
    let told: Vec<_> = slots
        .iter()
        .map(|slot| (&slot["kind"], &slot["outcome"]))
        .collect();
    assert_eq!(told, [(&json!("manual"), &json!("ran")); 2]);
    assert_eq!(slots[1]["scan_id"], scan["id"]);
    assert_eq!(
        office.monitor(&id).await["requests"],
        json!({"this_month": 2, "max_per_month": 2})
    );
    say(&office, &id, "resume").await;
    assert_eq!(
        office.next_slot(&id).await,
        next,
        "the schedule goes on as it is"
    );
    // A run that ended is judged like any other.
    assert_eq!(office.tick(Timestamp::now()).await.judged, 2);
}

#[tokio::test]
async fn a_deleted_monitor_is_gone_and_its_scans_stay() {
    let office = Office::open().await;
    let id = office.watch(&monitor()).await;
    let slot = office.next_slot(&id).await;
    office.tick(slot).await;
    let scan = office.slots(&id).await[0]["scan_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/v1/monitors/{id}");
    assert_eq!(office.ask("DELETE", &path, None).await.status, 204);
    for (method, path) in [
        ("GET", path.clone()),
        ("DELETE", path.clone()),
        ("GET", format!("{path}/slots")),
    ] {
        assert_eq!(
            office.ask(method, &path, None).await.kind(),
            "404 not_found"
        );
    }
    assert_eq!(office.tick(slot + DAY).await.decided, 0);
    office.work(|_| Comes::Ok(100)).await;
    let seen = office.scan(&scan).await;
    assert_eq!(
        (&seen["status"], &seen["monitor_id"]),
        (&json!("completed"), &json!(id))
    );
    assert!(held_keys(&office.db).await.is_empty());
    assert_eq!(office.count("select count(*) from monitor_slots").await, 0);
}

#[tokio::test]
async fn a_rotation_seals_the_new_key_for_its_runs() {
    let office = Office::open().await;
    let (active, paused) = (
        office.watch(&monitor()).await,
        office.watch(&monitor()).await,
    );
    say(&office, &paused, "pause").await;
    let slot = office.next_slot(&active).await;
    let rotated = rotate_to(&office.app, KEY, NEW).await;
    assert_eq!(
        (rotated.status, &rotated.json()["held_keys"]),
        (200, &json!(1))
    );
    office.tick(slot).await;
    let keys: Vec<_> = held_keys(&office.db)
        .await
        .into_iter()
        .map(|(_, key)| key)
        .collect();
    assert_eq!(keys, [NEW, NEW], "the monitor's and its run's");
    assert_eq!(
        office
            .ask("GET", &format!("/v1/monitors/{active}"), None)
            .await
            .kind(),
        "404 not_found"
    );
    let resumed = office
        .ask_as(NEW, "POST", &format!("/v1/monitors/{paused}/resume"), None)
        .await;
    assert_eq!(resumed.json()["status"], "active");
}

#[tokio::test]
async fn what_its_runs_have_cost_is_told_by_monitor() {
    let office = Office::open().await;
    office.warm().await;
    let (one, two) = (
        office.watch(&monitor()).await,
        office.watch(&monitor()).await,
    );
    let slot = office.next_slot(&one).await;
    for day in 0..3 {
        office.tick(slot + DAY * day).await;
        if day == 0 {
            say(&office, &two, "pause").await;
        }
        office.work(|_| Comes::Ok(100)).await;
    }
    let rows = |usage: &Value| {
        let row = |row: &Value| (row["key"].clone(), row["requests"].as_u64().unwrap());
        usage["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(row)
            .collect::<Vec<_>>()
    };
    let all = office.get("/v1/usage?group=monitor").await;
    assert_eq!(
        rows(&all),
        [(json!(two), 1), (json!(one), 3), (Value::Null, 1)]
    );
    assert_eq!(all["totals"]["requests"], 5);
    let first = office.get("/v1/usage?group=monitor&limit=1").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = office
        .get(&format!("/v1/usage?group=monitor&cursor={cursor}"))
        .await;
    assert_eq!(
        (rows(&first), rows(&rest)),
        (rows(&all)[..1].to_vec(), rows(&all)[1..].to_vec())
    );
    // A cursor of scans is none of this list's.
    let scans = office.get("/v1/usage?group=scan&limit=1").await;
    let other = format!(
        "/v1/usage?group=monitor&cursor={}",
        scans["next_cursor"].as_str().unwrap()
    );
    assert_eq!(office.app.get(&other).await.kind(), "400 invalid_request");
    assert_eq!(
        office.get(&format!("/v1/scans?monitor_id={one}")).await["data"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(
        office.app.get("/v1/scans?monitor_id=scn_1").await.kind(),
        "400 invalid_request"
    );
}
