//! `farescan tenants restore`: undoes a rotation of which its owner knows nothing, or that went to a mistyped key.

use std::io::{Read as _, Write as _};

use zeroize::Zeroizing;

use crate::cli::Failure;
use crate::config::{DatabaseConfig, KeysConfig};
use crate::contract::{MAX_KEY_BYTES, read_key};
use crate::db::clock::DatabaseTime;
use crate::db::{self, Database};
use crate::search::CallerKey;
use crate::service::keyring;
use crate::tenants::rotate::Rotation;
use crate::tenants::rotate::restore::restore;

/// Settings of `tenants restore`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The keys are read from standard input, one a line, so that no process list shows them: the key whose rotation is \
                        undone, and in a second line the key that takes over, where that is to be another one."
)]
pub struct Args {
    #[command(flatten)]
    database: DatabaseConfig,
    #[command(flatten)]
    keys: KeysConfig,
}

/// Restores. Safe beside running processes.
pub async fn run(args: Args) -> Result<(), Failure> {
    let (old, to) = keys()?;
    let database = Database::open(&args.database).await?;
    let done = in_database(&args.keys, &database, &old, to.as_ref().unwrap_or(&old)).await;
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
        "restored: {held_keys} held keys were sealed anew; lanes that go on: {lanes}"
    )?;
    Ok(())
}

/// The keys of standard input.
fn keys() -> Result<(CallerKey, Option<CallerKey>), Failure> {
    let mut text = Zeroizing::new(String::new());
    let most = u64::try_from(4 * MAX_KEY_BYTES).unwrap_or(u64::MAX);
    std::io::stdin().take(most).read_to_string(&mut text)?;
    let mut keys = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let key = read_key(line.as_bytes()).map_err(|_| {
                format!("a line holds no key: 1 to {MAX_KEY_BYTES} visible ASCII characters")
            })?;
            Ok::<_, Failure>(CallerKey::new(key))
        });
    let old = keys
        .next()
        .ok_or("standard input holds no key: give the key whose rotation is to be undone")??;
    Ok((old, keys.next().transpose()?))
}

async fn in_database(
    config: &KeysConfig,
    database: &Database,
    old: &CallerKey,
    to: &CallerKey,
) -> Result<Rotation, Failure> {
    let ring = keyring(config, database.data_dir())?
        .ok_or("there is no master key: set FARESCAN_MASTER_KEY_FILE")?;
    if !db::is_migrated(database.pool()).await? {
        return Err(
            "the database's tables are not this version's: run `farescan migrate` first".into(),
        );
    }
    let now = DatabaseTime::read(database.pool()).await?.now();
    Ok(restore(database.pool(), &ring, old, to, now).await?)
}
