//! `farescan` as processes of their own, on a test's database and marketplace.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use reqwest::header::HeaderMap;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::support::PATIENCE;
use crate::worker::stage::{KEY, Stage, ring_text};

/// The lease of the processes under test, in seconds: what is lost is seen after about two of it. A claim must be begun within half of it,
/// on a machine that has other things to do as well.
pub const LEASE_SECONDS: u64 = 5;

/// A running process. Dropped, it is killed; if its test fails, its log is shown.
pub struct Serve {
    child: Child,
    log: PathBuf,
}

/// An answer of its API.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Serve {
    /// A service that makes at most `concurrency` calls at a time.
    pub fn start(stage: &Stage, concurrency: u16) -> Self {
        Self::with(stage, concurrency, &[])
    }

    /// The same with more settings.
    pub fn with(stage: &Stage, concurrency: u16, settings: &[(&str, &str)]) -> Self {
        Self::spawn(
            stage,
            &[
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ],
            concurrency,
            settings,
        )
    }

    /// A service that is asked over HTTP; with the address of its API.
    pub async fn listening(stage: &Stage) -> (Self, SocketAddr) {
        let service = Self::start(stage, 1);
        let address = service.says("listening").await["address"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        (service, address)
    }

    /// A service that leaves the searches to workers.
    pub fn gateway(stage: &Stage) -> Self {
        Self::gateway_with(stage, &[])
    }

    /// The same with more settings.
    pub fn gateway_with(stage: &Stage, settings: &[(&str, &str)]) -> Self {
        let command = [
            "serve",
            "--no-worker",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
        ];
        Self::spawn(stage, &command, 1, settings)
    }

    /// A service that starts a sandbox of its own and asks that.
    pub fn sandbox(stage: &Stage) -> Self {
        Self::spawn(
            stage,
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
    pub fn worker(stage: &Stage, concurrency: u16, settings: &[(&str, &str)]) -> Self {
        Self::spawn(
            stage,
            &["worker", "--admin-listen", "127.0.0.1:0"],
            concurrency,
            settings,
        )
    }

    fn spawn(stage: &Stage, command: &[&str], concurrency: u16, settings: &[(&str, &str)]) -> Self {
        let log = stage
            .spool
            .path()
            .join(format!("{}.log", uuid::Uuid::now_v7().simple()));
        let child = Command::new(env!("CARGO_BIN_EXE_farescan"))
            .args(command)
            .env("DATABASE_URL", stage.db.url())
            .env("FARESCAN_FLIGHTS_URL", stage.upstream.url())
            .env("FARESCAN_HOTELS_URL", stage.upstream.url())
            .env("FARESCAN_MASTER_KEY", ring_text())
            .env("FARESCAN_LEASE_SECONDS", LEASE_SECONDS.to_string())
            .env("FARESCAN_WORKER_CONCURRENCY", concurrency.to_string())
            .env("FARESCAN_FLIGHTS_PER_MINUTE", "60000")
            .env("FARESCAN_MAX_IN_FLIGHT", "100")
            .env("FARESCAN_SPOOL_DIR", stage.spool.path())
            .env("FARESCAN_LOG_FORMAT", "json")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
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

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, once it has.
    pub async fn ended(mut self) -> ExitStatus {
        let end = tokio::time::Instant::now() + PATIENCE;
        while tokio::time::Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the service does not end");
    }

    /// Whether it takes requests, or has ended instead.
    pub async fn starts(&self) -> bool {
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

    /// How it ended by itself, once it has, and what it said last.
    pub async fn words(self) -> (ExitStatus, String) {
        let log = self.log.clone();
        let status = self.ended().await;
        let log = std::fs::read_to_string(log).unwrap();
        (status, log.lines().last().unwrap_or_default().to_owned())
    }

    /// Waits for a line of the log with this message; gives the line.
    pub async fn says(&self, message: &str) -> Value {
        let end = tokio::time::Instant::now() + PATIENCE;
        while tokio::time::Instant::now() < end {
            let log = std::fs::read_to_string(&self.log).unwrap();
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

    /// Where its API listens, once it does.
    pub async fn url(&self) -> String {
        format!(
            "http://{}",
            self.says("listening").await["address"].as_str().unwrap()
        )
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        let answer = post(&self.url().await, path, body, &[]).await;
        answer.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// The most memory that it has ever held, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

/// One request with the stage's key; an error when the service is gone.
pub async fn post(
    url: &str,
    path: &str,
    body: &Value,
    headers: &[(&str, &str)],
) -> reqwest::Result<Answer> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let mut request = client
        .post(format!("{url}{path}"))
        .header("x-api-key", KEY)
        .json(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Ok(Answer {
        status,
        headers,
        body: response.json().await?,
    })
}

impl Drop for Serve {
    fn drop(&mut self) {
        // It may be gone already.
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            eprintln!(
                "the last words of the process:\n{}",
                lines[lines.len().saturating_sub(40)..].join("\n")
            );
        }
    }
}
