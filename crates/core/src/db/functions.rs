//! The SQL functions, triggers and views of `migrations/functions`, each defined once. They are replaced as a whole after the numbered
//! migrations, when the database has older ones (storage.md, "Migrations").

use sha2::{Digest as _, Sha256};
use sqlx::{Connection as _, PgConnection};

/// Increased with each release that changes a function: a process never replaces functions by those of an older release, so that old
/// and new processes can run side by side during an upgrade.
const VERSION: &str = include_str!("../../../../migrations/functions/VERSION");

/// How often the functions are replaced before a deadlock is an error. Each takes a second at least.
const MAX_TRIES: u32 = 10;

macro_rules! files {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../../migrations/functions/", $name, ".sql")))),*]
    };
}

/// The folder's files. The order does not matter: function bodies are not checked while all of them are created.
const FILES: &[(&str, &str)] = files! {
    "abandon"
    "begin"
    "circuits"
    "claim"
    "deliveries"
    "events"
    "history"
    "lanes"
    "monitors"
    "partitions"
    "record"
    "reuse"
    "scans"
    "statistics"
    "tenants"
    "usage"
};

fn version() -> i32 {
    VERSION.trim().parse().unwrap_or(0)
}

/// A digest of all files, for a database that has functions of the same version.
pub fn digest() -> Vec<u8> {
    let mut digest = Sha256::new();
    for (name, text) in FILES {
        digest.update(name);
        digest.update([0]);
        digest.update(text);
        digest.update([0]);
    }
    digest.finalize().to_vec()
}

/// Replaces the database's functions by this program's, in one transaction, unless it has these or newer ones.
///
/// To replace a trigger locks its table, and a running process locks the same tables in the order of its work. Where Postgres ends this
/// transaction for a deadlock, it is done again: the other one has gone on meanwhile.
pub(super) async fn apply(connection: &mut PgConnection) -> sqlx::Result<()> {
    for _ in 1..MAX_TRIES {
        match replace(connection).await {
            Err(error) if is_deadlock(&error) => {
                tracing::info!("replacing SQL functions met a deadlock; trying again");
            }
            done => return done,
        }
    }
    replace(connection).await
}

fn is_deadlock(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    error.is_some_and(|error| error.code().as_deref() == Some("40P01"))
}

async fn replace(connection: &mut PgConnection) -> sqlx::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a connection of its own, closed afterwards"
    )]
    let mut tx = connection.begin().await?;
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('farescan.functions', 0))")
        .execute(&mut *tx)
        .await?;
    let is_current: bool = sqlx::query_scalar(
        "select coalesce(functions_version > $1 or functions_version = $1 and functions_digest = $2, false) from installation",
    )
    .bind(version())
    .bind(digest())
    .fetch_one(&mut *tx)
    .await?;
    if is_current {
        return Ok(());
    }
    sqlx::raw_sql("set local check_function_bodies = off")
        .execute(&mut *tx)
        .await?;
    for (name, text) in FILES {
        tracing::debug!(file = name, "replacing SQL functions");
        sqlx::raw_sql(*text).execute(&mut *tx).await?;
    }
    // One month back: a spool may hold answers that old.
    sqlx::raw_sql("select create_partitions(now() - interval '1 month', 3)")
        .execute(&mut *tx)
        .await?;
    sqlx::query("update installation set functions_version = $1, functions_digest = $2")
        .bind(version())
        .bind(digest())
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::{FILES, version};

    #[test]
    fn every_file_of_the_folder_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/functions");
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| {
                let name = entry.unwrap().file_name().into_string().unwrap();
                name.strip_suffix(".sql").map(str::to_owned)
            })
            .collect();
        names.sort();
        assert_eq!(
            names,
            FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>()
        );
        assert!(version() >= 1);
    }

    #[test]
    fn every_function_is_defined_once() {
        let mut defined = BTreeMap::<_, Vec<_>>::new();
        for (file, text) in FILES {
            for line in text.lines() {
                for kind in ["function", "trigger", "view"] {
                    let head = format!("create or replace {kind} ");
                    if let Some(rest) = line.strip_prefix(&head) {
                        let name = rest
                            .split(|c: char| !c.is_alphanumeric() && c != '_')
                            .next();
                        defined.entry((kind, name)).or_default().push(*file);
                    } else {
                        assert!(
                            !line.starts_with(&format!("create {kind}")),
                            "{file}: {line}"
                        );
                    }
                }
            }
        }
        defined.retain(|_, files| files.len() > 1);
        assert!(defined.is_empty(), "{defined:?}");
    }
}
