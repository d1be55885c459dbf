//! Submitting a scan.

use farescan::ids::{GrantId, TenantId};
use farescan::tenants;
use serde_json::json;
use uuid::Uuid;

use crate::support::app::{KEY, TestApp, ring};
use crate::support::db::{PrivatePg, TestDb, accept_new_tenants};
use crate::support::reply::Reply;
use crate::support::{SearchOutcome, TestService, day, fares};

#[tokio::test]
async fn a_submitted_scan_is_returned_and_read_back_whole() {
    let service = TestService::start().await;
    let mut body = fares(3);
    body["label"] = json!("January");
    body["tags"] = json!(["demo"]);
    body["max_requests"] = json!(5);
    let answer = service.post("/v1/scans", &body).await.expect(202);
    let scan = answer.json();
    let id = scan["id"].as_str().unwrap();
    assert_eq!(answer.header("location"), format!("/v1/scans/{id}"));
    for (field, value) in [
        ("endpoint", json!("flights/oneway")),
        ("request", body["request"].clone()),
        ("sweep", body["sweep"].clone()),
        ("label", json!("January")),
        ("tags", json!(["demo"])),
        ("status", json!("queued")),
        ("status_reason", json!(null)),
        ("requests", json!({"planned": 3, "spent": 0, "max": 5})),
        ("best", json!(null)),
        ("progress", json!(0.0)),
        ("eta_seconds", json!(1)),
        ("monitor_id", json!(null)),
        ("finished_at", json!(null)),
    ] {
        assert_eq!(scan[field], value, "{field}");
    }
    assert_eq!(
        (
            &scan["items"]["total"],
            &scan["items"]["pending"],
            &scan["items"]["ok"]
        ),
        (&json!(3), &json!(3), &json!(0))
    );
    assert!(
        scan["key_custody"]["until"].is_string(),
        "the key is stored and the response has its expiry"
    );
    assert_eq!(
        scan["request"].to_string(),
        body["request"].to_string(),
        "as sent, in the caller's order"
    );
    assert_eq!(service.scan(id).await, scan);
    let searches = service
        .column(&format!("/v1/scans/{id}/items"), "search")
        .await;
    let expected: Vec<_> =
        (1..=3).map(|number| json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": day(number)})).collect();
    assert_eq!(searches, expected);
    assert_eq!(service.upstream.count(), 0, "a submit makes no call");
}

#[tokio::test]
async fn the_key_is_sealed_per_tenant_and_destroyed_at_the_end() {
    let service = TestService::start().await;
    let id = service.submit(&fares(2)).await;
    let pool = service.pool();
    let (tenant, grant): (Uuid, Uuid) = row!(pool, "select tenant_id, grant_id from scans");
    let (tenant, grant) = (TenantId::from(tenant), GrantId::from(grant));
    assert_eq!(
        tenants::open_grant(pool, &ring(), tenant, grant)
            .await
            .unwrap()
            .expose(),
        KEY
    );
    let another = tenants::open_grant(pool, &ring(), TenantId::new(), grant).await;
    assert!(matches!(another, Err(tenants::GrantError::Gone)));
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let dump = service.dump_database().await;
    assert!(dump.contains("flights/oneway") && !dump.contains(KEY) && !dump.contains(&hex));

    service.complete_all(|_| SearchOutcome::Ok(100)).await;
    assert!(matches!(
        tenants::open_grant(pool, &ring(), tenant, grant).await,
        Err(tenants::GrantError::Gone)
    ));
    let scan = service.scan(&id).await;
    assert_eq!(
        (&scan["status"], &scan["key_custody"]),
        (&json!("completed"), &json!(null))
    );
}

#[tokio::test]
async fn a_scan_reports_its_progress() {
    let service = TestService::start().await;
    let id = service.submit(&fares(6)).await;
    let claims = service.claim().await;
    let outcomes = [
        SearchOutcome::Ok(250),
        SearchOutcome::Ok(199),
        SearchOutcome::Empty,
        SearchOutcome::Degraded("blocked_page"),
        SearchOutcome::InFlight,
    ];
    for (claimed, outcome) in claims.iter().zip(outcomes) {
        service.begin(claimed).await;
        service.finish(claimed, outcome).await;
    }
    let scan = service.scan(&id).await;
    let items = json!({
        "total": 6, "pending": 1, "running": 1, "ok": 2, "empty": 1, "partial": 0, "degraded": 1, "failed": 0, "cancelled": 0
    });
    assert_eq!(
        (&scan["items"], &scan["status"], &scan["requests"]["spent"]),
        (&items, &json!("running"), &json!(5))
    );
    assert_eq!(scan["progress"], json!(0.6667));
    assert_eq!(
        (&scan["best"]["price"], &scan["best"]["currency"]),
        (&json!(199), &json!("USD"))
    );
    assert_eq!(
        scan["best"]["item"],
        json!(claims[1].claim.item.to_string())
    );
}

#[tokio::test]
async fn a_paused_lane_pauses_its_scans() {
    let service = TestService::start().await;
    let id = service.submit(&fares(2)).await;
    execute!(
        service.pool(),
        "select pause_lane(tenant_id, api, 'rate_limited', 60) from lanes"
    );
    let scan = service.scan(&id).await;
    assert_eq!(
        (
            &scan["status"],
            &scan["status_reason"],
            &scan["eta_seconds"]
        ),
        (&json!("paused"), &json!("rate_limited"), &json!(null))
    );
    assert_eq!(
        service.column("/v1/scans?status=paused", "id").await,
        [json!(id)]
    );
    assert_eq!(
        service.column("/v1/scans?status=queued", "id").await.len(),
        0
    );
}

#[tokio::test]
async fn all_five_endpoints_accept_a_sweep() {
    let stay = json!({"checkin_date": "2030-01-01", "currency": "EUR"});
    let with = |more: serde_json::Value| {
        let mut request = stay.clone();
        request
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        request
    };
    for (endpoint, request, sweep, items) in [
        (
            "flights/oneway",
            json!({"from_airport": "TLV", "departure_date": "2030-01-01"}),
            json!({"to_airport": ["LHR", "CDG"]}),
            2,
        ),
        (
            "flights/roundtrip",
            json!({"from_airport": "TLV", "to_airport": "LHR"}),
            json!({"departure_date": {"from": "2030-01-01", "to": "2030-01-14", "weekdays": ["thu"]}, "nights": [3, 7, 10]}),
            6,
        ),
        (
            "hotels/search",
            with(json!({"destination": "Lisbon"})),
            json!({"nights": [1, 2], "filters": [["gym"], ["sauna", "gym"]]}),
            4,
        ),
        (
            "hotels/by-name",
            with(json!({"hotel_name": "Grand"})),
            json!({"nights": [1], "proxy_country": ["us", "de"], "samples": 3}),
            6,
        ),
        (
            "hotels/rooms",
            with(json!({"hotel_booking_id": "pt/grand"})),
            json!({"checkout_date": ["2030-01-02", "2030-01-03"]}),
            2,
        ),
    ] {
        let service = TestService::start().await;
        let id = service
            .submit(&json!({"endpoint": endpoint, "request": request, "sweep": sweep}))
            .await;
        assert_eq!(
            service.scan(&id).await["items"]["total"],
            json!(items),
            "{endpoint}"
        );
    }
}

#[tokio::test]
async fn a_scan_may_have_ten_thousand_items() {
    let service = TestService::start().await;
    let id = service.submit(&fares(10_000)).await;
    assert_eq!(service.scan(&id).await["items"]["total"], json!(10_000));
    let last = service
        .get(&format!("/v1/scans/{id}/items?limit=1&sort=position"))
        .await;
    assert_eq!(last["data"][0]["position"], json!(0));
    let places: (i64, i32, i32) = row!(
        service.pool(),
        "select count(distinct position), min(position), max(position) from scan_items"
    );
    assert_eq!(places, (10_000, 0, 9_999));
}

#[tokio::test]
async fn a_callers_live_scans_and_open_items_are_limited() {
    let service = TestService::start().await;
    service
        .submit_and_complete(&fares(1), |_| SearchOutcome::Empty)
        .await;
    for _ in 0..9 {
        service.submit(&fares(10_000)).await;
    }
    service.submit(&fares(9_950)).await;
    let full = service.post("/v1/scans", &fares(51)).await;
    assert_eq!(full.kind(), "429 too_many_requests");
    assert!(
        full.message().contains("this caller has 99950 open items"),
        "{}",
        full.message()
    );
    for _ in 0..50 {
        service.submit(&fares(1)).await;
    }
    let other = service
        .post_as("another-key-0123456789", "/v1/scans", &fares(1))
        .await;
    assert_eq!(other.status, 202, "limits are per caller");

    execute!(service.pool(), "update scans set total = 1 where total > 1");
    for _ in 0..40 {
        service.submit(&fares(1)).await;
    }
    let many = service.post("/v1/scans", &fares(1)).await;
    assert!(
        many.message().starts_with("this caller has 100 live scans"),
        "{}",
        many.message()
    );
}

#[tokio::test]
async fn without_a_master_key_errors_name_the_missing_setting() {
    let db = TestDb::new().await;
    let app = TestApp::builder().pool(db.pool().clone()).start().await;
    let scan = "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b";
    let mut answers = vec![
        app.post("/v1/scans", &fares(1)).await,
        app.post(&format!("/v1/scans/{scan}/cancel"), &json!({}))
            .await,
    ];
    for path in [
        "/v1/scans",
        &format!("/v1/scans/{scan}"),
        &format!("/v1/scans/{scan}/items"),
        "/v1/history/flights",
        "/v1/history/hotels",
    ] {
        answers.push(app.get(path).await);
    }
    for answer in answers {
        assert_eq!(answer.kind(), "503 key_custody_disabled");
        assert!(answer.message().contains("FARESCAN_MASTER_KEY_FILE"));
    }
}

#[tokio::test]
async fn an_unavailable_database_is_503_until_it_recovers() {
    let mut server = PrivatePg::start().await;
    let database = server.open().await;
    farescan::db::migrate(database.pool()).await.unwrap();
    accept_new_tenants(database.pool()).await;
    let app = TestApp::builder()
        .scan_api(database.pool().clone(), database.connect_options().clone())
        .start()
        .await;
    let id = app.post("/v1/scans", &fares(1)).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();

    server.stop_immediate().await;
    for answer in [
        app.post("/v1/scans", &fares(1)).await,
        app.get(&format!("/v1/scans/{id}")).await,
        app.get("/v1/scans").await,
    ] {
        assert_eq!(
            (answer.kind(), answer.header("retry-after")),
            ("503 unavailable".to_owned(), "5")
        );
    }
    app.upstream.reply(Reply::json(json!([])));
    let search =
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14"});
    assert_eq!(
        app.post("/v1/flights/oneway", &search).await.status,
        200,
        "the gateway does not need it"
    );

    server.restart().await;
    assert_eq!(app.get(&format!("/v1/scans/{id}?wait=0")).await.status, 200);
    let another = app
        .request("POST", "/v1/scans")
        .header("x-api-key", "another-key-0123456789")
        .json(&fares(1));
    assert_eq!(app.send(another).await.status, 202, "submits succeed again");
    assert_eq!(
        app.upstream.count(),
        1,
        "only the search was sent: no worker runs here"
    );
    database.close().await;
}

/// All that a submission asks of its caller comes from one look-up; the lock in its transaction
/// checks that this still holds. A repeated submission locks nothing.
#[tokio::test]
async fn a_submission_looks_its_caller_up_once() {
    let server = PrivatePg::start().await;
    let database = server.open().await;
    farescan::db::migrate(database.pool()).await.unwrap();
    accept_new_tenants(database.pool()).await;
    execute!(
        database.pool(),
        "alter database farescan set log_statement = 'all'"
    );
    let logged = server.open().await;
    let app = TestApp::builder()
        .scan_api(logged.pool().clone(), logged.connect_options().clone())
        .start()
        .await;
    // The first makes the caller, the second shows the process that it is accepted, and the third stores
    // that the process has seen it.
    for _ in 0..3 {
        app.post("/v1/scans", &fares(1)).await.expect(202);
    }
    for (what, lookups, locks) in [("new", 1, 1), ("repeated", 1, 0)] {
        let before = server.log().len();
        app.post_with_key("once", "/v1/scans", &fares(1))
            .await
            .expect(202);
        let log = server.log();
        let count = |statement| log[before..].matches(statement).count();
        assert_eq!(
            (
                count(": select key_id, tenant_id from tenant_keys"),
                count(": select from tenant_keys")
            ),
            (lookups, locks),
            "{what}: {}",
            &log[before..]
        );
    }
}
