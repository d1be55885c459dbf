//! The server's folders and their permissions.

use std::fs::{self, DirBuilder};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::server_user::ServerUser;
use super::{EmbeddedError, PORT};

/// A socket path may have 104 bytes on macOS, 108 on Linux; the lock file's suffix needs some of
/// them.
const LONGEST_SOCKET_PATH: usize = 90;

/// The absolute paths of one server.
#[derive(Clone, Debug)]
pub(super) struct Folders {
    pub(super) home: PathBuf,
    pub(super) start_lock: PathBuf,
    pub(super) use_lock: PathBuf,
    pub(super) log: PathBuf,
    /// Owned by the server's user. Its parents are ours: otherwise root would follow that user's
    /// links.
    pub(super) cluster: PathBuf,
    pub(super) data: PathBuf,
    pub(super) data_new: PathBuf,
    pub(super) socket_dir: PathBuf,
}

/// Default folder of the embedded database: `/var/lib/farescan` for root, else
/// `${XDG_DATA_HOME:-~/.local/share}/farescan`.
///
/// # Errors
/// `NoHome` if neither variable holds an absolute path.
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
    /// Creates the outer folder.
    pub(super) fn make(home: &Path) -> Result<Self, EmbeddedError> {
        // The server's user must be able to pass through root's folder.
        let mode = if rustix::process::geteuid().is_root() {
            0o755
        } else {
            0o700
        };
        DirBuilder::new()
            .recursive(true)
            .mode(mode)
            .create(home)
            .map_err(|source| EmbeddedError::NoFolder {
                home: home.to_owned(),
                source,
            })?;
        // The socket's path derives from it, and all processes must derive the same one.
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

    /// Creates the folders of the server's user.
    pub(super) fn make_for(&self, user: Option<&ServerUser>) -> Result<(), EmbeddedError> {
        if let Some(user) = user {
            check_reach(&self.home, user)?;
        }
        make_private(&self.cluster, user)?;
        make_private(&self.socket_dir, user)
    }

    /// Removes the socket folder in `/tmp` of a stopped server.
    pub(super) fn clear_temporary(&self) {
        if !self.socket_dir.starts_with(&self.cluster)
            && let Err(error) = fs::remove_dir(&self.socket_dir)
        {
            tracing::debug!(%error, folder = %self.socket_dir.display(), "failed to remove the empty socket folder");
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

/// Creates a folder that only the server's user may enter. Rejects an existing folder of anybody
/// else: in `/tmp` an attacker might have created it.
fn make_private(path: &Path, user: Option<&ServerUser>) -> Result<(), EmbeddedError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {
            if let Some(user) = user {
                chown(path, Some(user.uid), Some(user.gid))
                    .map_err(EmbeddedError::io("cannot change the owner of", path))?;
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(EmbeddedError::io("cannot create", path)(error)),
    }
    let found = fs::symlink_metadata(path).map_err(EmbeddedError::io("cannot read", path))?;
    let uid = user.map_or_else(|| rustix::process::geteuid().as_raw(), |user| user.uid);
    if found.is_dir() && found.uid() == uid && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    // A killed process created the folder and did not change its owner.
    if let Some(user) =
        user.filter(|_| found.is_dir() && found.uid() == 0 && found.mode() & 0o077 == 0)
    {
        return chown(path, Some(user.uid), Some(user.gid))
            .map_err(EmbeddedError::io("cannot change the owner of", path));
    }
    Err(EmbeddedError::ForeignFolder(path.to_owned()))
}

/// Finds the folder that denies access. Postgres would only name the last one.
fn check_reach(home: &Path, user: &ServerUser) -> Result<(), EmbeddedError> {
    let mut ancestors: Vec<&Path> = home.ancestors().collect();
    ancestors.reverse();
    for folder in ancestors {
        let found = fs::metadata(folder).map_err(EmbeddedError::io("cannot read", folder))?;
        if !may_enter(found.mode(), (found.uid(), found.gid()), user) {
            return Err(EmbeddedError::FolderNotAccessible {
                user: user.name.clone(),
                folder: folder.to_owned(),
            });
        }
    }
    Ok(())
}

fn may_enter(mode: u32, (owner, group): (u32, u32), user: &ServerUser) -> bool {
    let bit = if owner == user.uid {
        0o100
    } else if group == user.gid {
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
    fn a_long_path_gets_its_own_short_socket_folder() {
        let near = socket_dir(Path::new("/var/lib/farescan/postgres"));
        assert_eq!(near, Path::new("/var/lib/farescan/postgres/run"));
        let long = PathBuf::from(format!("/home/{}/postgres", "x".repeat(80)));
        let other = PathBuf::from(format!("/home/{}/postgres", "y".repeat(80)));
        assert!(socket_dir(&long).starts_with("/tmp"));
        assert_eq!(socket_dir(&long), socket_dir(&long));
        assert_ne!(socket_dir(&long), socket_dir(&other));
    }

    #[test]
    fn access_depends_on_owner_then_group_then_others() {
        let user = ServerUser {
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
                may_enter(mode, (owner, group), &user),
                expected,
                "{mode:o} of {owner}:{group}"
            );
        }
    }
}
