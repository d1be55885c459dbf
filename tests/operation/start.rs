//! The first start: terminal output and refused starts.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use sqlx::postgres::PgConnectOptions;

use farescan::db::embedded::{Durability, EmbeddedServer, ServerOptions};

use super::process::{ListeningProcess, farescan, program, run};
use crate::support::SERVE;
use crate::support::db::{PrivatePg, TestDb, connect, world_readable_folder};
use crate::worker::fixture::{WorkerFixture, ring_text};

fn demo(data: &Path, more: &[&str]) -> Command {
    let mut command = farescan(
        &program(),
        &[
            &[
                "demo",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ],
            more,
        ]
        .concat(),
    );
    command
        .env("FARESCAN_DATA_DIR", data)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Reads until a line contains `words`.
fn read_until(process: &mut Child, words: &str) -> BufReader<std::process::ChildStdout> {
    let mut out = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert_ne!(
            out.read_line(&mut line).unwrap(),
            0,
            "it ended before it said {words:?}"
        );
    }
    out
}

fn ended(mut process: Child) -> (Option<i32>, String) {
    let mut err = String::new();
    process
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    // On a busy machine a statement may be slow enough for a warning.
    let err: String = err
        .lines()
        .filter(|line| !line.contains("slow statement"))
        .collect();
    (process.wait().unwrap().code(), err)
}

#[test]
fn two_concurrent_demos_both_finish() {
    let data = world_readable_folder();
    let both = [(); 2].map(|()| demo(data.path(), &["--exit"]).spawn().unwrap());
    for demo in both {
        let ended = demo.wait_with_output().unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&ended.stdout),
            String::from_utf8_lossy(&ended.stderr),
        );
        assert!(
            ended.status.success() && out.contains("32 requests spent"),
            "{out}\n{err}"
        );
        assert!(out.contains("   Alert: "), "a rule fired: {out}");
        assert!(
            out.contains("three times each") && !out.contains("too few samples"),
            "the markets differ by more than one differs from itself: {out}"
        );
        assert!(
            !out.contains("Yours to try"),
            "nothing is offered that is gone: {out}"
        );
        assert!(
            out.contains("POST /v1/scans  flights/oneway, TLV → LHR, ")
                && !out.contains("\"endpoint\""),
            "a body takes one line: {out}"
        );
        assert!(
            out.lines()
                .all(|line| line.chars().count() <= 80
                    || line.contains(data.path().to_str().unwrap())),
            "{out}"
        );
    }
}

#[test]
fn a_demo_whose_output_is_closed_ends_silently() {
    let data = world_readable_folder();
    let mut process = demo(data.path(), &[]).spawn().unwrap();
    drop(read_until(&mut process, "description  http://"));
    assert_eq!(ended(process), (Some(141), String::new()));
    assert!(
        !data
            .path()
            .join("demos/1/postgres/data/postmaster.pid")
            .exists(),
        "its database was stopped"
    );
}

#[test]
fn a_demo_ended_by_a_signal_has_its_exit_code() {
    let data = world_readable_folder();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut process = demo(data.path(), &[]).spawn().unwrap();
        let _out = read_until(&mut process, "Ctrl-C stops it");
        kill_process(Pid::from_child(&process), signal).unwrap();
        assert_eq!(ended(process), (Some(code), String::new()));
    }
}

#[tokio::test]
async fn a_demo_of_another_version_names_its_folder() {
    let data = world_readable_folder();
    let mut process = demo(data.path(), &[]).spawn().unwrap();
    let out = read_until(&mut process, "description  http://");
    kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
    // Read to its end, so that the process can write until it ends.
    out.lines().for_each(drop);
    assert_eq!(ended(process), (Some(143), String::new()));

    let folder = data.path().join("demos/1");
    let server = EmbeddedServer::start(&ServerOptions {
        home: folder.clone(),
        pg_bin: None,
        durability: Durability::Full,
    })
    .unwrap();
    let mut connection = connect(&server.connect_options().database("farescan")).await;
    sqlx::query("UPDATE _sqlx_migrations SET checksum = '\\x00'")
        .execute(&mut connection)
        .await
        .unwrap();
    drop((connection, server));

    let (code, err) = ended(demo(data.path(), &["--exit"]).spawn().unwrap());
    assert_eq!(code, Some(1));
    assert!(
        err.contains("another version of farescan created")
            && err.contains(&format!("{}", folder.display()))
            && err.contains("FARESCAN_DATA_DIR"),
        "{err}"
    );
}

