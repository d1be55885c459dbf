//! What somebody meets in the first hour: placeholders, several demos, missing rights, settings from
//! a file.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use jiff::Zoned;
use jiff::civil::Date;
use serde_json::Value;
use sqlx::postgres::PgConnectOptions;

use super::connections::client;
use super::process::{farescan, program, run};
use crate::cli::terminal::Terminal;
use crate::support::db::{PrivatePg, connect, execute, world_readable_folder};
use crate::worker::fixture::ring_text;

fn repository(name: &str) -> String {
    format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_placeholders_of_the_example_start_nothing() {
    let db = crate::support::db::TestDb::new().await;
    let refused = run(farescan(
        &program(),
        &["--env-file", &repository(".env.example"), "serve"],
    )
    .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
    .env("DATABASE_URL", db.url()));
    println!("{}", refused.err);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains(
            "FARESCAN_FLIGHTS_URL holds `https://flights.marketplace.example`; expected: the host that the marketplace's listing shows"
        ),
        "{refused:?}"
    );
    let bound: Option<String> = sqlx::query_scalar("select marketplace from installation")
        .fetch_one(db.pool())
        .await
        .unwrap();
    assert_eq!(bound, None, "the database belongs to nobody yet");
}

/// Each keeps what it listens on, from before its database is created.
#[test]
fn demos_of_the_same_second_share_no_address() {
    let data = world_readable_folder();
    let wanted = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = wanted.local_addr().unwrap().to_string();
    drop(wanted);
    let start = || {
        farescan(&program(), &["demo", "--exit", "--listen", &address])
            .args(["--admin-listen", "127.0.0.1:0"])
            .env("FARESCAN_DATA_DIR", data.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let services = [start(), start()].map(|demo| {
        let ended = demo.wait_with_output().unwrap();
        let out = String::from_utf8(ended.stdout).unwrap();
        let err = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.success(), "{out}\n{err}");
        let line = out.lines().find(|line| line.contains("service  "));
        line.unwrap().to_owned()
    });
    assert_ne!(services[0], services[1]);
    assert!(services.iter().any(|line| line.ends_with(&address)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_shows_bodies_on_request_and_its_progress() {
    let data = world_readable_folder();
    let mut command = farescan(&program(), &["demo", "--exit", "--verbose"]);
    command
        .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
        .env("FARESCAN_DATA_DIR", data.path())
        .env("TERM", "xterm");
    let mut terminal = Terminal::start(&mut command, 80, 24);
    assert_eq!(terminal.end().await, Some(0), "{}", terminal.shown());
    let shown = terminal.shown();
    assert!(
        shown.contains("\"endpoint\": \"flights/oneway\""),
        "{shown}"
    );
    assert!(shown.contains("run 8 of 8 …"), "{shown}");
}

/// `serve --sandbox` on a terminal, once it listens.
async fn trial(data: &Path) -> Terminal {
    let mut command = farescan(&program(), &["serve", "--sandbox"]);
    command
        .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
        .env("FARESCAN_DATA_DIR", data);
    let terminal = Terminal::start(&mut command, 80, 24);
    terminal.expect("Ctrl-C stops it").await;
    terminal
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_on_a_terminal_shows_three_addresses_and_no_log() {
    let data = world_readable_folder();
    let mut terminal = trial(data.path()).await;
    terminal.interrupt();
    terminal.end().await;
    let shown = terminal.shown();
    let lines: Vec<_> = shown
        .lines()
        // A slow machine warns, and so does a system without a user for the server.
        .filter(|line| line.starts_with(char::is_alphabetic))
        .collect();
    assert!(
        lines.len() == 3
            && lines[0].starts_with("dashboard    http://127.0.0.1:")
            && lines[1].starts_with("description  http://127.0.0.1:")
            && lines[2].starts_with("key          sandbox-demo "),
        "{shown}"
    );
    assert!(!shown.contains("INFO"), "{shown}");
}

/// Before its first search a trial has prices over time, and a second start adds none.
#[tokio::test(flavor = "multi_thread")]
async fn a_trial_begins_with_prices_of_the_last_months() {
    let data = world_readable_folder();
    let mut found = Vec::new();
    for _ in 0..2 {
        let mut terminal = trial(data.path()).await;
        let shown = terminal.shown();
        let address = shown.split("dashboard    ").nth(1).unwrap();
        let address = address.lines().next().unwrap().trim_end().to_owned();
        let path = "v1/history/flights?from_airport=TLV&to_airport=LHR&limit=500";
        let request = client()
            .get(format!("{address}{path}"))
            .header("x-api-key", "sandbox-demo");
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        let rows = answer["data"].as_array().unwrap().clone();
        found.push(rows);
        terminal.interrupt();
        terminal.end().await;
    }
    let days: BTreeSet<_> = found[0]
        .iter()
        .map(|row| row["observed_at"].as_str().unwrap()[..10].to_owned())
        .collect();
    let first: Date = days.first().unwrap().parse().unwrap();
    let ago = Zoned::now().date().since(first).unwrap().get_days();
    assert!(days.len() == 12 && (119..=121).contains(&ago), "{days:?}");
    let departures: BTreeSet<_> = found[0]
        .iter()
        .map(|row| row["departure_date"].as_str().unwrap())
        .collect();
    assert_eq!(departures.len(), 31);
    assert_eq!(found[0], found[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_without_rights_is_told_from_an_unreachable_database() {
    let server = PrivatePg::start().await;
    let owner: PgConnectOptions = server.url().parse().unwrap();
    let mut connection = connect(&owner).await;
    execute(&mut connection, "create role visitor login")
        .await
        .unwrap();
    // The server admits the operator under this name alone, so the session takes the other role.
    let url = format!("{}&options[role]=visitor", server.url());
    let refused = run(farescan(&program(), &["migrate"]).env("DATABASE_URL", &url));
    println!("{}", refused.err);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains("permission denied for schema public")
            && refused.err.contains("the role must own the database")
            && !refused.err.contains(" at line "),
        "{refused:?}"
    );
}

/// A port that nothing listens on yet, and the process that waits for it.
fn waiting(seconds: &str) -> (u16, Child) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let url = format!("postgres://farescan@127.0.0.1:{port}/farescan?sslmode=disable");
    let child = farescan(&program(), &["migrate", "--wait-for-database", seconds])
        .env("DATABASE_URL", url)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (port, child)
}

#[tokio::test(flavor = "multi_thread")]
async fn migrate_waits_for_a_database_that_comes_later() {
    let (port, mut child) = waiting("60");
    let mut err = child.stderr.take().unwrap();
    let mut said = String::new();
    while !said.ends_with('\n') {
        let mut byte = [0];
        err.read_exact(&mut byte).unwrap();
        said.push(char::from(byte[0]));
    }
    assert!(
        said.contains("Connection refused") && said.contains("; trying for up to 60 s"),
        "{said}"
    );
    // The server's socket, at the address that was refused.
    let server = PrivatePg::start().await;
    let options: PgConnectOptions = server.url().parse().unwrap();
    let socket = options.get_socket().unwrap().join(".s.PGSQL.5432");
    let relay = tokio::net::TcpListener::bind(("127.0.0.1", port))
        .await
        .unwrap();
    tokio::spawn(async move {
        loop {
            let (mut there, _) = relay.accept().await.unwrap();
            let mut here = tokio::net::UnixStream::connect(&socket).await.unwrap();
            tokio::spawn(async move {
                tokio::io::copy_bidirectional(&mut there, &mut here)
                    .await
                    .ok();
            });
        }
    });
    let ended = tokio::task::spawn_blocking(move || {
        let mut rest = String::new();
        err.read_to_string(&mut rest).unwrap();
        (child.wait().unwrap(), rest)
    });
    let (status, rest) = ended.await.unwrap();
    assert!(status.success(), "{rest}");
    assert_eq!(rest, "", "one line says that it waits");
}

#[test]
fn migrate_ends_its_wait() {
    let begun = std::time::Instant::now();
    let (_, child) = waiting("1");
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_file_of_settings_is_as_good_as_the_environment() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("settings");
    fs::write(
        &file,
        "# mine\nexport FARESCAN_LISTEN=127.0.0.1:8181\nFARESCAN_LOG='debug'\n",
    )
    .unwrap();
    let show = |file: &str| {
        let mut command = farescan(&program(), &["--env-file", file, "config", "show"]);
        command.env("FARESCAN_LOG", "warn");
        run(&mut command)
    };
    let shown = show(file.to_str().unwrap());
    let line = |name: &str| {
        let line = shown.out.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("{shown:?}"))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        line("FARESCAN_LISTEN "),
        "FARESCAN_LISTEN 127.0.0.1:8181 environment"
    );
    assert_eq!(
        line("FARESCAN_LOG "),
        "FARESCAN_LOG warn environment",
        "the environment wins"
    );
    fs::write(&file, "FARESCAN_LISTEN=127.0.0.1:8181\n\nhunter2\n").unwrap();
    let refused = show(file.to_str().unwrap());
    assert!(
        refused.code == Some(1)
            && refused.err.contains("--env-file: line 3 of ")
            && refused.err.contains("expected NAME=value")
            && !refused.err.contains("hunter2"),
        "{refused:?}"
    );
    for value in ["pa$word", "\"pa$word\"", "C:\\spool", "\"C:\\spool\""] {
        fs::write(&file, format!("\nFARESCAN_SPOOL_DIR={value}\n")).unwrap();
        let refused = show(file.to_str().unwrap());
        assert!(
            refused.code == Some(1)
                && refused.err.contains("--env-file: line 2 of ")
                && refused.err.contains(file.to_str().unwrap())
                && refused
                    .err
                    .contains("FARESCAN_SPOOL_DIR has a $ or a backslash")
                && refused
                    .err
                    .contains("use single quotes, or write the value out")
                && !refused.err.contains(value),
            "{refused:?}"
        );
    }
    fs::write(&file, "FARESCAN_SPOOL_DIR='/pa$word'\n").unwrap();
    let shown = show(file.to_str().unwrap());
    assert!(shown.out.contains("/pa$word"), "{shown:?}");
    let missing = show("/nowhere/.env");
    assert!(
        missing.code == Some(1) && missing.err.contains("--env-file: /nowhere/.env: "),
        "{missing:?}"
    );
}

#[test]
fn a_data_folder_that_cannot_be_created_names_its_setting() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::File::create(&file).unwrap().write_all(b"x").unwrap();
    let refused = run(farescan(&program(), &["serve", "--sandbox"])
        .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
        .env("FARESCAN_DATA_DIR", file.join("data"))
        .env("FARESCAN_MASTER_KEY", ring_text()));
    println!("{}", refused.err);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains("cannot create ")
            && refused
                .err
                .contains("set FARESCAN_DATA_DIR to another folder"),
        "{refused:?}"
    );
}

#[test]
fn a_file_of_profiles_that_others_can_write_is_warned_about() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("farescan");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("farescan.toml");
    fs::write(&file, "[profiles.work]\nurl = \"http://127.0.0.1:1\"\n").unwrap();
    for (mode, warns) in [(0o666, true), (0o620, true), (0o644, false)] {
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let ended = run(farescan(&program(), &["quota", "--profile", "work"])
            .env("XDG_CONFIG_HOME", home.path())
            .env("HOME", home.path()));
        assert_eq!(
            ended.err.contains("run `chmod go-w "),
            warns,
            "{mode:o}: {ended:?}"
        );
    }
}

/// A new kind of rule is described where people look for it.
#[test]
fn each_kind_of_rule_is_in_the_guide_and_in_the_reference() {
    for page in [
        "docs/guides/monitoring-and-webhooks.md",
        "docs/reference/monitors.md",
        "docs/decisions/0018-when-a-rule-fires.md",
    ] {
        let text = fs::read_to_string(repository(page)).unwrap();
        let firsts: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"))
            .map(|(cell, _)| cell)
            .collect();
        for rule in farescan::contract::monitors::RuleType::ALL {
            let rule = rule.as_str();
            let has_row = firsts.iter().any(|cell| {
                cell.split('`')
                    .skip(1)
                    .step_by(2)
                    .any(|code| code.split(['=', ',']).next() == Some(rule))
            });
            assert!(has_row, "{page} has no row of {rule}");
        }
    }
}

/// The message of a refused receiver says how to try one on this machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_on_this_machine_is_refused_with_its_setting() {
    let service = crate::support::TestService::start().await;
    for (url, names_it) in [
        ("http://127.0.0.1:8099/fares", true),
        ("https://hooks.market.test:8443/", true),
        ("ftp://hooks.market.test/", false),
        ("https://10.0.0.1/", false),
    ] {
        let answer = service
            .ask(
                "POST",
                "/v1/monitors",
                Some(&serde_json::json!({"webhook_url": url})),
            )
            .await;
        let body: Value = serde_json::from_str(&answer.text()).unwrap();
        assert_eq!(
            body.to_string()
                .contains("with FARESCAN_WEBHOOKS_ALLOW_INSECURE=true"),
            names_it,
            "{url}: {body}"
        );
    }
}
