//! `PUT` and `PATCH /v1/quota/{api}`: the caller's own limits, and synchronous calls counted against a lane.

use std::sync::Arc;

use farescan::app::Custody;
use farescan::charges::ChargeRecorder;
use farescan::config::PaceConfig;
use farescan::scans::watch::{ScanWatch, WatchSettings};
use farescan::search_recorder::SearchRecorder;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::app::{KEY, TestApp, ring};
use crate::support::db::{TestDb, unreachable_database};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{TestService, fares};

const USUAL: PaceConfig = PaceConfig {
    flights_per_minute: 60,
    hotels_per_minute: 20,
    max_in_flight: 8,
};

async fn default_pace_service() -> TestService {
    let db = TestDb::new().await;
    let app = TestApp::builder().database(&db).pace(USUAL).start().await;
    TestService::of(db, app)
}

fn pace(lane: &Value) -> (f64, u64, u64, &str) {
    let number = |name: &str| lane[name].as_u64().unwrap();
    let rate = lane["searches_per_minute"].as_f64().unwrap();
    (
        rate,
        number("burst"),
        number("max_in_flight"),
        lane["pace_source"].as_str().unwrap(),
    )
}

#[tokio::test]
async fn caller_limits_only_lower_the_pace_and_are_optional() {
    let service = default_pace_service().await;
    let quota = service.get("/v1/quota").await;
    assert_eq!(pace(&quota["flights"]), (60.0, 2, 8, "start"));
    assert_eq!(pace(&quota["hotels"]), (20.0, 1, 8, "start"));

    let bounded = service
        .bound(
            "flights",
            &json!({"requests_per_minute": 30, "max_in_flight": 3, "keep_in_reserve": 7}),
        )
        .await;
    assert_eq!(
        (bounded.status, pace(&bounded.json())),
        (200, (30.0, 1, 3, "caller"))
    );
    let bounds =
        json!({"plan": null, "requests_per_minute": 30, "max_in_flight": 3, "keep_in_reserve": 7});
    assert_eq!(bounded.json()["bounds"], bounds);
    let quota = service.get("/v1/quota").await;
    assert_eq!(
        (&quota["flights"], pace(&quota["hotels"]).3),
        (&bounded.json(), "start"),
        "the other lane is unchanged"
    );

    let above = service
        .bound(
            "flights",
            &json!({"requests_per_minute": 600, "max_in_flight": null}),
        )
        .await
        .json();
    assert_eq!(
        pace(&above),
        (60.0, 2, 8, "start"),
        "a limit above the learned pace has no effect"
    );
    assert_eq!(above["bounds"]["keep_in_reserve"], json!(0));
    assert_eq!(
        pace(&service.bound("flights", &json!({})).await.json()),
        (60.0, 2, 8, "start")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_of_different_limits_both_stay() {
    let service = default_pace_service().await;
    let path = "/v1/quota/flights";
    let patch = async |body: Value| {
        service
            .ask("PATCH", path, Some(&body))
            .await
            .expect(200)
            .json()
    };
    let plan = patch(json!({"plan": "pro"})).await;
    assert_eq!(plan["bounds"]["plan"], json!("pro"));
    for round in 1..=10 {
        tokio::join!(
            patch(json!({"requests_per_minute": round})),
            patch(json!({"max_in_flight": round})),
            patch(json!({"keep_in_reserve": round})),
        );
        let lane = service.get("/v1/quota").await["flights"].take();
        assert_eq!(
            lane["bounds"],
            json!({"plan": "pro", "requests_per_minute": round, "max_in_flight": round, "keep_in_reserve": round})
        );
    }
    let fewer = patch(json!({"plan": null, "max_in_flight": null})).await;
    assert_eq!(
        fewer["bounds"],
        json!({"plan": null, "requests_per_minute": 10, "max_in_flight": null, "keep_in_reserve": 10})
    );
    let wrong = service
        .ask("PATCH", path, Some(&json!({"max_in_flight": 0})))
        .await;
    assert_eq!(wrong.kind(), "400 invalid_request");
    assert!(
        wrong.message().contains("max_in_flight"),
        "{}",
        wrong.text()
    );
    let unknown = service
        .ask("PATCH", "/v1/quota/cars", Some(&json!({})))
        .await;
    assert_eq!(unknown.kind(), "404 not_found");
}

#[tokio::test]
async fn a_named_plan_applies_until_response_headers_differ() {
    let service = default_pace_service().await;
    for (api, plan, rate, burst, limit) in [
        ("flights", "pro", 142.5, 4, 2_500),
        ("flights", "mega", 475.0, 15, 50_000),
        ("hotels", "mega", 47.5, 1, 25_000),
    ] {
        let lane = service.bound(api, &json!({ "plan": plan })).await.json();
        assert_eq!(pace(&lane), (rate, burst, 8, "caller"), "{api} {plan}");
        assert_eq!(
            (&lane["plan_requests_limit"], &lane["bounds"]["plan"]),
            (&json!(limit), &json!(plan))
        );
    }
    let basic = service
        .bound("flights", &json!({"plan": "basic"}))
        .await
        .json();
    assert_eq!(
        (pace(&basic), &basic["plan_requests_limit"]),
        ((60.0, 2, 8, "start"), &json!(10)),
        "no rate is stated"
    );
    service.bound("flights", &json!({"plan": "mega"})).await;
    service.upstream.answer(|call| {
        let plan = [
            ("requests-limit", "10000"),
            ("requests-remaining", "9000"),
            ("limit", "250"),
            ("remaining", "249"),
            ("reset", "60"),
        ];
        let reply = Reply::json(json!([fare(9, &call.body)]));
        plan.iter().fold(reply, |reply, (name, value)| {
            reply.header(&format!("x-ratelimit-{name}"), value)
        })
    });
    let worker = service.start_worker(4);
    let id = service.submit(&fares(1)).await;
    service.wait_until_ended(&id).await;
    worker.stop().await;
    let lane = service.get("/v1/quota").await["flights"].clone();
    assert_eq!(
        (pace(&lane), &lane["plan_requests_limit"]),
        ((237.5, 7, 8, "headers"), &json!(10_000))
    );
    service.bound("flights", &json!({"plan": "pro"})).await;
    let still = service.get("/v1/quota").await["flights"].clone();
    assert_eq!(
        pace(&still),
        (237.5, 7, 8, "headers"),
        "response headers override the named plan"
    );
}

#[tokio::test]
async fn invalid_limits_are_refused_and_change_nothing() {
    let service = default_pace_service().await;
    let bad = json!({"plan": "gold", "requests_per_minute": 0, "max_in_flight": "4", "keep_in_reserve": -1, "burst": 2});
    let answer = service.bound("flights", &bad).await;
    assert_eq!(answer.kind(), "400 invalid_request");
    for fault in [
        "`plan`: found \"gold\"; expected one of `basic`, `pro`, `ultra`, `mega`",
        "`requests_per_minute`: found 0; expected an integer from 1 to 60000",
        "`max_in_flight`: found \"4\"; expected an integer from 1 to 1000",
        "`keep_in_reserve`: found -1; expected an integer from 0 to 9007199254740991",
        "`burst`",
    ] {
        assert!(
            answer.message().contains(fault),
            "{fault}: {}",
            answer.message()
        );
    }
    let trains = service.bound("trains", &json!({})).await;
    assert_eq!(trains.kind(), "404 not_found");
    assert_eq!(
        trains.message(),
        "there is no lane `trains`; expected one of `flights`, `hotels`"
    );
    assert_eq!(service.count("select count(*) from lanes").await, 0);
    assert_eq!(pace(&service.get("/v1/quota").await["flights"]).3, "start");
}

/// Two workers, which share only the lane.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_applies_to_every_process_from_the_next_call() {
    let service = TestService::start().await;
    let gate = crate::support::reply::Gate::closed();
    service
        .upstream
        .reply(Reply::json(json!([fare(9, &json!({}))])).gated_by(&gate));
    let workers = [service.start_worker(16), service.start_worker(16)];
    let id = service.submit(&fares(200)).await;
    service.upstream.wait_for_in_flight(32).await;
    service.bound("flights", &json!({"max_in_flight": 3})).await;
    let before = service.upstream.count();
    gate.open();
    service
        .wait_for_scan(&id, "it continues", |scan| {
            scan["items"]["ok"].as_u64() >= Some(60)
        })
        .await;
    assert!(
        service.get("/v1/quota").await["flights"]["in_flight"]
            .as_u64()
            .unwrap()
            <= 3
    );
    service.wait_until_ended(&id).await;
    for worker in workers {
        worker.stop().await;
    }
    assert_eq!((before, service.call_count("TLV")), (32, 200));
}

async fn search(app: &TestApp, key: &str) -> u16 {
    let body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-01"});
    app.send(
        app.request("POST", "/v1/flights/oneway")
            .header("x-api-key", key)
            .json(&body),
    )
    .await
    .status
}

/// Waits until the query returns 1.
#[tokio::test]
async fn synchronous_calls_use_the_lanes_pace_and_update_its_quota() {
    let service = default_pace_service().await;
    service
        .bound("flights", &json!({"requests_per_minute": 2}))
        .await;
    service.upstream.answer(|call| {
        Reply::json(json!([fare(9, &call.body)]))
            .header("x-ratelimit-requests-limit", "500")
            .header("x-ratelimit-requests-remaining", "321")
    });
    assert_eq!(search(&service, "a-key-that-never-ordered").await, 200);
    assert_eq!(search(&service, KEY).await, 200);
    service.wait_for_count("select count(*) from lanes where api = 'flights' and plan_remaining = 321 and arrival > clock_timestamp() + interval '5 seconds'", 1).await;
    assert_eq!(
        service
            .count("select count(distinct tenant_id) from lanes")
            .await,
        1,
        "a caller without a lane is not charged"
    );
    // So a scan waits half a minute at this pace.
    let worker = service.start_worker(4);
    let id = service.submit(&fares(1)).await;
    service
        .upstream
        .reply(Reply::status(429).header("retry-after", "40"));
    assert_eq!(search(&service, KEY).await, 429);
    let paused = service
        .wait_for_scan(&id, "its lane is limited", |scan| {
            scan["status_reason"] == "rate_limited"
        })
        .await;
    worker.stop().await;
    assert_eq!(paused["requests"]["spent"], json!(0));
    let lane = service.get("/v1/quota").await["flights"].clone();
    assert_eq!(
        lane["pace_source"],
        json!("caller"),
        "only a scan's own 429 lowers the pace"
    );
}

#[tokio::test]
async fn synchronous_calls_work_without_the_database() {
    let (pool, nowhere) = unreachable_database();
    let (stop, ring) = (CancellationToken::new(), Arc::new(ring()));
    let charges = ChargeRecorder::start(pool.clone(), Arc::clone(&ring), USUAL);
    let recorder = SearchRecorder::new(pool.clone(), Arc::clone(&ring), USUAL);
    let watch = ScanWatch::start(pool.clone(), nowhere, WatchSettings::default(), &stop);
    let custody = Custody {
        ring,
        pace: USUAL,
        watch,
        charges,
        recorder,
    };
    let app = TestApp::builder().pool(pool).custody(custody).start().await;
    // More than the queue of charges holds.
    for _ in 0..50 {
        let answers = futures::future::join_all((0..30).map(|_| search(&app, KEY))).await;
        assert!(answers.iter().all(|status| *status == 200), "{answers:?}");
    }
}
