//! `farescan keys rewrap`: seals the stored keys anew under the master key's first entry.

use std::io::Write as _;

use crate::config::{DatabaseConfig, MasterKeyConfig};
use crate::db::{self, Database};
use crate::service::keyring;
use crate::tenants::rewrap::{RewrapSummary, rewrap};
use farescan_client::Failure;

/// Settings of `keys rewrap`.
#[derive(Debug, clap::Args)]
pub struct RewrapArgs {
    #[command(flatten)]
    database: DatabaseConfig,
    #[command(flatten)]
    keys: MasterKeyConfig,
}

/// Seals the stored keys anew. Idempotent, and safe beside running processes.
pub async fn run(args: RewrapArgs) -> Result<(), Failure> {
    let database = Database::open(&args.database).await?;
    let done = run_in_database(&args.keys, &database).await;
    database.close().await;
    let done = done?;
    let mut out = anstream::stdout();
    let RewrapSummary {
        primary,
        moved,
        changed,
        unopened,
        callers_by_older_key,
    } = done;
    writeln!(
        out,
        "{moved} stored keys were sealed anew under `{primary}`; other processes wiped or sealed {changed} in the meantime"
    )?;
    for (entry, callers) in &callers_by_older_key {
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
        "some stored keys could not be opened and are unchanged: {}",
        each.join("; ")
    )
    .into())
}

async fn run_in_database(
    keys: &MasterKeyConfig,
    database: &Database,
) -> Result<RewrapSummary, Failure> {
    let ring = keyring(keys, database.data_dir())?
        .ok_or("there is no master key: set FARESCAN_MASTER_KEY_FILE")?;
    if !db::is_migrated(database.pool()).await? {
        return Err(
            "the database's tables are of another version: run `farescan migrate` first".into(),
        );
    }
    Ok(rewrap(database.pool(), &ring).await?)
}
