//! `monitors`, `alerts` and `deliveries`.

use serde_json::{Value, json};

use super::{bare_command, lines, stable};
use crate::alerts::{AlertTest, fares, monitor};
use crate::operation::process::{CommandResult, run};
use crate::support::app::KEY;
use crate::support::{TestService, text};

/// The program against a service.
pub fn cli(test: &TestService, args: &[&str]) -> CommandResult {
    cli_at(test, 80, args)
}

/// On a terminal of this width.
pub fn cli_at(test: &TestService, columns: u16, args: &[&str]) -> CommandResult {
    let home = tempfile::tempdir().unwrap();
    let mut command = bare_command(home.path(), args);
    run(command
        .env("COLUMNS", columns.to_string())
        .env("FARESCAN_URL", test.url())
        .env("FARESCAN_API_KEY", KEY))
}

#[track_caller]
pub fn out(test: &TestService, args: &[&str]) -> String {
    let done = cli(test, args);
    assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
    done.out
}

pub const CREATE: [&str; 17] = [
    "monitors",
    "create",
    "oneway",
    "TLV",
    "LHR",
    "--depart",
    "+7d..+13d",
    "--name",
    "a week ahead",
    "--cron",
    "0 6 * * *",
    "--timezone",
    "Europe/London",
    "--alert",
    "price_below=150,rearm_percent=5",
    "--alert",
    "new_low",
];

