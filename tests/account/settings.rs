//! `GET` and `PUT /v1/account/settings`, and the default age of submitted scans (scans.md, rules 89 and
//! 90).

use serde_json::{Value, json};

use crate::support::TestService;
use crate::support::app::{HttpResponse, KEY};
use crate::support::db::require_key_acceptance;
use crate::support::service::{fares, fares_with};

const PATH: &str = "/v1/account/settings";
const OTHER: &str = "another-key-0123456789";

async fn set(service: &TestService, settings: Value) -> HttpResponse {
    service.ask("PUT", PATH, Some(&settings)).await
}

/// A service whose caller has set an age of an hour.
async fn with_default() -> TestService {
    let service = TestService::start().await;
    set(&service, json!({"max_age_seconds": 3600}))
        .await
        .expect(200);
    service
}

/// The age of a new scan with this body, and of its preview.
async fn ages(service: &TestService, key: &str, body: &Value) -> [Value; 2] {
    let preview = service.post_as(key, "/v1/scans/preview", body).await;
    let preview = preview.expect(200).json();
    let scan = service.post_as(key, "/v1/scans", body).await;
    let scan = scan.expect(202).json();
    let shows = |reused: bool| assert_eq!(preview.get("reused").is_some(), reused, "{preview:#}");
    shows(!scan["max_age_seconds"].is_null());
    [
        preview["max_age_seconds"].clone(),
        scan["max_age_seconds"].clone(),
    ]
}

#[tokio::test]
async fn settings_are_replaced_as_a_whole() {
    let service = TestService::start().await;
    let unset = json!({"record_searches": false, "max_age_seconds": null});
    assert_eq!(service.get(PATH).await, unset);
    let tenants = service.count("select count(*) from tenants").await;
    assert_eq!(tenants, 0, "a read stores nothing");
    for (given, then) in [
        (
            json!({"record_searches": true, "max_age_seconds": 3600}),
            json!({"record_searches": true, "max_age_seconds": 3600}),
        ),
        (
            json!({"max_age_seconds": 2_678_400}),
            json!({"record_searches": false, "max_age_seconds": 2_678_400}),
        ),
        (
            json!({"record_searches": true, "max_age_seconds": 0}),
            json!({"record_searches": true, "max_age_seconds": null}),
        ),
        (json!({"record_searches": null}), unset.clone()),
        (json!({}), unset.clone()),
    ] {
        assert_eq!(set(&service, given).await.expect(200).json(), then);
        assert_eq!(service.get(PATH).await, then);
        assert_eq!(service.get_as(OTHER, PATH).await.json(), unset);
    }
}

#[tokio::test]
async fn a_wrong_field_is_named_and_changes_nothing() {
    let service = with_default().await;
    for (body, field, found) in [
        (json!({"max_age_seconds": -1}), "max_age_seconds", "-1"),
        (
            json!({"max_age_seconds": 2_678_401}),
            "max_age_seconds",
            "2678401",
        ),
        (
            json!({"max_age_seconds": "6h"}),
            "max_age_seconds",
            "\"6h\"",
        ),
        (
            json!({"record_searches": "yes"}),
            "record_searches",
            "\"yes\"",
        ),
        (json!({"record_search": true}), "record_search", "true"),
    ] {
        let refused = set(&service, body).await;
        assert_eq!(refused.kind(), "400 invalid_request");
        let detail = &refused.json()["error"]["details"][0];
        assert_eq!(detail["field"], field, "{detail:#}");
        assert_eq!(detail["found"], found, "{detail:#}");
    }
    assert_eq!(service.get(PATH).await["max_age_seconds"], 3600);
}

#[tokio::test]
async fn a_key_that_is_not_accepted_sets_nothing() {
    let service = TestService::start().await;
    require_key_acceptance(service.pool()).await;
    let refused = set(&service, json!({"record_searches": true})).await;
    assert_eq!(refused.kind(), "409 key_not_accepted");
    let stored = "select count(*) from account_settings";
    assert_eq!(service.count(stored).await, 0);
}

#[tokio::test]
async fn the_default_holds_for_scans_that_name_no_age() {
    let service = with_default().await;
    let given = |age: Value| fares_with(2, &json!({"max_age_seconds": age}));
    let hour = json!(3600);
    for (body, age) in [
        (fares(2), &hour),
        (given(Value::Null), &hour),
        (given(json!(60)), &json!(60)),
        (given(json!(0)), &Value::Null),
        // Samples are equal searches, so no age is possible.
        (
            fares_with(
                1,
                &json!({"sweep": {"departure_date": ["2030-01-01"], "samples": 2}}),
            ),
            &Value::Null,
        ),
        (
            fares_with(
                1,
                &json!({"sweep": {"departure_date": ["2030-01-01"], "samples": 2.0}}),
            ),
            &Value::Null,
        ),
    ] {
        assert_eq!(
            ages(&service, KEY, &body).await,
            [age.clone(), age.clone()],
            "{body:#}"
        );
    }
    assert_eq!(
        ages(&service, OTHER, &fares(2)).await,
        [Value::Null, Value::Null],
        "another caller has no default"
    );
    let refused = service.post("/v1/scans", &given(json!(2_678_401))).await;
    assert_eq!(refused.kind(), "400 invalid_request");
}

#[tokio::test]
async fn a_submitted_scan_keeps_its_age() {
    let service = with_default().await;
    let id = service.submit(&fares(2)).await;
    let once = service.post_with_key("once", "/v1/scans", &fares(2)).await;
    let once = once.expect(202).json();
    set(&service, json!({})).await.expect(200);
    assert_eq!(service.scan(&id).await["max_age_seconds"], 3600);
    let again = service.post_with_key("once", "/v1/scans", &fares(2)).await;
    assert_eq!(
        again.expect(202).json(),
        once,
        "a repetition is not planned anew"
    );
    assert_eq!(
        ages(&service, KEY, &fares(2)).await,
        [Value::Null, Value::Null]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_by_default_takes_answers() {
    let service = with_default().await;
    let worker = service.start_worker(2);
    let first = service.submit(&fares(3)).await;
    service.wait_until_ended(&first).await;
    let second = service.submit(&fares(4)).await;
    let second = service.wait_until_ended(&second).await;
    assert_eq!(second["requests"]["avoided"]["reused"], 3, "{second:#}");
    assert_eq!(service.upstream.count(), 4);
    let all = fares_with(4, &json!({"max_age_seconds": 0}));
    let all = service.submit(&all).await;
    let all = service.wait_until_ended(&all).await;
    assert_eq!(all["requests"]["spent"], 4, "{all:#}");
    assert_eq!(service.upstream.count(), 8);
    worker.stop().await;
}

#[tokio::test]
async fn a_monitor_states_its_own_age() {
    let service = with_default().await;
    let monitor = json!({
        "name": "a week ahead", "schedule": {"cron": "0 6 * * *", "timezone": "Europe/London"}, "scan": fares(2)
    });
    let monitor = service.create_monitor(&monitor).await;
    let run = service
        .ask("POST", &format!("/v1/monitors/{monitor}/run"), None)
        .await
        .expect(202)
        .json();
    assert_eq!(run["max_age_seconds"], Value::Null, "{run:#}");
}
