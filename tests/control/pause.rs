//! Pause, resume and cancel: calls that begin afterwards, calls in flight, and refusals.

use farescan::contract::Endpoint;
use farescan::queue::pause_scan::{PauseCause, pause_scan};
use serde_json::{Value, json};

use crate::support::app::KEY;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::support::{
    SearchOutcome, TestService, airport_code, assert_counts_add_up, departing_from, fares,
    fares_with,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_stops_unsent_items_and_a_resume_sends_each_once() {
    let service = TestService::start().await;
    let worker = service.start_worker(5);
    service.accept_key().await;
    let gate = Gate::closed();
    let held = Reply::json(json!([fare(120, &json!({}))])).gated_by(&gate);
    service
        .upstream
        .on_any()
        .when(|call| call.body["from_airport"] == "TLV")
        .reply(held);
    let id = service.submit(&fares(30)).await;
    service.upstream.wait_for_in_flight(5).await;

    let paused = service.command(&id, "pause", &json!({})).await;
    assert_eq!(
        (&paused["status"], &paused["status_reason"]),
        (&json!("paused"), &json!("by_caller"))
    );
    assert_eq!(
        (&paused["items"]["running"], &paused["items"]["pending"]),
        (&json!(5), &json!(25))
    );
    assert_eq!(
        (&paused["requests"]["spent"], &paused["eta_seconds"]),
        (&json!(5), &json!(null))
    );
    assert_eq!(
        service.command(&id, "pause", &json!({})).await,
        paused,
        "idempotent"
    );
    gate.open();
    let still = service.wait_until_idle(&id).await;
    assert_eq!(
        (&still["items"]["ok"], &still["best"]["price"]),
        (&json!(5), &json!(120)),
        "calls in flight are stored"
    );
    // Another scan of the same lane completes, so the worker had the chance to continue with the
    // first.
    let other = service.submit(&departing_from("ZZZ", fares(8))).await;
    service.wait_until_ended(&other).await;
    assert_eq!(
        (service.call_count("TLV"), service.call_count("ZZZ")),
        (5, 8)
    );
    let listed = |status: &str| format!("/v1/scans?status={status}");
    assert_eq!(
        service.get(&listed("paused")).await["data"][0]["id"],
        json!(id)
    );

    let resumed = service.command(&id, "resume", &json!({})).await;
    assert_eq!(
        (&resumed["status"], &resumed["status_reason"]),
        (&json!("running"), &json!(null))
    );
    assert_eq!(
        service.command(&id, "resume", &json!({})).await["status_reason"],
        json!(null),
        "idempotent"
    );
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_counts_add_up(&ended);
    assert_eq!(
        (&ended["status"], &ended["items"]["ok"]),
        (&json!("completed"), &json!(30))
    );
    assert_eq!(
        (
            service.calls_by_date("TLV").len(),
            service.call_count("TLV")
        ),
        (30, 30),
        "each date once"
    );
}

/// The requests spent in the response equal the ledger at the end: no call and no second try began
/// later.
#[tokio::test(flavor = "multi_thread")]
async fn no_call_begins_after_a_pause_or_cancel_returns() {
    let service = TestService::start().await;
    let worker = service.start_worker(16);
    service.accept_key().await;
    for (number, (command, broken)) in [
        ("pause", false),
        ("cancel", false),
        ("pause", true),
        ("cancel", true),
        ("pause", false),
    ]
    .into_iter()
    .enumerate()
    {
        let origin = airport_code(number);
        let id = service.submit(&departing_from(&origin, fares(200))).await;
        let mine = origin.clone();
        // Every server error gets a second try, so second tries are always due.
        if broken {
            service
                .upstream
                .on_any()
                .when(move |call| call.body["from_airport"] == mine)
                .reply(Reply::status(502));
        }
        let began = origin.clone();
        let some = move |calls: &[crate::support::upstream::Call]| {
            calls
                .iter()
                .filter(|call| call.body["from_airport"] == began)
                .count()
                >= 20
        };
        service.upstream.wait_for("the scan is running", some).await;
        let answered = service.command(&id, command, &json!({})).await;
        let spent = answered["requests"]["spent"].as_u64().unwrap();
        let still = service.wait_until_idle(&id).await;
        let other = service.submit(&departing_from("ZZZ", fares(20))).await;
        service.wait_until_ended(&other).await;
        let (ledger, after) = (service.call_count(&origin) as u64, service.scan(&id).await);
        assert_eq!(
            json!(ledger),
            after["requests"]["spent"],
            "{command}: the ledgers agree"
        );
        assert!(
            ledger <= spent && ledger < 400,
            "{command}: {ledger} calls, {spent} on record at the response"
        );
        assert!(
            broken || ledger == spent,
            "{command}: every recorded call was sent"
        );
        assert_eq!(after["items"], still["items"]);
        assert_counts_add_up(&after);
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callers_pause_replaces_the_lanes_and_a_resume_ends_both() {
    for (reason, reply) in [
        (
            "key_rejected",
            Reply::status(401).with_json(json!({"message": "Invalid API key"})),
        ),
        (
            "not_subscribed",
            Reply::status(403).with_json(json!({"message": "You are not subscribed to this API."})),
        ),
        (
            "quota_exhausted",
            Reply::status(429)
                .header("x-ratelimit-requests-limit", "2500")
                .header("x-ratelimit-requests-remaining", "0")
                .header("x-ratelimit-requests-reset", "86400"),
        ),
    ] {
        let service = TestService::start().await;
        let worker = service.start_worker(3);
        service.upstream.reply(reply);
        let id = service.submit(&fares(10)).await;
        let paused = service
            .wait_for_scan(&id, "the lane is paused", |scan| {
                scan["status_reason"] == reason
            })
            .await;
        assert_eq!(paused["status"], json!("paused"));
        service.wait_until_idle(&id).await;
        assert!(
            service.upstream.count() <= 3,
            "{reason}: no call begins after those in flight"
        );
        let listed = service
            .get("/v1/scans?status=paused&endpoint=flights/oneway")
            .await;
        assert_eq!(
            listed["data"][0]["id"],
            json!(id),
            "a lane pause is a scan pause"
        );

        assert_eq!(
            service.command(&id, "pause", &json!({})).await["status_reason"],
            json!("by_caller"),
            "{reason}"
        );
        service
            .upstream
            .on(Endpoint::FlightsOneway)
            .answer(|call| Reply::json(json!([fare(164, &call.body)])));
        let resumed = service.command(&id, "resume", &json!({})).await;
        assert_eq!(
            (&resumed["status"], &resumed["status_reason"]),
            (&json!("running"), &json!(null)),
            "{reason}"
        );
        let ended = service.wait_until_ended(&id).await;
        worker.stop().await;
        assert_counts_add_up(&ended);
        let degraded = ended["items"]["degraded"].as_u64().unwrap();
        assert!(
            if reason == "quota_exhausted" {
                degraded <= 3
            } else {
                degraded == 0
            },
            "{reason}: {ended:#}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_ends_a_lane_pause() {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    service
        .upstream
        .reply(Reply::status(401).with_json(json!({"message": "Invalid API key"})));
    let id = service.submit(&fares(4)).await;
    service
        .wait_for_scan(&id, "the lane is paused", |scan| {
            scan["status_reason"] == "key_rejected"
        })
        .await;
    service.wait_until_idle(&id).await;
    service.upstream.answer_fares(164);
    service.command(&id, "resume", &json!({})).await;
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["status"], &ended["items"]["ok"]),
        (&json!("completed"), &json!(4))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_seals_the_key_of_its_request() {
    let service = TestService::start().await;
    let id = service.submit(&fares(5)).await;
    execute!(
        service.pool(),
        "update key_grants set expires_at = now() - interval '1 s'"
    );
    let worker = service.start_worker(4);
    service
        .wait_for_scan(&id, "its key has expired", |scan| {
            scan["status_reason"] == "key_expired"
        })
        .await;
    assert_eq!(service.upstream.count(), 0);
    let resumed = service.command(&id, "resume", &json!({})).await;
    assert_eq!(resumed["status"], json!("queued"), "no call has begun yet");
    assert!(resumed["key_custody"]["until"].is_string());
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["items"]["ok"], &ended["key_custody"]),
        (&json!(5), &json!(null))
    );
    assert!(service.upstream.calls().iter().all(|call| call.key == KEY));
}

#[tokio::test]
async fn a_delayed_retry_keeps_its_time_through_a_pause() {
    let service = TestService::start().await;
    let mut body = fares(2);
    body["retry"] = json!({"max_attempts": 2, "delay_seconds": 3600});
    let id = service
        .submit_and_complete(&body, |position| {
            if position == 0 {
                SearchOutcome::Degraded("blocked_page")
            } else {
                SearchOutcome::Ok(9)
            }
        })
        .await;
    for command in ["pause", "resume"] {
        let answer = service
            .post(&format!("/v1/scans/{id}/{command}"), &json!({}))
            .await;
        assert_eq!(
            (answer.status, &answer.json()["items"]["pending"]),
            (200, &json!(1)),
            "{command}"
        );
    }
    let waits = "select count(*) from scan_items where state = 'delayed' and not_before > now() + interval '59 minutes'";
    assert_eq!(value!(service.pool(), waits, => i64), 1);
    assert_eq!(service.claim().await.len(), 0);
}

/// A spent budget pauses as the caller does: neither a resume nor a retry of another item sends the
/// delayed retry early (scans.md, rule 20).
#[tokio::test]
async fn a_delayed_retry_keeps_its_time_through_a_spent_budget() {
    for command in ["resume", "retry"] {
        let service = TestService::start().await;
        let mut body = fares(3);
        body["retry"] = json!({"max_attempts": 2, "delay_seconds": 3600});
        body["max_requests"] = json!(3);
        let id = service
            .submit_and_complete(&body, |position| match position {
                0 => SearchOutcome::Degraded("blocked_page"),
                1 => SearchOutcome::Ok(9),
                _ => SearchOutcome::Failed,
            })
            .await;
        let tenant = value!(service.pool(), "select tenant_id from scans", => uuid::Uuid);
        let is_paused = pause_scan(
            service.pool(),
            tenant.into(),
            id.parse().unwrap(),
            &PauseCause::BudgetSpent,
        )
        .await
        .unwrap();
        assert!(is_paused);
        let more = match command {
            "resume" => json!({"max_requests": 10}),
            _ => json!({"search_status": ["failed"], "max_requests": 10}),
        };
        let answer = service
            .post(&format!("/v1/scans/{id}/{command}"), &more)
            .await;
        assert!((200..300).contains(&answer.status), "{}", answer.text());
        let waits = "select count(*) from scan_items where state = 'delayed' and not_before > now() + interval '59 minutes'";
        assert_eq!(value!(service.pool(), waits, => i64), 1, "{command}");
        let claimable = usize::from(command == "retry");
        assert_eq!(service.claim().await.len(), claimable, "{command}");
    }
}

/// A retry that the scan's policy grants while its scan is paused waits as long as any other.
#[tokio::test]
async fn a_retry_granted_during_a_pause_keeps_its_delay() {
    let service = TestService::start().await;
    let mut body = fares(1);
    body["retry"] = json!({"max_attempts": 2, "delay_seconds": 3600});
    let id = service.submit(&body).await;
    let claims = service.claim().await;
    service.begin(&claims[0]).await;
    let paused = service
        .post(&format!("/v1/scans/{id}/pause"), &json!({}))
        .await;
    assert_eq!(paused.status, 200, "{}", paused.text());
    service
        .finish(&claims[0], SearchOutcome::Degraded("blocked_page"))
        .await;
    let resumed = service
        .post(&format!("/v1/scans/{id}/resume"), &json!({}))
        .await;
    assert_eq!(resumed.status, 200, "{}", resumed.text());
    let waits = "select count(*) from scan_items where state = 'delayed' and not_before > now() + interval '59 minutes'";
    assert_eq!(value!(service.pool(), waits, => i64), 1);
    assert_eq!(service.claim().await.len(), 0);
}

#[tokio::test]
async fn few_remaining_items_do_not_wait_behind_a_long_scan() {
    let service = TestService::start().await;
    service
        .submit_and_complete(&fares(1), |_| SearchOutcome::Ok(1))
        .await;
    let short = service.submit(&fares(300)).await;
    for claimed in service.claim().await.iter().take(295) {
        service.begin(claimed).await;
        service.finish(claimed, SearchOutcome::Ok(1)).await;
    }
    service
        .post(&format!("/v1/scans/{short}/pause"), &json!({}))
        .await;
    service
        .submit(&crate::support::departing_from("ZZZ", fares(400)))
        .await;
    service
        .post(&format!("/v1/scans/{short}/resume"), &json!({}))
        .await;
    execute!(
        service.pool(),
        "update lanes set burst = 20, arrival = clock_timestamp()"
    );
    let first = service.claim().await;
    let of_short = first
        .iter()
        .filter(|claimed| claimed.scan.to_string() == short)
        .count();
    assert_eq!(of_short, 5, "its five are among the first {}", first.len());
}

#[tokio::test]
async fn a_repeated_resume_is_done_once() {
    let service = TestService::start().await;
    let id = service.submit(&fares(2)).await;
    service
        .post(&format!("/v1/scans/{id}/pause"), &json!({}))
        .await;
    let path = format!("/v1/scans/{id}/resume");
    let first = service
        .post_with_key("go", &path, &json!({"max_requests": 9}))
        .await;
    assert_eq!(
        (first.status, &first.json()["requests"]["max"]),
        (200, &json!(9))
    );
    service.complete_all(|_| SearchOutcome::Ok(1)).await;
    let again = service
        .post_with_key("go", &path, &json!({"max_requests": 9}))
        .await;
    assert_eq!(
        (
            again.status,
            again.header("idempotent-replayed"),
            again.text()
        ),
        (200, "true", first.text())
    );
    assert_eq!(
        service
            .post_with_key("go", &path, &json!({"max_requests": 8}))
            .await
            .kind(),
        "422 idempotency_mismatch"
    );
}

#[tokio::test]
async fn a_scan_that_has_ended_cannot_be_paused_or_resumed() {
    let service = TestService::start().await;
    let done = service
        .submit_and_complete(&fares(1), |_| SearchOutcome::Ok(1))
        .await;
    let cancelled = service.submit(&fares(1)).await;
    service
        .post(&format!("/v1/scans/{cancelled}/cancel"), &json!({}))
        .await;
    for (id, status) in [(&done, "completed"), (&cancelled, "cancelled")] {
        for command in ["pause", "resume"] {
            let answer = service
                .post(&format!("/v1/scans/{id}/{command}"), &json!({}))
                .await;
            assert_eq!(answer.kind(), "409 invalid_state");
            assert!(answer.message().contains(status), "{}", answer.message());
        }
    }
}

#[tokio::test]
async fn commands_need_the_own_tenant_and_a_valid_body() {
    let service = TestService::start().await;
    let id = service.submit(&fares(2)).await;
    let (unknown, other) = (
        "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
        "another-key-0123456789",
    );
    service.post_as(other, "/v1/scans", &fares(1)).await;
    for command in ["pause", "resume", "cancel"] {
        let theirs = service
            .post_as(other, &format!("/v1/scans/{id}/{command}"), &json!({}))
            .await;
        let none = service
            .post(&format!("/v1/scans/{unknown}/{command}"), &json!({}))
            .await;
        assert_eq!(
            (theirs.kind(), theirs.message()),
            (none.kind(), none.message())
        );
        assert_eq!(none.kind(), "404 not_found");
    }
    for path in [
        format!("/v1/scans/{id}"),
        format!("/v1/scans/{unknown}"),
        "/v1/scans/x".to_owned(),
    ] {
        let answer = service
            .send(service.request("DELETE", &path).header("x-api-key", other))
            .await;
        assert_eq!(answer.kind(), "404 not_found");
    }
    assert_eq!(service.scan(&id).await["status"], json!("queued"));
    let path = format!("/v1/scans/{id}/resume");
    for (body, field) in [
        (json!({"max_requests": 0}), "`max_requests`: found 0"),
        (json!({"max_requests": "9"}), "`max_requests`: found \"9\""),
        (json!({"max_request": 9}), "unknown field `max_request`"),
        (Value::Null, "the body"),
    ] {
        let answer = service.post(&path, &body).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{body}");
        assert!(
            answer.message().starts_with(field) || body.is_null(),
            "{body}: {}",
            answer.message()
        );
    }
    let bare = service
        .send(service.request("POST", &path).header("x-api-key", KEY))
        .await;
    assert_eq!(bare.status, 200, "no body is required: {}", bare.text());
}

#[tokio::test]
async fn lists_are_filtered_by_status_endpoint_and_tag() {
    let service = TestService::start().await;
    service
        .submit_and_complete(&fares_with(1, &json!({"tags": ["a", "b"]})), |_| {
            SearchOutcome::Ok(1)
        })
        .await;
    let paused = service
        .submit(&fares_with(1, &json!({"tags": ["b"]})))
        .await;
    service
        .post(&format!("/v1/scans/{paused}/pause"), &json!({}))
        .await;
    let stay =
        json!({"hotel_name": "Grand", "checkin_date": "2030-01-14", "checkout_date": "2030-01-15"});
    service
        .submit(&json!({"endpoint": "hotels/by-name", "request": stay, "tags": ["a"]}))
        .await;
    for (query, found) in [
        ("status=paused", 1),
        ("status=queued", 1),
        ("status=completed", 1),
        ("status=cancelled", 0),
        ("endpoint=flights/oneway", 2),
        ("endpoint=hotels/by-name", 1),
        ("tag=a", 2),
        ("tag=b", 2),
        ("tag=b&status=paused", 1),
        ("tag=a&endpoint=flights/oneway&status=completed", 1),
        ("tag=c", 0),
    ] {
        assert_eq!(
            service.get(&format!("/v1/scans?{query}")).await["data"]
                .as_array()
                .unwrap()
                .len(),
            found,
            "{query}"
        );
    }
    assert_eq!(
        service.app.get("/v1/scans?monitor_id=mon_1").await.kind(),
        "400 invalid_request",
        "there are no monitors yet"
    );
}
