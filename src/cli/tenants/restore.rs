//! `farescan tenants restore`: undoes a rotation that a stranger made or that named a wrong key.

use std::io::{Read as _, Write as _};

use zeroize::Zeroizing;

use crate::config::{DatabaseConfig, MasterKeyConfig};
use crate::contract::{MAX_KEY_BYTES, parse_key};
use crate::db::clock::DatabaseTime;
use crate::db::{self, Database};
use crate::search::CallerKey;
use crate::service::keyring;
use crate::tenants::rotate::Rotation;
use crate::tenants::rotate::restore::restore;
use farescan_client::Failure;

/// Settings of `tenants restore`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Reads the keys from standard input, one per line, so that no process list shows them: first the key whose rotation \
                        to undo, then optionally another key that takes over.\n\nExamples:\n  farescan tenants restore < keys.txt\n  \
                  farescan tenants restore --master-key-file master.key < keys.txt"
)]
pub struct RestoreArgs {
    #[command(flatten)]
    database: DatabaseConfig,
    #[command(flatten)]
    keys: MasterKeyConfig,
}

/// Undoes the rotation. Safe beside running processes.
pub async fn run(args: RestoreArgs) -> Result<(), Failure> {
    let (old, to) = read_keys()?;
    let database = Database::open(&args.database).await?;
    let done = run_in_database(&args.keys, &database, &old, to.as_ref().unwrap_or(&old)).await;
    database.close().await;
    let Rotation {
        held_keys,
        lanes_resumed,
        ..
    } = done?;
    let lanes = if lanes_resumed.is_empty() {
        "none".to_owned()
    } else {
        lanes_resumed.join(", ")
    };
    writeln!(
        anstream::stdout(),
        "restored: {held_keys} stored keys were sealed anew; resumed lanes: {lanes}"
    )?;
    Ok(())
}

/// Reads the keys from standard input.
fn read_keys() -> Result<(CallerKey, Option<CallerKey>), Failure> {
    let mut text = Zeroizing::new(String::new());
    let most = u64::try_from(4 * MAX_KEY_BYTES).unwrap_or(u64::MAX);
    std::io::stdin().take(most).read_to_string(&mut text)?;
    let mut keys = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let key = parse_key(line.as_bytes()).map_err(|_| {
                format!(
                    "a line is not a key: a key has 1 to {MAX_KEY_BYTES} visible ASCII characters"
                )
            })?;
            Ok::<_, Failure>(CallerKey::new(key))
        });
    let old = keys
        .next()
        .ok_or("standard input holds no key: give the key whose rotation to undo")??;
    Ok((old, keys.next().transpose()?))
}

async fn run_in_database(
    config: &MasterKeyConfig,
    database: &Database,
    old: &CallerKey,
    to: &CallerKey,
) -> Result<Rotation, Failure> {
    let ring = keyring(config, database.data_dir())?
        .ok_or("there is no master key: set FARESCAN_MASTER_KEY_FILE")?;
    if !db::is_migrated(database.pool()).await? {
        return Err(
            "the database's tables are of another version: run `farescan migrate` first".into(),
        );
    }
    let now = DatabaseTime::read(database.pool()).await?.now();
    Ok(restore(database.pool(), &ring, old, to, now).await?)
}
