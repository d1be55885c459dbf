//! The operator's commands, as real processes: `keys`, `config show`, `healthcheck`.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::Arc;

use farescan::tenants::Keyring;
use serde_json::json;

use super::process::{Ended, Listening, farescan, program, run};
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::worker::stage::{Stage, ring_text};

fn command(args: &[&str]) -> Command {
    farescan(&program(), args)
}

fn ended(args: &[&str]) -> Ended {
    run(&mut command(args))
}

#[test]
fn keys_new_prints_an_entry_that_a_ring_takes_and_never_the_same_twice() {
    let (first, second) = (
        ended(&["keys", "new"]),
        ended(&["keys", "new", "--id", "2027-05"]),
    );
    assert_eq!((first.code, second.code), (Some(0), Some(0)));
    Keyring::parse(&format!("{}{}", second.out, first.out)).expect("both together are a ring");
    assert!(
        second.out.starts_with("2027-05:") && second.out.len() == "2027-05:".len() + 64 + 1,
        "{}",
        second.out.len()
    );
    let refused = ended(&["keys", "new", "--id", "with space"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains("`with space` cannot be the id") && refused.out.is_empty(),
        "{refused:?}"
    );
}

#[test]
fn keys_new_makes_a_private_file_once() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("master.key");
    let path = file.to_str().unwrap();
    let made = ended(&["keys", "new", "--out", path]);
    assert_eq!((made.code, made.out.as_str()), (Some(0), ""), "{made:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    Keyring::parse(&text).unwrap();
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );

    let again = ended(&["keys", "new", "--out", path]);
    assert_eq!(again.code, Some(1));
    assert!(
        again.err.contains(path) && again.err.contains("left as it is"),
        "{again:?}"
    );
    assert_eq!(
        ended(&["keys", "new", "--out", path, "--if-absent"]).code,
        Some(0)
    );
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        text,
        "it was never overwritten"
    );

    std::fs::write(&file, "not a ring").unwrap();
    let spoilt = ended(&["keys", "new", "--out", path, "--if-absent"]);
    assert_eq!(
        spoilt.code,
        Some(1),
        "a start with this file would fail later: {spoilt:?}"
    );
    let nowhere = ended(&["keys", "new", "--out", "/nowhere/at/all/master.key"]);
    assert_eq!(nowhere.code, Some(1));
    assert!(
        nowhere.err.contains("/nowhere/at/all/master.key"),
        "{nowhere:?}"
    );
}

