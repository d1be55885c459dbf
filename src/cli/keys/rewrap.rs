//! `farescan keys rewrap`: after a new entry was put on top of the master key, moves what is held to it.

use std::io::Write as _;

use crate::cli::Failure;
use crate::config::{DatabaseConfig, KeysConfig};
use crate::db::{self, Database};
use crate::service::keyring;
use crate::tenants::rewrap::{Rewrapped, rewrap};

/// Settings of `keys rewrap`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    database: DatabaseConfig,
    #[command(flatten)]
    keys: KeysConfig,
}

/// Rewraps. Safe beside running processes, and again is fine.
pub async fn run(args: Args) -> Result<(), Failure> {
    let database = Database::open(&args.database).await?;
    let done = in_database(&args.keys, &database).await;
    database.close().await;
    let done = done?;
    let mut out = anstream::stdout();
    let Rewrapped {
        primary,
        moved,
        changed,
        unopened,
        strangers,
    } = done;
    writeln!(
        out,
        "{moved} held keys were sealed anew under `{primary}`, {changed} were wiped or sealed by others meanwhile"
    )?;
    for (entry, callers) in &strangers {
        writeln!(
            out,
            "{callers} callers were last seen under `{entry}`: without that entry they would not find their scans again"
        )?;
    }
    if unopened.is_empty() {
        return Ok(());
    }
    let each: Vec<_> = unopened
        .iter()
        .map(|(why, count)| format!("{count} because {why}"))
        .collect();
    Err(format!(
        "not every held key could be opened, and what could not is left as it is: {}",
        each.join("; ")
    )
    .into())
}

async fn in_database(keys: &KeysConfig, database: &Database) -> Result<Rewrapped, Failure> {
    let ring = keyring(keys, database.data_dir())?
        .ok_or("there is no master key: set FARESCAN_MASTER_KEY_FILE")?;
    if !db::is_migrated(database.pool()).await? {
        return Err(
            "the database's tables are not this version's: run `farescan migrate` first".into(),
        );
    }
    Ok(rewrap(database.pool(), &ring).await?)
}
