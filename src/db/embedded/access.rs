//! Who may connect to the embedded server: its operator's user over the socket, nobody else and nothing by TCP.
//!
//! The rules lie beside the cluster, not in it, and are written at each start: the server's user, which another program may run as too,
//! cannot change them.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::folders::Folders;
use super::{EmbeddedError, ROLE};

/// pg_hba.conf: the map says whose user is taken for the role.
const RULES: &str = "# Written at each start.\nlocal all farescan peer map=farescan\nlocal all all reject\nhost all all all reject\nhost replication all all reject\n";

/// The two files, as settings of the server.
pub(super) struct Access {
    pub(super) rules: PathBuf,
    pub(super) map: PathBuf,
}

/// Writes them: the user that this process runs as is the role.
pub(super) fn write(folders: &Folders) -> Result<Access, EmbeddedError> {
    let access = Access {
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

/// Readable for the server's user, who is another one where root runs us.
fn replace(path: &Path, text: &str) -> Result<(), EmbeddedError> {
    let draft = path.with_added_extension("new");
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(&draft);
    let written = file.and_then(|mut file| {
        // Whatever the umask says.
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
        file.write_all(text.as_bytes())?;
        fs::rename(&draft, path)
    });
    written.map_err(EmbeddedError::io("cannot write", path))
}

/// The name of the user that this process runs as; asked of the system where the file does not have it.
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
    let said = Command::new("id")
        .arg("-un")
        .stdin(Stdio::null())
        .output()
        .map_err(EmbeddedError::io("cannot run", Path::new("id")))?;
    let name = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    if said.status.success() && !name.is_empty() {
        Ok(name)
    } else {
        Err(EmbeddedError::NoName(uid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_names_the_operators_user_alone() {
        assert!(map("farescan").ends_with("\nfarescan \"farescan\" farescan\n"));
        assert!(map("a \"b\"").ends_with("farescan \"a \"\"b\"\"\" farescan\n"));
    }

    #[test]
    fn a_user_is_found_by_its_number() {
        let uid = rustix::process::geteuid().as_raw();
        let passwd = format!(
            "other:x:{}:0::/:/bin/sh\nbroken\nme too:x:{uid}:0::/:/bin/sh\n",
            uid + 1
        );
        assert_eq!(own_name(&passwd).unwrap(), "me too");
    }
}
