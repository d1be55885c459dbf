//! What stops spending: own limits, `pause --all`, a monitor's ceiling.

use serde_json::{Value, json};

use super::monitors::{CREATE, cli, out};
use super::relay::Relay;
use super::{Client, lines};
use crate::alerts::AlertTest;
use crate::operation::process::run;

#[tokio::test(flavor = "multi_thread")]
async fn settings_stay_unless_they_are_named() {
    let client = Client::start().await;
    let shown = client.out(&["settings"]);
    assert!(shown.contains("search everything"), "{shown}");
    let set = client.out(&["settings", "set", "--max-age", "6h"]);
    assert!(
        set.contains("at most 6 h old") && set.contains("only with `--max-age`"),
        "{set}"
    );
    let set = ["settings", "set", "--record-searches", "true", "--json"];
    let both = json!({"record_searches": true, "max_age_seconds": 21_600});
    let set: Value = serde_json::from_str(&client.out(&set)).unwrap();
    assert_eq!(set, both);
    client.out(&["settings", "set", "--max-age", "0s"]);
    let shown: Value = serde_json::from_str(&client.out(&["settings", "--json"])).unwrap();
    assert_eq!(
        shown,
        json!({"record_searches": true, "max_age_seconds": null})
    );
    let nothing = client.run(&["settings", "set"]);
    assert!(
        nothing.code == Some(2) && nothing.err.contains("no setting is named"),
        "{nothing:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn own_limits_stay_unless_they_are_named() {
    let client = Client::start().await;
    let limits =
        |text: &str| -> Value { serde_json::from_str::<Value>(text).unwrap()["bounds"].clone() };
    let set = client.out(&[
        "quota",
        "set",
        "flights",
        "--keep-in-reserve",
        "200",
        "--requests-per-minute",
        "60",
        "--json",
    ]);
    assert_eq!(
        limits(&set),
        json!({"plan": null, "requests_per_minute": 60, "max_in_flight": null, "keep_in_reserve": 200})
    );
    let set = client.out(&[
        "quota",
        "set",
        "flights",
        "--max-in-flight",
        "4",
        "--plan",
        "pro",
        "--json",
    ]);
    assert_eq!(
        limits(&set),
        json!({"plan": "pro", "requests_per_minute": 60, "max_in_flight": 4, "keep_in_reserve": 200})
    );
    let shown = client.out(&["quota", "set", "flights", "--requests-per-minute", "none"]);
    assert!(shown.contains("4 in flight, plan pro"), "{shown}");
    assert!(!shown.contains("hotels"), "{shown}");

    // Less in reserve lets waiting scans spend.
    let smaller = ["quota", "set", "flights", "--keep-in-reserve", "100"];
    let refused = client.run(&smaller);
    assert!(
        refused.code == Some(2) && refused.err.contains("Keep 100 instead of 200 in reserve?"),
        "{refused:?}"
    );
    let quota: Value = serde_json::from_str(&client.out(&["quota", "--json"])).unwrap();
    assert_eq!(quota["flights"]["bounds"]["keep_in_reserve"], 200);
    client.out(&[&smaller[..], &["--yes"]].concat());

    for (args, says) in [
        (&["quota", "set", "flights"][..], "no limit is named"),
        (&["quota", "set", "cars", "--plan", "pro"], "flights"),
        (&["quota", "set", "flights", "--plan", "gold"], "basic"),
        (
            &["quota", "set", "flights", "--max-in-flight", "0"],
            "max_in_flight: found 0",
        ),
    ] {
        let refused = client.run(args);
        assert!(
            refused.code == Some(2) && refused.err.contains(says),
            "{says}: {refused:?}"
        );
    }
    assert_eq!(client.calls(), 0);
}

/// What is not sent cannot undo a change that another request makes meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn quota_set_sends_only_the_named_limits() {
    let client = Client::start().await;
    let set = ["quota", "set", "flights"];
    client.out(&[&set[..], &["--requests-per-minute", "60"]].concat());
    let relay = Relay::to(client.service.url()).await;
    let mut command = client.command(&[&set[..], &["--max-in-flight", "4", "--json"]].concat());
    let done = run(command.env("FARESCAN_URL", relay.url()));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(relay.count("max_in_flight"), 1);
    for stays in ["requests_per_minute", "keep_in_reserve", "plan"] {
        assert_eq!(relay.count(stays), 0, "{stays}");
    }
    let lane: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(lane["bounds"]["requests_per_minute"], 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_all_stops_scans_and_monitors_and_resume_all_continues_them() {
    let test = AlertTest::open().await;
    let gate = test.upstream.answer_fares_after_gate();
    out(&test, &[&CREATE[..], &["--yes"]].concat());
    let scan = [
        "scan", "oneway", "TLV", "LHR", "2030-02", "--yes", "--detach",
    ];
    out(&test, &scan);
    test.upstream.wait_for_in_flight(1).await;
    let paused = out(&test, &["pause", "--all"]);
    assert_eq!(paused.matches("is paused").count(), 2, "{paused}");
    gate.open();
    let monitors = lines(&out(&test, &["monitors", "--json"]));
    assert_eq!(monitors[0]["status_reason"], "by_caller");
    let scans = lines(&out(&test, &["scans", "--json"]));
    assert_eq!(
        (&scans[0]["status"], &scans[0]["status_reason"]),
        (&json!("paused"), &json!("by_caller"))
    );
    assert_eq!(
        out(&test, &["pause", "--all"]),
        "",
        "nothing is left to pause"
    );
    assert_eq!(cli(&test, &["pause"]).code, Some(2));
    assert_eq!(
        cli(&test, &["resume", "--all"]).code,
        Some(2),
        "without consent"
    );
    let resumed = out(&test, &["resume", "--all", "--yes"]);
    assert_eq!(resumed.matches("is resumed").count(), 2, "{resumed}");
    let monitors = lines(&out(&test, &["monitors", "--json"]));
    assert_eq!(monitors[0]["status"], "active");
    let scans = lines(&out(&test, &["scans", "--json"]));
    assert_ne!(scans[0]["status"], "paused");
    assert_eq!(out(&test, &["resume", "--all", "--yes"]), "");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_may_cost_more_shows_the_month_and_asks() {
    let test = AlertTest::open().await;
    out(&test, &[&CREATE[..], &["--yes"]].concat());
    let edit = ["monitors", "edit", "@last"];
    let run = |more: &[&str]| cli(&test, &[&edit[..], more].concat());
    let monitor =
        || -> Value { serde_json::from_str(&out(&test, &["monitors", "show", "--json"])).unwrap() };
    // A name, rules, and a lower ceiling cost nothing.
    let free = run(&[
        "--name",
        "renamed",
        "--alert",
        "new_low",
        "--max-requests-per-month",
        "500",
    ]);
    assert_eq!(free.code, Some(0), "{free:?}");
    let stored = monitor();
    assert_eq!(
        (
            &stored["name"],
            &stored["alerts"],
            &stored["requests"]["max_per_month"]
        ),
        (
            &json!("renamed"),
            &json!([{"type": "new_low", "days": 30}]),
            &json!(500)
        )
    );
    for more in [
        &["--max-requests-per-month", "501"][..],
        &["--max-requests-per-month", "none"],
        &["--cron", "0 * * * *"],
        &["--timezone", "UTC"],
        &["--alert", "new_low,confirm=1"],
    ] {
        let refused = run(more);
        assert!(
            refused.code == Some(2)
                && refused.err.contains("requests a month.")
                && refused.err.contains("Nothing was sent"),
            "{more:?}: {refused:?}"
        );
    }
    assert_eq!(monitor(), stored, "nothing was changed");
    assert_eq!(run(&["--cron", "30 7 * * *", "--yes"]).code, Some(0));
    assert_eq!(
        monitor()["schedule"],
        json!({"cron": "30 7 * * *", "timezone": "Europe/London"})
    );
    let nothing = run(&[]);
    assert!(
        nothing.code == Some(2) && nothing.err.contains("no change is named"),
        "{nothing:?}"
    );
    assert_eq!(test.upstream.count(), 0);
    test.close().await;
}

/// The scan's only date has passed since the monitor was created. That must not stop a change of
/// something else.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_ignores_faults_of_fields_that_stay() {
    let test = AlertTest::open().await;
    out(&test, &[&CREATE[..], &["--yes"]].concat());
    let past = r#"{"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2020-01-01"}}"#;
    let changed = execute!(
        test.pool(),
        "update monitors set scan = $1::text::json",
        past
    );
    assert_eq!(changed, 1);
    let edit = ["monitors", "edit", "@last", "--cron", "30 7 * * *"];
    let refused = cli(&test, &edit);
    assert!(
        refused.code == Some(2)
            && refused.err.contains("Its cost is not known")
            && refused.err.contains("2020-01-01"),
        "{refused:?}"
    );
    let edited = cli(&test, &[&edit[..], &["--yes"]].concat());
    assert_eq!(edited.code, Some(0), "{edited:?}");
    let monitor: Value =
        serde_json::from_str(&out(&test, &["monitors", "show", "--json"])).unwrap();
    assert_eq!(monitor["schedule"]["cron"], "30 7 * * *");
    // A fault of what changes stops it.
    let wrong = ["monitors", "edit", "@last", "--cron", "every day", "--yes"];
    let refused = cli(&test, &wrong);
    assert!(
        refused.code == Some(2) && refused.err.contains("schedule.cron"),
        "{refused:?}"
    );
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_gets_a_new_secret_after_the_question() {
    let test = AlertTest::open().await;
    let id = test
        .monitor(&crate::alerts::monitor(
            1,
            &json!([{"type": "new_low", "days": 30}]),
        ))
        .await;
    let rotate = ["monitors", "webhook", "rotate-secret", id.as_str()];
    let refused = cli(&test, &rotate);
    assert!(
        refused.code == Some(2) && refused.err.contains("ends in 24 hours"),
        "{refused:?}"
    );
    let secret = out(&test, &[&rotate[..], &["--yes"]].concat());
    assert!(secret.starts_with("whsec_"), "a secret");
    let on = out(&test, &["monitors", "webhook", "enable", &id]);
    assert_eq!(on, "http://hooks.test/ is on\n");
    let without = out(
        &test,
        &[
            "monitors",
            "create",
            "oneway",
            "TLV",
            "LHR",
            "2030-02-01",
            "--yes",
        ],
    );
    assert!(
        without.contains("TLV → LHR") && without.contains("0 6 * * *"),
        "{without}"
    );
    let none = cli(&test, &["monitors", "webhook", "test", "@last"]);
    assert!(
        none.code == Some(1) && none.err.contains("webhook"),
        "{none:?}"
    );
    test.close().await;
}
