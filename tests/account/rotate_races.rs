//! Rotations concurrent with submissions, resumes and each other: no grant keeps a rotated key, and
//! no caller is lost.

use std::collections::HashSet;

use futures::future::{join, join_all};
use serde_json::json;

use super::rotate::{NEW_KEY, rotate_to, stored_keys};
use crate::support::app::KEY;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::support::{SearchOutcome, TestService, airport_code, array, departing_from, fares};

/// The lanes that were charged for the check of the new key and for one search, after
/// [`service_at_a_call_a_minute`].
const CHARGED: &str = "select count(*) from lanes where arrival > now() + interval '90 seconds'";
const WITH_PLAN: &str = "select count(*) from lanes where plan_remaining is not null";

/// A service whose caller has a scan behind it, and a lane where each call counts for a minute.
async fn service_at_a_call_a_minute() -> TestService {
    let service = TestService::start().await;
    service
        .submit_and_complete(&fares(1), |_| SearchOutcome::Ok(9))
        .await;
    let pace = "update lanes set own_per_minute = 1, arrival = '-infinity'";
    execute!(service.pool(), pace);
    service
}

/// Submissions and resumes with the old key during its rotation: the new key owns the earlier ones,
/// an unknown caller the later ones, and each tenant has grants of its own key only.
#[tokio::test(flavor = "multi_thread")]
async fn submissions_run_before_or_after_a_rotation() {
    for round in 0..5_usize {
        let service = TestService::start().await;
        service
            .submit_and_complete(&fares(1), |_| SearchOutcome::Ok(9))
            .await;
        let paused = service
            .submit(&departing_from(&airport_code(99), fares(2)))
            .await;
        service
            .post_as(KEY, &format!("/v1/scans/{paused}/pause"), &json!({}))
            .await;
        let orders = join_all((0..12).map(|number| {
            let (service, paused) = (&service, &paused);
            async move {
                match number % 3 {
                    0 => {
                        service
                            .post_as(KEY, &format!("/v1/scans/{paused}/resume"), &json!({}))
                            .await
                            .status
                    }
                    _ => {
                        service
                            .post_as(
                                KEY,
                                "/v1/scans",
                                &departing_from(&airport_code(number), fares(1)),
                            )
                            .await
                            .status
                    }
                }
            }
        }));
        let rotation = async {
            // Delayed in later rounds, so that both sequences occur.
            for _ in 0..round {
                service.get("/v1/scans").await;
            }
            rotate_to(&service, KEY, NEW_KEY).await
        };
        let (statuses, rotated) = join(orders, rotation).await;
        assert_eq!(rotated.status, 200, "{}", rotated.text());
        // An unknown caller may have one scan until the marketplace has accepted the key.
        assert!(
            statuses
                .iter()
                .all(|status| [200, 202, 404, 429].contains(status)),
            "{statuses:?}"
        );
        let tenant_of = async |key: &str| {
            array(&service.get_as(key, "/v1/scans?limit=500").await.json()["data"]).len()
        };
        let taken = statuses.iter().filter(|status| **status == 202).count();
        assert_eq!(
            tenant_of(NEW_KEY).await + tenant_of(KEY).await,
            2 + taken,
            "{statuses:?}"
        );
        let keys: HashSet<_> = stored_keys(&service.db).await.into_iter().collect();
        let tenants: HashSet<_> = keys.iter().map(|(tenant, _)| *tenant).collect();
        assert_eq!(
            keys.len(),
            tenants.len(),
            "no tenant has two stored keys: {keys:?}"
        );
        assert!(
            keys.iter().any(|(_, key)| key == NEW_KEY),
            "the paused scan has the new key"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_rotations_of_one_key_succeed_once() {
    let service = TestService::start().await;
    service.submit(&fares(2)).await;
    let news: Vec<_> = (0..6)
        .map(|number| format!("new-key-number-{number}"))
        .collect();
    let answers = join_all(news.iter().map(|new| rotate_to(&service, KEY, new))).await;
    let kinds: Vec<_> = answers.iter().map(|answer| answer.kind()).collect();
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "200").count(),
        1,
        "{kinds:?}"
    );
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "404 not_found").count(),
        5,
        "{kinds:?}"
    );
    let winner = &news[kinds.iter().position(|kind| kind == "200").unwrap()];
    let keys = stored_keys(&service.db).await;
    assert_eq!(
        keys.iter().map(|(_, key)| key).collect::<Vec<_>>(),
        [winner]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_caller_can_rotate_to_a_key() {
    let service = TestService::start().await;
    let olds: Vec<_> = (0..4)
        .map(|number| format!("old-key-number-{number}"))
        .collect();
    for old in &olds {
        assert_eq!(
            service.post_as(old, "/v1/scans", &fares(1)).await.status,
            202
        );
    }
    let answers = join_all(olds.iter().map(|old| rotate_to(&service, old, NEW_KEY))).await;
    let kinds: Vec<_> = answers.iter().map(|answer| answer.kind()).collect();
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "200").count(),
        1,
        "{kinds:?}"
    );
    assert_eq!(
        kinds
            .iter()
            .filter(|kind| *kind == "409 invalid_state")
            .count(),
        3,
        "{kinds:?}"
    );
    assert_eq!(stored_keys(&service.db).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_scan_with_the_new_key_adds_no_tenant() {
    for _ in 0..5 {
        let service = TestService::start().await;
        service
            .submit_and_complete(&fares(1), |_| SearchOutcome::Ok(9))
            .await;
        let (ordered, rotated) = join(
            service.post_as(NEW_KEY, "/v1/scans", &departing_from("ZZZ", fares(1))),
            rotate_to(&service, KEY, NEW_KEY),
        )
        .await;
        assert_eq!(ordered.status, 202, "{}", ordered.text());
        let scans = array(&service.get_as(NEW_KEY, "/v1/scans").await.json()["data"]).len();
        match rotated.kind().as_str() {
            "200" => assert_eq!(
                scans, 2,
                "the submission came second and went to the tenant of the new key"
            ),
            "409 invalid_state" => assert_eq!(
                scans, 1,
                "the submission came first, so the new key owned something"
            ),
            other => panic!("{other}: {}", rotated.text()),
        }
    }
}

/// A single search that began before the rotation belongs to the new key, as the calls of scans do.
#[tokio::test(flavor = "multi_thread")]
async fn a_stored_search_in_flight_during_a_rotation_stays_with_its_caller() {
    search_during_rotation(Some("max-age=60")).await;
}

/// Also where not its request but the account's setting has it stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_stored_by_setting_in_flight_during_a_rotation_stays_with_its_caller() {
    search_during_rotation(None).await;
}

