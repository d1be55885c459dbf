//! Pause, resume and cancel: what begins after the answer, what goes on, and what is refused.

use farescan::contract::Endpoint;
use serde_json::{Value, json};

use super::house::{House, adds_up, airport, fares, from, order};
use crate::scans::office::{Comes, Office};
use crate::support::app::KEY;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_holds_what_was_not_sent_and_a_resume_sends_it_once() {
    let house = House::open().await;
    let worker = house.worker(5);
    house.warm().await;
    let gate = Gate::closed();
    let held = Reply::json(json!([fare(120, &json!({}))])).held_by(&gate);
    house
        .app
        .upstream
        .on_any()
        .when(|call| call.body["from_airport"] == "TLV")
        .reply(held);
    let id = house.order(&fares(30)).await;
    house.app.upstream.wait_for_in_flight(5).await;

    let paused = house.say(&id, "pause", &json!({})).await;
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
        house.say(&id, "pause", &json!({})).await,
        paused,
        "again is fine"
    );
    gate.open();
    let still = house.still(&id).await;
    assert_eq!(
        (&still["items"]["ok"], &still["best"]["price"]),
        (&json!(5), &json!(120)),
        "what was in flight is kept"
    );
    // Another scan of the same lane goes through, so the worker had every chance to go on with the first.
    let other = house.order(&from("ZZZ", fares(8))).await;
    house.ended(&other).await;
    assert_eq!((house.calls("TLV"), house.calls("ZZZ")), (5, 8));
    let listed = |status: &str| format!("/v1/scans?status={status}");
    assert_eq!(
        house.get(&listed("paused")).await["data"][0]["id"],
        json!(id)
    );

    let resumed = house.say(&id, "resume", &json!({})).await;
    assert_eq!(
        (&resumed["status"], &resumed["status_reason"]),
        (&json!("running"), &json!(null))
    );
    assert_eq!(
        house.say(&id, "resume", &json!({})).await["status_reason"],
        json!(null),
        "again is fine"
    );
    let ended = house.ended(&id).await;
    worker.stop().await;
    adds_up(&ended);
    assert_eq!(
        (&ended["status"], &ended["items"]["ok"]),
        (&json!("completed"), &json!(30))
    );
    assert_eq!(
        (house.asked("TLV").len(), house.calls("TLV")),
        (30, 30),
        "each date once"
    );
}

