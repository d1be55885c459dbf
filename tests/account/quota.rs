//! `GET /v1/quota`: the state of both lanes.

use serde_json::json;

use crate::support::app::KEY;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::support::{TestService, fares};

#[tokio::test(flavor = "multi_thread")]
async fn quota_shows_pace_calls_in_flight_and_remaining_plan() {
    let service = TestService::start().await;
    let new_lane = json!({
        "searches_per_minute": 60_000.0, "pace_source": "start", "burst": 2_000, "max_in_flight": 1_000, "in_flight": 0,
        "plan_requests_limit": null, "plan_requests_remaining": null, "plan_resets_at": null, "plan_seen_at": null, "paused": null,
        "bounds": {"plan": null, "requests_per_minute": null, "max_in_flight": null, "keep_in_reserve": 0}
    });
    assert_eq!(
        service.get("/v1/quota").await,
        json!({"known_key": false, "flights": new_lane, "hotels": new_lane}),
        "lanes as a submission would create them"
    );
    assert_eq!(
        service.count("select count(*) from tenants").await,
        0,
        "the request stores nothing"
    );

    let gate = Gate::closed();
    let with_quota_headers = |reply: Reply| {
        reply
            .header("x-ratelimit-requests-limit", "2500")
            .header("x-ratelimit-requests-remaining", "2412")
            .header("x-ratelimit-requests-reset", "86400")
    };
    service
        .upstream
        .reply(with_quota_headers(Reply::json(json!([fare(120, &json!({}))]))).gated_by(&gate));
    let worker = service.start_worker(3);
    let id = service.submit(&fares(5)).await;
    service.upstream.wait_for_in_flight(3).await;
    let busy = service.get("/v1/quota").await;
    assert_eq!(
        (&busy["flights"]["in_flight"], &busy["hotels"]),
        (&json!(3), &new_lane)
    );
    assert_eq!(
        busy["flights"]["plan_seen_at"],
        json!(null),
        "nothing was answered yet"
    );
    gate.open();
    service.wait_until_ended(&id).await;
    worker.stop().await;
    let rested = service.get("/v1/quota").await["flights"].clone();
    assert_eq!(
        (&rested["in_flight"], &rested["plan_requests_limit"]),
        (&json!(0), &json!(2500))
    );
    assert_eq!(
        (&rested["plan_requests_remaining"], &rested["paused"]),
        (&json!(2412), &json!(null))
    );
    let time = |name: &str| {
        rested[name]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap()
    };
    // The first of three answers says when the plan resets, the last one when it was seen.
    let until_reset = time("plan_resets_at").duration_since(time("plan_seen_at"));
    assert!(
        (86_000..=86_400).contains(&until_reset.as_secs()),
        "{until_reset:?}"
    );
    let stranger = service
        .request("GET", "/v1/quota")
        .header("x-api-key", "another-key-0123456789");
    assert_eq!(service.send(stranger).await.json()["flights"], new_lane);
    assert_eq!(
        service
            .send(service.request("GET", "/v1/quota"))
            .await
            .kind(),
        "401 missing_api_key"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_shows_its_reason_and_end() {
    for (reply, reason, ends) in [
        (
            Reply::status(429).header("retry-after", "3600"),
            "rate_limited",
            true,
        ),
        (
            Reply::status(429).header("x-ratelimit-requests-remaining", "0"),
            "quota_exhausted",
            false,
        ),
        (Reply::status(401), "key_rejected", false),
        (Reply::status(403), "not_subscribed", false),
    ] {
        let service = TestService::start().await;
        service.upstream.reply(reply);
        let worker = service.start_worker(1);
        let id = service.submit(&fares(3)).await;
        service
            .wait_for_scan(&id, "its lane is paused", |scan| {
                scan["status_reason"] == reason
            })
            .await;
        service.wait_until_idle(&id).await;
        let paused = service.get("/v1/quota").await["flights"]["paused"].clone();
        assert_eq!(
            (&paused["reason"], paused["until"].is_string()),
            (&json!(reason), ends),
            "{paused}"
        );
        worker.stop().await;
        let seen = service.request("GET", "/v1/quota").header("x-api-key", KEY);
        assert_eq!(
            service.send(seen).await.json()["hotels"]["paused"],
            json!(null),
            "the other lane is not paused"
        );
    }
}
