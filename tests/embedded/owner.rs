//! A process that uses an embedded server, to be killed: this test binary, started again on `owner_process`.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use farescan::db::embedded::{Durability, Server, ServerOptions};
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

const FOLDER: &str = "FARESCAN_TEST_OWNER_FOLDER";

/// Marks our lines among those of the test runner.
const MARK: &str = "owner: ";

#[test]
#[ignore = "not a test by itself: the process that other tests start and kill"]
fn owner_process() {
    let Some(home) = std::env::var_os(FOLDER) else {
        return;
    };
    let options = ServerOptions {
        home: home.into(),
        pg_bin: None,
        durability: Durability::Full,
    };
    let server = Server::start(&options).unwrap();
    // A line of its own: the test runner leaves its line about this test unfinished.
    println!("\n{MARK}{:?} {}", server.origin(), server.pid());
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    drop(server);
}

/// A started owner. Dropping it kills the process.
pub struct Owner {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: BufReader<std::process::ChildStdout>,
}

/// What an owner says when its server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub origin: String,
    pub postmaster: i32,
}

impl Owner {
    pub fn spawn(home: &Path) -> Self {
        Self::spawn_by(Command::new(std::env::current_exe().unwrap()), home)
    }

    /// As another user. `program`: this test binary at a place that the user can reach.
    pub fn spawn_as(user: u32, program: &Path, home: &Path) -> Self {
        let mut command = Command::new(program);
        command.uid(user).gid(user).current_dir("/");
        Self::spawn_by(command, home)
    }

    fn spawn_by(mut command: Command, home: &Path) -> Self {
        let mut child = command
            .args([
                "--exact",
                "embedded::owner::owner_process",
                "--ignored",
                "--nocapture",
            ])
            .env(FOLDER, home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            lines,
        }
    }

    /// Waits until its server runs.
    pub fn report(&mut self) -> Report {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            if let Some((origin, postmaster)) = line
                .trim()
                .strip_prefix(MARK)
                .and_then(|rest| rest.split_once(' '))
            {
                return Report {
                    origin: origin.to_owned(),
                    postmaster: postmaster.parse().unwrap(),
                };
            }
            line.clear();
        }
        panic!(
            "the owner ended before its server ran: {:?}",
            self.child.wait()
        );
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets it end in good order.
    pub fn close(&mut self) {
        drop(self.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Fails when it has ended already, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder of the socket that [`connecting_process`] tries.
const SOCKET: &str = "FARESCAN_TEST_SOCKET";

#[tokio::test]
#[ignore = "not a test by itself: the process that another test starts as another user"]
async fn connecting_process() {
    let Some(folder) = std::env::var_os(SOCKET) else {
        return;
    };
    let options = PgConnectOptions::new_without_pgpass()
        .socket(folder)
        .username("farescan")
        .database("postgres");
    let said = options
        .ssl_mode(PgSslMode::Disable)
        .connect()
        .await
        .map_or_else(|error| error.to_string(), |_| "it is in".to_owned());
    println!("\n{MARK}{said}");
}

/// What a server says to another user of this system. `program`: this test binary at a place that the user can reach.
pub fn connect_as(user: u32, program: &Path, socket_dir: &Path) -> String {
    let mut command = Command::new(program);
    command
        .uid(user)
        .gid(user)
        .current_dir("/")
        .env(SOCKET, socket_dir);
    let output = command
        .args([
            "--exact",
            "embedded::owner::connecting_process",
            "--ignored",
            "--nocapture",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .find_map(|line| line.strip_prefix(MARK))
        .unwrap_or_else(|| panic!("it said nothing: {text}"))
        .to_owned()
}
