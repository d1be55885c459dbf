//! `farescan channels`, against a receiver on loopback.

use serde_json::{Value, json};

use super::{deliverer, open, receivers};
use crate::cli::monitors::{CREATE, cli, out};
use crate::support::reply::Reply;
use crate::support::upstream::ScriptedServer;

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_is_added_tested_and_named_by_a_new_monitor() {
    let test = open().await;
    let phone = ScriptedServer::start().await;
    phone.reply(Reply::status(200));
    let nothing = out(&test, &["channels"]);
    assert!(nothing.is_empty(), "{nothing}");
    let url = format!("{}/fares-3f9a2c71d0", phone.url());
    let add = ["channels", "add", "ntfy", &url, "--name", "my phone"];
    let wrong = cli(&test, &[&add[..], &["--quiet-hours", "22:00"]].concat());
    assert!(wrong.err.contains("22:00-07:00"), "{wrong:?}");
    let added = out(
        &test,
        &[&add[..], &["--quiet-hours", "22:00-07:00"]].concat(),
    );
    assert!(added.starts_with("chn_"), "{added}");
    let listed = out(&test, &["channels"]);
    for words in ["my phone", "ntfy", "active"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    assert!(
        !listed.contains("fares-3f9a2c71d0"),
        "the topic is a secret: {listed}"
    );

    let whole = out(&test, &["channels", "--json"]);
    assert!(
        whole.contains(r#""from":"22:00","until":"07:00""#),
        "{whole}"
    );
    out(
        &test,
        &["channels", "edit", "@last", "--digest-at", "08:00"],
    );
    let both = test.get("/v1/channels").await["data"][0]["notify"].clone();
    let quiet = json!({"from": "22:00", "until": "07:00"});
    assert_eq!(both, json!({"quiet_hours": quiet, "digest_at": "08:00"}));

    let running = deliverer(&test);
    let sent = out(&test, &["channels", "test", "@last"]);
    assert!(sent.contains("is delivered"), "{sent}");
    receivers::ntfy(&phone.calls()[0]);
    running.stop().await;

    let created = cli(&test, &[&CREATE[..], &["--yes"]].concat());
    assert!(
        created.err.contains("Alerts go to: my phone."),
        "{created:?}"
    );
    for unclear in ["c", "chn_", ""] {
        let args = [&CREATE[..], &["--channel", unclear, "--yes"]].concat();
        let refused = cli(&test, &args);
        assert!(
            refused.err.contains("expected one active channel"),
            "{refused:?}"
        );
    }
    let none = cli(
        &test,
        &[&CREATE[..], &["--channel", "fax", "--yes"]].concat(),
    );
    assert!(
        none.err.contains("expected one active channel: my phone"),
        "{none:?}"
    );
    let monitors = test.get("/v1/monitors").await;
    let monitors = monitors["data"].as_array().unwrap();
    assert_eq!(monitors.len(), 1);
    let channels: Value = test.get("/v1/channels").await;
    assert_eq!(monitors[0]["channels"], json!([channels["data"][0]["id"]]));

    let paused = out(&test, &["channels", "pause", "@last"]);
    assert!(paused.contains("paused by you"), "{paused}");
    let edited = out(
        &test,
        &["monitors", "edit", "@last", "--no-channels", "--yes"],
    );
    assert!(edited.contains("No channel and no webhook"), "{edited}");
    out(&test, &["channels", "remove", "@last", "--yes"]);
    assert_eq!(test.get("/v1/channels").await["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_gets_a_topic_and_joins_the_monitors_that_exist() {
    let test = open().await;
    out(&test, &[&CREATE[..], &["--yes"]].concat());
    let added = cli(&test, &["channels", "phone"]);
    assert!(added.out.contains("My phone"), "{added:?}");
    let (_, topic) = added.err.split_once("https://ntfy.sh/fares-").unwrap();
    assert_eq!(topic.lines().next().unwrap().len(), 32, "{added:?}");
    assert!(added.err.contains("Install the app ntfy"), "{added:?}");
    for said in [
        "My phone added to 1 monitor",
        "My phone added to 0 monitors",
    ] {
        let joined = cli(&test, &["channels", "use", "@last"]);
        assert!(joined.err.contains(said), "{joined:?}");
    }
    let id = &test.get("/v1/channels").await["data"][0]["id"];
    let monitor = &test.get("/v1/monitors").await["data"][0];
    assert_eq!(monitor["channels"], json!([id]));
    let chat = [
        "channels",
        "add",
        "slack",
        "https://hooks.example.com/services/hidden",
    ];
    out(&test, &chat);
    out(
        &test,
        &[
            "monitors",
            "edit",
            monitor["id"].as_str().unwrap(),
            "--no-channels",
            "--yes",
        ],
    );
    let chosen = cli(&test, &["channels", "use", "@last"]);
    assert!(chosen.err.contains("added to 0 monitors"), "{chosen:?}");
    assert!(
        chosen.err.contains(monitor["id"].as_str().unwrap()),
        "{chosen:?}"
    );
}
