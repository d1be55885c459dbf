//! Runs `farescan` commands as processes with only the environment that a test sets.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::support::WAIT_LIMIT;

/// The built program.
pub fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_farescan").into()
}

/// A command line of `program`.
pub fn farescan(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null());
    command
}

/// Exit status and output of a command.
#[derive(Debug)]
pub struct CommandResult {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs a command and waits for it.
pub fn run(command: &mut Command) -> CommandResult {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandResult {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// A listening process. Killed on drop.
pub struct ListeningProcess {
    child: Child,
    /// Address of the API or the sandbox.
    pub address: Option<SocketAddr>,
    /// Address of the admin listener.
    pub admin: Option<SocketAddr>,
}

impl ListeningProcess {
    /// Starts the process and waits for its log line `listening`.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .env("FARESCAN_LOG_FORMAT", "json")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let (say, output) = mpsc::channel();
        // Keep reading, so that the process never blocks on its output.
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
        let (address, admin) = output
            .recv_timeout(WAIT_LIMIT)
            .expect("it listens in time")
            .expect("it listens");
        Self {
            child,
            address,
            admin,
        }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM and returns the exit status.
    pub async fn end(mut self) -> ExitStatus {
        rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let end = std::time::Instant::now() + WAIT_LIMIT;
        while std::time::Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the process does not end");
    }
}

impl Drop for ListeningProcess {
    fn drop(&mut self) {
        // The process may have ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
