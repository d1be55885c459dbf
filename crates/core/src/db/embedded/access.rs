//! Access rules of the embedded server: only the operator's user may connect, and only by the
//! socket.
//!
//! The rules are outside the cluster and written at each start, so that other programs of the
//! server's user cannot change them.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::folders::Folders;
use super::{EmbeddedError, ROLE};

/// pg_hba.conf. The map names the user who may take the role.
const RULES: &str = "# Written at each start.\nlocal all farescan peer map=farescan\nlocal all all reject\nhost all all all reject\nhost replication all all reject\n";

/// Paths of the two files.
pub(super) struct AccessFiles {
    pub(super) rules: PathBuf,
    pub(super) map: PathBuf,
}

/// Writes both files: the user of this process gets the role.
pub(super) fn write(folders: &Folders) -> Result<AccessFiles, EmbeddedError> {
    let access = AccessFiles {
        rules: folders.home.join("pg_hba.conf"),
        map: folders.home.join("pg_ident.conf"),
    };
    replace(&access.rules, RULES)?;
    replace(
        &access.map,
        &map(&own_name(
            &fs::read_to_string("/etc/passwd").unwrap_or_default(),
        )?),
    )?;
    Ok(access)
}

fn map(user: &str) -> String {
    format!(
        "# Written at each start.\nfarescan \"{}\" {ROLE}\n",
        user.replace('"', "\"\"")
    )
}

/// Readable by the server's user, who differs from this process's user if that is root.
fn replace(path: &Path, text: &str) -> Result<(), EmbeddedError> {
    let draft = path.with_added_extension("new");
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(&draft);
    let written = file.and_then(|mut file| {
        // Independent of the umask.
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
        file.write_all(text.as_bytes())?;
        fs::rename(&draft, path)
    });
    written.map_err(EmbeddedError::io("cannot write", path))
}

/// The name of this process's user, from /etc/passwd or else from `id`.
fn own_name(passwd: &str) -> Result<String, EmbeddedError> {
    let uid = rustix::process::geteuid().as_raw();
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    };
    if let Some(name) = passwd.lines().find_map(of_line) {
        return Ok(name);
    }
    let output = Command::new("id")
        .arg("-un")
        .stdin(Stdio::null())
        .output()
        .map_err(EmbeddedError::io("cannot run", Path::new("id")))?;
    let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && !name.is_empty() {
        Ok(name)
    } else {
        Err(EmbeddedError::UnnamedUser(uid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_names_only_the_operators_user() {
        assert!(map("farescan").ends_with("\nfarescan \"farescan\" farescan\n"));
        assert!(map("a \"b\"").ends_with("farescan \"a \"\"b\"\"\" farescan\n"));
    }

    #[test]
    fn a_user_name_is_found_by_its_uid() {
        let uid = rustix::process::geteuid().as_raw();
        let passwd = format!(
            "other:x:{}:0::/:/bin/sh\nbroken\nme too:x:{uid}:0::/:/bin/sh\n",
            uid + 1
        );
        assert_eq!(own_name(&passwd).unwrap(), "me too");
    }
}
