//! One server process: seen through its pid file, spawned, stopped. The caller holds the start lock.

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

/// A fast shutdown writes a checkpoint first.
const FAST_SHUTDOWN: Duration = Duration::from_secs(30);

/// An immediate one does not.
const IMMEDIATE_SHUTDOWN: Duration = Duration::from_secs(5);

/// Crash recovery replays what was written since the last checkpoint before the server is ready.
const START: Duration = Duration::from_secs(60);

/// How long a living server takes for its first byte on a busy machine.
const ANSWER: Duration = Duration::from_secs(1);

/// The protocol's smallest question, "do you speak TLS?": length 8, code 80877103. The answer is one byte.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// A log beyond this is begun anew at the next start.
const LONGEST_LOG_BYTES: u64 = 4 << 20;

/// A server that takes connections.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) pid: i32,
    pub(super) socket_dir: PathBuf,
}

/// What the pid file and the process behind it say.
#[derive(Debug)]
pub(super) enum State {
    /// No pid file: nothing runs.
    Absent,
    /// A pid file whose process is gone, a zombie, or somebody else's by now.
    Stale,
    /// A process that does not take connections: it starts, recovers or stops. No pid: the file is half written.
    Busy(Option<i32>),
    /// It takes connections.
    Ready(Running),
}

/// Looks at the server of a cluster.
pub(super) fn observe(data: &Path) -> Result<State, EmbeddedError> {
    let path = pid_file(data);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(State::Absent),
        Err(error) => return Err(EmbeddedError::io("cannot read", &path)(error)),
    };
    let Some(file) = PidFile::parse(&text) else {
        return Ok(State::Busy(None));
    };
    match file.socket_dir {
        // Asked first: a server in another container that shares the folder answers, though its process is not seen.
        Some(socket_dir) if file.ready && takes_connections(&socket_dir) => {
            Ok(State::Ready(Running {
                pid: file.pid,
                socket_dir,
            }))
        }
        _ if lives(file.pid, data) => Ok(State::Busy(Some(file.pid))),
        _ => Ok(State::Stale),
    }
}

/// Whether this very server takes connections.
pub(super) fn is_ready(data: &Path, pid: i32) -> Result<bool, EmbeddedError> {
    Ok(matches!(observe(data)?, State::Ready(running) if running.pid == pid))
}

/// Removes what a dead server left. Postgres does so itself, unless the process id lives on as a zombie or as another
/// program's (in a restarted container it is likely to). Its shared memory still guards against a second server.
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

/// Starts the server and waits until it takes connections. It outlives us; a signal to our terminal's foreground
/// group does not reach it.
pub(super) fn spawn(mut command: Command, folders: &Folders) -> Result<Running, EmbeddedError> {
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
            // Half started is not started: no one would stop it.
            drop(child.kill());
            drop(child.wait());
            Err(error)
        }
    }
}

/// `None` when the server ended instead.
fn await_ready(child: &mut Child, folders: &Folders) -> Result<Option<Running>, EmbeddedError> {
    let give_up = Instant::now() + START;
    loop {
        if let State::Ready(running) = observe(&folders.data)? {
            return Ok(Some(running));
        }
        if child
            .try_wait()
            .map_err(EmbeddedError::io("cannot watch", &folders.data))?
            .is_some()
        {
            return Ok(None);
        }
        if Instant::now() >= give_up {
            return Err(EmbeddedError::NoAnswer {
                pid: child.id().cast_signed(),
            });
        }
        std::thread::sleep(POLL);
    }
}

/// Collects the server's exit status whenever it comes; otherwise it would stay as a zombie, which holds its pid.
fn reap(mut child: Child) {
    let spawned = std::thread::Builder::new()
        .name("postgres-exit".to_owned())
        .spawn(move || drop(child.wait()));
    if let Err(error) = spawned {
        tracing::debug!(%error, "nobody collects the embedded server's exit status");
    }
}

