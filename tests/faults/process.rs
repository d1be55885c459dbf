//! `farescan` processes on a test's database and marketplace.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use reqwest::header::HeaderMap;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::support::{SERVE, WAIT_LIMIT};
use crate::worker::fixture::{KEY, WorkerFixture, ring_text};

/// The lease of the processes under test, in seconds. Lost calls are found after about two leases.
/// A claim must begin within half a lease, also on a busy machine.
pub const LEASE_SECONDS: u64 = 5;

/// A running process. It is killed when dropped; if its test fails, the end of its log is printed.
pub struct FarescanProcess {
    child: Child,
    log: PathBuf,
}

/// A response of its API.
#[derive(Debug)]
pub struct ProcessResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl FarescanProcess {
    /// A service that makes at most `concurrency` calls at a time.
    pub fn start(fixture: &WorkerFixture, concurrency: u16) -> Self {
        Self::start_with(fixture, concurrency, &[])
    }

    /// The same with more settings.
    pub fn start_with(
        fixture: &WorkerFixture,
        concurrency: u16,
        settings: &[(&str, &str)],
    ) -> Self {
        Self::spawn(fixture, &SERVE, concurrency, settings)
    }

    /// A service that makes one call at a time, and the address of its API.
    pub async fn start_listening(fixture: &WorkerFixture) -> (Self, SocketAddr) {
        let service = Self::start(fixture, 1);
        let address = service.wait_for_log("listening").await["address"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        (service, address)
    }

    /// A service without a worker.
    pub fn start_gateway(fixture: &WorkerFixture) -> Self {
        Self::start_gateway_with(fixture, &[])
    }

    /// The same with more settings.
    pub fn start_gateway_with(fixture: &WorkerFixture, settings: &[(&str, &str)]) -> Self {
        let command = [
            "serve",
            "--no-worker",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
        ];
        Self::spawn(fixture, &command, 1, settings)
    }

    /// A service with its own sandbox as the marketplace.
    pub fn start_sandbox(fixture: &WorkerFixture) -> Self {
        Self::spawn(
            fixture,
            &[
                "serve",
                "--sandbox",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ],
            10,
            &[],
        )
    }

    /// A worker without an API.
    pub fn start_worker(
        fixture: &WorkerFixture,
        concurrency: u16,
        settings: &[(&str, &str)],
    ) -> Self {
        Self::spawn(
            fixture,
            &["worker", "--admin-listen", "127.0.0.1:0"],
            concurrency,
            settings,
        )
    }

    /// A service whose instructions valgrind counts. It writes the count to `file` when the service has
    /// ended. It runs some fifty times slower, so the lease is longer.
    pub fn start_counted(fixture: &WorkerFixture, file: &Path) -> Self {
        let mut valgrind = Command::new("valgrind");
        valgrind
            .args(["--tool=callgrind", "--quiet"])
            .arg(format!("--callgrind-out-file={}", file.display()))
            .arg(env!("CARGO_BIN_EXE_farescan"));
        let lease = [("FARESCAN_LEASE_SECONDS", "120")];
        Self::spawn_program(valgrind, fixture, &SERVE, 20, &lease)
    }

    fn spawn(
        fixture: &WorkerFixture,
        command: &[&str],
        concurrency: u16,
        settings: &[(&str, &str)],
    ) -> Self {
        let program = Command::new(env!("CARGO_BIN_EXE_farescan"));
        Self::spawn_program(program, fixture, command, concurrency, settings)
    }

    fn spawn_program(
        mut program: Command,
        fixture: &WorkerFixture,
        command: &[&str],
        concurrency: u16,
        settings: &[(&str, &str)],
    ) -> Self {
        let log = fixture
            .spool
            .path()
            .join(format!("{}.log", uuid::Uuid::now_v7().simple()));
        let child = program
            .args(command)
            .env("DATABASE_URL", fixture.db.url())
            .env("FARESCAN_FLIGHTS_URL", fixture.upstream.url())
            .env("FARESCAN_HOTELS_URL", fixture.upstream.url())
            .env("FARESCAN_MASTER_KEY", ring_text())
            .env("FARESCAN_LEASE_SECONDS", LEASE_SECONDS.to_string())
            .env("FARESCAN_WORKER_CONCURRENCY", concurrency.to_string())
            .env("FARESCAN_FLIGHTS_PER_MINUTE", "60000")
            .env("FARESCAN_MAX_IN_FLIGHT", "100")
            .env("FARESCAN_SPOOL_DIR", fixture.spool.path())
            .env("FARESCAN_LOG_FORMAT", "json")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap_or_else(|error| panic!("{program:?}: {error}"));
        Self { child, log }
    }

    /// SIGKILL; returns when the process is gone.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the process exits.
    pub async fn wait_for_exit(mut self) -> ExitStatus {
        let end = tokio::time::Instant::now() + WAIT_LIMIT;
        while tokio::time::Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the service does not end");
    }

    /// Waits until the process listens or fails; returns whether it listens.
    pub async fn wait_for_start(&self) -> bool {
        for _ in 0..6_000 {
            let log = std::fs::read_to_string(&self.log).unwrap();
            match (
                log.contains("\"listening\""),
                log.lines()
                    .last()
                    .is_some_and(|line| line.starts_with("farescan: ")),
            ) {
                (false, false) => tokio::time::sleep(Duration::from_millis(10)).await,
                (listening, _) => return listening,
            }
        }
        panic!("the service neither starts nor ends");
    }

    /// Waits until the process exits; returns its status and the last line of its log.
    pub async fn wait_for_failure(self) -> (ExitStatus, String) {
        let log = self.log.clone();
        let status = self.wait_for_exit().await;
        let log = std::fs::read_to_string(log).unwrap();
        (status, log.lines().last().unwrap_or_default().to_owned())
    }

    /// Waits for a log line with this message and returns it.
    pub async fn wait_for_log(&self, message: &str) -> Value {
        let end = tokio::time::Instant::now() + WAIT_LIMIT;
        while tokio::time::Instant::now() < end {
            let log = std::fs::read_to_string(&self.log).unwrap();
            let lines = log
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            if let Some(line) = lines.into_iter().find(|line| {
                line["message"]
                    .as_str()
                    .is_some_and(|text| text.contains(message))
            }) {
                return line;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the service does not log {message:?}");
    }

    /// The URL of its API, once it listens.
    pub async fn url(&self) -> String {
        format!(
            "http://{}",
            self.wait_for_log("listening").await["address"]
                .as_str()
                .unwrap()
        )
    }

    pub async fn post(&self, path: &str, body: &Value) -> ProcessResponse {
        let answer = post(&self.url().await, path, body, &[]).await;
        answer.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// The peak resident memory, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

/// One request with the fixture's key; an error when the service is down.
pub async fn post(
    url: &str,
    path: &str,
    body: &Value,
    headers: &[(&str, &str)],
) -> reqwest::Result<ProcessResponse> {
    let mut request = crate::support::http_client()
        .post(format!("{url}{path}"))
        .header("x-api-key", KEY)
        .json(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Ok(ProcessResponse {
        status,
        headers,
        body: response.json().await?,
    })
}

impl Drop for FarescanProcess {
    fn drop(&mut self) {
        // It may have exited already.
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            eprintln!(
                "the end of the process's log:\n{}",
                lines[lines.len().saturating_sub(40)..].join("\n")
            );
        }
    }
}
