//! Whom the server runs as. Postgres refuses to run as root, so root lends it another user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::EmbeddedError;
use super::folders::Folders;

/// Variables that the server's programs may see. The rest stays here: it may hold keys, and `PG…` would change what
/// the server does.
const ENVIRONMENT: [&str; 4] = ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR"];

/// The user that is left where there is no other; it is nobody's own.
const NOBODY: &str = "nobody";

/// A user of this system that is not us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Account {
    /// `None`: the server runs as ourselves, since we are not root.
    pub(super) fn of_server(folders: &Folders) -> Result<Option<Self>, EmbeddedError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        // An existing cluster stays with its owner, even if a user `postgres` was installed after it was made.
        let owner = fs::metadata(&folders.data)
            .ok()
            .map(|data| (data.uid(), data.gid()));
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let account = choose(&passwd, owner).ok_or(EmbeddedError::NoAccount)?;
        if account.name == NOBODY {
            tracing::warn!(
                "the embedded Postgres runs as `nobody`, as other programs of this machine may: what runs as it can read the database's files. \
                 Add a user `postgres` before the database is made, or set DATABASE_URL"
            );
        }
        Ok(Some(account))
    }
}

fn choose(passwd: &str, owner: Option<(u32, u32)>) -> Option<Account> {
    let accounts: Vec<Account> = passwd.lines().filter_map(account).collect();
    let named = |name: &str| {
        accounts
            .iter()
            .find(|account| account.name == name)
            .cloned()
    };
    match owner {
        Some((uid, gid)) if uid != 0 => {
            let known = accounts.iter().find(|account| account.uid == uid);
            Some(known.cloned().unwrap_or_else(|| Account {
                name: uid.to_string(),
                uid,
                gid,
            }))
        }
        _ => named("postgres").or_else(|| named(NOBODY)),
    }
}

/// One line of passwd(5), `name:password:uid:gid:…`; never root under another name.
fn account(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    let mut numbers = fields.skip(1).map(str::parse);
    let (uid, gid) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (uid != 0).then_some(Account { name, uid, gid })
}

/// A program of the server: as its user, with nothing of our environment, terminal or folder.
pub(super) fn command(program: &Path, account: Option<&Account>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(
        ENVIRONMENT
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?))),
    );
    // Messages are matched below, so they have to be English.
    command
        .env("LC_ALL", "C")
        .current_dir(folder)
        .stdin(Stdio::null());
    if let Some(account) = account {
        command.uid(account.uid).gid(account.gid);
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
    fn root_lends_the_server_postgres_or_else_nobody() {
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
    fn a_cluster_stays_with_its_owner() {
        assert_eq!(choose(PASSWD, Some((65534, 65533))).unwrap().name, "nobody");
        assert_eq!(
            choose(PASSWD, Some((4711, 42))),
            Some(Account {
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
