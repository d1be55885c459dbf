//! `POST /v1/account/rotate-key`: the new key owns what the old one owned, and no text shows a key.

use farescan::ids::{GrantId, TenantId};
use farescan::search::CallerKey;
use farescan::tenants::{self, Keyring, rotate, store};
use farescan::upkeep::sweeper::Sweeper;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::app::{HttpResponse, KEY, TestApp, ring};
use crate::support::db::TestDb;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::support::{SearchOutcome, TestService, array, billed, departing_from, fares};

pub const NEW_KEY: &str = "rotated-key-9876543210";
const PATH: &str = "/v1/account/rotate-key";

pub async fn rotate_to(app: &TestApp, old: &str, new: &str) -> HttpResponse {
    app.send(
        app.request("POST", PATH)
            .header("x-api-key", old)
            .json(&json!({"new_key": new})),
    )
    .await
}

async fn get_as(app: &TestApp, key: &str, path: &str) -> HttpResponse {
    app.send(app.request("GET", path).header("x-api-key", key))
        .await
}

/// The opened keys of all live grants.
pub async fn stored_keys(db: &TestDb) -> Vec<(TenantId, String)> {
    let live: Vec<(uuid::Uuid, uuid::Uuid)> = rows!(
        db.pool(),
        "select tenant_id, grant_id from key_grants where wiped_at is null"
    );
    let mut keys = Vec::new();
    for (tenant, grant) in live {
        let (tenant, grant) = (TenantId::from(tenant), GrantId::from(grant));
        keys.push((
            tenant,
            tenants::open_grant(db.pool(), &ring(), tenant, grant)
                .await
                .unwrap()
                .expose()
                .to_owned(),
        ));
    }
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_resumes_scans_paused_by_a_rejected_key() {
    let service = TestService::start().await;
    service.upstream.answer(|call| match call.key.as_str() {
        NEW_KEY => Reply::json(json!([fare(164, &call.body)])),
        "a-third-key" => Reply::status(403),
        _ if call.body["from_airport"] == "YYY" => Reply::json(json!([fare(120, &call.body)])),
        _ => Reply::status(401).with_json(json!({"message": "Invalid API key"})),
    });
    let worker = service.start_worker(2);
    service.accept_key().await;
    let scans = [
        service.submit(&fares(4)).await,
        service.submit(&departing_from("ZZZ", fares(3))).await,
    ];
    for id in &scans {
        service
            .wait_for_scan(id, "its lane is paused", |scan| {
                scan["status_reason"] == "key_rejected"
            })
            .await;
        service.wait_until_idle(id).await;
    }
    let before = service.upstream.count();

    let rotated = rotate_to(&service, KEY, NEW_KEY).await.expect(200);
    let response = rotated.json();
    assert_eq!(
        (&response["held_keys"], &response["lanes_resumed"]),
        (&json!(2), &json!(["flights"]))
    );
    for id in &scans {
        let path = format!("/v1/scans/{id}?wait=60");
        let ended = get_as(&service, NEW_KEY, &path).await.json();
        assert_eq!(
            (&ended["status"], &ended["items"]["degraded"]),
            (&json!("completed"), &json!(0)),
            "{ended:#}"
        );
        assert_eq!(
            get_as(&service, KEY, &path).await.kind(),
            "404 not_found",
            "the old key is unknown"
        );
    }
    worker.stop().await;
    let after: Vec<_> = service.upstream.calls().split_off(before);
    assert_eq!(
        after.len(),
        1 + 7,
        "the check of the new key, and each search once"
    );
    assert!(
        after.iter().all(|call| call.key == NEW_KEY),
        "with the new key"
    );
    // With the usage before the rotation, and the check of the new key.
    let all = service.upstream.count();
    service.wait_for_requests(NEW_KEY, all).await;
    assert_eq!(billed(&get_as(&service, KEY, "/v1/usage").await.json()), 0);
    let history = "/v1/history/flights?from_airport=YYY&to_airport=LHR";
    assert_eq!(
        array(&get_as(&service, NEW_KEY, history).await.json()["data"]).len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_calls_in_flight_do_not_pause_the_new_key() {
    let service = TestService::start().await;
    let gate = Gate::closed();
    let call_gate = gate.clone();
    service
        .upstream
        .answer(move |call| match call.key.as_str() {
            NEW_KEY => Reply::json(json!([fare(164, &call.body)])),
            _ if call.body["departure_date"] == "2030-01-01" => {
                Reply::json(json!([fare(120, &call.body)])).gated_by(&call_gate)
            }
            _ => Reply::status(401).gated_by(&call_gate),
        });
    let worker = service.start_worker(2);
    let id = service.submit(&fares(4)).await;
    service.upstream.wait_for_in_flight(2).await;
    assert_eq!(
        rotate_to(&service, KEY, NEW_KEY).await.json()["lanes_resumed"],
        json!([]),
        "no lane was paused"
    );
    gate.open();
    let ended = get_as(&service, NEW_KEY, &format!("/v1/scans/{id}?wait=60"))
        .await
        .json();
    worker.stop().await;
    assert_eq!(
        (
            &ended["status"],
            &ended["items"]["ok"],
            &ended["best"]["price"]
        ),
        (&json!("completed"), &json!(4), &json!(120))
    );
    let keys: Vec<_> = service
        .upstream
        .calls()
        .iter()
        .map(|call| call.key == NEW_KEY)
        .collect();
    assert_eq!(
        keys,
        [false, false, true, true, true, true],
        "the check, then the requeued items with the new key"
    );
}

#[tokio::test]
async fn a_repeated_rotation_gets_the_same_answer() {
    let service = TestService::start().await;
    service.submit(&fares(2)).await;
    let first = rotate_to(&service, KEY, NEW_KEY).await;
    // The check of the new key is a request; its charge is stored some milliseconds later.
    service.wait_for_requests(NEW_KEY, 1).await;
    let before = service.row_counts().await;
    let again = rotate_to(&service, KEY, NEW_KEY).await;
    assert_eq!((again.status, again.text()), (200, first.text()));
    assert_eq!(
        (
            first.header("idempotent-replayed"),
            again.header("idempotent-replayed")
        ),
        ("", "true")
    );
    assert_eq!(service.row_counts().await, before, "nothing was done");

    assert_eq!(
        rotate_to(&service, KEY, "another-new-key").await.kind(),
        "404 not_found",
        "a rotation to another key is no repetition"
    );
    execute!(
        service.pool(),
        "update passed_keys set passed_at = passed_at - interval '48 hours'"
    );
    assert_eq!(
        rotate_to(&service, KEY, NEW_KEY).await.kind(),
        "404 not_found",
        "for two days"
    );
    assert_eq!(
        rotate_to(&service, NEW_KEY, KEY).await.status,
        200,
        "the new key may be rotated back"
    );
    assert_eq!(array(&service.get("/v1/scans").await["data"]).len(), 1);
    let forgotten: i64 = value!(service.pool(), "select count(*) from passed_keys");
    assert_eq!(forgotten, 1, "only the last one is remembered");
}

#[tokio::test]
async fn a_rotation_is_forgotten_by_the_sweep_after_two_days() {
    let service = TestService::start().await;
    service.submit(&fares(2)).await;
    assert_eq!(rotate_to(&service, KEY, NEW_KEY).await.status, 200);
    let rotations = "select count(*) from passed_keys";
    for (hours, left) in [("47 hours", 1), ("1 hour", 0)] {
        let age = "update passed_keys set passed_at = passed_at - $1::text::interval";
        execute!(service.pool(), age, hours);
        let lease = std::time::Duration::from_secs(20);
        let mut sweeper = Sweeper::new(service.pool().clone(), lease);
        sweeper.run_once(true).await.unwrap();
        assert_eq!(service.count(rotations).await, left, "{hours}");
    }
}

#[tokio::test]
async fn a_refused_rotation_changes_nothing() {
    let service = TestService::start().await;
    assert_eq!(
        rotate_to(&service, KEY, NEW_KEY).await.kind(),
        "404 not_found",
        "a key that never submitted anything"
    );
    service
        .submit_and_complete(&fares(1), |_| SearchOutcome::Ok(9))
        .await;
    assert_eq!(
        service
            .post_as("their-key-0123456789", "/v1/scans", &fares(1))
            .await
            .status,
        202
    );
    let before = service.dump_database().await;
    let taken = rotate_to(&service, KEY, "their-key-0123456789").await;
    assert_eq!(taken.kind(), "409 invalid_state");
    for (old, new) in [("their-key-0123456789", KEY), ("a-stranger", KEY)] {
        let refused = rotate_to(&service, old, new).await;
        assert!(
            matches!(refused.status, 404 | 409),
            "{old}: {}",
            refused.text()
        );
    }
    assert_eq!(service.dump_database().await, before);
    assert_eq!(array(&service.get("/v1/scans").await["data"]).len(), 1);
}

#[tokio::test]
async fn invalid_rotation_bodies_are_refused_and_not_shown() {
    let service = TestService::start().await;
    service.submit(&fares(1)).await;
    let before = service.dump_database().await;
    let canary = "canary-8f3a";
    let long = format!("{canary}{}", "k".repeat(502));
    for body in [
        json!({"new_key": ""}).to_string(),
        json!({"new_key": format!(" {canary}")}).to_string(),
        json!({"new_key": format!("{canary} {canary}")}).to_string(),
        json!({"new_key": format!("{canary}\u{e9}")}).to_string(),
        json!({"new_key": long}).to_string(),
        json!({"new_key": [canary]}).to_string(),
        json!({"new_key": "YOUR_API_KEY"}).to_string(),
        json!({"new_key": null}).to_string(),
        json!({"new_key": KEY}).to_string(),
        json!({"new_key": "good-key", "old_key": canary}).to_string(),
        json!({"new_kye": canary}).to_string(),
        json!({canary: "good-key"}).to_string(),
        json!([canary]).to_string(),
        json!(canary).to_string(),
        format!("{{\"new_key\": \"{canary}"),
        format!("new_key={canary}"),
        String::new(),
    ] {
        let request = service
            .request("POST", PATH)
            .header("x-api-key", KEY)
            .body(body.clone());
        let answer = service.send(request).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{body}");
        let shown = format!("{} {:?}", answer.text(), answer.headers);
        assert!(
            !shown.contains("canary") && !shown.contains("good-key") && !shown.contains(KEY),
            "{body}: {shown}"
        );
        assert!(
            answer.message().contains("`new_key`") || answer.message().contains("`body`"),
            "{}",
            answer.message()
        );
    }
    let same = rotate_to(&service, KEY, KEY).await.message();
    assert!(
        same.starts_with("`new_key`: found a value that is not shown; expected ")
            && same.contains("other than the key of this request"),
        "{same}"
    );
    let large = service
        .request("POST", PATH)
        .header("x-api-key", KEY)
        .body("x".repeat(70_000));
    assert_eq!(service.send(large).await.kind(), "413 payload_too_large");
    let keyless = service
        .request("POST", PATH)
        .json(&json!({"new_key": NEW_KEY}));
    assert_eq!(service.send(keyless).await.kind(), "401 missing_api_key");
    assert_eq!(service.dump_database().await, before);
}

#[tokio::test]
async fn neither_key_is_in_a_row_or_a_log_line() {
    let logs = crate::gateway::keys::Logs::default();
    let guard = logs.take();
    let service = TestService::start().await;
    service.submit(&fares(2)).await;
    assert_eq!(rotate_to(&service, KEY, NEW_KEY).await.status, 200);
    assert_eq!(rotate_to(&service, KEY, NEW_KEY).await.status, 200);
    assert_eq!(rotate_to(&service, NEW_KEY, KEY).await.status, 200);
    assert_eq!(rotate_to(&service, KEY, NEW_KEY).await.status, 200);
    drop(guard);
    let text = logs.text();
    assert!(
        text.contains(PATH) && text.contains("TRACE"),
        "logs were taken"
    );
    let dump = service.dump_database().await;
    assert!(dump.contains("flights/oneway"));
    for key in [KEY, NEW_KEY] {
        let leaks: Vec<_> = text.lines().filter(|line| line.contains(key)).collect();
        assert!(leaks.is_empty(), "{leaks:#?}");
        let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert!(!dump.contains(key) && !dump.contains(&hex), "{key}");
    }
}

#[tokio::test]
async fn a_rotation_replaces_the_fingerprints_of_every_ring_key() {
    let db = TestDb::new().await;
    let ring = |ids: &str| {
        let entry = |id: char| format!("{id}:{}", format!("{:02x}", u32::from(id)).repeat(32));
        Keyring::parse(&ids.chars().map(entry).collect::<Vec<_>>().join(",")).unwrap()
    };
    let (old, new) = (CallerKey::new("old-key"), CallerKey::new("new-key"));
    let mut tx = farescan::db::begin(db.pool()).await.unwrap();
    let tenant = store::find_or_create(&mut tx, &ring("ba"), &old, Timestamp::now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    // In a process with the older ring.
    rotate::rotate(db.pool(), &ring("a"), &old, &new, Timestamp::now())
        .await
        .unwrap();
    let mut conn = db.pool().acquire().await.unwrap();
    for ids in ["a", "ba", "b"] {
        assert_eq!(
            store::find(&mut conn, &ring(ids), &old, Timestamp::now())
                .await
                .unwrap(),
            None,
            "{ids}"
        );
        assert_eq!(
            store::find(&mut conn, &ring(ids), &new, Timestamp::now())
                .await
                .unwrap(),
            Some(tenant),
            "{ids}"
        );
    }
}

#[tokio::test]
async fn lists_are_the_same_with_the_new_key() {
    let service = TestService::start().await;
    let id = service
        .submit_and_complete(&fares(3), |position| {
            SearchOutcome::Ok(100 + u32::try_from(position).unwrap())
        })
        .await;
    let paths = [
        "/v1/scans".to_owned(),
        format!("/v1/scans/{id}/items"),
        "/v1/quota".to_owned(),
    ];
    let mut seen: Vec<Value> = Vec::new();
    for path in &paths {
        seen.push(service.get(path).await);
    }
    assert_eq!(
        rotate_to(&service, KEY, NEW_KEY).await.json()["held_keys"],
        json!(0),
        "an ended scan has no stored key"
    );
    for (path, seen) in paths.iter().zip(seen) {
        assert_eq!(service.get_as(NEW_KEY, path).await.json(), seen, "{path}");
    }
    // With the check of the new key.
    service.wait_for_requests(NEW_KEY, 3 + 1).await;
}
