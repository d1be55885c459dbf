//! Brings a folder in any state to a running server. The caller holds the start lock.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::access::{self, AccessFiles};
use super::binaries::{self, Binaries};
use super::folders::Folders;
use super::postmaster::{self, RunningServer, ServerState};
use super::server_user::{self, ServerUser};
use super::{Durability, EmbeddedError, Origin, PORT, ROLE, ServerOptions};

const POLL: Duration = Duration::from_millis(10);

/// After a kill -9 of the postmaster, its children hold the shared memory for a moment.
const AFTER_A_CRASH: Duration = Duration::from_secs(3);

/// A server that is neither ready nor gone after this time hangs.
const RECOVERY: Duration = Duration::from_secs(60);

/// Enough for several processes and maintenance.
const MAX_CONNECTIONS: u32 = 300;

/// Adopts a running server, or starts one, creating the cluster if needed.
pub(super) fn run(
    folders: &Folders,
    user: Option<&ServerUser>,
    options: &ServerOptions,
) -> Result<(Origin, RunningServer), EmbeddedError> {
    if let Some(running) = adopt(folders)? {
        return Ok((Origin::Adopted, running));
    }
    let origin = if major_of(&folders.data)?.is_some() {
        Origin::Started
    } else {
        Origin::Created
    };
    let binaries = find(folders, options)?;
    if origin == Origin::Created {
        initdb(folders, user, &binaries, options.durability)?;
    }
    let access = access::write(folders)?;
    let patience = Instant::now() + AFTER_A_CRASH;
    loop {
        match postmaster::spawn(
            server(folders, user, &binaries, &access, options.durability),
            folders,
        ) {
            Err(EmbeddedError::Start { tail, .. })
                if is_transient(&tail) && Instant::now() < patience =>
            {
                std::thread::sleep(POLL);
            }
            result => return result.map(|running| (origin, running)),
        }
    }
}

/// Programs that fit the cluster, or any if there is no cluster yet.
pub(super) fn find(folders: &Folders, options: &ServerOptions) -> Result<Binaries, EmbeddedError> {
    let needed = major_of(&folders.data)?.map(|major| (folders.data.as_path(), major));
    binaries::find(options.pg_bin.as_deref(), needed)
}

/// Returns a running server, after waiting for one that is starting; `None` if there is none.
/// Removes leftovers of a dead server.
fn adopt(folders: &Folders) -> Result<Option<RunningServer>, EmbeddedError> {
    let deadline = Instant::now() + RECOVERY;
    loop {
        match postmaster::observe(&folders.data)? {
            ServerState::Ready(running) => return Ok(Some(running)),
            ServerState::Absent => return Ok(None),
            ServerState::Stale => postmaster::clear_stale(folders)?,
            ServerState::Busy(pid) if Instant::now() >= deadline => {
                return Err(EmbeddedError::NoAnswer {
                    pid: pid.unwrap_or_default(),
                });
            }
            ServerState::Busy(_) => std::thread::sleep(POLL),
        }
    }
}

/// Major version of the cluster; `None` if there is no cluster.
fn major_of(data: &Path) -> Result<Option<u32>, EmbeddedError> {
    let path = data.join("PG_VERSION");
    match fs::read_to_string(&path) {
        Ok(text) => text.trim().parse().map(Some).map_err(|_| {
            EmbeddedError::io("cannot understand", &path)(std::io::Error::other(format!(
                "{text:?} is no version"
            )))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EmbeddedError::io("cannot read", &path)(error)),
    }
}

/// Creates the cluster under a temporary name and renames it, so that it is never incomplete.
fn initdb(
    folders: &Folders,
    user: Option<&ServerUser>,
    binaries: &Binaries,
    durability: Durability,
) -> Result<(), EmbeddedError> {
    if folders.data_new.exists() {
        fs::remove_dir_all(&folders.data_new)
            .map_err(EmbeddedError::io("cannot remove", &folders.data_new))?;
    }
    let program = binaries.program("initdb");
    let mut command = server_user::command(&program, user, &folders.cluster);
    command.arg("--pgdata").arg(&folders.data_new);
    command.args([
        "--username",
        ROLE,
        "--auth",
        "reject",
        "--encoding",
        "UTF8",
        "--locale",
        "C",
        "--no-instructions",
    ]);
    if durability == Durability::Scratch {
        command.arg("--no-sync");
    }
    let output = command
        .output()
        .map_err(EmbeddedError::io("cannot run", &program))?;
    if !output.status.success() {
        return Err(EmbeddedError::Initdb(postmaster::last_lines(
            &String::from_utf8_lossy(&output.stderr),
        )));
    }
    fs::rename(&folders.data_new, &folders.data)
        .map_err(EmbeddedError::io("cannot rename", &folders.data_new))
}

/// The server's command line. It holds all settings, so that they do not depend on the cluster's
/// age.
fn server(
    folders: &Folders,
    user: Option<&ServerUser>,
    binaries: &Binaries,
    access: &AccessFiles,
    durability: Durability,
) -> Command {
    let fsync = match durability {
        Durability::Full => "on",
        Durability::Scratch => "off",
    };
    let mut command = server_user::command(&binaries.program("postgres"), user, &folders.cluster);
    command.arg("-D").arg(&folders.data);
    for setting in [
        "listen_addresses=".to_owned(),
        format!("port={PORT}"),
        format!("unix_socket_directories={}", quoted(&folders.socket_dir)),
        "unix_socket_permissions=0700".to_owned(),
        format!("hba_file={}", access.rules.display()),
        format!("ident_file={}", access.map.display()),
        format!("max_connections={MAX_CONNECTIONS}"),
        format!("fsync={fsync}"),
        "cluster_name=farescan".to_owned(),
        "timezone=UTC".to_owned(),
        "log_timezone=UTC".to_owned(),
        "lc_messages=C".to_owned(),
        // Statements may contain tenants' data, which does not belong in the log.
        "log_min_error_statement=panic".to_owned(),
        "log_checkpoints=off".to_owned(),
        // After a checkpoint the first change of a page writes the whole page to the log.
        "wal_compression=on".to_owned(),
    ] {
        command.arg("-c").arg(setting);
    }
    command
}

/// Quotes a folder as an item of a list setting.
fn quoted(folder: &Path) -> String {
    format!("\"{}\"", folder.to_string_lossy().replace('"', "\"\""))
}

/// Whether a retry may succeed: a server that was just killed blocks the start.
fn is_transient(log: &str) -> bool {
    let lock_file = log.contains("lock file") && log.contains("already exists");
    lock_file || log.contains("pre-existing shared memory block")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_dying_server_makes_a_start_retryable() {
        assert!(is_transient(
            "FATAL:  lock file \"postmaster.pid\" already exists\nHINT:  Is another postmaster"
        ));
        assert!(is_transient(
            "FATAL:  pre-existing shared memory block (key 1, ID 2) is still in use"
        ));
        assert!(!is_transient(
            "FATAL:  could not create shared memory segment"
        ));
        assert!(!is_transient(
            "FATAL:  database files are incompatible with server"
        ));
    }

    #[test]
    fn a_folder_is_quoted_as_one_list_item() {
        assert_eq!(quoted(Path::new("/a, b/\"c\"")), "\"/a, b/\"\"c\"\"\"");
    }
}