/// Another process of the caller may use the old key for a while. Then somebody has it anew, but the
/// search that began before the rotation is still its caller's.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_of_a_rotated_key_that_is_used_again_stays_with_its_caller() {
    let service = service_at_a_call_a_minute().await;
    let gate = Gate::closed();
    let gate_of_search = gate.clone();
    service.upstream.answer(move |call| {
        let reply = Reply::json(json!([fare(120, &call.body)]));
        if call.key == KEY && call.body["to_airport"] == "CDG" {
            let reply = reply.header("x-ratelimit-requests-limit", "2500");
            reply
                .header("x-ratelimit-requests-remaining", "1234")
                .gated_by(&gate_of_search)
        } else {
            reply
        }
    });
    let search = |to: &str| {
        let body = json!({"from_airport": "TLV", "to_airport": to, "departure_date": "2030-01-01"});
        let request = service.app.request("POST", "/v1/flights/oneway");
        service
            .app
            .send(request.header("x-api-key", KEY).json(&body))
    };
    let rotating = async {
        service.upstream.wait_for_in_flight(1).await;
        rotate_to(&service, KEY, NEW_KEY).await.expect(200);
        assert_eq!(search("FCO").await.status, 200);
        let anew = "select count(*) from tenants";
        service.wait_for_count(anew, 2).await;
        gate.open();
    };
    let (answer, ()) = join(search("CDG"), rotating).await;
    assert_eq!(answer.status, 200);
    service.wait_for_count(CHARGED, 1).await;
    // The plan is that of the old key.
    assert_eq!(service.count(WITH_PLAN).await, 0);
}

