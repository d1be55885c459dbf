//! `monitors backtest`, and the watch of `monitors create`, `edit` and `show`.

use farescan::history::daily_pack::pack_past_days;
use jiff::ToSpan as _;
use serde_json::{Value, json};

use super::bare_command;
use super::monitors::{cli, cli_at, out};
use crate::alerts::AlertTest;
use crate::history::fixture::HistoryFixture;
use crate::monitors::backtest::{seen, today, with_partitions};
use crate::operation::process::run;
use crate::support::app::{KEY, ring, tenant};

const ROUTE: [&str; 5] = ["monitors", "backtest", "oneway", "TLV", "LHR"];
const TIMES: [&str; 4] = ["--cron", "0 13 * * *", "--timezone", "UTC"];

/// A service with a week of prices of a departure.
async fn with_prices() -> (HistoryFixture, String) {
    let fixture = HistoryFixture::open().await;
    with_partitions(&fixture, 60).await;
    let date = today(&fixture).saturating_add(60.days());
    let prices = [(9, 210), (8, 199), (7, 205), (5, 150), (3, 120)];
    let seen = prices.map(|(ago, price)| seen(&fixture, date, ago, price));
    fixture.insert(&seen).await;
    pack_past_days(fixture.pool(), fixture.now).await.unwrap();
    (fixture, date.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backtest_says_what_would_have_been_reported() {
    let (fixture, date) = with_prices().await;
    let calls = fixture.upstream.count();
    let rules = ["--alert", "price_below=200", "--alert", "new_low,days=30"];
    let of_date = [
        &ROUTE[..],
        &[date.as_str()],
        &TIMES,
        &rules,
        &["--days", "30"],
    ]
    .concat();
    let sold_out = [&of_date[..], &["--alert", "sold_out"]].concat();
    let text = out(&fixture, &sold_out);
    let (first, lowest) = (
        today(&fixture).saturating_sub(8.days()),
        today(&fixture).saturating_sub(9.days()),
    );
    for part in [
        "Days with prices      5 of 30, 5 of 30 searches have one",
        "Runs                  30, ",
        "They would have cost  30 to 60 requests, this replay: none",
        // Below 200 on the eighth day and again after 205; lower than all on three days.
        "Alerts                5",
        "Sold out is not replayed: only days with a price",
        "By plan: ",
        &format!("{first} 13:00  Price below 200 USD "),
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let wide = cli_at(&fixture, 140, &sold_out).out;
    let compared = format!("199 USD  210 USD of {}", lowest.strftime("%-d %b %Y"));
    assert!(wide.contains(&compared), "{compared}\n{wide}");
    let answer: Value =
        serde_json::from_str(&out(&fixture, &[&of_date[..], &["--json"]].concat())).unwrap();
    assert_eq!(
        (
            &answer["fired"],
            &answer["billed_requests"],
            &answer["slots"]
        ),
        (&json!(5), &json!(0), &json!(30))
    );
    // A stored monitor has the same outcome.
    let body = json!({
        "name": "stored", "schedule": {"cron": "0 13 * * *", "timezone": "UTC"},
        "scan": {"endpoint": "flights/oneway",
                 "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": date}},
        "alerts": [{"type": "price_below", "amount": 200}, {"type": "new_low", "days": 30}]
    });
    fixture.create_monitor(&body).await;
    let stored = [
        "monitors",
        "backtest",
        "--monitor",
        "@last",
        "--days",
        "30",
        "--json",
    ];
    let stored: Value = serde_json::from_str(&out(&fixture, &stored)).unwrap();
    assert_eq!(stored["alerts"], answer["alerts"]);
    let limited = [&of_date[..], &["--max-requests-per-month", "3"]].concat();
    let limited = out(&fixture, &limited);
    for part in [
        " without a run from ",
        ": the monitor has spent 3 of 3 requests",
    ] {
        assert!(limited.contains(part), "{part}\n{limited}");
    }
    assert_eq!(fixture.upstream.count(), calls, "no call");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backtest_says_why_there_is_nothing() {
    let (fixture, date) = with_prices().await;
    let other = "another-key-0123456789";
    tenant(fixture.pool(), &ring(), other).await;
    let backtest = |key: &str, dates: &str, more: &[&str]| {
        let args = [&ROUTE[..], &[dates], more].concat();
        let home = tempfile::tempdir().unwrap();
        let mut command = bare_command(home.path(), &args);
        run(command
            .env("FARESCAN_URL", fixture.url())
            .env("FARESCAN_API_KEY", key))
    };
    let next = today(&fixture).saturating_add(10.days());
    let yearly = format!("0 6 {} {} *", next.day(), next.month());
    for (key, dates, more, says) in [
        (
            other,
            date.as_str(),
            &["--alert", "new_low"][..],
            "Your history has no price of these searches",
        ),
        (
            KEY,
            date.as_str(),
            &["--alert", "price_below=9"],
            "No rule would have fired.",
        ),
        (KEY, date.as_str(), &[], "The monitor has no rule"),
        (
            KEY,
            "+30d",
            &["--alert", "new_low", "--days", "30", "--cron", &yearly],
            "The schedule has no run in this time",
        ),
        (
            KEY,
            date.as_str(),
            &[
                "--watch",
                "cheapest",
                "--max-requests",
                "2",
                "--alert",
                "price_below=200",
            ],
            "The watch searches fewer",
        ),
    ] {
        let done = backtest(key, dates, more);
        assert!(
            done.code == Some(0) && done.out.contains(says),
            "{says}: {done:?}"
        );
    }
    let refused = backtest(KEY, &date, &["--days", "367"]);
    assert!(
        refused.code == Some(2) && refused.err.contains("days: found 367"),
        "{refused:?}"
    );
}

const WATCH: [&str; 13] = [
    "monitors",
    "create",
    "oneway",
    "TLV",
    "LHR",
    "--depart",
    "+30d..+49d",
    "--cron",
    "0 6 * * *",
    "--timezone",
    "UTC",
    "--watch",
    "below",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_watches_as_it_was_told() {
    let test = AlertTest::open().await;
    for (more, says) in [
        (&[][..], "--max-requests"),
        (&["--max-requests", "5"], "scan.strategy.below"),
        (
            &["--max-requests", "1", "--below", "9"],
            "scan.max_requests",
        ),
        (
            &["--max-requests", "5", "--below", "cheap"],
            "an amount such as 150",
        ),
    ] {
        let refused = cli(&test, &[&WATCH[..], more, &["--yes"]].concat());
        assert!(
            refused.code == Some(2) && refused.err.contains(says),
            "{says}: {refused:?}"
        );
    }
    let good = ["--below", "150.5", "--max-requests", "5", "--yes"];
    let created = out(&test, &[&WATCH[..], &good].concat());
    assert!(
        created.contains("watches for a price below 150.50 with at most 5 requests a run"),
        "{created}"
    );
    let stored =
        || -> Value { serde_json::from_str(&out(&test, &["monitors", "show", "--json"])).unwrap() };
    let scan = async || {
        let scan = stored()["scan"].take();
        (scan["strategy"].clone(), scan["max_requests"].clone())
    };
    assert_eq!(
        scan().await,
        (json!({"watch": "below", "below": 150.5}), json!(5))
    );
    for (change, then) in [
        (
            &["--below", "120", "--max-requests", "4"][..],
            (json!({"watch": "below", "below": 120}), json!(4)),
        ),
        (
            &["--watch", "below"],
            (json!({"watch": "below", "below": 120}), json!(4)),
        ),
        (
            &["--watch", "none", "--max-requests", "none"],
            (Value::Null, Value::Null),
        ),
        (
            &["--watch", "cheapest", "--max-requests", "5"],
            (json!({"watch": "cheapest"}), json!(5)),
        ),
    ] {
        out(
            &test,
            &[&["monitors", "edit", "@last", "--yes"], change].concat(),
        );
        assert_eq!(scan().await, then, "{change:?}");
        let rule = json!([{"type": "price_below", "amount": 120}]);
        assert_eq!(
            stored()["alerts"],
            rule,
            "{change:?}: the amount of the watch is its rule's"
        );
    }
    let refused = cli(
        &test,
        &[
            "monitors", "edit", "@last", "--watch", "none", "--below", "9",
        ],
    );
    assert!(
        refused.code == Some(2) && refused.err.contains("--below needs --watch below"),
        "{refused:?}"
    );
    let shown = out(&test, &["monitors", "show"]);
    assert!(!shown.contains("last run"), "{shown}");
    let run = out(&test, &["monitors", "run", "@last", "--yes"]);
    test.wait_for_scan(run.trim(), "the watch has ended", |scan| {
        scan["finished_at"].is_string() && scan["strategy"]["ended_by"].is_string()
    })
    .await;
    let shown = out(&test, &["monitors", "show"]);
    for part in [
        "watches the cheapest with at most 5 requests a run",
        "last run: 5 searches instead of 20. How often such a run misses something was not counted.",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    test.close().await;
}