#[tokio::test(flavor = "multi_thread")]
async fn create_shows_the_forecast_and_asks() {
    let test = AlertTest::open().await;
    let refused = cli(&test, &CREATE);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for words in ["of 7 to 14 requests", "a month", "First runs:", "--yes"] {
        assert!(refused.err.contains(words), "{words}: {refused:?}");
    }
    assert_eq!(test.count("select count(*) from monitors").await, 0);
    let created = out(&test, &[&CREATE[..], &["--yes"]].concat());
    assert!(
        created.contains("a week ahead") && created.contains("0 6 * * * in Europe/London"),
        "{created}"
    );
    let stored: Value = serde_json::from_str(&out(&test, &["monitors", "show", "--json"])).unwrap();
    assert_eq!(
        (&stored["scan"]["sweep"], &stored["alerts"]),
        (
            &json!({"departure_date": {"from": "+7d", "to": "+13d"}}),
            &json!([{"type": "price_below", "amount": 150, "rearm_percent": 5}, {"type": "new_low", "days": 30}])
        )
    );
    let wrong = cli(&test, &[&CREATE[..], &["--alert", "cheap=1"]].concat());
    assert!(
        wrong.code == Some(2) && wrong.err.contains("price_below"),
        "{wrong:?}"
    );
    assert_eq!(test.upstream.count(), 0);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_is_paused_resumed_run_and_deleted() {
    let test = AlertTest::open().await;
    out(&test, &[&CREATE[..], &["--yes"]].concat());
    assert!(out(&test, &["monitors", "pause", "@last"]).contains("is paused; next –"));
    assert_eq!(
        lines(&out(&test, &["monitors", "--status", "paused", "--json"])).len(),
        1
    );
    for command in ["resume", "run", "delete"] {
        let refused = cli(&test, &["monitors", command, "@last"]);
        assert!(
            refused.code == Some(2) && refused.err.contains("Nothing was sent"),
            "{refused:?}"
        );
    }
    assert_eq!(test.upstream.count(), 0);
    assert!(out(&test, &["monitors", "resume", "@last", "--yes"]).contains("is active"));
    assert!(out(&test, &["monitors", "run", "@last", "--yes"]).starts_with("scn_"));
    test.all_ended().await;
    assert_eq!(test.upstream.count(), 7);
    let table = out(&test, &["monitors"]);
    assert!(
        table.contains("a week ahead") && table.contains("active"),
        "{table}"
    );
    cli(&test, &["monitors", "delete", "@last", "--yes"]);
    assert_eq!(out(&test, &["monitors", "--json"]), "");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_and_deliveries_have_their_evidence() {
    let test = AlertTest::open().await;
    test.respond_with(|asked| fares(&[120], asked));
    let id = test
        .monitor(&monitor(
            1,
            &json!([{"type": "price_below", "amount": 150}]),
        ))
        .await;
    test.run(&id).await;
    let list = out(&test, &["alerts"]);
    assert!(
        list.contains("Price below 150 USD") && list.contains("120 USD"),
        "{list}"
    );
    assert_eq!(
        lines(&out(&test, &["alerts", "--type", "new_low", "--json"])).len(),
        0
    );
    let shown = out(&test, &["alerts", "show", "@last"]);
    for words in [
        ": 120 USD\n",
        "Price below 150 USD · fired",
        "Compared with  150 USD",
        "Example Air, 7:15 – 10:40, 5 hr, non-stop",
        "Searches of the run     1 of 1 complete",
        "Book                    https://",
        " Ready to alert  ",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let judged = out(&test, &["alerts", "show", "@last", "--verdict"]);
    assert!(
        judged.matches("Past prices").count() == 1,
        "the verdict is shown once: {judged}"
    );
    assert!(
        out(&test, &["monitors", "show", &id]).contains("alerted"),
        "its rule"
    );
    test.patch(&id, &json!({"notify": {"digest_at": "08:00"}}))
        .await;
    assert!(
        out(&test, &["monitors", "show", &id]).contains("Alerts are sent once a day, at 08:00")
    );
    let deliveries = out(&test, &["deliveries"]);
    assert!(deliveries.contains("pending"), "{deliveries}");
    let delivery = out(&test, &["deliveries", "show"]);
    assert!(delivery.contains("\"fired\": 1"), "{}", stable(&delivery));
    let refused = cli(&test, &["deliveries", "resend", "@last"]);
    assert!(
        refused.code == Some(2) && refused.err.contains("may get it twice"),
        "{refused:?}"
    );
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_of_a_monitor_that_has_changed_has_its_trip() {
    let test = AlertTest::open().await;
    test.respond_with(|asked| fares(&[120], asked));
    let rules = json!([{"type": "price_below", "amount": 150, "scope": "cell"}]);
    let id = test.monitor(&monitor(2, &rules)).await;
    test.run(&id).await;
    let rows = |list: &str| list.matches("TLV → LHR, ").count();
    let before = out(&test, &["alerts"]);
    assert_eq!(rows(&before), 2, "{before}");
    // Its monitor asks for another trip since. The slots of a test are tomorrow's.
    let edit = json!({"scan": {
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "CDG"},
        "sweep": {"departure_date": {"from": "+30d", "to": "+31d"}}
    }});
    test.patch(&id, &edit).await;
    execute!(
        test.pool(),
        "update monitors set updated_at = next_slot + interval '1 year'"
    );
    assert_eq!(out(&test, &["alerts"]), before);
    let shown = out(&test, &["alerts", "show"]);
    assert_eq!(rows(&shown), 1, "{shown}");
    // Without its search it still has what was swept.
    let scan = text(&test.alerts(&id).await[0]["scan_id"]);
    let path = format!("/v1/scans/{scan}");
    test.ask("DELETE", &path, None).await.expect(204);
    let without = out(&test, &["alerts"]);
    assert!(
        rows(&without) == 0 && without.contains("120 USD"),
        "{without}"
    );
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_amount_makes_the_watch_and_its_rule() {
    let test = AlertTest::open().await;
    let create = |more: &[&str]| {
        let route = ["monitors", "create", "oneway", "TLV", "LHR", "+7d..+36d"];
        cli(&test, &[&route[..], more, &["--yes"]].concat())
    };
    let watch = ["--watch", "below", "--max-requests", "18"];
    let below_150 = json!({"watch": "below", "below": 150});
    let rule = json!([{"type": "price_below", "amount": 150}]);
    let own_rule = json!([{"type": "price_below", "amount": 150, "scope": "cell"}]);
    for (more, alerts) in [
        (&["--below", "150"][..], &rule),
        (&["--alert", "price_below=150"], &rule),
        (
            &["--below", "150", "--alert", "price_below=150,scope=cell"],
            &own_rule,
        ),
    ] {
        let created = create(&[&watch[..], more].concat());
        assert_eq!(created.code, Some(0), "{more:?}: {created:?}");
        let stored: Value =
            serde_json::from_str(&out(&test, &["monitors", "show", "--json"])).unwrap();
        assert_eq!(
            (&stored["scan"]["strategy"], &stored["alerts"]),
            (&below_150, alerts),
            "{more:?}"
        );
        assert!(!created.err.contains("no rule"), "{created:?}");
    }
    // Without a rule it spends and reports nothing, which is said, also with --yes.
    let silent = create(&["--watch", "cheapest", "--max-requests", "18"]);
    assert_eq!(silent.code, Some(0), "{silent:?}");
    for words in ["it has no rule", "never alerts", "--alert new_low"] {
        assert!(silent.err.contains(words), "{words}: {silent:?}");
    }
    test.close().await;
}