/// Rewraps on a stage's database.
fn rewrap(stage: &Stage, ring: &str) -> Ended {
    run(command(&["keys", "rewrap"])
        .env("DATABASE_URL", stage.db.url())
        .env("FARESCAN_MASTER_KEY", ring))
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_rewrap_moves_what_a_scan_holds_while_its_worker_runs_and_the_scan_goes_on() {
    let mut stage = Stage::new().await;
    let new = format!("new:{}", "c3".repeat(32));
    // The first step of a rotation: everybody can open what the new entry seals, nobody seals under it yet.
    stage.ring = Arc::new(Keyring::parse(&format!("{},{new}", ring_text())).unwrap());
    let gate = Gate::closed();
    stage
        .upstream
        .on_any()
        .reply(Reply::json(json!([fare(120, &json!({}))])).held_by(&gate));
    let scan = stage.submit(150, &json!({})).await;
    let worker = stage.worker();
    stage
        .upstream
        .wait_for("calls are in flight", |ledger| ledger.len() >= 10)
        .await;
    let done = rewrap(&stage, &format!("{new},{}", ring_text()));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(
        done.out,
        "1 held keys were sealed anew under `new`, 0 were wiped or sealed by others meanwhile\n"
    );
    assert_eq!(
        stage
            .count("select count(*) from key_grants where key_id = 'new'")
            .await,
        1
    );
    gate.open();
    assert_eq!(
        stage.ended(scan).await.items.ok,
        150,
        "the calls that were not made yet opened it too"
    );
    worker.stop().await;
    // An ended scan holds nothing; what follows needs something held.
    stage.submit(1, &json!({"label": "another"})).await;
    let again = rewrap(&stage, &format!("{new},{}", ring_text()));
    assert!(
        again.out.starts_with("1 held keys"),
        "sealed since by a process whose first entry is the old one: {again:?}"
    );
    let again = rewrap(&stage, &format!("{new},{}", ring_text()));
    assert!(again.out.starts_with("0 held keys"), "{again:?}");

    let none = run(command(&["keys", "rewrap"]).env("DATABASE_URL", stage.db.url()));
    assert_eq!(none.code, Some(1));
    assert!(none.err.contains("FARESCAN_MASTER_KEY_FILE"), "{none:?}");
    let lacking = rewrap(&stage, &format!("third:{}", "d4".repeat(32)));
    assert_eq!(lacking.code, Some(1));
    assert!(lacking.err.contains("no entry `new`"), "{lacking:?}");
}

#[test]
fn config_show_names_every_setting_its_source_and_no_secret() {
    let shown = run(command(&["config", "show", "--listen", "127.0.0.1:8181"])
        .env(
            "DATABASE_URL",
            "postgres://me:hunter2@db.example:5433/fares?sslmode=require&password=hunter3",
        )
        .env("FARESCAN_MASTER_KEY", ring_text())
        .env("FARESCAN_WORKER_CONCURRENCY", "12"));
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let line = |variable: &str| {
        let line = shown
            .out
            .lines()
            .find(|line| line.split_whitespace().next() == Some(variable));
        line.unwrap_or_else(|| panic!("{variable} is not shown:\n{}", shown.out))
            .split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(line("FARESCAN_LISTEN"), "127.0.0.1:8181 flag");
    assert_eq!(line("FARESCAN_WORKER_CONCURRENCY"), "12 environment");
    assert_eq!(line("FARESCAN_SEARCH_TIMEOUT_SECONDS"), "180 default");
    assert_eq!(line("FARESCAN_FLIGHTS_URL"), "unset");
    assert_eq!(line("FARESCAN_MASTER_KEY"), "(hidden) environment");
    assert_eq!(line("FARESCAN_ADMIN_LISTEN"), "127.0.0.1:9090 default");
    assert!(
        line("FARESCAN_DATA_DIR").ends_with("farescan default"),
        "{}",
        line("FARESCAN_DATA_DIR")
    );
    assert!(
        line("FARESCAN_SPOOL_DIR").ends_with("farescan/spool default"),
        "{}",
        line("FARESCAN_SPOOL_DIR")
    );
    assert_eq!(
        line("DATABASE_URL"),
        "fares as me on db.example port 5433 environment"
    );
    let all = format!("{}{}", shown.out, shown.err);
    assert!(
        !all.contains("hunter") && !all.contains(&ring_text()[8..24]),
        "{all}"
    );
    assert!(
        ended(&["config", "show"])
            .out
            .contains("FARESCAN_REQUESTS_PER_SECOND")
    );
}

fn health(admin: &str, more: &[&str]) -> Ended {
    run(command(&[&["healthcheck"], more].concat()).env("FARESCAN_ADMIN_LISTEN", admin))
}

/// A service on a stage's database with what else a test says.
fn serve(stage: &Stage, args: &[&str]) -> Command {
    let mut serve = command(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
    serve
        .env("DATABASE_URL", stage.db.url())
        .env("FARESCAN_MASTER_KEY", ring_text())
        .env("FARESCAN_FLIGHTS_URL", stage.upstream.url())
        .env("FARESCAN_HOTELS_URL", stage.upstream.url())
        .env("FARESCAN_SPOOL_DIR", stage.spool.path());
    serve
}

#[tokio::test(flavor = "multi_thread")]
async fn healthcheck_says_whether_a_process_is_ready_and_while_it_ends_that_it_lives() {
    let stage = Stage::new().await;
    let gate = Gate::closed();
    stage
        .upstream
        .on_any()
        .reply(Reply::json(json!([fare(120, &json!({}))])).held_by(&gate));
    stage.submit(2, &json!({})).await;
    let service = Listening::start(&mut serve(&stage, &["--admin-listen", "127.0.0.1:0"]));
    let admin = service.admin.unwrap().to_string();
    let ready = health(&admin, &[]);
    assert_eq!((ready.code, ready.err.as_str()), (Some(0), ""), "{ready:?}");
    assert_eq!(health(&admin, &["--live"]).code, Some(0));

    // With calls in flight it takes its time to end; whoever watches must not take it for dead.
    stage.upstream.wait_for_in_flight(2).await;
    let ending = tokio::spawn(service.end());
    let mut draining = health(&admin, &[]);
    for _ in 0..500 {
        if draining.code == Some(1) {
            break;
        }
        draining = health(&admin, &[]);
    }
    assert_eq!(draining.code, Some(1));
    assert!(
        draining.err.contains("503") && draining.err.contains("ending"),
        "{draining:?}"
    );
    assert_eq!(health(&admin, &["--live"]).code, Some(0));
    gate.open();
    assert!(ending.await.unwrap().success());

    let gone = health(&admin, &["--live"]);
    assert_eq!(gone.code, Some(1));
    assert!(
        gone.err.contains("does not answer") && gone.err.contains("refused"),
        "{gone:?}"
    );
    let nowhere = health("127.0.0.1:0", &[]);
    assert!(
        nowhere.code == Some(1) && nowhere.err.contains("fixed port"),
        "{nowhere:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_takes_another_admin_port_unless_one_was_asked_for() {
    let stage = Stage::new().await;
    // Whoever has the default port on this machine, these two or another program: all of them start.
    let (first, second) = (
        Listening::start(&mut serve(&stage, &[])),
        Listening::start(&mut serve(&stage, &["--no-worker"])),
    );
    assert_ne!(first.admin, second.admin);
    let taken = first.admin.unwrap().to_string();
    let refused = run(&mut serve(&stage, &["--admin-listen", &taken]));
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains(&format!("cannot listen on {taken}")),
        "{refused:?}"
    );
    assert!(first.end().await.success() && second.end().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_has_the_admin_listener_too_and_needs_the_master_key() {
    let stage = Stage::new().await;
    let worker = |key: Option<String>| {
        let mut worker = command(&["worker", "--admin-listen", "127.0.0.1:0"]);
        worker
            .env("DATABASE_URL", stage.db.url())
            .env("FARESCAN_FLIGHTS_URL", stage.upstream.url())
            .env("FARESCAN_HOTELS_URL", stage.upstream.url())
            .env("FARESCAN_SPOOL_DIR", stage.spool.path())
            .envs(key.map(|key| ("FARESCAN_MASTER_KEY", key)));
        worker
    };
    let running = Listening::start(&mut worker(Some(ring_text())));
    assert_eq!(running.address, None);
    assert_eq!(
        health(&running.admin.unwrap().to_string(), &[]).code,
        Some(0)
    );
    assert!(running.end().await.success());
    let refused = run(&mut worker(None));
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains("FARESCAN_MASTER_KEY_FILE"),
        "{refused:?}"
    );
}

#[test]
fn a_password_file_that_is_not_there_is_named() {
    let missing = run(command(&["migrate"])
        .env("DATABASE_URL", "postgres://farescan@127.0.0.1:1/farescan")
        .env("FARESCAN_DATABASE_PASSWORD_FILE", "/nowhere/password"));
    assert_eq!(missing.code, Some(1));
    assert!(
        missing
            .err
            .contains("FARESCAN_DATABASE_PASSWORD_FILE: /nowhere/password"),
        "{missing:?}"
    );
}

/// Each names the setting, what it held and what it may hold; the variable too, which may be all that its reader has set.
#[test]
fn a_setting_that_cannot_be_is_told_by_its_variable() {
    let urls = ["FARESCAN_FLIGHTS_URL", "FARESCAN_HOTELS_URL"]
        .map(|variable| (variable, "http://127.0.0.1:9"));
    for (mut command, code, says) in [
        (
            command(&["serve", "--log", "foo=bar="]),
            1,
            vec![
                "FARESCAN_LOG (or --log) holds `foo=bar=`",
                "info,farescan=debug",
            ],
        ),
        (
            command(&["worker"]),
            1,
            vec![
                "FARESCAN_FLIGHTS_URL is not set",
                "`farescan serve --sandbox`",
            ],
        ),
        (
            command(&["serve", "--listen", "8080"]),
            2,
            vec![
                "'8080'",
                "an IP address and a port, such as 127.0.0.1:8080",
                "FARESCAN_LISTEN",
            ],
        ),
        (
            command(&["serve", "--request-burst", "0"]),
            2,
            vec!["--request-burst", "FARESCAN_REQUEST_BURST"],
        ),
        (
            command(&["worker", "--lease-seconds", "x"]),
            2,
            vec!["--lease-seconds", "FARESCAN_LEASE_SECONDS"],
        ),
    ] {
        let refused = run(&mut command);
        assert_eq!(refused.code, Some(code), "{refused:?}");
        assert!(
            says.iter().all(|words| refused.err.contains(words)),
            "{says:?}: {}",
            refused.err
        );
    }
    let refused = run(command(&["serve"]).envs(urls).env("FARESCAN_LISTEN", "abc"));
    assert!(
        refused.code == Some(2)
            && refused.err.contains("'abc'")
            && refused.err.contains("FARESCAN_LISTEN"),
        "{refused:?}"
    );
    let unknown = run(&mut command(&["serve", "--no-such-flag"]));
    assert!(
        unknown.code == Some(2) && !unknown.err.contains("environment variable"),
        "{unknown:?}"
    );
}

#[test]
fn migrate_says_where_it_found_no_database_and_why() {
    let refused = run(&mut command(&[
        "migrate",
        "--database-url",
        "postgres://me:hunter2@127.0.0.1:1/x",
    ]));
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains("on 127.0.0.1 port 1") && refused.err.contains("refused"),
        "{refused:?}"
    );
    assert!(!refused.err.contains("hunter"), "{refused:?}");
}

#[test]
fn the_help_lists_every_setting() {
    let (help, shown) = (
        ended(&["help", "serve"]).out,
        ended(&["config", "show"]).out,
    );
    let variables = shown
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| word.contains('_'));
    let missing: Vec<_> = variables
        .filter(|variable| {
            !['=', ']']
                .iter()
                .any(|end| help.contains(&format!("[env: {variable}{end}")))
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_with_a_sandbox_says_where_it_is_and_that_the_urls_are_not_used() {
    let stage = Stage::new().await;
    let mut serve = serve(&stage, &["--sandbox", "--admin-listen", "127.0.0.1:0"]);
    serve
        .stderr(std::process::Stdio::piped())
        .env("FARESCAN_LOG_FORMAT", "json");
    let mut process = serve.spawn().unwrap();
    let log = std::io::BufReader::new(process.stderr.take().unwrap());
    let mut lines = Vec::new();
    for line in std::io::BufRead::lines(log).map_while(Result::ok) {
        let has_begun = line.contains("\"listening\"");
        lines.push(line);
        if has_begun {
            break;
        }
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let log = lines.join("\n");
    assert_eq!(
        log.matches("searches go to the sandbox at http://127.0.0.1:")
            .count(),
        1,
        "{log}"
    );
    assert!(
        log.contains("FARESCAN_FLIGHTS_URL and FARESCAN_HOTELS_URL are not used"),
        "{log}"
    );
}
