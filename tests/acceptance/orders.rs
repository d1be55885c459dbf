//! What a submission before acceptance stores, and how it is expanded later.

use farescan::scans::after_acceptance::expand_due_scans;
use farescan::tenants::store::acceptance::record_accepted;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{monitor, service};
use crate::support::app::{HttpResponse, KEY, ring, tenant};
use crate::support::db::{begin_holding, require_key_acceptance};
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::support::{
    SearchOutcome, TestService, array, assert_counts_add_up, departing_from, fares, fares_with,
};

async fn stored_items(service: &TestService) -> i64 {
    service.count("select count(*) from scan_items").await
}

fn refuse_key(service: &TestService) {
    service
        .upstream
        .reply(Reply::status(401).with_json(json!({"message": "Invalid API key"})));
}

fn answer_with_fares(service: &TestService) {
    service.upstream.answer_fares(120);
}

async fn post(service: &TestService, path: &str, body: &Value) -> HttpResponse {
    service.post(path, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn before_acceptance_a_scan_stores_only_its_first_item() {
    let service = service().await;
    answer_with_fares(&service);
    let gate = Gate::closed();
    let call_gate = gate.clone();
    service
        .upstream
        .answer(move |call| Reply::json(json!([fare(120, &call.body)])).gated_by(&call_gate));
    assert_eq!(
        post(&service, "/v1/scans/preview", &fares(100))
            .await
            .json()["items"],
        json!(100)
    );
    let once = |body: Value| {
        service.send(
            service
                .request("POST", "/v1/scans")
                .header("x-api-key", KEY)
                .header("idempotency-key", "a")
                .json(&body),
        )
    };
    let ordered = once(fares(100)).await;
    let scan = ordered.json();
    assert_eq!(
        (
            ordered.status,
            &scan["items"]["total"],
            &scan["items"]["pending"]
        ),
        (202, &json!(100), &json!(100))
    );
    assert_eq!(
        (
            scan["requests"]["planned"].clone(),
            stored_items(&service).await
        ),
        (json!(100), 1)
    );
    let id = scan["id"].as_str().unwrap();
    assert_eq!(service.scan(id).await, scan);
    let again = once(fares(100)).await;
    assert_eq!(
        (again.text(), again.header("idempotent-replayed")),
        (ordered.text(), "true")
    );

    let worker = service.start_worker(8);
    service.upstream.wait_for_in_flight(1).await;
    assert_eq!(
        (service.upstream.count(), stored_items(&service).await),
        (1, 1),
        "only its first item is called"
    );
    gate.open();
    let ended = service.wait_until_ended(id).await;
    worker.stop().await;
    assert_counts_add_up(&ended);
    assert_eq!(
        (
            &ended["status"],
            &ended["items"]["total"],
            &ended["items"]["ok"]
        ),
        (&json!("completed"), &json!(100), &json!(100))
    );
    let dates: Vec<_> = service
        .items(id)
        .await
        .iter()
        .map(|item| item["search"]["departure_date"].clone())
        .collect();
    assert_eq!(
        (dates.first(), dates.len()),
        (Some(&json!("2030-01-01")), 100)
    );
    assert!(
        service
            .calls_by_date("TLV")
            .values()
            .all(|calls| *calls == 1)
            && service.calls_by_date("TLV").len() == 100,
        "each date once"
    );
    assert_eq!(
        service.count("select count(*) from unexpanded_scans").await,
        0
    );
    service.submit(&fares(3)).await;
    assert_eq!(
        stored_items(&service).await,
        103,
        "later submissions are stored completely"
    );
}

#[tokio::test]
async fn before_acceptance_a_caller_has_one_scan_only() {
    let service = service().await;
    let id = service.submit(&fares(10_000)).await;
    let second = post(&service, "/v1/scans", &fares(1)).await;
    assert_eq!(
        (second.kind().as_str(), second.header("retry-after")),
        ("429 too_many_requests", "60"),
        "{}",
        second.text()
    );
    assert!(
        second.message().contains("one scan at a time") && second.message().contains("/v1/verify"),
        "{}",
        second.message()
    );
    let preview = post(&service, "/v1/scans/preview", &fares(1)).await.json();
    let warnings = array(&preview["warnings"]);
    assert!(
        warnings
            .iter()
            .any(|warning| warning["kind"] == "too_much_underway"),
        "{preview:#}"
    );

    assert_eq!(
        post(&service, &format!("/v1/scans/{id}/cancel"), &json!({}))
            .await
            .status,
        200
    );
    let cancelled = service.scan(&id).await;
    assert_counts_add_up(&cancelled);
    assert_eq!(
        (&cancelled["status"], &cancelled["items"]["cancelled"]),
        (&json!("cancelled"), &json!(10_000))
    );
    assert!(cancelled["finished_at"].is_string() && cancelled["key_custody"].is_null());
    for removed in [false, true] {
        if removed {
            assert_eq!(service.delete(&format!("/v1/scans/{id}")).await.status, 204);
        }
        let again = post(&service, "/v1/scans", &fares(1)).await;
        let wait: i64 = again.header("retry-after").parse().unwrap();
        assert!(
            again.kind() == "429 too_many_requests" && wait > 23 * 3600,
            "a cancelled scan still counts: {}",
            again.text()
        );
    }
    let bounds = json!({"requests_per_minute": 5});
    for (method, path, body) in [
        ("POST", "/v1/monitors", monitor()),
        ("PUT", "/v1/quota/flights", bounds.clone()),
    ] {
        for key in [KEY, "a-key-never-seen"] {
            let refused = service.ask_as(key, method, path, Some(&body)).await;
            assert_eq!(refused.kind(), "409 key_not_accepted", "{path}");
            assert!(
                refused
                    .message()
                    .starts_with("the marketplace has not accepted this key yet"),
                "{}",
                refused.message()
            );
        }
    }
    assert_eq!(
        service.count("select count(*) from tenants").await,
        1,
        "a refused request stores no caller"
    );

    assert_eq!(service.app.get("/v1/verify").await.status, 200);
    assert_eq!(post(&service, "/v1/monitors", &monitor()).await.status, 201);
    assert_eq!(
        service
            .ask_as(KEY, "PUT", "/v1/quota/flights", Some(&bounds))
            .await
            .status,
        200
    );
    service.submit(&fares(3)).await;
    assert_eq!(
        stored_items(&service).await,
        3,
        "accepted by a verify, all items at once"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_gets_401_until_a_resume_succeeds() {
    let service = service().await;
    refuse_key(&service);
    let worker = service.start_worker(4);
    let id = service.submit(&fares(50)).await;
    service
        .wait_for_scan(&id, "its lane is paused", |scan| {
            scan["status_reason"] == "key_rejected"
        })
        .await;
    for _ in 0..2 {
        let refused = post(&service, "/v1/scans", &fares(1)).await;
        assert_eq!(refused.kind(), "401 invalid_api_key");
        assert!(
            refused
                .message()
                .contains("refused this key (key_rejected)"),
            "{}",
            refused.message()
        );
    }
    assert_eq!(
        (service.upstream.count(), stored_items(&service).await),
        (1, 1)
    );
    assert_eq!(
        post(&service, "/v1/monitors", &monitor()).await.kind(),
        "409 key_not_accepted"
    );

    answer_with_fares(&service);
    service.command(&id, "resume", &json!({})).await;
    let ended = service.wait_until_ended(&id).await;
    assert_eq!(
        (&ended["status"], &ended["items"]["ok"]),
        (&json!("completed"), &json!(50))
    );
    service.submit(&departing_from("ZZZ", fares(2))).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_error_adds_one_more_item() {
    let service = service().await;
    answer_with_fares(&service);
    let fails = ["2030-01-01", "2030-01-02"];
    service
        .upstream
        .on_any()
        .when(move |call| fails.iter().any(|day| call.body["departure_date"] == *day))
        .reply(Reply::status(500));
    let (gate, counted) = (Gate::closed(), Gate::closed());
    let (call_gate, is_second) = (gate.clone(), counted.clone());
    service
        .upstream
        .on_any()
        .when(|call| call.body["departure_date"] == "2030-01-02")
        .answer(move |_| {
            is_second.open();
            Reply::status(500).gated_by(&call_gate)
        });
    let id = service.submit(&fares(6)).await;
    let worker = service.start_worker(4);
    service
        .wait_for_scan(&id, "the second date is asked", |scan| {
            scan["items"]["degraded"] == 1 && scan["items"]["running"] == 1
        })
        .await;
    assert_eq!(stored_items(&service).await, 2);
    gate.open();
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_counts_add_up(&ended);
    assert_eq!(
        (&ended["items"]["degraded"], &ended["items"]["ok"]),
        (&json!(2), &json!(4))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sweep_expands_scans_of_dead_processes() {
    let service = TestService::start().await;
    require_key_acceptance(service.pool()).await;
    let id = service.submit(&fares(40)).await;
    let claims = service.claim().await;
    assert_eq!(claims.len(), 1);
    service.begin(&claims[0]).await;
    service.finish(&claims[0], SearchOutcome::Ok(120)).await;
    // The state after the writer's transaction, when its process dies.
    execute!(service.pool(), "update tenants set accepted_at = now()");
    let count = || {
        sqlx::query_scalar::<_, i64>("select count(*) from scan_items").fetch_one(service.pool())
    };
    assert_eq!(count().await.unwrap(), 1);
    let (one, two) = tokio::join!(
        expand_due_scans(service.pool(), None, Timestamp::now()),
        expand_due_scans(service.pool(), None, Timestamp::now())
    );
    assert!(one.unwrap() + two.unwrap() >= 1);
    assert_eq!(count().await.unwrap(), 40, "once, whoever does it");
    assert_eq!(
        expand_due_scans(service.pool(), None, Timestamp::now())
            .await
            .unwrap(),
        0
    );
    service.complete_all(|_| SearchOutcome::Ok(120)).await;
    let scan = service.scan(&id).await;
    assert_eq!(
        (&scan["status"], &scan["items"]["ok"]),
        (&json!("completed"), &json!(40))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_finds_the_same_before_and_after() {
    let mut asked = Vec::new();
    for accepted in [false, true] {
        let service = service().await;
        service.upstream.answer(|call| {
            // A verify call has no date.
            let day: u64 = call.body["departure_date"]
                .as_str()
                .map_or(1, |date| date[8..].parse().unwrap());
            Reply::json(json!([fare(100 + day.abs_diff(11) * 10, &call.body)]))
        });
        if accepted {
            service.app.get("/v1/verify?api=flights").await;
        }
        let id = service
            .submit(&fares_with(21, &json!({"strategy": {"find": "cheapest"}})))
            .await;
        let worker = service.start_worker(4);
        let ended = service.wait_until_ended(&id).await;
        worker.stop().await;
        assert_counts_add_up(&ended);
        asked.push((
            service.calls_by_date("TLV"),
            ended["items"]["total"].clone(),
            ended["best"]["price"].clone(),
        ));
    }
    assert_eq!(asked[0], asked[1]);
    assert!(
        asked[0].0.len() < 21 && asked[0].0.len() > 5,
        "{:?}",
        asked[0]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_continues_after_server_errors() {
    let service = service().await;
    answer_with_fares(&service);
    let fails = ["2030-01-01", "2030-01-06"];
    service
        .upstream
        .on_any()
        .when(move |call| fails.iter().any(|day| call.body["departure_date"] == *day))
        .reply(Reply::status(500));
    let id = service
        .submit(&fares_with(21, &json!({"strategy": {"find": "cheapest"}})))
        .await;
    let worker = service.start_worker(4);
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_counts_add_up(&ended);
    assert_eq!(
        (&ended["items"]["degraded"], &ended["status"]),
        (&json!(2), &json!("incomplete")),
        "{ended:#}"
    );
    assert!(ended["items"]["ok"].as_u64().unwrap() >= 3, "{ended:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_scan_is_expanded_but_makes_no_calls() {
    let service = service().await;
    answer_with_fares(&service);
    let id = service.submit(&fares(20)).await;
    service.command(&id, "pause", &json!({})).await;
    assert_eq!(service.app.get("/v1/verify").await.status, 200);
    let worker = service.start_worker(4);
    while stored_items(&service).await < 20 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(
        service
            .count("select count(*) from scan_items where state = 'held'")
            .await,
        20
    );
    assert_eq!(
        service.call_count("TLV"),
        0,
        "nothing is asked of a paused scan"
    );
    service.command(&id, "resume", &json!({})).await;
    assert_eq!(
        service.wait_until_ended(&id).await["items"]["ok"],
        json!(20)
    );
    worker.stop().await;
}

#[tokio::test]
async fn a_large_request_needs_an_accepted_key() {
    let service = service().await;
    let names: Vec<_> = (0..2_000)
        .map(|number| format!("Hotel number {number}"))
        .collect();
    let large = json!({
        "endpoint": "hotels/by-name", "request": {"checkin_date": "2030-01-01", "checkout_date": "2030-01-02", "currency": "EUR"},
        "sweep": {"hotel_name": names}
    });
    let refused = post(&service, "/v1/scans", &large).await;
    assert_eq!(refused.kind(), "409 key_not_accepted");
    assert!(
        refused.message().contains("at most 32768 bytes"),
        "{}",
        refused.message()
    );
    assert_eq!(service.count("select count(*) from tenants").await, 0);
    assert_eq!(service.app.get("/v1/verify").await.status, 200);
    service.submit(&large).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answered_search_accepts_its_caller() {
    let service = service().await;
    answer_with_fares(&service);
    let search =
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-14"});
    assert_eq!(
        post(&service, "/v1/flights/oneway", &search).await.status,
        200
    );
    // The acceptance is stored after the answer.
    while service
        .count("select count(*) from tenants where accepted_at is not null")
        .await
        == 0
    {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(post(&service, "/v1/monitors", &monitor()).await.status, 201);
}

/// A record of calls locks the caller's lane and then the caller. A second submission meanwhile must
/// take both in the same order.
#[tokio::test(flavor = "multi_thread")]
async fn a_submission_and_a_record_of_a_new_caller_never_deadlock() {
    let service = service().await;
    service.upstream.reply(Reply::status(500));
    let worker = service.start_worker(2);
    let first = service.submit(&fares(1)).await;
    service.wait_until_ended(&first).await;
    worker.stop().await;
    let caller = tenant(service.pool(), &ring(), KEY).await;

    let mut record = begin_holding(service.pool()).await;
    let lane = "select from lanes where tenant_id = $1 for no key update";
    assert_eq!(execute!(&mut *record, lane, caller.uuid()), 1);
    let body = fares(1);
    let submission = service.app.post("/v1/scans", &body);
    let recording = async {
        service
            .wait_for_count(
                "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
                1,
            )
            .await;
        let accepted = record_accepted(&mut record, &[caller], Timestamp::now()).await;
        record.commit().await.unwrap();
        accepted
    };
    let (answer, accepted) = tokio::join!(submission, recording);
    assert_eq!(accepted.unwrap(), [caller]);
    assert_eq!(answer.status, 202, "{}", answer.text());
}
