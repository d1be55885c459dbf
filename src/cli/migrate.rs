//! `farescan migrate`: brings the database's tables up to date and ends; `serve` and `worker` do the same when they start.

use super::Failure;
use crate::config::DatabaseConfig;
use crate::db::Database;

/// Settings of `migrate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    database: DatabaseConfig,
}

/// Migrates.
pub async fn run(args: Args) -> Result<(), Failure> {
    let database = Database::open(&args.database).await?;
    let migrated = database.migrate().await;
    database.close().await;
    Ok(migrated?)
}
