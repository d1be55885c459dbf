//! A process that uses an embedded server and can be killed: this test binary, started on
//! `owner_process`.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use farescan::db::embedded::{Durability, EmbeddedServer, ServerOptions};
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

const FOLDER: &str = "FARESCAN_TEST_OWNER_FOLDER";

/// Marks this test's lines in the test runner's output.
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
    let server = EmbeddedServer::start(&options).unwrap();
    // The test runner's line about this test has no newline yet.
    println!("\n{MARK}{:?} {}", server.origin(), server.pid());
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    drop(server);
}

/// A process that uses the server. Killed on drop.
pub struct OwnerProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: BufReader<std::process::ChildStdout>,
}

/// Output of an owner whose server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub origin: String,
    pub postmaster: i32,
}

impl OwnerProcess {
    pub fn spawn(home: &Path) -> Self {
        Self::spawn_by(Command::new(std::env::current_exe().unwrap()), home)
    }

    /// Runs as another user. `program`: a copy of this test binary that the user can access.
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

    /// Waits until the server runs.
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

    /// Sends SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets the process end regularly.
    pub fn close(&mut self) {
        drop(self.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for OwnerProcess {
    fn drop(&mut self) {
        // Fails if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Socket folder for [`connecting_process`].
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
    let output = options
        .ssl_mode(PgSslMode::Disable)
        .connect()
        .await
        .map_or_else(|error| error.to_string(), |_| "it is in".to_owned());
    println!("\n{MARK}{output}");
}

/// The server's answer to another user. `program`: a copy of this test binary that the user can
/// access.
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
