//! `farescan serve` as a process of its own, on a test's database and marketplace.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::worker::stage::{Stage, ring_text};

/// The lease of the processes under test, in seconds: what is lost is seen after about two of it.
pub const LEASE_SECONDS: u64 = 2;

/// A running service. Dropped, it is killed.
pub struct Serve {
    child: Child,
}

impl Serve {
    /// Starts one that makes at most `concurrency` calls at a time.
    pub fn start(stage: &Stage, concurrency: u16) -> Self {
        Self { child: Self::command(stage, concurrency).stderr(Stdio::null()).spawn().unwrap() }
    }

    /// Starts one that is asked over HTTP; with the address of its API.
    pub fn listening(stage: &Stage) -> (Self, SocketAddr) {
        let mut child = Self::command(stage, 1).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let address = log.find_map(|line| {
            let line: Value = serde_json::from_str(&line).ok()?;
            (line["message"] == "listening").then(|| line["address"].as_str().unwrap().parse().unwrap())
        });
        // A log that nobody reads would fill its pipe.
        std::thread::spawn(move || log.for_each(drop));
        (Self { child }, address.expect("the service listens"))
    }

    fn command(stage: &Stage, concurrency: u16) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_farescan"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .env("DATABASE_URL", stage.db.url())
            .env("FARESCAN_FLIGHTS_URL", stage.upstream.url())
            .env("FARESCAN_HOTELS_URL", stage.upstream.url())
            .env("FARESCAN_MASTER_KEY", ring_text())
            .env("FARESCAN_LEASE_SECONDS", LEASE_SECONDS.to_string())
            .env("FARESCAN_WORKER_CONCURRENCY", concurrency.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL; returns when the process is gone.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// How it ended, once it has.
    pub async fn ended(mut self) -> ExitStatus {
        for _ in 0..3_000 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the service does not end");
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // It may be gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
