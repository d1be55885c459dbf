//! `farescan migrate`: brings the database's tables up to date; `serve` and `worker` do it at
//! start.

use super::Failure;
use crate::config::DatabaseConfig;
use crate::db::Database;

/// Settings of `migrate`.
#[derive(Debug, clap::Args)]
pub struct MigrateArgs {
    #[command(flatten)]
    database: DatabaseConfig,
}

/// Runs the migrations.
pub async fn run(args: MigrateArgs) -> Result<(), Failure> {
    let database = Database::open(&args.database).await?;
    let migrated = database.migrate().await;
    database.close().await;
    Ok(migrated?)
}
