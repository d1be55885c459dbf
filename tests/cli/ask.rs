//! `ask`: words as a scan or a watch, on the terminal.

use serde_json::{Value, json};

use super::{Client, price_of, script_fares};

const WORDS: &str = "tel aviv LHR 2030-02-01 to 2030-02-08 below 150";

async fn with_fares() -> Client {
    let client = Client::start().await;
    script_fares(&client.service);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn without_consent_words_are_read_and_nothing_is_sent() {
    let client = with_fares().await;
    let refused = client.run(&["ask", WORDS]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for expected in [
        "Tel Aviv TLV, from \"tel aviv\"",
        "1 Feb to 8 Feb 2030",
        "1 adult, not said",
        "add --yes",
    ] {
        assert!(
            refused.err.contains(expected),
            "{expected}: {}",
            refused.err
        );
    }
    assert_eq!(
        (
            client.calls(),
            client.count("select count(*) from scans").await
        ),
        (0, 0)
    );
}

/// The cheapest of what earlier searches of the same product found, before the cost, and for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_already_stands_before_the_cost() {
    let client = with_fares().await;
    let worker = client.start_worker(4);
    let err = |words: &str| client.run(&["ask", words]).err;
    let cities = WORDS.replace("LHR", "LHR or CDG");
    assert!(!err(&cities).contains("Cheapest known"));
    for more in [&["LHR,CDG"][..], &["LHR", "--max-stops", "0"]] {
        let scan = [&["scan", "oneway", "TLV"], more].concat();
        let dates = ["--depart", "2030-02-01..2030-02-12", "--yes"];
        client.run(&[&scan[..], &dates].concat());
    }
    let calls = client.calls();
    let mut known = Vec::new();
    for to in ["LHR", "CDG"] {
        for day in [1, 2, 3, 4, 7, 8] {
            let date = format!("2030-02-{day:02}");
            let call = json!({"to_airport": to, "departure_date": date});
            known.push((price_of(&call), format!("TLV → {to}, {day} Feb 2030")));
        }
    }
    let (price, trip) = known.iter().min_by_key(|(price, _)| price).unwrap();
    let expected = format!("Cheapest known: {price} USD, {trip}, found ");
    let shown = err(&cities);
    assert!(shown.contains(&expected), "{expected}: {shown}");
    let at = |words: &str| {
        shown
            .find(words)
            .unwrap_or_else(|| panic!("{words}: {shown}"))
    };
    assert!(at("Cheapest known") < at("Searches"), "{shown}");
    assert!(err(&format!("{WORDS} non-stop")).contains("Cheapest known"));
    // Of other products, stays and currencies nothing is known.
    for more in ["for 2 adults", "business", "7 nights", "in EUR"] {
        let shown = err(&format!("{WORDS} {more}"));
        assert!(shown.contains("add --yes"), "{more}: {shown}");
        assert!(!shown.contains("Cheapest known"), "{more}: {shown}");
    }
    assert_eq!(client.calls(), calls, "it costs nothing");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bare_words_are_the_same_command() {
    let client = with_fares().await;
    let _worker = client.start_worker(4);
    let done = client.run(&[
        "tel",
        "aviv",
        "LHR",
        "2030-02-01",
        "to",
        "2030-02-04",
        "--all",
        "--yes",
    ]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("February 2030"), "{done:?}");
    assert_eq!(client.calls(), 4, "each date once");
    let typo = client.run(&["scna", "oneway", "TLV", "LHR", "2030-02"]);
    assert!(typo.err.contains("similar subcommand"), "{typo:?}");
    let unknown = client.run(&["monitor", "list"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.err.contains("unrecognized subcommand"),
        "{unknown:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_dates_only_what_answers_the_question_is_looked_for() {
    let client = with_fares().await;
    let cheapest = WORDS.trim_end_matches(" below 150");
    for (words, find) in [(cheapest, "cheapest"), (WORDS, "below")] {
        let id = client.out(&["ask", words, "--yes", "--detach", "--allow-overage"]);
        let scan = client.service.scan(id.trim()).await;
        assert_eq!(scan["strategy"]["find"], find, "{scan}");
        assert_eq!(scan["items"]["total"], 8, "{scan}");
        client.out(&["cancel", id.trim(), "--yes"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_has_its_alert_and_its_limit() {
    let client = with_fares().await;
    let monitor: Value =
        serde_json::from_str(&client.out(&["ask", WORDS, "--watch", "--yes", "--json"])).unwrap();
    assert_eq!(monitor["alerts"][0]["amount"], 150, "{monitor}");
    assert_eq!(
        monitor["scan"]["strategy"],
        json!({"watch": "below", "below": 150})
    );
    assert_eq!(monitor["requests"]["max_per_month"], 248);
    assert_eq!(client.calls(), 0);
    let without = client.run(&["ask", "TLV LHR 2030-02", "--watch", "--yes"]);
    assert_eq!(without.code, Some(2));
    assert!(without.err.contains("below 150"), "{without:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_command_watches_and_finds_the_cheapest() {
    let client = with_fares().await;
    let both = ["ask", WORDS, "--find", "--watch", "--yes", "--json"];
    let worker = client.start_worker(4);
    let done = client.run(&both);
    assert_eq!(client.count("select count(*) from monitors").await, 1);
    let scans = client.service.page("/v1/scans").await;
    assert_eq!(scans.len(), 1, "{done:?}");
    // The amount is of the watch.
    assert_eq!(scans[0]["strategy"]["find"], "cheapest", "{scans:?}");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn markets_are_watched_on_dates_that_stay_as_far_ahead() {
    let client = with_fares().await;
    let hotel = "hotel \"Arts\" next month, 3 nights us de";
    let refused = client.run(&["ask", WORDS, "--watch", "--rolling", "--yes"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("--rolling needs a hotel"),
        "{refused:?}"
    );
    assert_eq!(client.count("select count(*) from monitors").await, 0);
    let watch = ["ask", hotel, "--watch", "--rolling", "--yes", "--json"];
    let monitor: Value = serde_json::from_str(&client.out(&watch)).unwrap();
    let checkin = &monitor["scan"]["sweep"]["checkin_date"]["from"];
    assert!(checkin.as_str().unwrap().starts_with('+'), "{monitor}");
    assert_eq!(monitor["alerts"], json!([{"type": "every_run"}]));
    assert_eq!(client.calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_clear_is_refused_with_what_it_could_mean() {
    let client = with_fares().await;
    for (words, expected) in [
        (
            "tel aviv portland march",
            "Portland, Oregon (PDX): `farescan ask 'tel aviv PDX march'`",
        ),
        ("tel aviv lodnon march", "London"),
        ("tel aviv anywhere march", "that you name"),
        ("TLV LHR", "farescan ask 'TLV LHR, next month'"),
        (
            "tel avvi LHR marhc",
            "All of it: `farescan ask 'TLV LHR march'`",
        ),
        ("TLV QQQ march", "No airport or city has this code"),
    ] {
        let refused = client.run(&["ask", words, "--yes"]);
        assert_eq!(refused.code, Some(2), "{words}: {refused:?}");
        let flat = refused.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat.contains(expected) && flat.contains("Nothing was sent"),
            "{words}: {flat}"
        );
    }
    let refused = client.run(&["ask", "tel aviv portland march", "--watch", "--yes"]);
    let command = "`farescan ask 'tel aviv PDX march' --watch`";
    assert!(refused.err.contains(command), "{refused:?}");
    assert_eq!(
        (
            client.calls(),
            client.count("select count(*) from scans").await
        ),
        (0, 0)
    );
}
