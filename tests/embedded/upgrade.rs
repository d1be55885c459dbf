//! A package upgrade replaces the programs of an embedded server while it runs: here a copy of the installed package, taken away.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::owner::Owner;
use super::pid_file;
use crate::support::db::reachable_folder;

/// Where the services of a test have their Postgres, and its packages.
struct Place {
    folder: TempDir,
    /// The installed one, which is copied.
    installed: PathBuf,
    major: String,
}

/// A service on the embedded server, with a sandbox.
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

impl Place {
    /// `None`: not a Debian package, whose layout is what is copied.
    fn new() -> Option<Self> {
        let mut installed: Vec<_> = fs::read_dir("/usr/lib/postgresql")
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .collect();
        installed.sort();
        let installed = installed.pop()?;
        let major = installed.file_name()?.to_str()?.to_owned();
        let place = Self {
            folder: reachable_folder(),
            installed,
            major,
        };
        place.install("before");
        Some(place)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of the embedded server.
    fn home(&self) -> PathBuf {
        self.path().join("data/sandbox")
    }

    /// What stands for the package's folder: upgraded, it leads elsewhere.
    fn programs(&self) -> PathBuf {
        self.path().join("programs")
    }

    /// A copy that finds its libraries and its share from where its program lies; the programs are from now on its.
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

    /// A new package comes, the old one goes.
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

    /// The server's process.
    fn postmaster(&self) -> i32 {
        let text = fs::read_to_string(pid_file(&self.home())).unwrap();
        text.lines().next().unwrap().trim().parse().unwrap()
    }
}

impl Service {
    /// Waits for a line of the log with this message.
    async fn says(&self, message: &str) -> Value {
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
        let admin = self.says("listening").await["admin"]
            .as_str()
            .unwrap()
            .to_owned();
        let answer = client()
            .get(format!("http://{admin}/readyz"))
            .send()
            .await
            .unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Waits until it is ready again.
    async fn is_ready(&self) {
        for _ in 0..900 {
            if self.ready().await.0 == 200 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("never ready again: {:?}", self.ready().await);
    }

    /// Orders a scan of one date; its status, and the scan once it has ended or the refusal.
    async fn scan(&self) -> (u16, Value) {
        let url = format!(
            "http://{}",
            self.says("listening").await["address"].as_str().unwrap()
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

const DAMAGED: &str = "new database sessions cannot work";

#[tokio::test(flavor = "multi_thread")]
async fn a_package_upgrade_is_noticed_and_mended_by_one_restart() {
    let Some(place) = Place::new() else { return };
    let service = place.start("service");
    service.is_ready().await;
    assert_eq!(service.scan().await.1["status"], "completed");
    let before = place.postmaster();
    place.upgrade();
    service.says(DAMAGED).await;
    let (status, why) = service.ready().await;
    println!("/readyz: {status} {why}");
    assert!(
        status == 503
            && why.contains("$libdir/plpgsql")
            && why.contains("replaced or removed while it ran"),
        "{status} {why}"
    );
    service.says("the embedded Postgres was restarted").await;
    service.is_ready().await;
    assert_ne!(place.postmaster(), before);
    let (status, scan) = service.scan().await;
    println!("a scan after the restart: {status} {}", scan["status"]);
    assert_eq!(
        (status, &scan["status"]),
        (202, &json!("completed")),
        "{scan}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_another_process_uses_is_not_restarted() {
    let Some(place) = Place::new() else { return };
    let service = place.start("service");
    service.is_ready().await;
    let mut other = Owner::spawn(&place.home());
    let before = other.report().postmaster;
    place.upgrade();
    service
        .says("as soon as every process that uses it agrees")
        .await;
    let (status, why) = service.ready().await;
    assert!(status == 503 && why.contains(DAMAGED), "{status} {why}");
    assert_eq!(place.postmaster(), before);
    other.close();
    service.is_ready().await;
    assert_ne!(place.postmaster(), before);
    assert_eq!(service.scan().await.0, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_agree_restart_their_server_once() {
    let Some(place) = Place::new() else { return };
    let services = [place.start("one"), place.start("two"), place.start("three")];
    for service in &services {
        service.is_ready().await;
    }
    place.upgrade();
    for service in &services {
        service.says("new database sessions work again").await;
        service.is_ready().await;
    }
    let restarts = services.iter().map(|service| {
        fs::read_to_string(&service.log)
            .unwrap()
            .matches("Postgres was restarted")
            .count()
    });
    assert_eq!(restarts.sum::<usize>(), 1);
}

/// The new version can still be loaded by the old server, but not for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_older_than_its_files_is_restarted() {
    let Some(place) = Place::new() else { return };
    let service = place.start("service");
    service.is_ready().await;
    let before = place.postmaster();
    let program = place.programs().join("postgres");
    let real = place.programs().join("postgres.real");
    fs::rename(&program, &real).unwrap();
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo 'postgres (PostgreSQL) MAJOR.99' && exit\nexec \"$0.real\" \"$@\"\n";
    fs::write(&program, script.replace("MAJOR", &place.major)).unwrap();
    fs::set_permissions(
        &program,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let told = service.says("is older than its files").await;
    assert_eq!(told["installed"], format!("{}.99", place.major));
    service.says("the embedded Postgres was restarted").await;
    service.is_ready().await;
    assert_ne!(place.postmaster(), before);
}
