//! The user that runs the server. Postgres refuses to run as root, so root chooses another user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::EmbeddedError;

/// Environment variables for the server's programs. Others may hold keys, and `PG…` would change
/// the server.
const ENVIRONMENT: [&str; 4] = ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR"];

/// Fallback user, which other programs share.
const NOBODY: &str = "nobody";

/// A system user other than ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerUser {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl ServerUser {
    /// `None` unless we are root: the server then runs as our user. `data` is the cluster's folder.
    pub(super) fn of_server(data: &Path) -> Result<Option<Self>, EmbeddedError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        // An existing cluster keeps its owner, even if a user `postgres` was added later.
        let owner = fs::metadata(data).ok().map(|data| (data.uid(), data.gid()));
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let user = choose(&passwd, owner).ok_or(EmbeddedError::NoServerUser)?;
        if user.name == NOBODY {
            tracing::warn!(
                "the embedded Postgres runs as `nobody`, so other programs of that user can read its files. Add a user \
                 `postgres` before the database is created, or set DATABASE_URL"
            );
        }
        Ok(Some(user))
    }
}

fn choose(passwd: &str, owner: Option<(u32, u32)>) -> Option<ServerUser> {
    let users: Vec<ServerUser> = passwd.lines().filter_map(parse_passwd_line).collect();
    let named = |name: &str| users.iter().find(|user| user.name == name).cloned();
    match owner {
        Some((uid, gid)) if uid != 0 => {
            let known = users.iter().find(|user| user.uid == uid);
            Some(known.cloned().unwrap_or_else(|| ServerUser {
                name: uid.to_string(),
                uid,
                gid,
            }))
        }
        _ => named("postgres").or_else(|| named(NOBODY)),
    }
}

/// Parses a line of passwd(5), `name:password:uid:gid:…`. Rejects aliases of root.
fn parse_passwd_line(line: &str) -> Option<ServerUser> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    let mut numbers = fields.skip(1).map(str::parse);
    let (uid, gid) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (uid != 0).then_some(ServerUser { name, uid, gid })
}

/// A command of the server: as its user, without our environment, terminal and working directory.
pub(super) fn command(program: &Path, user: Option<&ServerUser>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(
        ENVIRONMENT
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?))),
    );
    // `is_transient` matches English messages.
    command
        .env("LC_ALL", "C")
        .current_dir(folder)
        .stdin(Stdio::null());
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
        toor:x:0:0::/root:/bin/sh\n\
        nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin\n\
        broken\n\
        postgres:x:101:104:PostgreSQL administrator:/var/lib/postgresql:/bin/bash\n";

    #[test]
    fn root_chooses_postgres_or_else_nobody() {
        let postgres = choose(PASSWD, None).unwrap();
        assert_eq!(
            (postgres.name.as_str(), postgres.uid, postgres.gid),
            ("postgres", 101, 104)
        );
        let without: String = PASSWD
            .lines()
            .filter(|line| !line.starts_with("postgres"))
            .map(|l| format!("{l}\n"))
            .collect();
        assert_eq!(choose(&without, None).unwrap().name, "nobody");
        assert_eq!(choose("root:x:0:0::/root:/bin/sh", None), None);
        assert_eq!(
            choose("postgres:x:0:0::/root:/bin/sh", None),
            None,
            "root in disguise"
        );
    }

    #[test]
    fn a_cluster_keeps_its_owner() {
        assert_eq!(choose(PASSWD, Some((65534, 65533))).unwrap().name, "nobody");
        assert_eq!(
            choose(PASSWD, Some((4711, 42))),
            Some(ServerUser {
                name: "4711".into(),
                uid: 4711,
                gid: 42
            })
        );
        assert_eq!(
            choose(PASSWD, Some((0, 0))).unwrap().name,
            "postgres",
            "root cannot own a cluster that runs"
        );
    }
}
