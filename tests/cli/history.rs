//! `history`: what is known already, at no cost.

use serde_json::{Value, json};

use super::{Client, lines, script_fares, stable};
use crate::support::reply::Reply;

#[tokio::test(flavor = "multi_thread")]
async fn known_fares_are_a_calendar_with_their_age() {
    let client = Client::start().await;
    script_fares(&client.service);
    let worker = client.start_worker(4);
    client.run(&[
        "scan",
        "oneway",
        "TLV",
        "LHR",
        "--depart",
        "2030-02-04..2030-02-08",
        "--yes",
    ]);
    let (calls, args) = (
        client.calls(),
        ["history", "oneway", "tlv", "LHR", "--depart", "2030-02"],
    );
    let shown = client.out(&args);
    // Prices are younger than an hour.
    let ages = (0..60).fold(shown.replace("   now", "NN min"), |text, age| {
        text.replace(&format!("{age:>2} min"), "NN min")
    });
    insta::assert_snapshot!(ages);
    let json: Value =
        serde_json::from_str(&client.out(&[&args[..], &["--json"]].concat())).unwrap();
    assert_eq!(json["data"][0]["cells"].as_array().unwrap().len(), 28);

    // A date that is empty now has no price any more.
    client
        .upstream
        .reply(Reply::json(json!([])).header("x-search-status", "empty"));
    client.run(&[
        "scan",
        "oneway",
        "TLV",
        "LHR",
        "--depart",
        "2030-02-04",
        "--yes",
    ]);
    assert_ne!(client.out(&args), shown);
    let series = client.out(&["history", "series", "TLV", "LHR", "--depart", "2030-02-07"]);
    assert!(
        series.contains("TLV → LHR, one way, 1 adult, USD") && series.contains('▁'),
        "{series}"
    );
    assert!(
        series.contains("Days before") && series.contains("180–320"),
        "{series}"
    );
    assert_eq!(client.calls(), calls + 1, "the history costs nothing");
    worker.stop().await;
}

/// The prices of a test are younger than ten minutes.
fn without_ages(text: &str) -> String {
    (0..10).fold(text.to_owned(), |text, age| {
        text.replace(&format!(" {age} min"), " N min")
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn known_round_trips_and_stays_are_tables() {
    let client = Client::start().await;
    let worker = client.start_worker(4);
    client.out(&[
        "scan",
        "roundtrip",
        "TLV",
        "LHR",
        "--depart",
        "2030-02-01..2030-02-02",
        "--nights",
        "7,8",
        "--yes",
    ]);
    client.out(&[
        "scan",
        "hotel",
        "Hotel Arts",
        "--checkin",
        "2030-02-01..2030-02-02",
        "--nights",
        "3",
        "--markets",
        "us,de",
        "--yes",
    ]);
    worker.stop().await;
    // The width of a table is that of its ages.
    execute!(
        client.service.pool(),
        "update latest_prices set observed_at = observed_at - interval '2 minutes', sampled_at = sampled_at - interval '2 minutes'"
    );
    let calls = client.calls();
    insta::assert_snapshot!(
        "round_trips",
        without_ages(&client.out(&["history", "roundtrip", "TLV", "LHR", "--depart", "2030-02"]))
    );
    insta::assert_snapshot!(
        "markets",
        without_ages(&client.out(&[
            "history",
            "hotel",
            "Hotel Arts",
            "--checkin",
            "2030-02",
            "--nights",
            "3",
            "--markets"
        ]))
    );
    let nothing = client.run(&["history", "oneway", "TLV", "LHR", "--depart", "2030-02"]);
    assert!(
        nothing.code == Some(0) && nothing.err.contains("farescan scan oneway TLV LHR"),
        "{nothing:?}"
    );
    assert_eq!(client.calls(), calls);
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_and_quota_say_what_was_spent_and_is_left() {
    let client = Client::start().await;
    client.upstream.answer(|call| {
        Reply::json(json!([crate::support::upstream::fare(100, &call.body)]))
            .header("x-search-status", "ok")
            .header("x-ratelimit-requests-limit", "2500")
            .header("x-ratelimit-requests-remaining", "2412")
    });
    let worker = client.start_worker(4);
    client.out(&[
        "scan",
        "oneway",
        "TLV",
        "LHR",
        "--depart",
        "2030-02-04..2030-02-05",
        "--yes",
    ]);
    worker.stop().await;
    insta::assert_snapshot!("usage", client.out(&["usage", "--by", "endpoint"]));
    insta::assert_snapshot!(
        "quota_at_60_columns",
        stable(&client.run_at(60, &["quota"]).out)
    );
    let rows = lines(&client.out(&["usage", "--by", "scan", "--json"]));
    assert_eq!((rows.len(), &rows[0]["billed"]), (1, &json!(2)));
    let lane: Value = serde_json::from_str(&client.out(&["quota", "--json"])).unwrap();
    assert_eq!(lane["flights"]["plan_requests_remaining"], 2412);
}
