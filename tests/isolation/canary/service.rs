//! The service as a process of its own, with its own embedded Postgres, logging everything.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use farescan::db::embedded::{Durability, EmbeddedServer, ServerOptions};
use rustix::process::{Pid, Signal};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection};

use crate::support::upstream::ScriptedServer;
use crate::support::{SERVE, WAIT_LIMIT};

/// A running service. Dropped, it is killed.
pub struct Service {
    child: Child,
    place: PathBuf,
    starts: usize,
    pub url: String,
    pub admin_url: String,
    /// Keeps the database's server running between two starts of the service.
    server: EmbeddedServer,
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may be gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Service {
    /// Starts one with its data in this folder.
    pub async fn start(upstream: &ScriptedServer, place: &Path, format: &str) -> Self {
        Self::started(upstream, place, format, 1).await
    }

    async fn started(upstream: &ScriptedServer, place: &Path, format: &str, starts: usize) -> Self {
        let child = spawn(upstream, place, format, starts);
        let log = log_file(place, starts);
        let addresses = until("the service listens", || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            Some((address(&text, "address")?, address(&text, "admin")?))
        });
        let (address, admin) = addresses.await;
        let server = adopt(place).await;
        let service = Self {
            child,
            place: place.to_owned(),
            starts,
            url: format!("http://{address}"),
            admin_url: format!("http://{admin}"),
            server,
        };
        service.ready().await;
        service
    }

    /// Told to end, and started again on the same data.
    pub async fn restart(mut self, upstream: &ScriptedServer, format: &str) -> Self {
        rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let child = &mut self.child;
        until("the service has ended", || child.try_wait().unwrap()).await;
        Self::started(upstream, &self.place, format, self.starts + 1).await
    }

    async fn ready(&self) {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        for _ in 0..600 {
            let answer = http.get(format!("{}/readyz", self.admin_url)).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!(
            "the service is not ready: {}",
            std::fs::read_to_string(log_file(&self.place, self.starts)).unwrap()
        );
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn postmaster(&self) -> u32 {
        self.server.pid().try_into().unwrap()
    }

    /// Where everything that it keeps is: its logs, its data.
    pub fn place(&self) -> &Path {
        &self.place
    }

    fn options(&self) -> PgConnectOptions {
        self.server.connect_options().database("farescan")
    }

    pub async fn connect(&self) -> PgConnection {
        self.options().connect().await.unwrap()
    }

    /// From now on Postgres writes down every statement with its parameters.
    pub async fn log_every_statement(&self) {
        let mut conn = self.connect().await;
        for setting in [
            "log_statement = 'all'",
            "log_min_duration_statement = 0",
            "log_min_messages = 'debug1'",
        ] {
            let set = sqlx::AssertSqlSafe(format!("alter system set {setting}"));
            execute!(&mut conn, set);
        }
        execute!(&mut conn, "select pg_reload_conf()");
    }

    /// The database's server takes no connections any more.
    pub async fn take_database_away(&self) {
        let mut conn = self
            .server
            .connect_options()
            .database("postgres")
            .connect()
            .await
            .unwrap();
        execute!(&mut conn, "alter database farescan allow_connections false");
        execute!(
            &mut conn,
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'farescan'"
        );
    }

    pub async fn bring_database_back(&self) {
        let mut conn = self
            .server
            .connect_options()
            .database("postgres")
            .connect()
            .await
            .unwrap();
        execute!(&mut conn, "alter database farescan allow_connections true");
    }

    /// Puts a key where a mistake would: into a table and into a stored answer.
    pub async fn plant(&self, key: &str) {
        let mut conn = self.connect().await;
        execute!(&mut conn, "create table planted (key text)");
        execute!(&mut conn, "insert into planted values ($1)", key);
        let body = zstd::encode_all(format!("[{{\"airline\": \"{key}\"}}]").as_bytes(), 3).unwrap();
        execute!(&mut conn, "update answers set body = $1", body);
    }

    /// A process with a key in its arguments and its environment, which says it on its way out into the service's log.
    pub fn plant_process(&self, key: &str) -> Planted {
        let log = File::create(log_file(&self.place, 0)).unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo \"$1\" >&2; read line", "sh", key])
            .env("PLANTED", key);
        Planted(
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .unwrap(),
        )
    }
}

/// A process with a key. Dropped, it is killed.
pub struct Planted(Child);

impl Planted {
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn log_file(place: &Path, starts: usize) -> PathBuf {
    place.join(format!("service-{starts}.log"))
}

fn spawn(upstream: &ScriptedServer, place: &Path, format: &str, starts: usize) -> Child {
    let log = File::create(log_file(place, starts)).unwrap();
    Command::new(env!("CARGO_BIN_EXE_farescan"))
        .args(SERVE)
        .env_remove("DATABASE_URL")
        .env("FARESCAN_DATA_DIR", place.join("home"))
        .env("FARESCAN_FLIGHTS_URL", upstream.url())
        .env("FARESCAN_HOTELS_URL", upstream.url())
        .env("FARESCAN_FLIGHTS_PER_MINUTE", "60000")
        .env("FARESCAN_SEARCH_TIMEOUT_SECONDS", "1")
        .env("FARESCAN_LOG", "trace")
        .env("FARESCAN_LOG_FORMAT", format)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// The guard of the server that the service started: it is adopted, not started again.
async fn adopt(place: &Path) -> EmbeddedServer {
    let options = ServerOptions {
        home: place.join("home"),
        pg_bin: None,
        durability: Durability::Full,
    };
    tokio::task::spawn_blocking(move || EmbeddedServer::start(&options).unwrap())
        .await
        .unwrap()
}

/// The address that a log line tells under this name, in either format.
fn address(log: &str, name: &str) -> Option<String> {
    let line = log.lines().find(|line| {
        line.contains("listening") && line.contains("127.0.0.1:") && line.contains("admin")
    })?;
    let json: Option<serde_json::Value> = serde_json::from_str(line).ok();
    if let Some(found) = json.as_ref().and_then(|json| json[name].as_str()) {
        return Some(found.to_owned());
    }
    let after = line.split(&format!("{name}=")).nth(1)?;
    Some(after.split_whitespace().next()?.to_owned())
}

async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = tokio::time::Instant::now() + WAIT_LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            tokio::time::Instant::now() < end,
            "waited in vain until {what}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
