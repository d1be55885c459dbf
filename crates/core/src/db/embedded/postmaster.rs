//! The server process: observed by its pid file, started, stopped. The caller holds the start lock.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::folders::Folders;
use super::{EmbeddedError, PORT};

const POLL: Duration = Duration::from_millis(5);

/// A fast shutdown includes a checkpoint.
const FAST_SHUTDOWN: Duration = Duration::from_secs(30);

/// An immediate shutdown does not.
const IMMEDIATE_SHUTDOWN: Duration = Duration::from_secs(5);

/// Crash recovery replays the log since the last checkpoint first.
const START: Duration = Duration::from_secs(60);

/// Time to the first byte on a busy machine.
const ANSWER: Duration = Duration::from_secs(1);

/// SSLRequest, the protocol's smallest request: length 8, code 80877103. The answer is one byte.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// A start replaces a log that is larger.
const LONGEST_LOG_BYTES: u64 = 4 << 20;

/// A server that accepts connections.
#[derive(Clone, Debug)]
pub(super) struct RunningServer {
    pub(super) pid: i32,
    pub(super) socket_dir: PathBuf,
}

/// The state by pid file and process.
#[derive(Debug)]
pub(super) enum ServerState {
    /// No pid file.
    Absent,
    /// The pid file's process is gone, a zombie, or another program.
    Stale,
    /// Starting, recovering or stopping. No pid if the pid file is incomplete.
    Busy(Option<i32>),
    /// Accepts connections.
    Ready(RunningServer),
}

/// Determines the state of a cluster's server.
pub(super) fn observe(data: &Path) -> Result<ServerState, EmbeddedError> {
    let path = pid_file(data);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(ServerState::Absent);
        }
        Err(error) => return Err(EmbeddedError::io("cannot read", &path)(error)),
    };
    let Some(file) = PidFile::parse(&text) else {
        return Ok(ServerState::Busy(None));
    };
    match file.socket_dir {
        // First, because a server in another container that shares the folder has no visible
        // process.
        Some(socket_dir) if file.ready && takes_connections(&socket_dir) => {
            Ok(ServerState::Ready(RunningServer {
                pid: file.pid,
                socket_dir,
            }))
        }
        _ if is_our_server(file.pid, data) => Ok(ServerState::Busy(Some(file.pid))),
        _ => Ok(ServerState::Stale),
    }
}

/// Whether the server with this pid accepts connections.
pub(super) fn is_ready(data: &Path, pid: i32) -> Result<bool, EmbeddedError> {
    Ok(matches!(observe(data)?, ServerState::Ready(running) if running.pid == pid))
}

