//! Address, key, profiles, and the errors of a service.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::json;

use super::terminal::Terminal;
use super::{Client, bare_command, lines};
use crate::operation::process::{CommandResult, run};
use crate::support::app::KEY;
use crate::support::reply::Reply;

/// Runs a command with a text on standard input.
fn run_with_input(command: &mut std::process::Command, input: &str) -> CommandResult {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    CommandResult {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn without_a_key_the_error_says_where_it_comes_from() {
    let home = tempfile::tempdir().unwrap();
    for args in [
        &["quota"][..],
        &["scans"],
        &["search", "oneway", "TLV", "LHR", "2030-01-01"],
    ] {
        let refused = run(&mut bare_command(home.path(), args));
        assert_eq!(refused.code, Some(2), "{refused:?}");
        for word in [
            "FARESCAN_API_KEY",
            "FARESCAN_API_KEY_FILE",
            "farescan login",
        ] {
            assert!(refused.err.contains(word), "{refused:?}");
        }
    }
}

#[test]
fn an_absent_service_is_reported_with_the_next_step() {
    let home = tempfile::tempdir().unwrap();
    let refused = run(
        bare_command(home.path(), &["quota", "--url", "http://127.0.0.1:1"])
            .env("FARESCAN_API_KEY", "canary-key-canary"),
    );
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for word in [
        "http://127.0.0.1:1 does not answer",
        "refused",
        "farescan serve",
        "--url",
    ] {
        assert!(refused.err.contains(word), "{word}: {refused:?}");
    }
    assert!(!refused.err.contains("canary"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_farescan_is_named() {
    let client = Client::start().await;
    client.upstream.reply(Reply::status(418).body("teapot"));
    let url = client.upstream.url();
    let refused = client.run(&["quota", "--url", url]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.err.contains("answered 418") && refused.err.contains("check --url"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn login_stores_the_key_for_its_owner_alone() {
    let client = Client::start().await;
    let url = client.url().to_owned();
    let home = client.home.path();
    let login = ["login", "--profile", "work", "--url", url.as_str()];
    let stored = run_with_input(&mut bare_command(home, &login), &format!("{KEY}\n"));
    assert_eq!(stored.code, Some(0), "{stored:?}");
    assert!(
        stored.err.contains("farescan verify") && !stored.err.contains(KEY),
        "{stored:?}"
    );
    let folder = home.join(".config/farescan");
    let file = folder.join("keys/work");
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), KEY);
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&file), mode(&folder.join("farescan.toml"))),
        (0o600, 0o600)
    );
    assert!(
        !std::fs::read_to_string(folder.join("farescan.toml"))
            .unwrap()
            .contains(KEY)
    );

    // The first profile is the default.
    let quota = run(&mut bare_command(home, &["quota"]));
    assert_eq!(quota.code, Some(0), "{quota:?}");
    assert_eq!(client.calls(), 0, "neither login nor quota costs a request");

    // Its key is not sent to another address.
    let elsewhere = run(&mut bare_command(
        home,
        &["quota", "--url", "http://127.0.0.1:1"],
    ));
    assert!(
        elsewhere.code == Some(2) && elsewhere.err.contains("there is no key"),
        "{elsewhere:?}"
    );
    let unknown = run(&mut bare_command(home, &["quota", "--profile", "home"]));
    assert!(
        unknown.code == Some(2) && unknown.err.contains("it has work"),
        "{unknown:?}"
    );

    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = run(&mut bare_command(home, &["quota"]));
    assert!(
        open.code == Some(1) && open.err.contains("chmod 600"),
        "{open:?}"
    );
}

#[test]
fn login_refuses_what_cannot_be_a_key() {
    let home = tempfile::tempdir().unwrap();
    for (input, says) in [
        ("two words\n", "white space"),
        ("YOUR_API_KEY\n", "placeholder"),
        ("", "not valid"),
    ] {
        let refused = run_with_input(&mut bare_command(home.path(), &["login"]), input);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(
            refused.err.contains(says) && !refused.err.contains("two words"),
            "{refused:?}"
        );
    }
    assert!(!home.path().join(".config/farescan/keys").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn login_does_not_show_the_typed_key() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(&mut bare_command(home.path(), &["login"]), 80, 24);
    terminal.expect("(not shown):").await;
    terminal.wait_until_echo_is_off().await;
    terminal.type_text("canary-key-canary\n");
    assert_eq!(terminal.end().await, Some(0), "{}", terminal.shown());
    assert!(!terminal.shown().contains("canary"), "{}", terminal.shown());
    let file = home.path().join(".config/farescan/keys/default");
    assert_eq!(
        std::fs::read_to_string(file).unwrap(),
        "canary-key-canary\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_names_each_subscription() {
    let client = Client::start().await;
    client.upstream.answer(|call| {
        if call.path.contains("flights") {
            Reply::status(400)
                .header("x-rapidapi-proxy-response", "false")
                .with_json(json!({"detail": "from_airport is required"}))
        } else {
            Reply::status(403)
                .header("x-rapidapi-proxy-response", "true")
                .with_json(json!({"message": "You are not subscribed to this API."}))
        }
    });
    let verified = client.run(&["verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    insta::assert_snapshot!(verified.out);
    assert_eq!(client.calls(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_key_fails_with_the_next_step() {
    let client = Client::start().await;
    client.upstream.reply(
        Reply::status(401)
            .header("x-rapidapi-proxy-response", "true")
            .with_json(json!({"message": "Invalid API key."})),
    );
    for args in [
        &["verify"][..],
        &["search", "oneway", "TLV", "LHR", "2030-01-01"],
    ] {
        let refused = client.run(args);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(
            refused.err.contains("farescan login") && !refused.err.contains(KEY),
            "{refused:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rotate_key_moves_everything_to_the_new_key() {
    let client = Client::start().await;
    let home = client.home.path();
    let url = client.url().to_owned();
    let login = ["login", "--url", url.as_str()];
    run_with_input(&mut bare_command(home, &login), &format!("{KEY}\n"));
    let worker = client.start_worker(2);
    let scan = [
        "scan",
        "oneway",
        "TLV",
        "LHR",
        "--depart",
        "2030-03-01",
        "--yes",
    ];
    assert_eq!(run(&mut bare_command(home, &scan)).code, Some(0));
    worker.stop().await;
    let refused = run_with_input(&mut bare_command(home, &["rotate-key"]), "canary-new-key\n");
    assert!(
        refused.code == Some(2) && refused.err.contains("--yes"),
        "{refused:?}"
    );
    let rotated = run_with_input(
        &mut bare_command(home, &["rotate-key", "--yes"]),
        "canary-new-key\n",
    );
    assert_eq!(rotated.code, Some(0), "{rotated:?}");
    let all = format!(
        "{}{}{}{}",
        rotated.out, rotated.err, refused.out, refused.err
    );
    assert!(!all.contains("canary") && !all.contains(KEY), "{all}");
    let stored = std::fs::read_to_string(home.join(".config/farescan/keys/default")).unwrap();
    assert_eq!(stored, "canary-new-key\n");
    let scans = run(&mut bare_command(home, &["scans", "--json"]));
    assert_eq!(lines(&scans.out).len(), 1, "{scans:?}");
    let old = client.run(&["scans", "--json"]);
    assert_eq!((old.code, old.out.as_str()), (Some(1), ""), "{old:?}");
    assert!(old.err.contains("does not know this key"), "{old:?}");
}

/// A typing error in the key must not look like lost data.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_the_service_does_not_know_is_no_empty_account() {
    let client = Client::start().await;
    let lists = [
        &["scans"][..],
        &["scans", "--json"],
        &["scans", "show", "@last"],
        &["monitors"],
        &["alerts"],
        &["deliveries"],
        &["usage"],
        &["usage", "--json"],
        &["history", "oneway", "TLV", "LHR"],
        &["history", "series", "TLV", "LHR", "--depart", "2030-02-04"],
        &["pause", "--all"],
    ];
    for args in lists {
        let refused = client.run(args);
        assert_eq!(refused.code, Some(1), "{args:?}: {refused:?}");
        for words in ["does not know this key", "farescan verify"] {
            assert!(refused.err.contains(words), "{args:?}: {refused:?}");
        }
        assert_eq!(refused.out, "", "{args:?}");
    }
    // A caller whose key works has nothing yet.
    assert_eq!(client.run(&["verify"]).code, Some(0));
    client
        .wait_for_count("select count(*) from tenants", 1)
        .await;
    let none = client.run(&["scans"]);
    assert_eq!(none.code, Some(0), "{none:?}");
    assert!(none.err.starts_with("No scans."), "{none:?}");
    for args in lists.iter().filter(|args| !args.contains(&"@last")) {
        let nothing = client.run(args);
        assert_eq!(nothing.code, Some(0), "{args:?}: {nothing:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_teaches_quota_what_is_left() {
    let client = Client::start().await;
    for (endpoint, left) in [
        (farescan::contract::Endpoint::FlightsOneway, "2412"),
        (farescan::contract::Endpoint::HotelsResolve, "1999"),
    ] {
        client.upstream.on(endpoint).reply(
            Reply::status(422)
                .with_json(json!({"detail": []}))
                .header("x-ratelimit-requests-limit", "2500")
                .header("x-ratelimit-requests-remaining", left)
                .header("x-ratelimit-requests-reset", "86400"),
        );
    }
    let verified = client.out(&["verify"]);
    assert!(verified.contains("1,999"), "{verified}");
    client
        .wait_for_count(
            "select count(*) from lanes where plan_remaining is not null",
            2,
        )
        .await;
    let quota = client.out(&["quota"]);
    for left in ["2,412", "1,999"] {
        assert!(quota.contains(left), "{left}: {quota}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn https_to_a_plain_port_names_the_cause_and_the_cure() {
    let client = Client::start().await;
    let url = client.url().replace("http://", "https://");
    let refused = client.run(&["scans", "--url", &url]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for words in [
        "does not speak TLS",
        &client.url().replace("http://", "use http://"),
    ] {
        assert!(refused.err.contains(words), "{words}: {refused:?}");
    }
}
