//! The commands `keys`, `config show` and `healthcheck` as processes.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::Arc;

use farescan::tenants::Keyring;
use serde_json::json;

use super::process::{CommandResult, ListeningProcess, farescan, program, run};
use crate::worker::fixture::{WorkerFixture, ring_text};

fn command(args: &[&str]) -> Command {
    farescan(&program(), args)
}

fn run_command(args: &[&str]) -> CommandResult {
    run(&mut command(args))
}

#[test]
fn keys_new_prints_a_valid_and_unique_entry() {
    let (first, second) = (
        run_command(&["keys", "new"]),
        run_command(&["keys", "new", "--id", "2027-05"]),
    );
    assert_eq!((first.code, second.code), (Some(0), Some(0)));
    Keyring::parse(&format!("{}{}", second.out, first.out)).expect("both together are a ring");
    assert!(
        second.out.starts_with("2027-05:") && second.out.len() == "2027-05:".len() + 64 + 1,
        "{}",
        second.out.len()
    );
    let refused = run_command(&["keys", "new", "--id", "with space"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains("`with space` is not an id") && refused.out.is_empty(),
        "{refused:?}"
    );
}

#[test]
fn keys_new_creates_a_private_file_only_once() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("master.key");
    let path = file.to_str().unwrap();
    let made = run_command(&["keys", "new", "--out", path]);
    assert_eq!((made.code, made.out.as_str()), (Some(0), ""), "{made:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    Keyring::parse(&text).unwrap();
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );

    let again = run_command(&["keys", "new", "--out", path]);
    assert_eq!(again.code, Some(1));
    assert!(
        again.err.contains(path) && again.err.contains("was not changed"),
        "{again:?}"
    );
    assert_eq!(
        run_command(&["keys", "new", "--out", path, "--if-absent"]).code,
        Some(0)
    );
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        text,
        "it was never overwritten"
    );

    std::fs::write(&file, "not a ring").unwrap();
    let spoilt = run_command(&["keys", "new", "--out", path, "--if-absent"]);
    assert_eq!(
        spoilt.code,
        Some(1),
        "a start with this file would fail later: {spoilt:?}"
    );
    let nowhere = run_command(&["keys", "new", "--out", "/nowhere/at/all/master.key"]);
    assert_eq!(nowhere.code, Some(1));
    assert!(
        nowhere.err.contains("/nowhere/at/all/master.key"),
        "{nowhere:?}"
    );
}

/// Runs `keys rewrap` on a fixture's database.
fn rewrap(fixture: &WorkerFixture, ring: &str) -> CommandResult {
    run(command(&["keys", "rewrap"])
        .env("DATABASE_URL", fixture.db.url())
        .env("FARESCAN_MASTER_KEY", ring))
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_rewrap_works_while_a_worker_runs_a_scan() {
    let mut fixture = WorkerFixture::new().await;
    let new = format!("new:{}", "c3".repeat(32));
    // First step of a rotation: all processes can open keys of the new entry, none seals with it
    // yet.
    fixture.ring = Arc::new(Keyring::parse(&format!("{},{new}", ring_text())).unwrap());
    let gate = fixture.upstream.answer_fares_after_gate();
    let scan = fixture.submit(150, &json!({})).await;
    let worker = fixture.start_worker();
    fixture
        .upstream
        .wait_for("calls are in flight", |ledger| ledger.len() >= 10)
        .await;
    let done = rewrap(&fixture, &format!("{new},{}", ring_text()));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(
        done.out,
        "1 stored keys were sealed anew under `new`; other processes wiped or sealed 0 in the meantime\n"
    );
    assert_eq!(
        fixture
            .count("select count(*) from key_grants where key_id = 'new'")
            .await,
        1
    );
    gate.open();
    assert_eq!(
        fixture.wait_until_ended(scan).await.items.ok,
        150,
        "the calls that were not made yet opened it too"
    );
    worker.stop().await;
    // An ended scan has no stored key; the next step needs one.
    fixture.submit(1, &json!({"label": "another"})).await;
    let again = rewrap(&fixture, &format!("{new},{}", ring_text()));
    assert!(
        again.out.starts_with("1 stored keys"),
        "sealed since by a process whose first entry is the old one: {again:?}"
    );
    let again = rewrap(&fixture, &format!("{new},{}", ring_text()));
    assert!(again.out.starts_with("0 stored keys"), "{again:?}");

    let none = run(command(&["keys", "rewrap"]).env("DATABASE_URL", fixture.db.url()));
    assert_eq!(none.code, Some(1));
    assert!(none.err.contains("FARESCAN_MASTER_KEY_FILE"), "{none:?}");
    let lacking = rewrap(&fixture, &format!("third:{}", "d4".repeat(32)));
    assert_eq!(lacking.code, Some(1));
    assert!(lacking.err.contains("no entry `new`"), "{lacking:?}");
}

#[test]
fn config_show_lists_settings_and_sources_without_secrets() {
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
        run_command(&["config", "show"])
            .out
            .contains("FARESCAN_REQUESTS_PER_SECOND")
    );
}