/// What the answer says was spent is what the marketplace's ledger holds in the end: nothing began after it, no second try either.
#[tokio::test(flavor = "multi_thread")]
async fn no_call_begins_after_the_answer_to_a_pause_or_cancel() {
    let house = House::open().await;
    let worker = house.worker(16);
    house.warm().await;
    for (number, (word, broken)) in [
        ("pause", false),
        ("cancel", false),
        ("pause", true),
        ("cancel", true),
        ("pause", false),
    ]
    .into_iter()
    .enumerate()
    {
        let origin = airport(number);
        let id = house.order(&from(&origin, fares(200))).await;
        let mine = origin.clone();
        // Every server error is asked a second time, so second tries are due all the time.
        if broken {
            house
                .app
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
        house
            .app
            .upstream
            .wait_for("the scan is underway", some)
            .await;
        let answered = house.say(&id, word, &json!({})).await;
        let spent = answered["requests"]["spent"].as_u64().unwrap();
        let still = house.still(&id).await;
        let other = house.order(&from("ZZZ", fares(20))).await;
        house.ended(&other).await;
        let (ledger, after) = (house.calls(&origin) as u64, house.scan(&id).await);
        assert_eq!(
            json!(ledger),
            after["requests"]["spent"],
            "{word}: the ledgers agree"
        );
        assert!(
            ledger <= spent && ledger < 400,
            "{word}: {ledger} calls, {spent} on record when it was answered"
        );
        assert!(
            broken || ledger == spent,
            "{word}: what was on record was sent"
        );
        assert_eq!(after["items"], still["items"]);
        adds_up(&after);
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callers_pause_outranks_the_lanes_and_a_resume_ends_both() {
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
        let house = House::open().await;
        let worker = house.worker(3);
        house.app.upstream.on_any().reply(reply);
        let id = house.order(&fares(10)).await;
        let paused = house
            .scan_when(&id, "the lane is paused", |scan| {
                scan["status_reason"] == reason
            })
            .await;
        assert_eq!(paused["status"], json!("paused"));
        house.still(&id).await;
        assert!(
            house.app.upstream.count() <= 3,
            "{reason}: none begins behind those that were underway"
        );
        let listed = house
            .get("/v1/scans?status=paused&endpoint=flights/oneway")
            .await;
        assert_eq!(
            listed["data"][0]["id"],
            json!(id),
            "paused by its lane is paused"
        );

        assert_eq!(
            house.say(&id, "pause", &json!({})).await["status_reason"],
            json!("by_caller"),
            "{reason}"
        );
        house
            .app
            .upstream
            .on(Endpoint::FlightsOneway)
            .answer(|call| Reply::json(json!([fare(164, &call.body)])));
        let resumed = house.say(&id, "resume", &json!({})).await;
        assert_eq!(
            (&resumed["status"], &resumed["status_reason"]),
            (&json!("running"), &json!(null)),
            "{reason}"
        );
        let ended = house.ended(&id).await;
        worker.stop().await;
        adds_up(&ended);
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
async fn a_resume_without_a_pause_of_its_own_ends_the_lanes() {
    let house = House::open().await;
    let worker = house.worker(2);
    house
        .app
        .upstream
        .on_any()
        .reply(Reply::status(401).with_json(json!({"message": "Invalid API key"})));
    let id = house.order(&fares(4)).await;
    house
        .scan_when(&id, "the lane is paused", |scan| {
            scan["status_reason"] == "key_rejected"
        })
        .await;
    house.still(&id).await;
    house
        .app
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(164, &call.body)])));
    house.say(&id, "resume", &json!({})).await;
    let ended = house.ended(&id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["status"], &ended["items"]["ok"]),
        (&json!("completed"), &json!(4))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_seals_the_key_of_its_request_anew() {
    let house = House::open().await;
    let id = house.order(&fares(5)).await;
    sqlx::query("update key_grants set expires_at = now() - interval '1 s'")
        .execute(house.db.pool())
        .await
        .unwrap();
    let worker = house.worker(4);
    house
        .scan_when(&id, "its key has expired", |scan| {
            scan["status_reason"] == "key_expired"
        })
        .await;
    assert_eq!(house.app.upstream.count(), 0);
    let resumed = house.say(&id, "resume", &json!({})).await;
    assert_eq!(
        resumed["status"],
        json!("queued"),
        "nothing of it has begun yet"
    );
    assert!(resumed["key_custody"]["until"].is_string());
    let ended = house.ended(&id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["items"]["ok"], &ended["key_custody"]),
        (&json!(5), &json!(null))
    );
    assert!(
        house
            .app
            .upstream
            .calls()
            .iter()
            .all(|call| call.key == KEY)
    );
}

#[tokio::test]
async fn a_retry_that_waits_for_its_time_keeps_it_through_a_pause() {
    let office = Office::open().await;
    let mut body = fares(2);
    body["retry"] = json!({"max_attempts": 2, "delay_seconds": 3600});
    let id = office
        .done(&body, |position| {
            if position == 0 {
                Comes::Degraded("blocked_page")
            } else {
                Comes::Ok(9)
            }
        })
        .await;
    for word in ["pause", "resume"] {
        let answer = office
            .app
            .post(&format!("/v1/scans/{id}/{word}"), &json!({}))
            .await;
        assert_eq!(
            (answer.status, &answer.json()["items"]["pending"]),
            (200, &json!(1)),
            "{word}"
        );
    }
    let waits = "select count(*) from scan_items where state = 'delayed' and not_before > now() + interval '59 minutes'";
    assert_eq!(
        sqlx::query_scalar::<_, i64>(waits)
            .fetch_one(office.db.pool())
            .await
            .unwrap(),
        1
    );
    assert_eq!(office.claim().await.len(), 0);
}

#[tokio::test]
async fn a_short_rest_does_not_wait_behind_a_long_scan() {
    let office = Office::open().await;
    office.done(&fares(1), |_| Comes::Ok(1)).await;
    let short = office.order(&fares(300)).await;
    for claimed in office.claim().await.iter().take(295) {
        office.begin(claimed).await;
        office.end(claimed, Comes::Ok(1)).await;
    }
    office
        .app
        .post(&format!("/v1/scans/{short}/pause"), &json!({}))
        .await;
    office.order(&super::house::from("ZZZ", fares(400))).await;
    office
        .app
        .post(&format!("/v1/scans/{short}/resume"), &json!({}))
        .await;
    sqlx::query("update lanes set burst = 20, arrival = clock_timestamp()")
        .execute(office.db.pool())
        .await
        .unwrap();
    let first = office.claim().await;
    let of_short = first
        .iter()
        .filter(|claimed| claimed.scan.to_string() == short)
        .count();
    assert_eq!(of_short, 5, "its five are among the first {}", first.len());
}

