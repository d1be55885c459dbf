//! The compose services as local processes, in start order: their own command lines and variables,
//! a Postgres with password authentication and, if the test runs as root, the image's user without
//! a writable folder.
//!
//! Not covered: Docker itself (images, volumes, networks).

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tempfile::TempDir;

use super::compose::{compose, interpolated, words};
use super::process::{CommandResult, ListeningProcess, farescan, program, run};
use crate::support::db::{execute, world_readable_folder};

/// The image's user.
const USER: u32 = 65532;

/// Folders in place of the volumes, and the running services.
struct Stack {
    compose: Value,
    place: TempDir,
    program: PathBuf,
    /// Replacements of texts in the file.
    localized: BTreeMap<String, String>,
    postgres: Option<Postgres>,
    running: BTreeMap<String, ListeningProcess>,
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Stack {
    fn new() -> Self {
        let place = world_readable_folder();
        let program = place.path().join("farescan");
        fs::copy(self::program(), &program).unwrap();
        let mut localized = BTreeMap::new();
        for (volume, owner) in [
            ("keys", Some(USER)),
            ("spool", Some(USER)),
            ("database", None),
        ] {
            let folder = place.path().join(volume);
            fs::create_dir(&folder).unwrap();
            if is_root() {
                fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
                chown(&folder, owner, owner).unwrap();
            }
            localized.insert(
                format!("/farescan/{volume}"),
                folder.to_str().unwrap().to_owned(),
            );
        }
        // Each service gets a free port, because all share the loopback interface.
        for port in ["0.0.0.0:8080", "0.0.0.0:9090", "0.0.0.0:8090"] {
            localized.insert(port.to_owned(), "127.0.0.1:0".to_owned());
        }
        Self {
            compose: compose(),
            place,
            program,
            localized,
            postgres: None,
            running: BTreeMap::new(),
        }
    }

    /// Applies the replacements to a text of the file.
    fn localized(&self, text: &str) -> String {
        self.localized
            .iter()
            .fold(interpolated(text), |text, (there, localized)| {
                text.replace(there, localized)
            })
    }

    /// A service's command line as the image's user, who can write only to volumes.
    fn command(&self, service: &str) -> Command {
        let service = &self.compose["services"][service];
        let line: Vec<_> = words(&service["command"])
            .into_iter()
            .map(|word| self.localized(word))
            .collect();
        let mut command = farescan(
            &self.program,
            &line.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        for (name, value) in service["environment"].as_object().into_iter().flatten() {
            command.env(name, self.localized(value.as_str().unwrap()));
        }
        command.current_dir(self.place.path());
        if is_root() {
            command.uid(USER).gid(USER);
        }
        command
    }

    /// Starts a service, or runs one that ends. Returns when dependent services may start.
    async fn start_service(&mut self, name: &str) {
        match name {
            "password" => self.make_password(),
            "postgres" => self.start_postgres().await,
            _ if self.compose["services"][name]["restart"] == "no" => {
                let ended = run(&mut self.command(name));
                assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
            }
            _ => {
                let running = ListeningProcess::start(&mut self.command(name));
                if name == "sandbox" {
                    self.localized.insert(
                        "sandbox:8090".to_owned(),
                        running.address.unwrap().to_string(),
                    );
                }
                self.running.insert(name.to_owned(), running);
            }
        }
    }

    /// Runs the step's own script.
    fn make_password(&self) {
        let service = &self.compose["services"]["password"];
        let entry: Vec<_> = words(&service["entrypoint"]);
        let script = self.localized(words(&service["command"])[0]);
        let status = Command::new(entry[0])
            .args(&entry[1..])
            .arg(script)
            .status()
            .unwrap();
        assert!(status.success());
    }

    fn password(&self) -> String {
        fs::read_to_string(self.place.path().join("database/password")).unwrap()
    }

    async fn start_postgres(&mut self) {
        let postgres = Postgres::start(
            self.place.path(),
            &self.place.path().join("database/password"),
        )
        .await;
        self.localized.insert(
            "postgres:5432".to_owned(),
            format!("127.0.0.1:{}", postgres.port),
        );
        self.postgres = Some(postgres);
    }

    /// Runs the image's health check for one service.
    fn health(&self, service: &str) -> CommandResult {
        let admin = self.running[service].admin.unwrap().to_string();
        run(farescan(&self.program, &["healthcheck"]).env("FARESCAN_ADMIN_LISTEN", admin))
    }

    fn api(&self) -> SocketAddr {
        self.running["serve"].address.unwrap()
    }
}

/// Services ordered by their dependencies.
fn start_order(compose: &Value) -> Vec<String> {
    let services = compose["services"].as_object().unwrap();
    // The marketplace first: no service depends on it, but all call it.
    let mut order = vec!["sandbox".to_owned()];
    while order.len() < services.len() {
        let ready = services.iter().find(|(name, service)| {
            let needs = service["depends_on"].as_object().into_iter().flatten();
            !order.contains(name)
                && needs
                    .map(|(needed, _)| needed)
                    .all(|needed| order.contains(needed))
        });
        order.push(ready.expect("no service waits for itself").0.clone());
    }
    order
}

/// A cluster as the image creates it: password authentication, TCP only.
struct Postgres {
    server: Child,
    port: u16,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The server stops its children.
        let pid = rustix::process::Pid::from_child(&self.server);
        rustix::process::kill_process(pid, rustix::process::Signal::QUIT).ok();
        self.server.wait().ok();
    }
}

impl Postgres {
    async fn start(place: &Path, password: &Path) -> Self {
        let (bin, cluster) = (programs(), place.join("cluster"));
        fs::create_dir(&cluster).unwrap();
        let owner = is_root().then(owner_of_clusters);
        chown(&cluster, owner, None).unwrap();
        let data = cluster.join("data");
        let as_owner = |name: &str| {
            let mut command = Command::new(bin.join(name));
            command
                .current_dir("/")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if let Some(owner) = owner {
                command.uid(owner).gid(owner);
            }
            command
        };
        let mut initdb = as_owner("initdb");
        initdb
            .args([
                "--auth=scram-sha-256",
                "--username=farescan",
                "--encoding=UTF8",
                "--no-sync",
                "--pwfile",
            ])
            .arg(password);
        assert!(
            initdb
                .arg("--pgdata")
                .arg(&data)
                .status()
                .unwrap()
                .success()
        );
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut server = as_owner("postgres");
        let settings = [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
        ]
        .map(str::to_owned);
        for setting in settings.into_iter().chain([format!("port={port}")]) {
            server.args(["-c", &setting]);
        }
        let server = server.arg("-D").arg(&data).spawn().unwrap();
        let started = Self { server, port };
        let password = fs::read_to_string(password).unwrap();
        let url =
            format!("postgres://farescan:{password}@127.0.0.1:{port}/postgres?sslmode=disable");
        let mut connection = connect_with_retry(&url.parse().unwrap()).await;
        execute(&mut connection, "create database farescan")
            .await
            .unwrap();
        started
    }
}

/// Connects, with retries until the server is ready.
async fn connect_with_retry(options: &PgConnectOptions) -> PgConnection {
    for _ in 0..6_000 {
        if let Ok(connection) = options.connect().await {
            return connection;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the server does not come up");
}

/// Folder of a Postgres installation: as configured, in PATH, or the newest of Debian's.
fn programs() -> PathBuf {
    let named = std::env::var_os("FARESCAN_PG_BIN").map(PathBuf::from);
    let on_path = std::env::var_os("PATH")
        .into_iter()
        .flat_map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let mut packaged: Vec<_> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    packaged.sort();
    let folders = named
        .into_iter()
        .chain(on_path)
        .chain(packaged.into_iter().rev().map(|folder| folder.join("bin")));
    folders
        .into_iter()
        .find(|folder| folder.join("initdb").is_file())
        .expect("a Postgres is installed")
}

fn owner_of_clusters() -> u32 {
    let id = |user: &str| {
        let output = Command::new("id").args(["-u", user]).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    id("postgres")
        .or_else(|| id("nobody"))
        .expect("there is a user for the server")
}

/// Sends as a client does: again while the database has no answer within its 2 s. The key makes a
/// submission happen once.
async fn send(request: reqwest::RequestBuilder) -> (u16, Value) {
    let request = request
        .header("x-api-key", "sandbox-unlimited")
        .header("idempotency-key", "compose-1");
    let mut shown = (503, Value::Null);
    crate::support::wait_until("the database answers", async || {
        let answer = request.try_clone().unwrap().send().await.unwrap();
        shown = (answer.status().as_u16(), answer.json().await.unwrap());
        shown.0 != 503
    })
    .await;
    shown
}

#[tokio::test(flavor = "multi_thread")]
async fn compose_services_start_in_order_and_run_a_scan() {
    let mut stack = Stack::new();
    let order = start_order(&stack.compose);
    assert_eq!(order.len(), 7, "{order:?}");
    for name in &order {
        stack.start_service(name).await;
    }
    for service in ["serve", "worker"] {
        crate::support::wait_until("it is healthy", async || {
            stack.health(service).code == Some(0)
        })
        .await;
    }

    let http = reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(90))
        .build()
        .unwrap();
    let first = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date()
        .saturating_add(jiff::Span::new().days(40));
    let last = first.saturating_add(jiff::Span::new().days(2));
    let order = json!({
        "endpoint": "flights/oneway",
        "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {"departure_date": {"from": first.to_string(), "to": last.to_string()}},
    });
    let (status, scan) = send(
        http.post(format!("http://{}/v1/scans", stack.api()))
            .json(&order),
    )
    .await;
    assert_eq!(status, 202, "{scan}");
    let id = scan["id"].as_str().unwrap();
    let mut scan = Value::Null;
    for _ in 0..3 {
        (_, scan) = send(http.get(format!("http://{}/v1/scans/{id}?wait=30", stack.api()))).await;
        if scan["finished_at"].is_string() {
            break;
        }
    }
    assert_eq!(
        (&scan["status"], &scan["items"]["total"]),
        (&json!("completed"), &json!(3)),
        "{scan:#}"
    );

    // A second start keeps what the first one created.
    let before = (
        stack.password(),
        fs::read(stack.place.path().join("keys/master.key")).unwrap(),
    );
    assert_eq!(before.0.len(), 64);
    for again in ["password", "keys", "migrate"] {
        stack.start_service(again).await;
    }
    assert_eq!(
        (
            stack.password(),
            fs::read(stack.place.path().join("keys/master.key")).unwrap()
        ),
        before
    );

    for service in ["worker", "serve", "sandbox"] {
        let status = stack.running.remove(service).unwrap().end().await;
        assert!(status.success(), "{service}: {status}");
    }
}