fn health(admin: &str, more: &[&str]) -> CommandResult {
    run(command(&[&["healthcheck"], more].concat()).env("FARESCAN_ADMIN_LISTEN", admin))
}

/// `serve` on a fixture's database with more arguments.
fn serve(fixture: &WorkerFixture, args: &[&str]) -> Command {
    let mut serve = command(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
    serve
        .env("DATABASE_URL", fixture.db.url())
        .env("FARESCAN_MASTER_KEY", ring_text())
        .env("FARESCAN_FLIGHTS_URL", fixture.upstream.url())
        .env("FARESCAN_HOTELS_URL", fixture.upstream.url())
        .env("FARESCAN_SPOOL_DIR", fixture.spool.path());
    serve
}

#[tokio::test(flavor = "multi_thread")]
async fn healthcheck_reports_ready_and_alive_during_shutdown() {
    let fixture = WorkerFixture::new().await;
    let gate = fixture.upstream.answer_fares_after_gate();
    fixture.submit(2, &json!({})).await;
    let service = ListeningProcess::start(&mut serve(&fixture, &["--admin-listen", "127.0.0.1:0"]));
    let admin = service.admin.unwrap().to_string();
    let ready = health(&admin, &[]);
    assert_eq!((ready.code, ready.err.as_str()), (Some(0), ""), "{ready:?}");
    assert_eq!(health(&admin, &["--live"]).code, Some(0));

    // Shutdown waits for calls in flight; a health check must not count the process as dead.
    fixture.upstream.wait_for_in_flight(2).await;
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
        draining.err.contains("503") && draining.err.contains("shutting down"),
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
async fn only_the_default_admin_port_has_a_fallback() {
    let fixture = WorkerFixture::new().await;
    // All of them start, whichever program has the default port.
    let (first, second) = (
        ListeningProcess::start(&mut serve(&fixture, &[])),
        ListeningProcess::start(&mut serve(&fixture, &["--no-worker"])),
    );
    assert_ne!(first.admin, second.admin);
    let taken = first.admin.unwrap().to_string();
    let refused = run(&mut serve(&fixture, &["--admin-listen", &taken]));
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains(&format!(
            "cannot listen on {taken} (--admin-listen, FARESCAN_ADMIN_LISTEN): "
        )),
        "{refused:?}"
    );
    // Before a database is started.
    let data = crate::support::db::world_readable_folder();
    let refused = run(command(&["serve", "--sandbox", "--listen", "127.0.0.1:0"])
        .args(["--admin-listen", &taken])
        .env("FARESCAN_DATA_DIR", data.path()));
    assert_eq!(refused.code, Some(1));
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0);
    assert!(first.end().await.success() && second.end().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_has_an_admin_listener_and_needs_a_master_key() {
    let fixture = WorkerFixture::new().await;
    let worker = |key: Option<String>| {
        let mut worker = command(&["worker", "--admin-listen", "127.0.0.1:0"]);
        worker
            .env("DATABASE_URL", fixture.db.url())
            .env("FARESCAN_FLIGHTS_URL", fixture.upstream.url())
            .env("FARESCAN_HOTELS_URL", fixture.upstream.url())
            .env("FARESCAN_SPOOL_DIR", fixture.spool.path())
            .envs(key.map(|key| ("FARESCAN_MASTER_KEY", key)));
        worker
    };
    let running = ListeningProcess::start(&mut worker(Some(ring_text())));
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
fn a_missing_password_file_is_named() {
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

/// Each message names the setting, its value, the accepted values and the environment variable.
#[test]
fn an_invalid_setting_is_reported_with_its_variable() {
    let urls = ["FARESCAN_FLIGHTS_URL", "FARESCAN_HOTELS_URL"]
        .map(|variable| (variable, "http://127.0.0.1:9"));
    for (mut command, code, says) in [
        (
            command(&["serve", "--log", "foo=bar="]),
            1,
            vec![
                "invalid FARESCAN_LOG (or --log) `foo=bar=`",
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
fn migrate_reports_address_and_cause_without_a_database() {
    let refused = run(&mut command(&[
        "migrate",
        "--wait-for-database",
        "0",
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
        run_command(&["help", "serve"]).out,
        run_command(&["config", "show"]).out,
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
async fn serve_with_a_sandbox_logs_its_url_and_the_unused_urls() {
    let fixture = WorkerFixture::new().await;
    let mut serve = serve(&fixture, &["--sandbox", "--admin-listen", "127.0.0.1:0"]);
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
        log.contains("--sandbox overrides FARESCAN_FLIGHTS_URL and FARESCAN_HOTELS_URL"),
        "{log}"
    );
}