/// Removes a dead server's files. Postgres keeps them if the pid now belongs to a zombie or to
/// another program, as in a restarted container. Shared memory still guards against a second
/// server.
pub(super) fn clear_stale(folders: &Folders) -> Result<(), EmbeddedError> {
    for path in [
        pid_file(&folders.data),
        socket(&folders.socket_dir).with_added_extension("lock"),
    ] {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(EmbeddedError::io("cannot remove", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Starts the server and waits until it accepts connections. It survives this process and the
/// signals of the terminal.
pub(super) fn spawn(
    mut command: Command,
    folders: &Folders,
) -> Result<RunningServer, EmbeddedError> {
    let mut log = open_log(&folders.log)?;
    let before = log
        .seek(SeekFrom::End(0))
        .map_err(EmbeddedError::io("cannot read", &folders.log))?;
    let output = || {
        log.try_clone()
            .map_err(EmbeddedError::io("cannot open", &folders.log))
    };
    command.stdout(output()?).stderr(output()?).process_group(0);
    let program = PathBuf::from(command.get_program());
    let mut child = command
        .spawn()
        .map_err(EmbeddedError::io("cannot run", &program))?;
    match await_ready(&mut child, folders) {
        Ok(Some(running)) => {
            reap(child);
            Ok(running)
        }
        Ok(None) => Err(EmbeddedError::Start {
            log: folders.log.clone(),
            tail: tail(&mut log, before),
        }),
        Err(error) => {
            // No process would stop a server that never became ready.
            drop(child.kill());
            drop(child.wait());
            Err(error)
        }
    }
}

/// `None` if the server ended.
fn await_ready(
    child: &mut Child,
    folders: &Folders,
) -> Result<Option<RunningServer>, EmbeddedError> {
    let deadline = Instant::now() + START;
    loop {
        if let ServerState::Ready(running) = observe(&folders.data)? {
            return Ok(Some(running));
        }
        if child
            .try_wait()
            .map_err(EmbeddedError::io("cannot watch", &folders.data))?
            .is_some()
        {
            return Ok(None);
        }
        if Instant::now() >= deadline {
            return Err(EmbeddedError::NoAnswer {
                pid: child.id().cast_signed(),
            });
        }
        std::thread::sleep(POLL);
    }
}

/// Collects the exit status of the server, which would otherwise remain as a zombie and keep its
/// pid.
fn reap(mut child: Child) {
    let spawned = std::thread::Builder::new()
        .name("postgres-exit".to_owned())
        .spawn(move || drop(child.wait()));
    if let Err(error) = spawned {
        tracing::debug!(%error, "failed to start the thread that collects the embedded server's exit status");
    }
}

/// Stops the server, if it runs, and waits: with a checkpoint, or without one if that takes too
/// long.
pub(super) fn stop(data: &Path) -> Result<(), EmbeddedError> {
    for (signal, patience) in [
        (Signal::INT, FAST_SHUTDOWN),
        (Signal::QUIT, IMMEDIATE_SHUTDOWN),
    ] {
        if send(data, signal)?.is_none() || wait_for_end(data, patience)? {
            return Ok(());
        }
    }
    match send(data, Signal::KILL)? {
        Some(pid) if !wait_for_end(data, IMMEDIATE_SHUTDOWN)? => {
            Err(EmbeddedError::NoAnswer { pid })
        }
        _ => Ok(()),
    }
}

/// Returns the pid of the signalled process.
fn send(data: &Path, signal: Signal) -> Result<Option<i32>, EmbeddedError> {
    let pid = match observe(data)? {
        ServerState::Ready(RunningServer { pid, .. }) | ServerState::Busy(Some(pid)) => pid,
        ServerState::Busy(None) | ServerState::Absent | ServerState::Stale => return Ok(None),
    };
    let Some(process) = Pid::from_raw(pid).filter(|_| is_our_server(pid, data)) else {
        return Ok(None);
    };
    match kill_process(process, signal) {
        Ok(()) => Ok(Some(pid)),
        Err(rustix::io::Errno::SRCH) => Ok(None),
        Err(error) => Err(EmbeddedError::io("cannot stop the server of", data)(
            error.into(),
        )),
    }
}

fn wait_for_end(data: &Path, patience: Duration) -> Result<bool, EmbeddedError> {
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        if matches!(observe(data)?, ServerState::Absent | ServerState::Stale) {
            return Ok(true);
        }
        std::thread::sleep(POLL);
    }
    Ok(false)
}

/// The relevant lines of `postmaster.pid`.
#[derive(Debug, PartialEq, Eq)]
struct PidFile {
    pid: i32,
    socket_dir: Option<PathBuf>,
    ready: bool,
}

impl PidFile {
    /// Lines: pid, data folder, start time, port, socket folder, address, shared memory, status.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        // Negative for a single-user backend.
        let pid: i32 = lines.next()?.trim().parse::<i32>().ok()?.checked_abs()?;
        let socket_dir = lines
            .nth(3)
            .filter(|line| !line.is_empty())
            .map(PathBuf::from);
        let ready = lines.nth(2).is_some_and(|status| status.trim() == "ready");
        Some(Self {
            pid,
            socket_dir,
            ready,
        })
    }
}

fn pid_file(data: &Path) -> PathBuf {
    data.join("postmaster.pid")
}

fn socket(folder: &Path) -> PathBuf {
    folder.join(format!(".s.PGSQL.{PORT}"))
}

/// Whether the server answers. A successful connect is not enough: the socket stays open until the
/// last child of a killed server has ended.
fn takes_connections(socket_dir: &Path) -> bool {
    let handshake = || {
        let mut stream = UnixStream::connect(socket(socket_dir))?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.write_all(&SSL_REQUEST)?;
        stream.read_exact(&mut [0])
    };
    handshake().is_ok()
}

/// Whether the process is this cluster's server, as far as the system shows.
fn is_our_server(pid: i32, data: &Path) -> bool {
    let Some(process) = Pid::from_raw(pid) else {
        return false;
    };
    // EPERM: another user's process, but the server runs as our user, or we are root.
    if test_kill_process(process).is_err() {
        return false;
    }
    let proc = Path::new("/proc").join(pid.to_string());
    let Ok(stat) = fs::read_to_string(proc.join("stat")) else {
        // Without /proc, the signal's result decides.
        return !Path::new("/proc/self/stat").exists();
    };
    if is_zombie(&stat) {
        return false;
    }
    // A postmaster's working directory is its data folder. If it is unreadable, the name decides.
    match fs::read_link(proc.join("cwd")) {
        Ok(folder) => data.canonicalize().is_ok_and(|data| folder == data),
        Err(_) => stat.contains("(postgres)") || stat.contains("(postmaster)"),
    }
}

/// proc(5): `pid (name) state …`; the name may contain spaces and brackets.
fn is_zombie(stat: &str) -> bool {
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}

fn open_log(path: &Path) -> Result<File, EmbeddedError> {
    let long = fs::metadata(path).is_ok_and(|log| log.len() > LONGEST_LOG_BYTES);
    if long {
        fs::remove_file(path).map_err(EmbeddedError::io("cannot remove", path))?;
    }
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(EmbeddedError::io("cannot open", path))
}

/// The last ten lines written to the log since `since`.
fn tail(log: &mut File, since: u64) -> String {
    let mut text = Vec::new();
    drop(
        log.seek(SeekFrom::Start(since))
            .and_then(|_| log.read_to_end(&mut text)),
    );
    last_lines(&String::from_utf8_lossy(&text))
}

pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &str = "4711\n/data\n1700000000\n5432\n/run dir\n\n  1234  5\nready   \n";

    #[test]
    fn the_pid_file_is_parsed_at_every_stage() {
        let ready = PidFile {
            pid: 4711,
            socket_dir: Some("/run dir".into()),
            ready: true,
        };
        assert_eq!(PidFile::parse(READY), Some(ready));
        let starting = READY.replace("ready   ", "starting");
        assert!(!PidFile::parse(&starting).unwrap().ready);
        let early = "4711\n/data\n1700000000\n5432\n\n";
        assert_eq!(
            PidFile::parse(early),
            Some(PidFile {
                pid: 4711,
                socket_dir: None,
                ready: false
            })
        );
        assert_eq!(PidFile::parse(""), None);
    }

    #[test]
    fn a_zombie_is_recognized_by_state_not_by_name() {
        assert!(is_zombie("12 (postgres) Z 1 12"));
        assert!(!is_zombie("12 (a) Z b) S 1 12"));
    }

    #[test]
    fn a_process_in_another_folder_is_not_the_server() {
        let data = tempfile::tempdir().unwrap();
        let ourselves = std::process::id();
        fs::write(
            pid_file(data.path()),
            format!("{ourselves}{}", READY.trim_start_matches("4711")),
        )
        .unwrap();
        let state = observe(data.path()).unwrap();
        assert!(
            matches!(state, ServerState::Stale) || !Path::new("/proc/self/stat").exists(),
            "{state:?}"
        );
    }
}
