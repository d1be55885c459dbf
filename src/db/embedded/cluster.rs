//! From a folder in any state to a running server: observe, mend, make, start. The caller holds the start lock.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::access::{self, Access};
use super::account::{self, Account};
use super::binaries::{self, Binaries};
use super::folders::Folders;
use super::postmaster::{self, Running, State};
use super::{Durability, EmbeddedError, Origin, PORT, ROLE, ServerOptions};

const POLL: Duration = Duration::from_millis(10);

/// After kill -9 of the postmaster its children take a moment to notice, and hold its shared memory until then.
const AFTER_A_CRASH: Duration = Duration::from_secs(3);

/// A server that is neither ready nor gone after this is stuck.
const RECOVERY: Duration = Duration::from_secs(60);

/// Carries a hundred connections of several processes, with room for maintenance.
const MAX_CONNECTIONS: u32 = 300;

/// Adopts, or starts, or makes and starts.
pub(super) fn run(
    folders: &Folders,
    account: Option<&Account>,
    options: &ServerOptions,
) -> Result<(Origin, Running), EmbeddedError> {
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
        initdb(folders, account, &binaries, options.durability)?;
    }
    let access = access::write(folders)?;
    let patience = Instant::now() + AFTER_A_CRASH;
    loop {
        match postmaster::spawn(
            server(folders, account, &binaries, &access, options.durability),
            folders,
        ) {
            Err(EmbeddedError::Start { tail, .. })
                if passes(&tail) && Instant::now() < patience =>
            {
                std::thread::sleep(POLL);
            }
            result => return result.map(|running| (origin, running)),
        }
    }
}

/// The programs that fit the cluster, or any where there is none yet.
pub(super) fn find(folders: &Folders, options: &ServerOptions) -> Result<Binaries, EmbeddedError> {
    let needed = major_of(&folders.data)?.map(|major| (folders.data.as_path(), major));
    binaries::find(options.pg_bin.as_deref(), needed)
}

/// A server that takes connections, waiting for one that is still starting; `None` when none is there, with the way
/// cleared for a new one.
fn adopt(folders: &Folders) -> Result<Option<Running>, EmbeddedError> {
    let give_up = Instant::now() + RECOVERY;
    loop {
        match postmaster::observe(&folders.data)? {
            State::Ready(running) => return Ok(Some(running)),
            State::Absent => return Ok(None),
            State::Stale => postmaster::clear_stale(folders)?,
            State::Busy(pid) if Instant::now() >= give_up => {
                return Err(EmbeddedError::NoAnswer {
                    pid: pid.unwrap_or_default(),
                });
            }
            State::Busy(_) => std::thread::sleep(POLL),
        }
    }
}

/// The major version that a cluster was made by; `None` when there is no cluster.
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

/// Made beside its place and renamed into it, so that a cluster is either whole or not there.
fn initdb(
    folders: &Folders,
    account: Option<&Account>,
    binaries: &Binaries,
    durability: Durability,
) -> Result<(), EmbeddedError> {
    if folders.data_new.exists() {
        fs::remove_dir_all(&folders.data_new)
            .map_err(EmbeddedError::io("cannot remove", &folders.data_new))?;
    }
    let program = binaries.program("initdb");
    let mut command = account::command(&program, account, &folders.cluster);
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

/// The command of the server. All settings are given here, so that they follow the program, not the cluster's age.
fn server(
    folders: &Folders,
    account: Option<&Account>,
    binaries: &Binaries,
    access: &Access,
    durability: Durability,
) -> Command {
    let fsync = match durability {
        Durability::Full => "on",
        Durability::Scratch => "off",
    };
    let mut command = account::command(&binaries.program("postgres"), account, &folders.cluster);
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
        // Statements may hold tenants' data, and the log is not theirs.
        "log_min_error_statement=panic".to_owned(),
        "log_checkpoints=off".to_owned(),
    ] {
        command.arg("-c").arg(setting);
    }
    command
}

/// The setting is a list: a name with commas or spaces has to be quoted.
fn quoted(folder: &Path) -> String {
    format!("\"{}\"", folder.to_string_lossy().replace('"', "\"\""))
}

/// Whether the server may start in a moment: what blocks it belongs to a server that was just killed.
fn passes(log: &str) -> bool {
    let lock_file = log.contains("lock file") && log.contains("already exists");
    lock_file || log.contains("pre-existing shared memory block")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_dying_server_in_the_way_is_worth_another_try() {
        assert!(passes(
            "FATAL:  lock file \"postmaster.pid\" already exists\nHINT:  Is another postmaster"
        ));
        assert!(passes(
            "FATAL:  pre-existing shared memory block (key 1, ID 2) is still in use"
        ));
        assert!(!passes("FATAL:  could not create shared memory segment"));
        assert!(!passes(
            "FATAL:  database files are incompatible with server"
        ));
    }

    #[test]
    fn a_folder_is_quoted_as_one_item_of_a_list() {
        assert_eq!(quoted(Path::new("/a, b/\"c\"")), "\"/a, b/\"\"c\"\"\"");
    }
}
