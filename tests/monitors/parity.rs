//! The markets of a monitor over its runs: the API, the page and the command show the same.

use farescan::contract::Endpoint;
use serde_json::{Value, json};

use crate::alerts::AlertTest;
use crate::cli::monitors::{cli, out};
use crate::support::app::KEY;
use crate::support::reply::Reply;
use crate::web::Browser;

/// A hotel in three markets with three samples of each, on two dates.
fn markets() -> Value {
    let mut body = super::with(&json!({
        "alerts": [{"type": "parity_gap_percent", "percent": 5, "baseline": "us"}],
        "schedule": {"cron": "0 5 * * mon", "timezone": "UTC"}
    }));
    body["scan"] = json!({
        "endpoint": "hotels/by-name", "request": {"hotel_name": "Grand Hotel", "currency": "USD"},
        "sweep": {
            "checkin_date": {"from": "+30d", "to": "+31d"}, "nights": [3],
            "proxy_country": ["us", "de", "jp"], "samples": 3
        }
    });
    body
}

/// Prices with a margin of chance of 2: `german` in Germany, 400 elsewhere; in Japan of another room.
fn answer_with(test: &AlertTest, german: u64) {
    let mut calls = 0;
    test.upstream.on(Endpoint::HotelsByName).answer(move |call| {
        calls += 1;
        let (price, room) = match call.body["proxy_country"].as_str().unwrap() {
            "de" => (german, "Double"),
            "jp" => (100, "Single"),
            _ => (400, "Double"),
        };
        Reply::json(json!({
            "name": "Grand Hotel", "available": true, "price": price + calls % 3, "room_type": room,
            "link": "https://hotels.example/one"
        }))
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn each_run_says_how_many_stays_of_a_market_differ() {
    let test = AlertTest::open().await;
    let id = test.create_monitor(&markets()).await;
    for german in [400, 360, 480] {
        answer_with(&test, german);
        test.run(&id).await;
    }
    let before = test.upstream.calls().len();
    let found = test.get(&format!("/v1/monitors/{id}/parity")).await;
    assert_eq!(found["baseline"], "us");
    let [dearer, cheaper, same] = found["runs"].as_array().unwrap().as_slice() else {
        panic!("three runs: {found}");
    };
    for (run, expected) in [
        (dearer, [0, 2, 0, 0]),
        (cheaper, [2, 0, 0, 0]),
        (same, [0, 0, 2, 0]),
    ] {
        let german = &run["markets"][0];
        let counted =
            ["cheaper", "dearer", "same", "unknown"].map(|name| german[name].as_u64().unwrap());
        assert_eq!(
            (&german["market"], counted),
            (&json!("de"), expected),
            "{run}"
        );
        let other_room = &run["markets"][1];
        assert_eq!(
            (&other_room["market"], &other_room["unknown"]),
            (&json!("jp"), &json!(2))
        );
    }
    let german = &found["markets"][0];
    assert_eq!(german["same_percent"], json!(33.33));
    assert_eq!(german["noise_percent"], json!(1));
    for unknown in ["same_percent", "noise_percent"] {
        assert_eq!(found["markets"][1][unknown], Value::Null);
    }
    let slots: Vec<_> = test
        .slots(&id)
        .await
        .iter()
        .map(|slot| slot["slot"].clone())
        .collect();
    let runs: Vec<_> = found["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["slot"].clone())
        .collect();
    assert_eq!(runs, slots, "newest first");

    let one = test
        .get(&format!("/v1/monitors/{id}/parity?runs=1&baseline=DE"))
        .await;
    assert_eq!(
        (one["runs"].as_array().unwrap().len(), &one["baseline"]),
        (1, &json!("de"))
    );
    assert_eq!(
        one["markets"][0]["cheaper"], 2,
        "the same gap seen from the other market: {one}"
    );

    let browser = Browser::sign_in(&test, KEY).await;
    let page = browser.page(&format!("/monitors/{id}")).await;
    let path = format!("/monitors/{id}/parity");
    assert!(page.contains(&format!("href=\"{path}\"")), "{page}");
    let page = browser.page(&path).await;
    for expected in [
        "Markets over time",
        "33.3 %",
        "noise 1 %",
        "cheaper",
        "more expensive",
        "same",
        "DE against US",
        "unknown",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let shown = out(&test, &["monitors", "parity", &id]);
    for expected in [
        "in 3 runs",
        "DE",
        "33.3 %",
        "noise 1 %",
        "cheaper",
        "more expensive",
        "same",
        "unknown",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert_eq!(test.upstream.calls().len(), before, "reading costs nothing");
    test.close().await;
}

/// A report comes with each run, whether or not anything has changed, in one alert.
#[tokio::test(flavor = "multi_thread")]
async fn each_run_is_reported_with_its_markets() {
    let test = AlertTest::open().await;
    let mut body = markets();
    body["alerts"] = json!([{"type": "every_run"}]);
    let id = test.create_monitor(&body).await;
    answer_with(&test, 360);
    for _ in 0..2 {
        test.run(&id).await;
    }
    let found = test.get(&format!("/v1/monitors/{id}/alerts")).await;
    let alerts = found["data"].as_array().unwrap();
    let [second, first] = alerts.as_slice() else {
        panic!("an alert of each run: {found}");
    };
    for alert in [second, first] {
        assert_eq!(alert["type"], "every_run");
        assert_eq!(alert["markets"]["baseline"], "us");
        let german = &alert["markets"]["markets"][0];
        assert_eq!(
            (&german["market"], &german["cheaper"]),
            (&json!("de"), &json!(2))
        );
        assert_eq!(alert["state_after"]["armed"], true);
    }
    assert_eq!(first["before"], Value::Null);
    assert_eq!(second["before"]["price"], first["price"]);
    // The same as the history of the monitor says of its newest run.
    let history = test.get(&format!("/v1/monitors/{id}/parity?runs=1")).await;
    assert_eq!(history["runs"][0]["markets"], second["markets"]["markets"]);

    let alert = second["id"].as_str().unwrap();
    let page = Browser::sign_in(&test, KEY)
        .await
        .page(&format!("/alerts/{alert}"))
        .await;
    let shown = out(&test, &["alerts", "show", alert]);
    for text in [&page, &shown] {
        for expected in ["1 of 1 market differs from US", "DE", "cheaper", "noise"] {
            assert!(
                text.to_lowercase().contains(&expected.to_lowercase()),
                "{expected}: {text}"
            );
        }
    }
    test.close().await;
}

/// A run that found no price is reported too: nothing is not silence.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_price_is_reported() {
    let test = AlertTest::open().await;
    let body = super::with(&json!({"alerts": [{"type": "every_run"}]}));
    let id = test.create_monitor(&body).await;
    test.upstream
        .answer(|_| Reply::search_incomplete("blocked_page"));
    test.run(&id).await;
    let found = test.get(&format!("/v1/monitors/{id}/alerts")).await;
    let [alert] = found["data"].as_array().unwrap().as_slice() else {
        panic!("one alert: {found}");
    };
    assert_eq!(
        (&alert["price"], &alert["searched"]["answered"]),
        (&Value::Null, &json!(0))
    );
    assert!(alert.get("markets").is_none(), "{alert}");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_baseline_that_is_no_market_and_a_monitor_without_markets_are_refused() {
    let test = AlertTest::open().await;
    let id = test.create_monitor(&markets()).await;
    let empty = test.get(&format!("/v1/monitors/{id}/parity")).await;
    assert_eq!(
        (&empty["runs"], &empty["markets"]),
        (&json!([]), &json!([]))
    );
    let refused = cli(&test, &["monitors", "parity", &id, "--baseline", "fr"]);
    assert!(refused.err.contains("us, de, jp"), "{refused:?}");
    let other = test
        .create_monitor(&super::with(&json!({"name": "fares"})))
        .await;
    let path = format!("/v1/monitors/{other}/parity");
    let refused = test.ask("GET", &path, None).await.expect(400).text();
    assert!(refused.contains("compares none"), "{refused}");
    test.close().await;
}
