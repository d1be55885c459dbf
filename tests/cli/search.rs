//! `search`: one search as a table.

use serde_json::{Value, json};

use super::Client;
use crate::support::reply::Reply;
use crate::support::upstream::fare;

/// Three fares: cheap with a stop overnight, dear and non-stop, and one without a price.
async fn with_fares() -> Client {
    let client = Client::start().await;
    client.upstream.answer(|call| {
        let with = |price: u64, more: Value| {
            let mut row = fare(price, &call.body);
            row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            row
        };
        Reply::json(json!([
            with(240, json!({
                "departure_description": "7:15 AM on Thu, Feb 7", "arrival_description": "10:40 AM on Thu, Feb 7",
                "airline": "Example Air", "price_range_in_relation_to_other_periods": "typical"
            })),
            with(164, json!({
                "departure_description": "11:15 PM on Thu, Feb 7", "arrival_description": "6:40 AM on Fri, Feb 8",
                "airline": "A carrier with a long name, and its partner", "stops": 1, "duration": "9 hr 25 min"
            })),
            with(0, json!({"price": null, "price_as_number": null, "stops": "Unknown"})),
        ]))
        .header("x-search-status", "ok")
        .header("x-ratelimit-requests-remaining", "2412")
    });
    client
}

const ONEWAY: [&str; 5] = ["search", "oneway", "TLV", "LHR", "2030-02-07"];

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_found_is_refused_and_costs_nothing() {
    let client = with_fares().await;
    for (args, says) in [
        (
            ["search", "oneway", "TLV", "XQZ", "2030-02-07"],
            "no airport or city has this code; did you mean",
        ),
        (
            ["search", "oneway", "TLV", "LHR", "2025-01-05"],
            "the date has passed; expected 20",
        ),
    ] {
        let refused = client.run(&args);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains(says), "{says}: {}", refused.err);
    }
    assert_eq!(client.calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn fares_fit_80_and_140_columns() {
    let client = with_fares().await;
    for columns in [60, 80, 140] {
        let found = client.run_at(columns, &ONEWAY);
        assert_eq!(found.code, Some(0), "{found:?}");
        let widest = found.out.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns.into()), "{}", found.out);
        insta::assert_snapshot!(format!("fares_at_{columns}_columns"), found.out);
        assert_eq!(
            found.err,
            "search ok · 3 results · 1 request spent · 2,412 left of the plan\n"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_age_an_answer_is_bought_once() {
    let client = with_fares().await;
    let search = [&ONEWAY[..], &["--max-age", "6h"]].concat();
    let first = client.run(&search);
    assert!(first.err.contains("1 request spent"), "{first:?}");
    let stored = "select count(*) from scans where finished_at is not null";
    client.wait_for_count(stored, 1).await;
    let again = client.run(&search);
    assert_eq!(again.out, first.out);
    assert!(
        again
            .err
            .starts_with("search ok · 3 results · 0 requests spent · found ")
            && again.err.ends_with(" ago\n"),
        "{again:?}"
    );
    assert_eq!(client.calls(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_the_answer_as_it_came() {
    let client = with_fares().await;
    let found = client.run(&[&ONEWAY[..], &["--json"]].concat());
    let rows: Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!(
        (rows.as_array().unwrap().len(), &rows[1]["stops"]),
        (3, &json!(1))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn options_become_the_fields_of_the_request() {
    let client = Client::start().await;
    client.out(&[
        "search",
        "roundtrip",
        "tlv",
        "LHR",
        "2030-02-07",
        "2030-02-14",
        "--max-stops",
        "0",
        "--airlines",
        "BA,LY",
        "--currency",
        "eur",
        "--cabin",
        "business",
        "--adults",
        "2",
        "--children",
        "1",
        "--set",
        "use_fallback=false",
    ]);
    client.out(&[
        "search",
        "hotel",
        "Hotel Arts",
        "--checkin",
        "2030-02-07",
        "--nights",
        "3",
        "--market",
        "de",
    ]);
    let bodies: Vec<_> = client
        .upstream
        .calls()
        .into_iter()
        .map(|call| call.body)
        .collect();
    assert_eq!(
        bodies,
        [
            json!({
                "from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-02-07", "return_date": "2030-02-14",
                "max_departure_stops": 0, "max_return_stops": 0, "departure_airline_codes": ["BA", "LY"],
                "return_airline_codes": ["BA", "LY"], "currency": bodies[0]["currency"], "seat_type": 3, "passengers": [1, 1, 2],
                "use_fallback": false, "limit": bodies[0]["limit"]
            })
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into(),
            json!({"hotel_name": "Hotel Arts", "checkin_date": "2030-02-07", "checkout_date": "2030-02-10", "proxy_country": "de"}),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hotels_and_rooms_are_tables() {
    let client = Client::start().await;
    let stay = ["--checkin", "2030-02-07", "--nights", "2"];
    for (name, args) in [
        ("hotels", vec!["search", "hotels", "Barcelona"]),
        (
            "hotel",
            vec!["search", "hotel", "Hotel One", "--area", "Barcelona"],
        ),
        ("rooms", vec!["search", "rooms", "es/one"]),
    ] {
        insta::assert_snapshot!(name, client.out(&[&args[..], &stay].concat()));
    }
    let before = client.calls();
    let named = client.run(&[&["search", "rooms", "--name", "Hotel One"][..], &stay].concat());
    assert_eq!(
        (named.code, client.calls() - before),
        (Some(0), 2),
        "the id costs one more: {named:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_search_ends_with_2_and_costs_nothing() {
    let client = Client::start().await;
    let refused = client.run(&[
        "search",
        "oneway",
        "TLVX",
        "L",
        "2030-02-07",
        "--set",
        "max_stopps=1",
    ]);
    assert_eq!((refused.code, client.calls()), (Some(2), 0), "{refused:?}");
    insta::assert_snapshot!(refused.err);
    for args in [
        &["search", "oneway", "TLV", "LHR", "2030-02-30"][..],
        &["search", "oneway", "TLV", "LHR", "2030-02"],
        &[
            "search",
            "hotels",
            "Lisbon",
            "--checkin",
            "2030-02-07",
            "--nights",
            "0",
        ],
        &["search", "oneway", "TLV", "LHR"],
        &["search", "nowhere"],
    ] {
        assert_eq!(client.run(args).code, Some(2), "{args:?}");
    }
    assert_eq!(client.calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incomplete_search_ends_with_3() {
    let client = Client::start().await;
    client
        .upstream
        .reply(Reply::search_incomplete("blocked_page"));
    let found = client.run(&ONEWAY);
    assert_eq!(found.code, Some(3), "{found:?}");
    assert_eq!(found.out, "No fares.\n");
    for words in [
        "search degraded (blocked_page)",
        "says nothing about prices",
        "costs another request",
    ] {
        assert!(found.err.contains(words), "{found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_plan_ends_with_4() {
    let client = Client::start().await;
    client.upstream.reply(
        Reply::status(429)
            .header("retry-after", "60")
            .with_json(json!({"message": "You have exceeded the MONTHLY quota"})),
    );
    let refused = client.run(&ONEWAY);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    for words in ["exceeded the MONTHLY quota", "farescan quota", "60 s"] {
        assert!(refused.err.contains(words), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_pipe_ends_silently() {
    let client = with_fares().await;
    let mut child = client
        .command(&ONEWAY)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    let err = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), err.as_str()), (Some(141), ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_country_or_currency_that_does_not_exist_is_refused() {
    let client = Client::start().await;
    let hotel = ["hotel", "Arts", "--checkin", "2030-02-07", "--nights", "2"];
    let scan = [&["scan"][..], &hotel, &["--yes"]].concat();
    let search = [&["search"][..], &hotel].concat();
    let monitor = [&["monitors", "create"][..], &hotel, &["--yes"]].concat();
    for (command, option, value, says) in [
        (
            &scan,
            "--markets",
            "us,uk",
            "did you mean \"gb\" (United Kingdom)?",
        ),
        (&scan, "--currency", "ZZZ", "the code of a currency"),
        (
            &search,
            "--market",
            "Germny",
            "did you mean \"de\" (Germany)?",
        ),
        (&monitor, "--markets", "xx", "the code of a country"),
        (
            &monitor,
            "--currency",
            "EUX",
            "did you mean \"EUR\" (Euro)?",
        ),
    ] {
        let refused = client.run(&[&command[..], &[option, value]].concat());
        assert!(
            refused.code == Some(2) && refused.err.contains(says) && refused.err.contains(option),
            "{option} {value}: {refused:?}"
        );
    }
    let stored = "select count(*) from scans";
    assert_eq!((client.calls(), client.count(stored).await), (0, 0));
}

/// The marketplace's range is of the search, not of each of its fares.
#[tokio::test(flavor = "multi_thread")]
async fn the_usual_range_is_said_once_for_the_search() {
    let client = Client::start().await;
    client.upstream.answer(|call| {
        let rows: Vec<Value> = [184, 245, 289]
            .into_iter()
            .map(|price| {
                let mut row = fare(price, &call.body);
                row["price_range_in_relation_to_other_periods"] = json!("low");
                row["price_insights_low"] = json!(180);
                row["price_insights_high"] = json!(245);
                row
            })
            .collect();
        Reply::json(json!(rows)).header("x-search-status", "ok")
    });
    let found = client.run_at(140, &ONEWAY);
    assert_eq!(found.code, Some(0), "{found:?}");
    let said = found.out.lines().filter(|line| line.contains("low"));
    let said: Vec<_> = said.collect();
    assert_eq!(
        said,
        ["The marketplace calls the lowest price low; usual is 180 to 245 USD."],
        "{}",
        found.out
    );
    assert!(!found.out.contains("Usual range"), "{}", found.out);
}
