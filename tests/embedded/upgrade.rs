//! A package upgrade replaces a running server's programs: here with copies of the installed
//! package.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::owner::OwnerProcess;
use super::pid_file;
use crate::support::db::world_readable_folder;
use crate::support::text;

/// A folder with the services' embedded Postgres and the copied packages.
struct UpgradeFixture {
    folder: TempDir,
    /// The installed package.
    installed: PathBuf,
    major: String,
}

/// A service with embedded server and sandbox.
struct Service {
    child: Child,
    log: PathBuf,
}

impl Drop for Service {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            eprintln!(
                "its log:\n{}",
                fs::read_to_string(&self.log).unwrap_or_default()
            );
        }
    }
}

impl UpgradeFixture {
    /// `None` unless Postgres was installed by a Debian package, whose layout is copied.
    fn new() -> Option<Self> {
        let mut installed: Vec<_> = fs::read_dir("/usr/lib/postgresql")
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .collect();
        installed.sort();
        let installed = installed.pop()?;
        let major = installed.file_name()?.to_str()?.to_owned();
        let fixture = Self {
            folder: world_readable_folder(),
            installed,
            major,
        };
        fixture.install("before");
        Some(fixture)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Folder of the embedded server.
    fn home(&self) -> PathBuf {
        self.path().join("data/sandbox")
    }

    /// A link in place of the package's folder; an upgrade changes its target.
    fn programs(&self) -> PathBuf {
        self.path().join("programs")
    }

    /// Copies the package so that programs find libraries and data relative to their own path, and
    /// links it.
    fn install(&self, name: &str) {
        let package = self.path().join(name);
        let (programs, libraries) = (
            package.join("lib/postgresql").join(&self.major),
            package.join("share/postgresql"),
        );
        for folder in ["bin", "lib"] {
            fs::create_dir_all(programs.join(folder)).unwrap();
            for entry in fs::read_dir(self.installed.join(folder)).unwrap().flatten() {
                let is_wanted = folder == "lib"
                    || matches!(entry.file_name().to_str(), Some("postgres" | "initdb"));
                if is_wanted && entry.path().is_file() {
                    fs::copy(entry.path(), programs.join(folder).join(entry.file_name())).unwrap();
                }
            }
        }
        fs::create_dir_all(&libraries).unwrap();
        symlink(
            Path::new("/usr/share/postgresql").join(&self.major),
            libraries.join(&self.major),
        )
        .unwrap();
        let draft = self.path().join("programs.new");
        symlink(programs.join("bin"), &draft).unwrap();
        fs::rename(draft, self.programs()).unwrap();
    }

    /// Installs a new package and removes the old one.
    fn upgrade(&self) {
        self.install("after");
        fs::remove_dir_all(self.path().join("before")).unwrap();
    }

    fn start(&self, name: &str) -> Service {
        let log = self.path().join(format!("{name}.log"));
        let child = Command::new(env!("CARGO_BIN_EXE_farescan"))
            .args([
                "serve",
                "--sandbox",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ])
            .env_remove("DATABASE_URL")
            .env("FARESCAN_DATA_DIR", self.path().join("data"))
            .env("FARESCAN_PG_BIN", self.programs())
            .env("FARESCAN_LOG_FORMAT", "json")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Service { child, log }
    }

    /// Process id of the server.
    fn postmaster(&self) -> i32 {
        let text = fs::read_to_string(pid_file(&self.home())).unwrap();
        text.lines().next().unwrap().trim().parse().unwrap()
    }
}

impl Service {
    /// Waits for a log line with this message.
    async fn wait_for_log(&self, message: &str) -> Value {
        for _ in 0..9_000 {
            let log = fs::read_to_string(&self.log).unwrap();
            let lines = log
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            if let Some(line) = lines.into_iter().find(|line| {
                line["message"]
                    .as_str()
                    .is_some_and(|it| it.contains(message))
            }) {
                return line;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the service does not say {message:?}");
    }

    async fn ready(&self) -> (u16, String) {
        let admin = text(&self.wait_for_log("listening").await["admin"]);
        let answer = client()
            .get(format!("http://{admin}/readyz"))
            .send()
            .await
            .unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Waits until the service is ready.
    async fn is_ready(&self) {
        for _ in 0..900 {
            if self.ready().await.0 == 200 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("never ready again: {:?}", self.ready().await);
    }

    /// Submits a scan of one date; returns status and ended scan, or the refusal.
    async fn scan(&self) -> (u16, Value) {
        let url = format!(
            "http://{}",
            self.wait_for_log("listening").await["address"]
                .as_str()
                .unwrap()
        );
        let date = jiff::Timestamp::now()
            .to_zoned(jiff::tz::TimeZone::UTC)
            .date()
            .saturating_add(jiff::Span::new().days(40));
        let order = json!({
            "endpoint": "flights/oneway",
            "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": [date.to_string()]},
        });
        let order = client()
            .post(format!("{url}/v1/scans"))
            .header("x-api-key", "sandbox-unlimited")
            .json(&order);
        let answer = order.send().await.unwrap();
        let (status, scan): (_, Value) = (answer.status().as_u16(), answer.json().await.unwrap());
        let Some(id) = scan["id"].as_str() else {
            return (status, scan);
        };
        let end = client()
            .get(format!("{url}/v1/scans/{id}?wait=30"))
            .header("x-api-key", "sandbox-unlimited");
        (status, end.send().await.unwrap().json().await.unwrap())
    }
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

const SESSIONS_FAIL: &str = "new database sessions fail";

#[tokio::test(flavor = "multi_thread")]
async fn a_package_upgrade_is_detected_and_causes_one_restart() {
    let Some(fixture) = UpgradeFixture::new() else {
        return;
    };
    let service = fixture.start("service");
    service.is_ready().await;
    assert_eq!(service.scan().await.1["status"], "completed");
    let before = fixture.postmaster();
    fixture.upgrade();
    service.wait_for_log(SESSIONS_FAIL).await;
    let (status, why) = service.ready().await;
    println!("/readyz: {status} {why}");
    assert!(
        status == 503
            && why.contains("$libdir/plpgsql")
            && why.contains("replaced or removed while it ran"),
        "{status} {why}"
    );
    service.wait_for_log("embedded Postgres restarted").await;
    service.is_ready().await;
    assert_ne!(fixture.postmaster(), before);
    let (status, scan) = service.scan().await;
    println!("a scan after the restart: {status} {}", scan["status"]);
    assert_eq!(
        (status, &scan["status"]),
        (202, &json!("completed")),
        "{scan}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_in_use_by_another_process_is_not_restarted() {
    let Some(fixture) = UpgradeFixture::new() else {
        return;
    };
    let service = fixture.start("service");
    service.is_ready().await;
    let mut other = OwnerProcess::spawn(&fixture.home());
    let before = other.report().postmaster;
    fixture.upgrade();
    service
        .wait_for_log("restart of the embedded Postgres waits for other processes")
        .await;
    let (status, why) = service.ready().await;
    assert!(
        status == 503 && why.contains(SESSIONS_FAIL),
        "{status} {why}"
    );
    assert_eq!(fixture.postmaster(), before);
    other.close();
    service.is_ready().await;
    assert_ne!(fixture.postmaster(), before);
    assert_eq!(service.scan().await.0, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_agree_restart_the_server_once() {
    let Some(fixture) = UpgradeFixture::new() else {
        return;
    };
    let services = [
        fixture.start("one"),
        fixture.start("two"),
        fixture.start("three"),
    ];
    for service in &services {
        service.is_ready().await;
    }
    fixture.upgrade();
    for service in &services {
        service
            .wait_for_log("new database sessions work again")
            .await;
        service.is_ready().await;
    }
    let restarts = services.iter().map(|service| {
        fs::read_to_string(&service.log)
            .unwrap()
            .matches("embedded Postgres restarted")
            .count()
    });
    assert_eq!(restarts.sum::<usize>(), 1);
}

/// The old server can still load the new version's libraries.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_older_than_its_files_is_restarted() {
    let Some(fixture) = UpgradeFixture::new() else {
        return;
    };
    let service = fixture.start("service");
    service.is_ready().await;
    let before = fixture.postmaster();
    let program = fixture.programs().join("postgres");
    let real = fixture.programs().join("postgres.real");
    fs::rename(&program, &real).unwrap();
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo 'postgres (PostgreSQL) MAJOR.99' && exit\nexec \"$0.real\" \"$@\"\n";
    fs::write(&program, script.replace("MAJOR", &fixture.major)).unwrap();
    fs::set_permissions(
        &program,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let line = service
        .wait_for_log("database server and its files differ in version")
        .await;
    assert_eq!(line["installed"], format!("{}.99", fixture.major));
    service.wait_for_log("embedded Postgres restarted").await;
    service.is_ready().await;
    assert_ne!(fixture.postmaster(), before);
}