/// The check of the new key takes a while. A search that begins meanwhile began before the rotation.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_begins_during_the_check_of_the_new_key_stays_with_its_caller() {
    let service = service_at_a_call_a_minute().await;
    let (check, search) = (Gate::closed(), Gate::closed());
    let gates = (check.clone(), search.clone());
    service
        .upstream
        .answer(move |call| match call.key.as_str() {
            KEY => Reply::json(json!([fare(120, &call.body)])).gated_by(&gates.1),
            _ => Reply::status(422).gated_by(&gates.0),
        });
    let body = json!({"from_airport": "TLV", "to_airport": "CDG", "departure_date": "2030-01-01"});
    let searching = async {
        service.upstream.wait_for_in_flight(1).await;
        let request = service.app.request("POST", "/v1/flights/oneway");
        let request = request
            .header("x-api-key", KEY)
            .header("cache-control", "max-age=60");
        let opening = async {
            service.upstream.wait_for_in_flight(2).await;
            check.open();
        };
        let (answer, ()) = join(service.app.send(request.json(&body)), opening).await;
        answer
    };
    let rotating = async {
        rotate_to(&service, KEY, NEW_KEY).await.expect(200);
        search.open();
    };
    let (answer, ()) = join(searching, rotating).await;
    assert_eq!(answer.status, 200);
    service.wait_for_count(CHARGED, 1).await;
    let stored = "select count(*) from scan_items where state = 'done'";
    service.wait_for_count(stored, 2).await;
    let scans = service.get_as(NEW_KEY, "/v1/scans").await.json();
    assert_eq!(array(&scans["data"]).len(), 2);
    assert_eq!(service.count("select count(*) from tenants").await, 1);
}

/// Rotates the key while a search is in flight that is stored for this `Cache-Control`, or (`None`)
/// by the setting.
async fn search_during_rotation(cache_control: Option<&str>) {
    let service = service_at_a_call_a_minute().await;
    if cache_control.is_none() {
        let settings = json!({"record_searches": true});
        service
            .ask("PUT", "/v1/account/settings", Some(&settings))
            .await
            .expect(200);
    }
    let gate = Gate::closed();
    let gate_of_search = gate.clone();
    service
        .upstream
        .answer(move |call| match call.key.as_str() {
            KEY => Reply::json(json!([fare(120, &call.body)]))
                .header("x-ratelimit-requests-limit", "2500")
                .header("x-ratelimit-requests-remaining", "1234")
                .gated_by(&gate_of_search),
            _ => Reply::json(json!([])),
        });
    let body = json!({"from_airport": "TLV", "to_airport": "CDG", "departure_date": "2030-01-01"});
    let mut search = service
        .app
        .request("POST", "/v1/flights/oneway")
        .header("x-api-key", KEY)
        .json(&body);
    if let Some(cache_control) = cache_control {
        search = search.header("cache-control", cache_control);
    }
    let rotating = async {
        service.upstream.wait_for_in_flight(1).await;
        rotate_to(&service, KEY, NEW_KEY).await.expect(200);
        gate.open();
    };
    let (answer, ()) = join(service.app.send(search), rotating).await;
    assert_eq!(answer.status, 200);
    let stored = "select count(*) from scan_items where state = 'done'";
    service.wait_for_count(stored, 2).await;
    let scans = service.get_as(NEW_KEY, "/v1/scans").await.json();
    assert_eq!(array(&scans["data"]).len(), 2);
    // The search is charged to its caller a moment after its response, and nobody else comes of it.
    service.wait_for_count(CHARGED, 1).await;
    assert_eq!(service.count(WITH_PLAN).await, 0);
    assert_eq!(service.count("select count(*) from tenants").await, 1);
}
