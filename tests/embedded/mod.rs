//! The embedded Postgres, tested with real processes and kills.

mod owner;
mod upgrade;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use farescan::config::DatabaseConfig;
use farescan::db::embedded::{Durability, EmbeddedError, EmbeddedServer, Origin, ServerOptions};
use farescan::db::{self, Database};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use sqlx::Connection;

use crate::support::db::{PrivatePg, TestDb, connect, execute, world_readable_folder};
use owner::OwnerProcess;

const NOBODY: u32 = 65534;

fn options(home: &Path) -> ServerOptions {
    ServerOptions {
        home: home.to_owned(),
        pg_bin: None,
        durability: Durability::Full,
    }
}

fn start(home: &Path) -> EmbeddedServer {
    EmbeddedServer::start(&options(home)).unwrap()
}

fn start_error(options: &ServerOptions) -> EmbeddedError {
    EmbeddedServer::start(options).expect_err("it cannot start")
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

fn pid_file(home: &Path) -> PathBuf {
    home.join("postgres/data/postmaster.pid")
}

async fn show(server: &EmbeddedServer, setting: &str) -> String {
    let mut connection = connect(&server.connect_options().database("postgres")).await;
    let value = value!(&mut connection, "select current_setting($1)", setting);
    connection.close().await.unwrap();
    value
}

async fn execute_on(server: &EmbeddedServer, sql: &str) {
    let mut connection = connect(&server.connect_options().database("postgres")).await;
    execute(&mut connection, sql).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn an_empty_folder_gets_a_private_durable_server() {
    let place = world_readable_folder();
    let server = start(place.path());
    assert_eq!(server.origin(), Origin::Created);
    assert_eq!(show(&server, "listen_addresses").await, "", "no port");
    assert_eq!(show(&server, "fsync").await, "on");
    assert!(
        show(&server, "max_connections")
            .await
            .parse::<u32>()
            .unwrap()
            >= 100
    );
    for folder in ["postgres", "postgres/data", "postgres/run"] {
        assert_eq!(
            fs::metadata(place.path().join(folder)).unwrap().mode() & 0o777,
            0o700,
            "{folder}"
        );
    }
    assert!(!place.path().join("postgres/data.new").exists());
}

#[tokio::test]
async fn the_last_process_stops_the_server_and_data_remains() {
    let place = world_readable_folder();
    let first = start(place.path());
    execute_on(&first, "create table kept (id int)").await;
    let second = start(place.path());
    assert_eq!(
        (second.origin(), second.pid()),
        (Origin::Adopted, first.pid())
    );
    drop(first);
    execute_on(&second, "insert into kept values (1)").await;
    drop(second);
    assert!(
        !pid_file(place.path()).exists(),
        "stopped, with its pid file removed"
    );
    let third = start(place.path());
    assert_eq!(third.origin(), Origin::Started);
    execute_on(&third, "insert into kept values (2)").await;
}

#[tokio::test]
async fn a_killed_processs_server_is_adopted_and_later_stopped() {
    let place = world_readable_folder();
    let mut owner = OwnerProcess::spawn(place.path());
    let left = owner.report();
    assert_eq!(left.origin, "Created");
    owner.kill();
    let server = start(place.path());
    assert_eq!(
        (server.origin(), server.pid()),
        (Origin::Adopted, left.postmaster)
    );
    execute_on(&server, "select 1").await;
    drop(server);
    assert!(!pid_file(place.path()).exists());
}

#[tokio::test]
async fn committed_data_survives_kill_9_of_server_and_process() {
    let place = world_readable_folder();
    let mut owner = OwnerProcess::spawn(place.path());
    let killed = owner.report().postmaster;
    let beside = start(place.path());
    execute_on(&beside, "create table kept as select 7 as id").await;
    // A session in the middle of a statement, so that the killed server leaves a busy child.
    let mut busy = connect(&beside.connect_options().database("postgres")).await;
    let work = tokio::spawn(async move { execute(&mut busy, "select pg_sleep(60)").await });
    owner.kill();
    signal(killed, Signal::KILL);
    let server = start(place.path());
    assert_eq!(server.origin(), Origin::Started);
    assert_ne!(server.pid(), killed);
    execute_on(
        &server,
        "do $$ begin assert (select id = 7 from kept); end $$",
    )
    .await;
    assert!(work.await.unwrap().is_err(), "the old session is cut");
    drop(beside);
    execute_on(&server, "select 1").await;
}

#[tokio::test]
async fn of_five_concurrent_starts_one_creates_the_cluster() {
    let place = world_readable_folder();
    let mut owners: Vec<OwnerProcess> = (0..5).map(|_| OwnerProcess::spawn(place.path())).collect();
    let reports: Vec<_> = owners.iter_mut().map(OwnerProcess::report).collect();
    let count = |origin: &str| {
        reports
            .iter()
            .filter(|report| report.origin == origin)
            .count()
    };
    assert_eq!((count("Created"), count("Adopted")), (1, 4), "{reports:?}");
    assert!(
        reports
            .iter()
            .all(|report| report.postmaster == reports[0].postmaster),
        "{reports:?}"
    );
    for owner in &mut owners {
        assert!(pid_file(place.path()).exists(), "it runs while it is used");
        owner.close();
    }
    assert!(!pid_file(place.path()).exists(), "the last one stopped it");
}

#[tokio::test]
async fn the_server_never_runs_as_root() {
    let place = world_readable_folder();
    let server = start(place.path());
    let user = fs::metadata(place.path().join("postgres/data"))
        .unwrap()
        .uid();
    assert_ne!(user, 0);
    if Path::new("/proc/self/stat").exists() {
        assert_eq!(
            fs::metadata(format!("/proc/{}", server.pid()))
                .unwrap()
                .uid(),
            user
        );
    }
    if !geteuid().is_root() {
        assert_eq!(user, geteuid().as_raw());
    }
}

/// Other programs of the server's user, such as `nobody`, cannot connect.
#[tokio::test]
async fn only_the_operators_user_may_connect_and_by_socket_only() {
    let place = world_readable_folder();
    let server = start(place.path());
    let mut connection = connect(&server.connect_options().database("postgres")).await;
    let rules = "select type || ' ' || auth_method from pg_hba_file_rules order by line_number";
    let rules: Vec<String> = values!(&mut connection, rules);
    assert_eq!(
        rules,
        ["local peer", "local reject", "host reject", "host reject"]
    );
    connection.close().await.unwrap();
    if !geteuid().is_root() {
        return; // the server's user is the operator's then
    }
    let owner = fs::metadata(place.path().join("postgres/data"))
        .unwrap()
        .uid();
    let program = place.path().join("owner");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = owner::connect_as(owner, &program, server.socket_dir());
    println!("{output}");
    assert!(
        output.contains("Peer authentication failed for user \"farescan\""),
        "{output}"
    );
}

#[tokio::test]
async fn an_ordinary_user_can_run_a_server() {
    if !geteuid().is_root() {
        return; // every other test here is this one then
    }
    let place = world_readable_folder();
    let program = place.path().join("owner");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let home = place.path().join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut owner = OwnerProcess::spawn_as(NOBODY, &program, &home.join("deep/data"));
    let report = owner.report();
    assert_eq!(report.origin, "Created");
    assert_eq!(
        fs::metadata(format!("/proc/{}", report.postmaster))
            .unwrap()
            .uid(),
        NOBODY
    );
    assert_eq!(
        fs::metadata(home.join("deep/data")).unwrap().mode() & 0o777,
        0o700
    );
    owner.close();
    assert!(!pid_file(&home.join("deep/data")).exists());
}

#[tokio::test]
async fn a_path_too_long_for_a_socket_gets_a_short_folder() {
    let place = world_readable_folder();
    let home = place.path().join("long, long".repeat(12));
    let server = start(&home);
    assert!(
        server.socket_dir().starts_with("/tmp"),
        "{:?}",
        server.socket_dir()
    );
    assert_eq!(
        fs::metadata(server.socket_dir()).unwrap().mode() & 0o777,
        0o700
    );
    execute_on(&server, "select 1").await;
    let socket_dir = server.socket_dir().to_owned();
    drop(server);
    assert!(!socket_dir.exists(), "nothing stays in /tmp");
}

#[tokio::test]
async fn a_pid_file_of_another_program_does_not_block_a_start() {
    let place = world_readable_folder();
    drop(start(place.path()));
    let data = place.path().join("postgres/data");
    // As in a restarted container, where another program has the old pid: here this process.
    fs::write(
        pid_file(place.path()),
        format!("{}\n{}\n1\n5432\n", std::process::id(), data.display()),
    )
    .unwrap();
    assert_eq!(start(place.path()).origin(), Origin::Started);
}

#[tokio::test]
async fn data_of_another_major_version_is_not_touched() {
    let place = world_readable_folder();
    drop(start(place.path()));
    let version = place.path().join("postgres/data/PG_VERSION");
    fs::write(&version, "9\n").unwrap();
    let error = start_error(&options(place.path()));
    assert!(
        matches!(error, EmbeddedError::WrongVersion { made_by: 9, .. }),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(
        text.contains("postgres/data belongs to PostgreSQL 9, which is not installed (found only "),
        "{text}"
    );
    assert!(text.contains("FARESCAN_PG_BIN"), "{text}");
    assert_eq!(fs::read_to_string(version).unwrap(), "9\n");
}

#[test]
fn without_programs_the_error_says_how_to_install_them() {
    let place = world_readable_folder();
    let empty = place.path().join("bin");
    fs::create_dir(&empty).unwrap();
    let error = start_error(&ServerOptions {
        pg_bin: Some(empty.clone()),
        ..options(&place.path().join("home"))
    });
    let EmbeddedError::NoBinaries {
        searched, install, ..
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(searched, empty.to_str().unwrap());
    assert!(
        install.contains("install") || install.contains("add") || install.contains("pacman"),
        "{install}"
    );
    assert!(error.to_string().contains(install.as_str()), "{error}");
}

#[test]
fn a_server_that_cannot_start_shows_its_log_and_leaves_no_lock() {
    let place = world_readable_folder();
    drop(start(place.path()));
    let control = place.path().join("postgres/data/global/pg_control");
    let whole = fs::read(&control).unwrap();
    fs::write(&control, vec![0; whole.len()]).unwrap();
    let text = start_error(&options(place.path())).to_string();
    assert!(
        text.contains("postgres.log ends with:") && text.contains("FATAL"),
        "{text}"
    );
    fs::write(&control, whole).unwrap();
    assert_eq!(
        start(place.path()).origin(),
        Origin::Started,
        "the lock was given back"
    );
}

#[test]
fn an_inaccessible_folder_is_named() {
    if !geteuid().is_root() {
        return; // the server runs as ourselves, who can reach what we made
    }
    let closed = world_readable_folder();
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let error = start_error(&options(&closed.path().join("data")));
    assert!(
        matches!(&error, EmbeddedError::FolderNotAccessible { folder, .. } if folder == closed.path()),
        "{error}"
    );
}

#[tokio::test]
async fn another_users_folder_is_refused() {
    let place = world_readable_folder();
    fs::create_dir(place.path().join("postgres")).unwrap();
    let error = start_error(&options(place.path()));
    assert!(
        matches!(error, EmbeddedError::ForeignFolder(_)),
        "open to all: {error}"
    );
}

#[tokio::test]
async fn concurrent_open_and_migrate_give_one_database() {
    let place = world_readable_folder();
    let config = DatabaseConfig {
        data_dir: Some(place.path().to_owned()),
        ..DatabaseConfig::default()
    };
    let (one, two) = tokio::join!(Database::open(&config), Database::open(&config));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert!(one.is_embedded());
    assert_eq!(one.data_dir(), Some(place.path()));
    let (first, second) = tokio::join!(db::migrate(one.pool()), db::migrate(two.pool()));
    first.unwrap();
    second.unwrap();
    let applied: i64 = value!(
        two.pool(),
        "select count(*) from _sqlx_migrations where success"
    );
    assert!(applied > 0);
    one.close().await;
    assert!(pid_file(place.path()).exists());
    two.close().await;
    assert!(!pid_file(place.path()).exists());
}

#[tokio::test]
async fn sessions_have_their_limits_set() {
    let db = TestDb::new().await;
    for (setting, expected) in [
        ("statement_timeout", "30s"),
        ("lock_timeout", "5s"),
        ("idle_in_transaction_session_timeout", "30s"),
        ("jit", "off"),
        ("application_name", "farescan"),
    ] {
        let value: String = value!(db.pool(), "select current_setting($1)", setting);
        assert_eq!(value, expected, "{setting}");
    }
}

#[tokio::test]
async fn each_test_database_is_migrated_and_dropped_afterwards() {
    let (one, two) = tokio::join!(TestDb::new(), TestDb::new());
    assert_ne!(one.url(), two.url());
    execute!(one.pool(), "create table mine (id int)");
    let found: Option<String> = value!(two.pool(), "select to_regclass('mine')::text");
    assert_eq!(found, None);
    let migrated: i64 = value!(two.pool(), "select count(*) from _sqlx_migrations");
    assert!(migrated > 0);
    let gone = one.config();
    drop(one);
    let error = sqlx::query("select 1")
        .execute(Database::open(&gone).await.unwrap().pool())
        .await
        .unwrap_err();
    assert_eq!(
        error.as_database_error().unwrap().code().as_deref(),
        Some("3D000")
    );
}

#[tokio::test]
async fn a_pool_survives_the_crash_of_its_server() {
    let mut server = PrivatePg::start().await;
    let config = DatabaseConfig {
        url: Some(server.url().into()),
        ..DatabaseConfig::default()
    };
    let database = Database::open(&config).await.unwrap();
    assert!(!database.is_embedded());
    db::migrate(database.pool()).await.unwrap();
    server.stop_immediate().await;
    assert!(
        sqlx::query("select 1")
            .execute(database.pool())
            .await
            .is_err(),
        "a request gets an error and does not wait for the server"
    );
    let url = server.url();
    server.restart().await;
    assert_eq!(server.url(), url);
    execute!(database.pool(), "select 1");
}
