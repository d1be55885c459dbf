//! `farescan migrate`: brings the database's tables up to date; `serve` and `worker` do it at
//! start.

use std::time::Duration;

use tokio::time::Instant;

use crate::config::DatabaseConfig;
use crate::db::{Database, DbError};
use farescan_client::Failure;

/// Pause between two attempts.
const RETRY: Duration = Duration::from_millis(500);

/// Settings of `migrate`.
#[derive(Debug, clap::Args)]
pub struct MigrateArgs {
    /// Seconds to wait for a database that does not answer yet; 0: not at all
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(0..=3_600)
    )]
    wait_for_database: u32,
    #[command(flatten)]
    database: DatabaseConfig,
}

/// Runs the migrations.
pub async fn run(args: MigrateArgs) -> Result<(), Failure> {
    let database = Database::open(&args.database).await?;
    let migrated = migrate(&database, args.wait_for_database).await;
    database.close().await;
    Ok(migrated?)
}

/// Repeats until the database answers, for so many seconds at most.
async fn migrate(database: &Database, seconds: u32) -> Result<(), DbError> {
    let end = Instant::now() + Duration::from_secs(seconds.into());
    let mut is_said = false;
    loop {
        match database.migrate().await {
            Err(error) if error.is_transient() && Instant::now() < end => {
                if !is_said {
                    anstream::eprintln!("farescan: {error}; trying for up to {seconds} s");
                }
                is_said = true;
                tokio::time::sleep_until(end.min(Instant::now() + RETRY)).await;
            }
            migrated => return migrated,
        }
    }
}