#[test]
fn a_port_in_use_is_reported_before_a_database_is_created() {
    let data = world_readable_folder();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = run(
        farescan(&program(), &["serve", "--sandbox", "--listen", &address])
            .env("FARESCAN_DATA_DIR", data.path()),
    );
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains(&format!(
            "cannot listen on {address} (--listen, FARESCAN_LISTEN): "
        )),
        "{refused:?}"
    );
    assert_eq!(fs::read_dir(data.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_without_a_master_key_warns_and_says_what_to_do() {
    let fixture = WorkerFixture::new().await;
    let mut serve = farescan(&program(), &SERVE);
    let serve = serve
        .env("DATABASE_URL", fixture.db.url())
        .env("FARESCAN_FLIGHTS_URL", fixture.upstream.url())
        .env("FARESCAN_HOTELS_URL", fixture.upstream.url())
        .env("FARESCAN_LOG_FORMAT", "json")
        .stderr(Stdio::piped());
    let mut process = serve.spawn().unwrap();
    let lines = BufReader::new(process.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let mut log = Vec::new();
    for line in lines {
        let has_begun = line.contains("\"listening\"");
        log.push(line);
        if has_begun {
            break;
        }
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let warnings: Vec<_> = log
        .iter()
        .filter(|line| line.contains("\"WARN\""))
        .collect();
    assert!(
        warnings.len() == 1 && warnings[0].contains("`farescan keys new --out master.key`"),
        "{log:#?}"
    );
    let output = log.join("\n");
    assert!(!output.contains("already exists, skipping"), "{output}");
    assert!(
        output.contains("/docs\""),
        "the line `listening` names the API's description: {output}"
    );
}

/// Each error is one line with address, role and cause.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_database_connection_is_reported_in_one_line() {
    let server = PrivatePg::start().await;
    let right: PgConnectOptions = server.url().parse().unwrap();
    let socket = right.get_socket().unwrap().display().to_string();
    let at = |role: &str, name: &str| {
        server
            .url()
            .replace("//farescan@", &format!("//{role}@"))
            .replace("/farescan?", &format!("/{name}?"))
    };
    for (url, place, cause) in [
        (
            "postgres://me:hunter2@127.0.0.1:1/x".to_owned(),
            "`x` as `me` on 127.0.0.1 port 1",
            "Connection refused",
        ),
        (
            at("farescan", "none"),
            "`none` as `farescan` on",
            "database \"none\" does not exist",
        ),
        (
            at("stranger", "farescan"),
            "`farescan` as `stranger` on",
            "stranger",
        ),
    ] {
        for command in [
            &["migrate", "--wait-for-database", "0"][..],
            &[
                "serve",
                "--no-worker",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ],
        ] {
            if command[0] == "serve" && url.contains(":1/") {
                continue; // it runs without a database that may come
            }
            let refused = run(farescan(&program(), command)
                .env("DATABASE_URL", &url)
                .env("FARESCAN_FLIGHTS_URL", "http://127.0.0.1:9")
                .env("FARESCAN_HOTELS_URL", "http://127.0.0.1:9")
                .env("FARESCAN_MASTER_KEY", ring_text()));
            let output = refused.err.lines().last().unwrap_or_default();
            println!("{output}");
            assert_eq!(refused.code, Some(1), "{url}");
            assert!(
                output.contains("cannot connect to the database")
                    && output.contains(place)
                    && output.contains(cause),
                "{place}: {output}"
            );
            assert!(
                !output.contains("hunter2")
                    && !output.contains(".c:")
                    && !output.contains(" at line "),
                "{output}"
            );
            assert!(
                url.contains("127.0.0.1") || output.contains(&socket),
                "{output}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_key_file_readable_by_others_is_refused() {
    let db = TestDb::new().await;
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("master.key");
    fs::write(&file, ring_text()).unwrap();
    let serve = |for_group: bool| {
        let mut command = farescan(
            &program(),
            &[
                "serve",
                "--no-worker",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ],
        );
        command
            .env("DATABASE_URL", db.url())
            .env("FARESCAN_FLIGHTS_URL", "http://127.0.0.1:9")
            .env("FARESCAN_HOTELS_URL", "http://127.0.0.1:9")
            .env("FARESCAN_MASTER_KEY_FILE", &file)
            .env("FARESCAN_MASTER_KEY_GROUP_READABLE", for_group.to_string());
        command
    };
    for (mode, for_group, starts) in [
        (0o644, false, false),
        (0o640, false, false),
        (0o444, true, false),
        (0o660, true, false),
        (0o440, true, true),
        (0o400, false, true),
    ] {
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        if starts {
            assert!(
                ListeningProcess::start(&mut serve(for_group))
                    .end()
                    .await
                    .success(),
                "{mode:o}"
            );
            continue;
        }
        let refused = run(&mut serve(for_group));
        assert_eq!(refused.code, Some(1), "{mode:o} {refused:?}");
        let mend = format!(
            "has mode {mode:04o}, so other users can read it: run `chmod 600 {}`",
            file.display()
        );
        assert!(refused.err.contains(&mend), "{mend}: {refused:?}");
    }
}

/// Core files and, for users other than root, the memory.
#[cfg(target_os = "linux")]
#[test]
fn other_users_cannot_read_a_processs_memory() {
    let place = world_readable_folder();
    let copy = place.path().join("farescan");
    fs::copy(program(), &copy).unwrap();
    let mut command = farescan(&copy, &["sandbox", "--listen", "127.0.0.1:0"]);
    command
        .env("FARESCAN_LOG_FORMAT", "json")
        .stderr(Stdio::piped())
        .stdout(Stdio::piped());
    if geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    let mut process = command.spawn().unwrap();
    let mut log = BufReader::new(process.stderr.take().unwrap());
    log.read_line(&mut String::new()).unwrap();
    let proc = Path::new("/proc").join(process.id().to_string());
    let limits = fs::read_to_string(proc.join("limits")).unwrap();
    // For a process that is not dumpable, the files in /proc belong to root (proc(5)).
    let owner = fs::metadata(proc.join("environ")).unwrap().uid();
    process.kill().unwrap();
    process.wait().unwrap();
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"))
        .unwrap();
    assert_eq!(
        core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(),
        ["0", "0"],
        "{core}"
    );
    assert_eq!(owner, 0, "{proc:?}");
}

#[test]
fn the_help_breaks_no_word_at_80_columns() {
    let help = run(farescan(&program(), &["help", "serve"]).env("COLUMNS", "80"));
    let long: Vec<_> = help
        .out
        .lines()
        .filter(|line| line.chars().count() > 80)
        .collect();
    assert!(
        help.out.lines().count() > 100 && long.is_empty(),
        "{long:#?}"
    );
}

/// The tables that the program reads are there before it reads them.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_causes_no_errors_in_the_databases_log() {
    let server = PrivatePg::start().await;
    let process = ListeningProcess::start(
        farescan(&program(), &SERVE)
            .env("DATABASE_URL", server.url())
            .env("FARESCAN_FLIGHTS_URL", "http://127.0.0.1:9")
            .env("FARESCAN_HOTELS_URL", "http://127.0.0.1:9")
            .env("FARESCAN_MASTER_KEY", ring_text()),
    );
    assert!(process.end().await.success());
    let log = server.log();
    assert!(!log.contains("ERROR"), "{log}");
}