#[tokio::test]
async fn a_resume_is_repeated_without_being_done_twice() {
    let office = Office::open().await;
    let id = office.order(&fares(2)).await;
    office
        .app
        .post(&format!("/v1/scans/{id}/pause"), &json!({}))
        .await;
    let path = format!("/v1/scans/{id}/resume");
    let first = office
        .post_once("go", &path, &json!({"max_requests": 9}))
        .await;
    assert_eq!(
        (first.status, &first.json()["requests"]["max"]),
        (200, &json!(9))
    );
    office.work(|_| Comes::Ok(1)).await;
    let again = office
        .post_once("go", &path, &json!({"max_requests": 9}))
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
        office
            .post_once("go", &path, &json!({"max_requests": 8}))
            .await
            .kind(),
        "422 idempotency_mismatch"
    );
}

#[tokio::test]
async fn what_has_ended_is_neither_paused_nor_resumed() {
    let office = Office::open().await;
    let done = office.done(&fares(1), |_| Comes::Ok(1)).await;
    let cancelled = office.order(&fares(1)).await;
    office
        .app
        .post(&format!("/v1/scans/{cancelled}/cancel"), &json!({}))
        .await;
    for (id, status) in [(&done, "completed"), (&cancelled, "cancelled")] {
        for word in ["pause", "resume"] {
            let answer = office
                .app
                .post(&format!("/v1/scans/{id}/{word}"), &json!({}))
                .await;
            assert_eq!(answer.kind(), "409 invalid_state");
            assert!(answer.message().contains(status), "{}", answer.message());
        }
    }
}

#[tokio::test]
async fn only_its_caller_has_a_word_and_the_body_is_read() {
    let office = Office::open().await;
    let id = office.order(&fares(2)).await;
    let (unknown, other) = (
        "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
        "another-key-0123456789",
    );
    office.post_as(other, "/v1/scans", &fares(1)).await;
    for word in ["pause", "resume", "cancel"] {
        let theirs = office
            .post_as(other, &format!("/v1/scans/{id}/{word}"), &json!({}))
            .await;
        let none = office
            .app
            .post(&format!("/v1/scans/{unknown}/{word}"), &json!({}))
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
        let answer = office
            .app
            .send(
                office
                    .app
                    .request("DELETE", &path)
                    .header("x-api-key", other),
            )
            .await;
        assert_eq!(answer.kind(), "404 not_found");
    }
    assert_eq!(office.scan(&id).await["status"], json!("queued"));
    let path = format!("/v1/scans/{id}/resume");
    for (body, field) in [
        (json!({"max_requests": 0}), "`max_requests` holds 0"),
        (json!({"max_requests": "9"}), "`max_requests` holds \"9\""),
        (json!({"max_request": 9}), "`max_request` holds 9"),
        (Value::Null, "the body"),
    ] {
        let answer = office.app.post(&path, &body).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{body}");
        assert!(
            answer.message().starts_with(field) || body.is_null(),
            "{body}: {}",
            answer.message()
        );
    }
    let bare = office
        .app
        .send(office.app.request("POST", &path).header("x-api-key", KEY))
        .await;
    assert_eq!(bare.status, 200, "no body is needed: {}", bare.text());
}

#[tokio::test]
async fn lists_are_filtered_by_status_endpoint_and_tag() {
    let office = Office::open().await;
    office
        .done(&order(1, &json!({"tags": ["a", "b"]})), |_| Comes::Ok(1))
        .await;
    let paused = office.order(&order(1, &json!({"tags": ["b"]}))).await;
    office
        .app
        .post(&format!("/v1/scans/{paused}/pause"), &json!({}))
        .await;
    let stay =
        json!({"hotel_name": "Grand", "checkin_date": "2030-01-14", "checkout_date": "2030-01-15"});
    office
        .order(&json!({"endpoint": "hotels/by-name", "request": stay, "tags": ["a"]}))
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
            office.get(&format!("/v1/scans?{query}")).await["data"]
                .as_array()
                .unwrap()
                .len(),
            found,
            "{query}"
        );
    }
    assert_eq!(
        office.app.get("/v1/scans?monitor_id=mon_1").await.kind(),
        "400 invalid_request",
        "there are no monitors yet"
    );
}
