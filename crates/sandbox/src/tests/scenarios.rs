//! A sandbox with a scenario or a clock of its own, over HTTP.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;

use super::*;
use crate::SandboxClock;
use crate::scenarios::{FareRoute, PriceProcess, Scenario};

const KEY: &str = "sandbox-unlimited";
const NOON: DateTime = TODAY.at(12, 0, 0, 0);

fn scenario() -> Arc<Scenario> {
    let text = "currency = \"EUR\"\n[ladder]\n[sales]\n[within_day]\nchance = 0.5";
    Arc::new(Scenario::parse(text, Path::new("")).expect("a scenario"))
}

fn prices() -> PriceProcess {
    PriceProcess::new(scenario(), 3)
}

async fn sandbox() -> TestSandbox {
    TestSandbox::with(SandboxOptions {
        seed: 3,
        latency_factor: 0.0,
        clock: Some("2026-11-20T12:00:00Z,x0".parse().expect("a clock")),
        scenario: Some(scenario()),
        ..SandboxOptions::default()
    })
    .await
}

fn search(to: &str, date: Date, more: &Value) -> Value {
    let mut body = oneway(to);
    body["departure_date"] = json!(date);
    body["currency"] = json!("EUR");
    for (name, value) in more.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body
}

#[tokio::test]
async fn answers_have_the_prices_of_the_process_also_for_unknown_airports() {
    let (sandbox, prices) = (sandbox().await, prices());
    for to in ["LHR", "XQX"] {
        for days in 0..40 {
            let date = TODAY + jiff::Span::new().days(days);
            let answer = sandbox
                .call(KEY, ONEWAY, &search(to, date, &json!({})))
                .await;
            let fare = prices
                .oneway(&FareRoute::new("TLV", to), date, NOON)
                .expect("a fare");
            let rows = answer.json();
            assert_eq!(
                rows[0]["price_as_number"], fare.shown,
                "{to} {date}: {rows}"
            );
            assert_eq!(answer.rows(), 1);
            assert_eq!(answer.header("x-search-status"), Some("ok"));
            assert_eq!(
                answer.header("x-sandbox-date"),
                Some("2026-11-20T12:00:00Z")
            );
        }
    }
    let (out, back) = (date(2027, 1, 20), date(2027, 1, 27));
    let mut body = roundtrip("XQX");
    body["currency"] = json!("EUR");
    let answer = sandbox.call(KEY, ROUNDTRIP, &body).await;
    let fare = prices.roundtrip(&FareRoute::new("TLV", "XQX"), out, back, NOON);
    assert_eq!(
        answer.json()[0]["total_price_as_number"],
        fare.expect("a fare").shown
    );
    assert_eq!(answer.json()[0]["to_airport"], "XQX (XQX)");
    sandbox.close().await;
}

#[tokio::test]
async fn party_currency_and_filters_apply() {
    let (sandbox, date) = (sandbox().await, date(2027, 1, 20));
    let fare = prices()
        .oneway(&FareRoute::new("TLV", "LHR"), date, NOON)
        .expect("a fare")
        .shown;
    let price = async |more: Value| {
        let answer = sandbox.call(KEY, ONEWAY, &search("LHR", date, &more)).await;
        (
            answer.header("x-search-status").map(str::to_owned),
            answer.json()[0]["price_as_number"].as_i64(),
        )
    };
    let ok = Some("ok".to_owned());
    assert_eq!(
        price(json!({"passengers": [1, 1]})).await,
        (ok.clone(), Some(2 * fare))
    );
    let (_, dollars) = price(json!({"currency": "USD"})).await;
    assert!(
        (dollars.expect("a price") * 9 - fare * 10).abs() <= 5,
        "{dollars:?} and {fare}"
    );
    assert_eq!(price(json!({"max_price": fare})).await, (ok, Some(fare)));
    let none = (Some("empty".to_owned()), None);
    assert_eq!(price(json!({"max_price": fare - 1})).await, none);
    assert_eq!(price(json!({"airline_codes": ["??"]})).await, none);
    // The magic words still work.
    let empty = sandbox
        .call(KEY, ONEWAY, &search("ZZE", date, &json!({})))
        .await;
    assert_eq!(empty.header("x-search-status"), Some("empty"));
    sandbox.close().await;
}

#[tokio::test]
async fn only_a_scenario_or_a_clock_adds_the_sandbox_date() {
    let usual = TestSandbox::open().await;
    let answer = usual.call(KEY, ONEWAY, &oneway("LHR")).await;
    assert_eq!(answer.header("x-sandbox-date"), None);
    usual.close().await;
    let refused = sandbox().await;
    let answer = refused.call("wrong", ONEWAY, &oneway("LHR")).await;
    assert_eq!(answer.status, 401);
    assert_eq!(
        answer.header("x-sandbox-date"),
        Some("2026-11-20T12:00:00Z")
    );
    refused.close().await;
}

#[tokio::test]
async fn a_fast_clock_passes_days() {
    let start = "2027-01-18T12:00:00Z"
        .parse::<Timestamp>()
        .expect("an instant");
    let fast = TestSandbox::with(SandboxOptions {
        latency_factor: 0.0,
        clock: Some(SandboxClock {
            start: Some(start),
            speed: 1_000_000,
        }),
        ..SandboxOptions::default()
    })
    .await;
    let shown = async || {
        let answer = fast.call(KEY, ONEWAY, &oneway("LHR")).await;
        let text = answer.header("x-sandbox-date").expect("a date").to_owned();
        (
            text.parse::<Timestamp>().expect("an instant"),
            answer.rows(),
        )
    };
    let (mut now, _) = shown().await;
    assert!(now >= start);
    // The departure of the search passes: there are no flights any more.
    let departed = "2027-01-21T00:00:00Z"
        .parse::<Timestamp>()
        .expect("an instant");
    loop {
        let (later, rows) = shown().await;
        assert!(later >= now, "{later} after {now}");
        now = later;
        if now >= departed {
            assert_eq!(rows, 0);
            break;
        }
    }
    fast.close().await;
}
