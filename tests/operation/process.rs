//! `farescan` commands as processes with nothing in their environment but what a test says.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::support::PATIENCE;

/// The program of this build.
pub fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_farescan").into()
}

/// A command line of the program at `program`.
pub fn farescan(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null());
    command
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ended {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// A process that listens. Dropped, it is killed.
pub struct Listening {
    child: Child,
    /// Where the API is, or the sandbox.
    pub address: Option<SocketAddr>,
    /// Where health and metrics are.
    pub admin: Option<SocketAddr>,
}

impl Listening {
    /// Starts it and waits for its log line `listening`.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .env("FARESCAN_LOG_FORMAT", "json")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let (say, said) = mpsc::channel();
        // Read to its end, so that the process never waits for a reader.
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                let json: Value = serde_json::from_str(&line).unwrap_or_default();
                if json["message"]
                    .as_str()
                    .is_some_and(|message| message.starts_with("listening"))
                {
                    let address = |name: &str| {
                        json[name]
                            .as_str()
                            .map(|address| address.parse::<SocketAddr>().unwrap())
                    };
                    say.send(Ok((address("address"), address("admin")))).ok();
                }
                eprintln!("{line}");
            }
            say.send(Err("it ended before it listened")).ok();
        });
        let (address, admin) = said
            .recv_timeout(PATIENCE)
            .expect("it listens in time")
            .expect("it listens");
        Self {
            child,
            address,
            admin,
        }
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Tells it to end, and how it ended.
    pub async fn end(mut self) -> ExitStatus {
        rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let end = std::time::Instant::now() + PATIENCE;
        while std::time::Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the process does not end");
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It may be gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
