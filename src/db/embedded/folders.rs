//! Where the server's files lie, and who may enter.

use std::fs::{self, DirBuilder};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::account::Account;
use super::{EmbeddedError, PORT};

/// A socket's path has to fit 104 bytes on macOS, 108 on Linux; this leaves room for the suffix of its lock file.
const LONGEST_SOCKET_PATH: usize = 90;

/// The paths of one server, absolute.
#[derive(Clone, Debug)]
pub(super) struct Folders {
    pub(super) home: PathBuf,
    pub(super) start_lock: PathBuf,
    pub(super) use_lock: PathBuf,
    pub(super) log: PathBuf,
    /// The server user's own folder; everything above it is ours, or root would follow links that user made.
    pub(super) cluster: PathBuf,
    pub(super) data: PathBuf,
    pub(super) data_new: PathBuf,
    pub(super) socket_dir: PathBuf,
}

/// Where the embedded database lives unless `FARESCAN_DATA_DIR` says otherwise: `/var/lib/farescan` for root, else
/// `${XDG_DATA_HOME:-~/.local/share}/farescan`.
///
/// # Errors
/// `NoHome` when neither variable holds an absolute path.
pub fn default_home() -> Result<PathBuf, EmbeddedError> {
    if rustix::process::geteuid().is_root() {
        return Ok("/var/lib/farescan".into());
    }
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map(|data| data.join("farescan"))
        .ok_or(EmbeddedError::NoHome)
}

impl Folders {
    /// Makes the outer folder and names the rest.
    pub(super) fn make(home: &Path) -> Result<Self, EmbeddedError> {
        // The server's user has to pass through root's folder; a user's own is closed to others.
        let mode = if rustix::process::geteuid().is_root() {
            0o755
        } else {
            0o700
        };
        DirBuilder::new()
            .recursive(true)
            .mode(mode)
            .create(home)
            .map_err(EmbeddedError::io("cannot make", home))?;
        // One name for one folder: it goes into the socket's path, which all processes must agree on.
        let home = home
            .canonicalize()
            .map_err(EmbeddedError::io("cannot find", home))?;
        Ok(Self::within(home))
    }

    fn within(home: PathBuf) -> Self {
        let cluster = home.join("postgres");
        Self {
            start_lock: home.join("start.lock"),
            use_lock: home.join("use.lock"),
            log: home.join("postgres.log"),
            data: cluster.join("data"),
            data_new: cluster.join("data.new"),
            socket_dir: socket_dir(&cluster),
            cluster,
            home,
        }
    }

    /// Makes the folders that belong to the server's user.
    pub(super) fn make_for(&self, account: Option<&Account>) -> Result<(), EmbeddedError> {
        if let Some(account) = account {
            check_reach(&self.home, account)?;
        }
        make_private(&self.cluster, account)?;
        make_private(&self.socket_dir, account)
    }

    /// Removes a socket folder in `/tmp`, once no server uses it.
    pub(super) fn clear_temporary(&self) {
        if !self.socket_dir.starts_with(&self.cluster)
            && let Err(error) = fs::remove_dir(&self.socket_dir)
        {
            tracing::debug!(%error, folder = %self.socket_dir.display(), "an empty folder stays");
        }
    }
}

fn socket_dir(cluster: &Path) -> PathBuf {
    let beside_the_data = cluster.join("run");
    let socket = beside_the_data.join(format!(".s.PGSQL.{PORT}"));
    if socket.as_os_str().len() <= LONGEST_SOCKET_PATH {
        return beside_the_data;
    }
    let digest = Sha256::digest(cluster.as_os_str().as_bytes());
    let name: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Path::new("/tmp").join(format!("farescan-{name}"))
}

/// A folder that only the server's user may enter. One that exists and is anybody else's is refused: in `/tmp`
/// somebody might have made it first.
fn make_private(path: &Path, account: Option<&Account>) -> Result<(), EmbeddedError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {
            if let Some(account) = account {
                chown(path, Some(account.uid), Some(account.gid))
                    .map_err(EmbeddedError::io("cannot give away", path))?;
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(EmbeddedError::io("cannot make", path)(error)),
    }
    let found = fs::symlink_metadata(path).map_err(EmbeddedError::io("cannot read", path))?;
    let user = account.map_or_else(
        || rustix::process::geteuid().as_raw(),
        |account| account.uid,
    );
    if found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    // Killed between making the folder and giving it away.
    if let Some(account) =
        account.filter(|_| found.is_dir() && found.uid() == 0 && found.mode() & 0o077 == 0)
    {
        return chown(path, Some(account.uid), Some(account.gid))
            .map_err(EmbeddedError::io("cannot give away", path));
    }
    Err(EmbeddedError::NotOurs(path.to_owned()))
}

/// Postgres would only say "Permission denied" about the last folder; this finds the one that is closed.
fn check_reach(home: &Path, account: &Account) -> Result<(), EmbeddedError> {
    let mut ancestors: Vec<&Path> = home.ancestors().collect();
    ancestors.reverse();
    for folder in ancestors {
        let found = fs::metadata(folder).map_err(EmbeddedError::io("cannot read", folder))?;
        if !may_enter(found.mode(), (found.uid(), found.gid()), account) {
            return Err(EmbeddedError::OutOfReach {
                user: account.name.clone(),
                folder: folder.to_owned(),
            });
        }
    }
    Ok(())
}

fn may_enter(mode: u32, (owner, group): (u32, u32), account: &Account) -> bool {
    let bit = if owner == account.uid {
        0o100
    } else if group == account.gid {
        0o010
    } else {
        0o001
    };
    mode & bit != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_gets_a_short_socket_folder_of_its_own() {
        let near = socket_dir(Path::new("/var/lib/farescan/postgres"));
        assert_eq!(near, Path::new("/var/lib/farescan/postgres/run"));
        let long = PathBuf::from(format!("/home/{}/postgres", "x".repeat(80)));
        let other = PathBuf::from(format!("/home/{}/postgres", "y".repeat(80)));
        assert!(socket_dir(&long).starts_with("/tmp"));
        assert_eq!(socket_dir(&long), socket_dir(&long));
        assert_ne!(socket_dir(&long), socket_dir(&other));
    }

    #[test]
    fn who_may_enter_goes_by_owner_then_group_then_others() {
        let account = Account {
            name: "postgres".into(),
            uid: 101,
            gid: 104,
        };
        for (mode, owner, group, expected) in [
            (0o700, 0, 0, false),
            (0o755, 0, 0, true),
            (0o700, 101, 0, true),
            (0o077, 101, 0, false),
            (0o710, 0, 104, true),
            (0o701, 0, 104, false),
        ] {
            assert_eq!(
                may_enter(mode, (owner, group), &account),
                expected,
                "{mode:o} of {owner}:{group}"
            );
        }
    }
}
