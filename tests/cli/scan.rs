//! `scan`: its cost, the question, its progress, and its results as tables.

use serde_json::json;

use super::terminal::Terminal;
use super::{Client, lines, price_of, script_fares, stable};
use crate::support::reply::Reply;
use crate::support::upstream::pair;

const FEBRUARY: [&str; 6] = [
    "scan",
    "oneway",
    "TLV",
    "LHR",
    "--depart",
    "2030-02-01..2030-02-08",
];

async fn with_fares() -> Client {
    let client = Client::start().await;
    script_fares(&client.service);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_and_yes_nothing_is_sent() {
    let client = with_fares().await;
    let refused = client.run(&FEBRUARY);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    // The note about dates that are not on sale depends on the day of the test.
    let lines = refused
        .err
        .lines()
        .filter(|line| !line.starts_with("Note:"));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
    assert_eq!(
        (
            client.calls(),
            client.count("select count(*) from scans").await
        ),
        (0, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_of_dates_is_a_calendar() {
    let client = with_fares().await;
    let _worker = client.start_worker(4);
    let two = [
        "scan",
        "oneway",
        "TLV",
        "LHR,CDG",
        "--depart",
        "2030-02,2030-03-01..2030-03-04",
        "--weekdays",
        "fri-sun",
        "--yes",
    ];
    let dates = client.run(&[&FEBRUARY[..], &["--yes"]].concat());
    assert_eq!(dates.code, Some(3), "the 5th is degraded: {dates:?}");
    insta::assert_snapshot!("calendar", stable(&dates.out));
    insta::assert_snapshot!("calendar_err", stable(&dates.err));
    let calls = client.calls();
    for columns in [60, 80, 140] {
        let found = if columns == 60 {
            client.run_at(columns, &two)
        } else {
            client.run_at(columns, &["watch", "@last"])
        };
        assert_eq!(found.code, Some(0), "{found:?}");
        insta::assert_snapshot!(
            format!("two_airports_at_{columns}_columns"),
            stable(&found.out)
        );
    }
    assert_eq!(
        client.calls() - calls,
        2 * 15,
        "to watch a scan costs nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_of_dates_and_nights_is_a_matrix() {
    let client = Client::start().await;
    client.upstream.answer(|call| {
        let degraded = call.body["return_date"] == "2030-02-10";
        if degraded {
            Reply::search_incomplete("blocked_page")
        } else {
            Reply::json(json!([pair(price_of(&call.body), &call.body)]))
                .header("x-search-status", "ok")
        }
    });
    let _worker = client.start_worker(4);
    let args = [
        "scan",
        "roundtrip",
        "TLV",
        "LHR",
        "--depart",
        "2030-02-01..2030-02-04",
        "--nights",
        "7,10..19",
        "--yes",
    ];
    let found = client.run(&args);
    assert_eq!(found.code, Some(3), "{found:?}");
    insta::assert_snapshot!("matrix_at_80_columns", stable(&found.out));
    insta::assert_snapshot!(
        "matrix_at_140_columns",
        stable(&client.run_at(140, &["watch", "@last"]).out)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_of_markets_compares_them() {
    let client = Client::start().await;
    client.upstream.answer(|call| {
        let price = match call.body["proxy_country"].as_str() {
            Some("us") => 300,
            Some("de") => 345,
            _ => 297,
        };
        Reply::json(json!({
            "name": "Hotel Arts", "available": true, "price": price, "room_type": "Double", "nights": 3,
            "link": "https://hotels.example/one"
        }))
    });
    let _worker = client.start_worker(4);
    let args = [
        "scan",
        "hotel",
        "Hotel Arts",
        "--checkin",
        "2030-02-01",
        "--nights",
        "3",
        "--markets",
        "us,de,gb",
        "--samples",
        "2",
        "--yes",
    ];
    let found = client.run(&args);
    assert_eq!(found.code, Some(0), "{found:?}");
    insta::assert_snapshot!(stable(&found.out));
    assert_eq!(client.calls(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn items_are_lines_of_json_or_csv() {
    let client = with_fares().await;
    let _worker = client.start_worker(4);
    let json = client.run(&[&FEBRUARY[..], &["--yes", "--json"]].concat());
    let items = lines(&json.out);
    assert_eq!((json.code, items.len()), (Some(3), 8), "{json:?}");
    assert_eq!(items[4]["reason"], "blocked_page");
    let csv = client.run(&["watch", "@last", "--csv"]);
    let rows: Vec<_> = csv.out.lines().collect();
    assert_eq!(rows.len(), 9, "{csv:?}");
    assert!(
        rows[0].starts_with("position,search.from_airport"),
        "{csv:?}"
    );
    assert!(rows[5].contains("blocked_page"), "{csv:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_scan_prints_its_id_and_is_watched_later() {
    let client = with_fares().await;
    let id = client.out(&[&FEBRUARY[..], &["--yes", "--detach"]].concat());
    assert_eq!((client.calls(), id.trim().len()), (0, 36));
    let _worker = client.start_worker(4);
    let watched = client.run(&["watch", id.trim()]);
    assert!(
        watched.code == Some(3) && watched.out.contains("Cheapest:"),
        "{watched:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_submitted_as_it_is() {
    let client = with_fares().await;
    let file = client.home.path().join("scan.json");
    std::fs::write(
        &file,
        json!({
            "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": ["2030-02-01"]}, "label": "of the file"
        })
        .to_string(),
    )
    .unwrap();
    client.out(&[
        "scan",
        file.to_str().unwrap(),
        "--yes",
        "--detach",
        "--max-requests",
        "9",
    ]);
    let scan = &lines(&client.out(&["scans", "--json"]))[0];
    assert_eq!(
        (&scan["label"], &scan["requests"]["max"]),
        (&json!("of the file"), &json!(9))
    );
    let missing = client.run(&["scan", "nothing.json", "--yes"]);
    assert!(
        missing.code == Some(2) && missing.err.contains("nothing.json"),
        "{missing:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_is_too_small_ends_with_4() {
    let client = with_fares().await;
    let refused = client.run(&[&FEBRUARY[..], &["--yes", "--max-requests", "3"]].concat());
    assert_eq!((refused.code, client.calls()), (Some(4), 0), "{refused:?}");
    assert!(
        refused.err.contains("max_requests: found 3; expected"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_with_too_little_left_ends_with_4() {
    let client = Client::start().await;
    client.upstream.reply(
        Reply::json(json!([]))
            .header("x-search-status", "empty")
            .header("x-ratelimit-requests-limit", "10")
            .header("x-ratelimit-requests-remaining", "5")
            .header("x-ratelimit-requests-reset", "86400"),
    );
    let worker = client.start_worker(1);
    client.out(&[
        "scan",
        "oneway",
        "TLV",
        "LHR",
        "--depart",
        "2030-03-01",
        "--yes",
    ]);
    worker.stop().await;
    let before = client.calls();
    let scan = [&FEBRUARY[..], &["--yes"]].concat();
    let refused = client.run(&scan);
    assert_eq!(
        (refused.code, client.calls()),
        (Some(4), before),
        "{refused:?}"
    );
    for words in [
        "needs 8 to 16 requests",
        "has 5 left",
        "--allow-overage",
        "nothing was sent",
    ] {
        assert!(refused.err.contains(words), "{refused:?}");
    }
    let allowed = client.run(&[&scan[..], &["--allow-overage", "--detach"]].concat());
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_yes_at_the_question_submits() {
    let client = with_fares().await;
    for (typed, code, scans) in [
        ("\n", Some(4), 0),
        ("n\n", Some(4), 0),
        ("\u{3}", Some(130), 0),
        ("y\n", Some(0), 1),
    ] {
        let mut terminal = Terminal::start(
            &mut client.command(&[&FEBRUARY[..], &["--detach"]].concat()),
            80,
            40,
        );
        terminal
            .expect("Submit 8 searches for 8 to 16 requests? [y/N]")
            .await;
        terminal.type_text(typed);
        assert_eq!(
            terminal.end().await,
            code,
            "{typed:?}: {}",
            terminal.shown()
        );
        assert_eq!(
            client.count("select count(*) from scans").await,
            scans,
            "{typed:?}"
        );
    }
    assert_eq!(client.calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_leaves_the_scan_and_a_second_one_asks() {
    let client = Client::start().await;
    let gate = client.upstream.answer_fares_after_gate();
    let worker = client.start_worker(2);
    let mut terminal = Terminal::start(
        &mut client.command(&[&FEBRUARY[..], &["--yes"]].concat()),
        80,
        40,
    );
    terminal.expect("0/8 searches").await;
    client.upstream.wait_for_in_flight(1).await;
    terminal.interrupt();
    terminal.expect("goes on without this command").await;
    terminal.expect("Ctrl-C again").await;
    assert_eq!(terminal.end().await, Some(130), "{}", terminal.shown());
    assert_eq!(
        client.out(&["scans", "--status", "cancelled", "--json"]),
        ""
    );

    let mut terminal = Terminal::start(&mut client.command(&["watch", "@last"]), 80, 40);
    terminal.expect("0/8 searches").await;
    terminal.interrupt();
    terminal.expect("Ctrl-C again").await;
    terminal.interrupt();
    terminal.expect("Cancel the scan?").await;
    terminal.type_text("y\n");
    terminal.expect("is cancelled").await;
    assert_eq!(terminal.end().await, Some(130));
    gate.open();
    worker.stop().await;
    assert!(client.calls() < 8, "the others were never sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_shows_the_calendar_filling_in() {
    let client = Client::start().await;
    let gate = client.upstream.answer_fares_after_gate();
    client
        .upstream
        .on(farescan::contract::Endpoint::FlightsOneway)
        .when(|call| call.body["departure_date"] == "2030-02-01")
        .answer(|call| {
            Reply::json(json!([crate::support::upstream::fare(77, &call.body)]))
                .header("x-search-status", "ok")
        });
    let _worker = client.start_worker(2);
    let mut terminal = Terminal::start(
        &mut client.command(&[&FEBRUARY[..], &["--yes"]].concat()),
        80,
        40,
    );
    // One date is known while the others are not. The calendar may be read before the count.
    terminal.expect("*77").await;
    terminal.expect("1/8 searches").await;
    assert!(terminal.shown().contains('·'), "{}", terminal.shown());
    gate.open();
    assert_eq!(terminal.end().await, Some(0), "{}", terminal.shown());
}

#[tokio::test(flavor = "multi_thread")]
async fn colour_needs_a_terminal_that_shows_it() {
    let client = with_fares().await;
    let worker = client.start_worker(4);
    client.run(&[&FEBRUARY[..], &["--yes"]].concat());
    worker.stop().await;
    for (variable, value, has_colour) in [
        ("TERM", "xterm", true),
        ("TERM", "dumb", false),
        ("NO_COLOR", "1", false),
        ("CLICOLOR", "0", false),
    ] {
        let mut command = client.command(&["scans", "show", "@last"]);
        command.env("TERM", "xterm").env(variable, value);
        let mut terminal = Terminal::start(&mut command, 80, 40);
        assert_eq!(terminal.end().await, Some(0), "{}", terminal.shown());
        terminal.expect("did not complete").await;
        assert_eq!(
            terminal.shown().contains("\u{1b}["),
            has_colour,
            "{variable}={value}: {}",
            terminal.shown()
        );
    }
    let mut dumb = client.command(&["watch", "@last"]);
    let mut terminal = Terminal::start(dumb.env("TERM", "dumb"), 80, 40);
    assert_eq!(terminal.end().await, Some(3));
    terminal.expect("farescan retry").await;
    insta::assert_snapshot!("dumb_terminal", stable(&terminal.shown().replace('\r', "")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_search_for_one_below_a_price_says_what_it_found() {
    let client = with_fares().await;
    let _worker = client.start_worker(4);
    let four = [&FEBRUARY[..5], &["2030-02-01..2030-02-04"]].concat();
    let all = client.run(&[&four[..], &["--yes"]].concat());
    assert_eq!(all.code, Some(0), "{all:?}");
    let find = |below: &'static str| {
        let question = ["--find", "below", "--below", below, "--yes"];
        client.run(&[&four[..], &question].concat())
    };
    // All are searched at once, since nothing is known of them: the decision follows the end.
    let two = [
        &FEBRUARY[..3],
        &["FCO"],
        &FEBRUARY[4..5],
        &["2030-02-01..2030-02-02"],
    ]
    .concat();
    let all_searched =
        client.run(&[&two[..], &["--find", "below", "--below", "1.5", "--yes"]].concat());
    assert_eq!(all_searched.code, Some(0), "{all_searched:?}");
    assert!(
        all_searched.out.contains("None below 1.5 was found."),
        "{all_searched:?}"
    );
    let (found, none) = (find("100000"), find("1.5"));
    for (asked, sentence, searched) in [
        (
            &found,
            "One below 100000 was found. 2 searches instead of 4.",
            2,
        ),
        (
            &none,
            "2.1 % chance that there is one: 25 of 1,188 such questions missed one.",
            2,
        ),
    ] {
        assert_eq!(asked.code, Some(0), "{asked:?}");
        assert!(asked.out.contains(sentence), "{asked:?}");
        assert!(
            asked.out.contains("Lowest that was searched: "),
            "{asked:?}"
        );
        assert!(
            asked.err.contains(&format!("{searched} requests spent")),
            "{asked:?}"
        );
    }
    for refused in [
        &["--find", "below"][..],
        &["--below", "9"],
        &["--find", "below", "--below", "x"],
    ] {
        let refused = client.run(&[&four[..], refused, &["--yes"]].concat());
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains("below"), "{refused:?}");
    }
    assert_eq!(client.calls(), 4 + 2 + 2 + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_of_one_search_that_was_refused_says_what_it_is() {
    let client = Client::start().await;
    client.upstream.reply(
        Reply::status(401)
            .header("x-rapidapi-proxy-response", "true")
            .with_json(json!({"message": "Invalid API key."})),
    );
    let _worker = client.start_worker(1);
    let one = ["scan", "oneway", "TLV", "LHR", "2030-03-01", "--yes"];
    let refused = client.run(&one);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(
        refused.out.contains(" TLV → LHR, 1 Mar 2030 "),
        "{refused:?}"
    );
    assert!(
        refused
            .err
            .contains("is paused (key rejected): no answer yet; 1 request spent"),
        "{refused:?}"
    );
}

/// A line that is too long is broken between words, and not within a command that may be copied.
#[tokio::test(flavor = "multi_thread")]
async fn lines_break_between_words_at_each_width() {
    let client = with_fares().await;
    let month = ["scan", "oneway", "TLV", "LHR", "--depart", "2030-02"];
    let mut texts = Vec::new();
    for columns in [140, 80, 60] {
        let mut terminal = Terminal::start(&mut client.command(&month), columns, 40);
        terminal.expect("[y/N]").await;
        terminal.type_text("y\n");
        terminal.expect("0/28 searches").await;
        terminal.interrupt();
        terminal.expect("Ctrl-C again").await;
        assert_eq!(terminal.end().await, Some(130), "{}", terminal.shown());
        let shown = terminal.shown();
        let (preview, _) = shown.split_once("[y/N]").unwrap();
        let (_, end) = shown.split_once("goes on without").unwrap();
        for line in preview.lines().chain(end.lines().skip(1)) {
            let width = line.chars().count();
            assert!(width <= columns.into(), "{columns}: {line:?}\n{shown}");
            assert_eq!(line.matches('`').count() % 2, 0, "{columns}: {line:?}");
        }
        let words: Vec<_> = preview.split_whitespace().collect();
        texts.push(words.join(" "));
    }
    assert_eq!(texts[0], texts[1], "the words are the same at 80 columns");
    assert_eq!(texts[0], texts[2], "the words are the same at 60 columns");
}