/// Ends the server of a cluster, if there is one, and waits for its end: with a checkpoint, or without when that
/// takes too long.
pub(super) fn stop(data: &Path) -> Result<(), EmbeddedError> {
    for (signal, patience) in [
        (Signal::INT, FAST_SHUTDOWN),
        (Signal::QUIT, IMMEDIATE_SHUTDOWN),
    ] {
        if send(data, signal)?.is_none() || ended(data, patience)? {
            return Ok(());
        }
    }
    match send(data, Signal::KILL)? {
        Some(pid) if !ended(data, IMMEDIATE_SHUTDOWN)? => Err(EmbeddedError::NoAnswer { pid }),
        _ => Ok(()),
    }
}

/// The process that got the signal.
fn send(data: &Path, signal: Signal) -> Result<Option<i32>, EmbeddedError> {
    let pid = match observe(data)? {
        State::Ready(Running { pid, .. }) | State::Busy(Some(pid)) => pid,
        State::Busy(None) | State::Absent | State::Stale => return Ok(None),
    };
    let Some(process) = Pid::from_raw(pid).filter(|_| lives(pid, data)) else {
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

fn ended(data: &Path, patience: Duration) -> Result<bool, EmbeddedError> {
    let give_up = Instant::now() + patience;
    while Instant::now() < give_up {
        if matches!(observe(data)?, State::Absent | State::Stale) {
            return Ok(true);
        }
        std::thread::sleep(POLL);
    }
    Ok(false)
}

/// The lines of `postmaster.pid` that matter.
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
        // Negative: a single-user backend.
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

/// Whether somebody answers. That the kernel connects us says nothing: a killed server's socket stays open until the
/// last of its children is gone.
fn takes_connections(socket_dir: &Path) -> bool {
    let ask = || {
        let mut stream = UnixStream::connect(socket(socket_dir))?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.write_all(&SSL_REQUEST)?;
        stream.read_exact(&mut [0])
    };
    ask().is_ok()
}

/// Whether the process is the server of this cluster, as far as the system lets us see.
fn lives(pid: i32, data: &Path) -> bool {
    let Some(process) = Pid::from_raw(pid) else {
        return false;
    };
    // Another user's process (EPERM) cannot be our server: we are its user, or root.
    if test_kill_process(process).is_err() {
        return false;
    }
    let proc = Path::new("/proc").join(pid.to_string());
    let Ok(stat) = fs::read_to_string(proc.join("stat")) else {
        // No /proc on this system: the signal's answer has to do.
        return !Path::new("/proc/self/stat").exists();
    };
    if is_zombie(&stat) {
        return false;
    }
    // A postmaster works in its data folder. Containers may forbid the look; then only its name speaks.
    match fs::read_link(proc.join("cwd")) {
        Ok(folder) => data.canonicalize().is_ok_and(|data| folder == data),
        Err(_) => stat.contains("(postgres)") || stat.contains("(postmaster)"),
    }
}

/// proc(5): `pid (name) state …`; the name may hold anything, spaces and brackets included.
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

/// What was written to the log since, at most its last ten lines.
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
    fn the_pid_file_is_read_at_every_stage() {
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
    fn a_zombie_is_told_by_its_state_not_by_its_name() {
        assert!(is_zombie("12 (postgres) Z 1 12"));
        assert!(!is_zombie("12 (a) Z b) S 1 12"));
    }

    #[test]
    fn a_process_elsewhere_is_not_the_server() {
        let data = tempfile::tempdir().unwrap();
        let ourselves = std::process::id();
        fs::write(
            pid_file(data.path()),
            format!("{ourselves}{}", READY.trim_start_matches("4711")),
        )
        .unwrap();
        let state = observe(data.path()).unwrap();
        assert!(
            matches!(state, State::Stale) || !Path::new("/proc/self/stat").exists(),
            "{state:?}"
        );
    }
}
