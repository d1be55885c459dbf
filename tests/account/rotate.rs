//! `POST /v1/account/rotate-key`: what the old key owns is the new one's, once, and neither key shows anywhere.

use farescan::ids::{GrantId, TenantId};
use farescan::search::CallerKey;
use farescan::tenants::{self, Keyring, rotate, store};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::control::house::{House, fares, from};
use crate::scans::office::{Comes, Office};
use crate::support::app::{Answer, KEY, TestApp, ring};
use crate::support::db::TestDb;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;

pub const NEW: &str = "rotated-key-9876543210";
const PATH: &str = "/v1/account/rotate-key";

pub async fn rotate_to(app: &TestApp, old: &str, new: &str) -> Answer {
    app.send(
        app.request("POST", PATH)
            .header("x-api-key", old)
            .json(&json!({"new_key": new})),
    )
    .await
}

async fn get_as(app: &TestApp, key: &str, path: &str) -> Answer {
    app.send(app.request("GET", path).header("x-api-key", key))
        .await
}

/// The keys that are held, opened.
pub async fn held_keys(db: &TestDb) -> Vec<(TenantId, String)> {
    let live: Vec<(uuid::Uuid, uuid::Uuid)> =
        sqlx::query_as("select tenant_id, grant_id from key_grants where wiped_at is null")
            .fetch_all(db.pool())
            .await
            .unwrap();
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
async fn scans_that_a_rejected_key_had_stopped_go_on_with_the_new_one() {
    let house = House::open().await;
    house
        .app
        .upstream
        .on_any()
        .answer(|call| match call.key.as_str() {
            NEW => Reply::json(json!([fare(164, &call.body)])),
            "a-third-key" => Reply::status(403),
            _ if call.body["from_airport"] == "YYY" => Reply::json(json!([fare(120, &call.body)])),
            _ => Reply::status(401).with_json(json!({"message": "Invalid API key"})),
        });
    let worker = house.worker(2);
    house.warm().await;
    let scans = [
        house.order(&fares(4)).await,
        house.order(&from("ZZZ", fares(3))).await,
    ];
    for id in &scans {
        house
            .scan_when(id, "its lane is paused", |scan| {
                scan["status_reason"] == "key_rejected"
            })
            .await;
        house.still(id).await;
    }
    let before = house.app.upstream.count();

    let rotated = rotate_to(&house.app, KEY, NEW).await;
    assert_eq!(rotated.status, 200, "{}", rotated.text());
    let told = rotated.json();
    assert_eq!(
        (&told["held_keys"], &told["lanes_resumed"]),
        (&json!(2), &json!(["flights"]))
    );
    for id in &scans {
        let path = format!("/v1/scans/{id}?wait=60");
        let ended = get_as(&house.app, NEW, &path).await.json();
        assert_eq!(
            (&ended["status"], &ended["items"]["degraded"]),
            (&json!("completed"), &json!(0)),
            "{ended:#}"
        );
        assert_eq!(
            get_as(&house.app, KEY, &path).await.kind(),
            "404 not_found",
            "the old key is a stranger"
        );
    }
    worker.stop().await;
    let after: Vec<_> = house.app.upstream.calls().split_off(before);
    assert_eq!(
        after.len(),
        1 + 7,
        "the check of the new key, and each search once"
    );
    assert!(after.iter().all(|call| call.key == NEW), "with the new key");
    let usage = get_as(&house.app, NEW, "/v1/usage").await.json();
    assert_eq!(
        usage["totals"]["requests"],
        json!(house.app.upstream.count() - 1),
        "what was spent before passed too"
    );
    assert_eq!(
        get_as(&house.app, KEY, "/v1/usage").await.json()["totals"]["requests"],
        json!(0)
    );
    let history = "/v1/history/flights?from_airport=YYY&to_airport=LHR";
    assert_eq!(
        get_as(&house.app, NEW, history).await.json()["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_flight_ends_with_the_old_key_and_its_refusal_stops_nothing() {
    let house = House::open().await;
    let gate = Gate::closed();
    let held = gate.clone();
    house
        .app
        .upstream
        .on_any()
        .answer(move |call| match call.key.as_str() {
            NEW => Reply::json(json!([fare(164, &call.body)])),
            _ if call.body["departure_date"] == "2030-01-01" => {
                Reply::json(json!([fare(120, &call.body)])).held_by(&held)
            }
            _ => Reply::status(401).held_by(&held),
        });
    let worker = house.worker(2);
    let id = house.order(&fares(4)).await;
    house.app.upstream.wait_for_in_flight(2).await;
    assert_eq!(
        rotate_to(&house.app, KEY, NEW).await.json()["lanes_resumed"],
        json!([]),
        "nothing had stopped"
    );
    gate.open();
    let ended = get_as(&house.app, NEW, &format!("/v1/scans/{id}?wait=60"))
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
    let keys: Vec<_> = house
        .app
        .upstream
        .calls()
        .iter()
        .map(|call| call.key == NEW)
        .collect();
    assert_eq!(
        keys,
        [false, false, true, true, true, true],
        "checked, then what the old key's refusal gave back went with the new one"
    );
}

#[tokio::test]
async fn sent_again_because_its_answer_was_lost_it_is_answered_the_same() {
    let office = Office::open().await;
    office.order(&fares(2)).await;
    let first = rotate_to(&office.app, KEY, NEW).await;
    let before = office.rows().await;
    let again = rotate_to(&office.app, KEY, NEW).await;
    assert_eq!((again.status, again.text()), (200, first.text()));
    assert_eq!(
        (
            first.header("idempotent-replayed"),
            again.header("idempotent-replayed")
        ),
        ("", "true")
    );
    assert_eq!(office.rows().await, before, "nothing was done");

    assert_eq!(
        rotate_to(&office.app, KEY, "another-new-key").await.kind(),
        "404 not_found",
        "to another key is no repetition"
    );
    sqlx::query("update passed_keys set passed_at = passed_at - interval '48 hours'")
        .execute(office.db.pool())
        .await
        .unwrap();
    assert_eq!(
        rotate_to(&office.app, KEY, NEW).await.kind(),
        "404 not_found",
        "for two days"
    );
    assert_eq!(
        rotate_to(&office.app, NEW, KEY).await.status,
        200,
        "and it may go back"
    );
    assert_eq!(
        office.get("/v1/scans").await["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let forgotten: i64 = sqlx::query_scalar("select count(*) from passed_keys")
        .fetch_one(office.db.pool())
        .await
        .unwrap();
    assert_eq!(forgotten, 1, "only the last one is remembered");
}

#[tokio::test]
async fn what_cannot_pass_changes_nothing() {
    let office = Office::open().await;
    assert_eq!(
        rotate_to(&office.app, KEY, NEW).await.kind(),
        "404 not_found",
        "a key that never ordered anything"
    );
    office.done(&fares(1), |_| Comes::Ok(9)).await;
    assert_eq!(
        office
            .post_as("their-key-0123456789", "/v1/scans", &fares(1))
            .await
            .status,
        202
    );
    let before = office.dump().await;
    let taken = rotate_to(&office.app, KEY, "their-key-0123456789").await;
    assert_eq!(taken.kind(), "409 invalid_state");
    for (old, new) in [("their-key-0123456789", KEY), ("a-stranger", KEY)] {
        let refused = rotate_to(&office.app, old, new).await;
        assert!(
            matches!(refused.status, 404 | 409),
            "{old}: {}",
            refused.text()
        );
    }
    assert_eq!(office.dump().await, before);
    assert_eq!(
        office.get("/v1/scans").await["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_body_that_is_none_is_told_what_is_wanted_and_nothing_of_it_is_shown() {
    let office = Office::open().await;
    office.order(&fares(1)).await;
    let before = office.dump().await;
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
        let request = office
            .app
            .request("POST", PATH)
            .header("x-api-key", KEY)
            .body(body.clone());
        let answer = office.app.send(request).await;
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
    let same = rotate_to(&office.app, KEY, KEY).await.message();
    assert!(
        same.starts_with("`new_key` holds a value that is not shown; allowed: ")
            && same.contains("another"),
        "{same}"
    );
    let large = office
        .app
        .request("POST", PATH)
        .header("x-api-key", KEY)
        .body("x".repeat(70_000));
    assert_eq!(office.app.send(large).await.kind(), "413 payload_too_large");
    let keyless = office
        .app
        .request("POST", PATH)
        .json(&json!({"new_key": NEW}));
    assert_eq!(office.app.send(keyless).await.kind(), "401 missing_api_key");
    assert_eq!(office.dump().await, before);
}

#[tokio::test]
async fn neither_key_is_in_a_row_or_a_log_line() {
    let logs = crate::gateway::keys::Logs::default();
    let guard = logs.take();
    let office = Office::open().await;
    office.order(&fares(2)).await;
    assert_eq!(rotate_to(&office.app, KEY, NEW).await.status, 200);
    assert_eq!(rotate_to(&office.app, KEY, NEW).await.status, 200);
    assert_eq!(rotate_to(&office.app, NEW, KEY).await.status, 200);
    assert_eq!(rotate_to(&office.app, KEY, NEW).await.status, 200);
    drop(guard);
    let text = logs.text();
    assert!(
        text.contains(PATH) && text.contains("TRACE"),
        "logs were taken"
    );
    let dump = office.dump().await;
    assert!(dump.contains("flights/oneway"));
    for key in [KEY, NEW] {
        let leaks: Vec<_> = text.lines().filter(|line| line.contains(key)).collect();
        assert!(leaks.is_empty(), "{leaks:#?}");
        let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert!(!dump.contains(key) && !dump.contains(&hex), "{key}");
    }
}

#[tokio::test]
async fn the_new_key_is_known_under_every_key_of_the_ring_and_the_old_one_under_none() {
    let db = TestDb::new().await;
    let ring = |ids: &str| {
        let entry = |id: char| format!("{id}:{}", format!("{:02x}", u32::from(id)).repeat(32));
        Keyring::parse(&ids.chars().map(entry).collect::<Vec<_>>().join(",")).unwrap()
    };
    let (old, new) = (CallerKey::new("old-key"), CallerKey::new("new-key"));
    let mut tx = farescan::db::begin(db.pool()).await.unwrap();
    let tenant = store::find_or_make(&mut tx, &ring("ba"), &old, Timestamp::now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    // A process that has the older ring still.
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

/// Everything that the caller sees is what the old key saw.
#[tokio::test]
async fn every_list_is_the_same_under_the_new_key() {
    let office = Office::open().await;
    let id = office
        .done(&fares(3), |position| {
            Comes::Ok(100 + u32::try_from(position).unwrap())
        })
        .await;
    let paths = [
        "/v1/scans".to_owned(),
        format!("/v1/scans/{id}/items"),
        "/v1/quota".to_owned(),
        "/v1/usage?group=scan".to_owned(),
    ];
    let mut seen: Vec<Value> = Vec::new();
    for path in &paths {
        seen.push(office.get(path).await);
    }
    assert_eq!(
        rotate_to(&office.app, KEY, NEW).await.json()["held_keys"],
        json!(0),
        "an ended scan holds none"
    );
    for (path, seen) in paths.iter().zip(seen) {
        assert_eq!(office.get_as(NEW, path).await.json(), seen, "{path}");
    }
}
