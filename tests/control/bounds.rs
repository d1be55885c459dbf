//! `PUT /v1/quota/{api}`: the caller's own bounds, and calls of the gateway counted against a lane.

use std::sync::Arc;
use std::time::Duration;

use farescan::config::PaceConfig;
use farescan::http::Custody;
use farescan::queue::charge::Charges;
use farescan::scans::watch::{Watch, WatchSettings};
use serde_json::{Value, json};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio_util::sync::CancellationToken;

use super::house::{House, fares};
use crate::support::app::{KEY, TestApp, ring};
use crate::support::db::TestDb;
use crate::support::reply::Reply;
use crate::support::upstream::fare;

const USUAL: PaceConfig = PaceConfig {
    flights_per_minute: 60,
    hotels_per_minute: 20,
    max_in_flight: 8,
};

async fn usual_house() -> House {
    let db = TestDb::new().await;
    let app = TestApp::builder().database(&db).pace(USUAL).start().await;
    House { db, app }
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
async fn bounds_are_ceilings_and_what_is_not_named_is_no_bound() {
    let house = usual_house().await;
    let quota = house.get("/v1/quota").await;
    assert_eq!(pace(&quota["flights"]), (60.0, 2, 8, "start"));
    assert_eq!(pace(&quota["hotels"]), (20.0, 1, 8, "start"));

    let bounded = house
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
    let quota = house.get("/v1/quota").await;
    assert_eq!(
        (&quota["flights"], pace(&quota["hotels"]).3),
        (&bounded.json(), "start"),
        "the other lane stays"
    );

    let above = house
        .bound(
            "flights",
            &json!({"requests_per_minute": 600, "max_in_flight": null}),
        )
        .await
        .json();
    assert_eq!(
        pace(&above),
        (60.0, 2, 8, "start"),
        "a ceiling above what is learned changes nothing"
    );
    assert_eq!(above["bounds"]["keep_in_reserve"], json!(0));
    assert_eq!(
        pace(&house.bound("flights", &json!({})).await.json()),
        (60.0, 2, 8, "start")
    );
}

#[tokio::test]
async fn a_named_plan_counts_until_the_headers_say_otherwise() {
    let house = usual_house().await;
    for (api, plan, rate, burst, limit) in [
        ("flights", "pro", 142.5, 4, 2_500),
        ("flights", "mega", 475.0, 15, 50_000),
        ("hotels", "mega", 47.5, 1, 25_000),
    ] {
        let lane = house.bound(api, &json!({ "plan": plan })).await.json();
        assert_eq!(pace(&lane), (rate, burst, 8, "caller"), "{api} {plan}");
        assert_eq!(
            (&lane["plan_requests_limit"], &lane["bounds"]["plan"]),
            (&json!(limit), &json!(plan))
        );
    }
    let basic = house
        .bound("flights", &json!({"plan": "basic"}))
        .await
        .json();
    assert_eq!(
        (pace(&basic), &basic["plan_requests_limit"]),
        ((60.0, 2, 8, "start"), &json!(10)),
        "no rate is stated"
    );
    house.bound("flights", &json!({"plan": "mega"})).await;
    house.app.upstream.on_any().answer(|call| {
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
    let worker = house.worker(4);
    let id = house.order(&fares(1)).await;
    house.ended(&id).await;
    worker.stop().await;
    let lane = house.get("/v1/quota").await["flights"].clone();
    assert_eq!(
        (pace(&lane), &lane["plan_requests_limit"]),
        ((237.5, 7, 8, "headers"), &json!(10_000))
    );
    house.bound("flights", &json!({"plan": "pro"})).await;
    let still = house.get("/v1/quota").await["flights"].clone();
    assert_eq!(
        pace(&still),
        (237.5, 7, 8, "headers"),
        "the marketplace knows better"
    );
}

#[tokio::test]
async fn bad_bounds_are_refused_and_change_nothing() {
    let house = usual_house().await;
    let bad = json!({"plan": "gold", "requests_per_minute": 0, "max_in_flight": "4", "keep_in_reserve": -1, "burst": 2});
    let answer = house.bound("flights", &bad).await;
    assert_eq!(answer.kind(), "400 invalid_request");
    for fault in [
        "`plan` holds \"gold\"; allowed: one of `basic`, `pro`, `ultra`, `mega`",
        "`requests_per_minute` holds 0; allowed: an integer from 1 to 60000",
        "`max_in_flight` holds \"4\"; allowed: an integer from 1 to 1000",
        "`keep_in_reserve` holds -1; allowed: an integer from 0 to 9007199254740991",
        "`burst`",
    ] {
        assert!(
            answer.message().contains(fault),
            "{fault}: {}",
            answer.message()
        );
    }
    let trains = house.bound("trains", &json!({})).await;
    assert_eq!(trains.kind(), "404 not_found");
    assert_eq!(
        trains.message(),
        "there is no lane `trains`; allowed: one of `flights`, `hotels`"
    );
    assert_eq!(house.count("select count(*) from lanes").await, 0);
    assert_eq!(pace(&house.get("/v1/quota").await["flights"]).3, "start");
}

/// Through two processes: what one is told, the other keeps to, because the lane is all they share.
#[tokio::test(flavor = "multi_thread")]
async fn a_bound_holds_for_every_process_from_the_next_call_on() {
    let house = House::open().await;
    let gate = crate::support::reply::Gate::closed();
    house
        .app
        .upstream
        .on_any()
        .reply(Reply::json(json!([fare(9, &json!({}))])).held_by(&gate));
    let workers = [house.worker(16), house.worker(16)];
    let id = house.order(&fares(200)).await;
    house.app.upstream.wait_for_in_flight(32).await;
    house.bound("flights", &json!({"max_in_flight": 3})).await;
    let before = house.app.upstream.count();
    gate.open();
    house
        .scan_when(&id, "it goes on", |scan| {
            scan["items"]["ok"].as_u64() >= Some(60)
        })
        .await;
    assert!(
        house.get("/v1/quota").await["flights"]["in_flight"]
            .as_u64()
            .unwrap()
            <= 3
    );
    house.ended(&id).await;
    for worker in workers {
        worker.stop().await;
    }
    assert_eq!((before, house.calls("TLV")), (32, 200));
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

/// What a lane knows, once it is so.
async fn until(house: &House, what: &str, so: &'static str) {
    let end = tokio::time::Instant::now() + crate::support::PATIENCE;
    while tokio::time::Instant::now() < end {
        if house.count(so).await == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain until {what}");
}

#[tokio::test]
async fn synchronous_calls_move_their_callers_lane_on_and_tell_it_the_headers() {
    let house = usual_house().await;
    house
        .bound("flights", &json!({"requests_per_minute": 2}))
        .await;
    house.app.upstream.on_any().answer(|call| {
        Reply::json(json!([fare(9, &call.body)]))
            .header("x-ratelimit-requests-limit", "500")
            .header("x-ratelimit-requests-remaining", "321")
    });
    assert_eq!(search(&house.app, "a-key-that-never-ordered").await, 200);
    assert_eq!(search(&house.app, KEY).await, 200);
    until(
        &house,
        "the lane knows",
        "select count(*) from lanes where api = 'flights' and plan_remaining = 321 and arrival > clock_timestamp() + interval '5 seconds'",
    )
    .await;
    assert_eq!(
        house
            .count("select count(distinct tenant_id) from lanes")
            .await,
        1,
        "who has no lane is charged nothing"
    );
    // So a scan waits for its turn: half a minute at this pace.
    let worker = house.worker(4);
    let id = house.order(&fares(1)).await;
    house
        .app
        .upstream
        .on_any()
        .reply(Reply::status(429).header("retry-after", "40"));
    assert_eq!(search(&house.app, KEY).await, 429);
    let paused = house
        .scan_when(&id, "its lane is limited", |scan| {
            scan["status_reason"] == "rate_limited"
        })
        .await;
    worker.stop().await;
    assert_eq!(paused["requests"]["spent"], json!(0));
    let lane = house.get("/v1/quota").await["flights"].clone();
    assert_eq!(
        lane["pace_source"],
        json!("caller"),
        "only a scan's own 429 slows it"
    );
}

#[tokio::test]
async fn with_the_database_away_synchronous_calls_are_answered_as_ever() {
    let nowhere = PgConnectOptions::new()
        .host("127.0.0.1")
        .port(1)
        .username("nobody");
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_millis(200))
        .connect_lazy_with(nowhere.clone());
    let (stop, ring) = (CancellationToken::new(), Arc::new(ring()));
    let charges = Charges::start(pool.clone(), Arc::clone(&ring), &stop);
    let watch = Watch::start(pool.clone(), nowhere, WatchSettings::default(), &stop);
    let custody = Custody {
        ring,
        pace: USUAL,
        watch,
        charges,
    };
    let app = TestApp::builder().pool(pool).custody(custody).start().await;
    // More than the line holds.
    for _ in 0..50 {
        let answers = futures::future::join_all((0..30).map(|_| search(&app, KEY))).await;
        assert!(answers.iter().all(|status| *status == 200), "{answers:?}");
    }
}
