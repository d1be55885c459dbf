//! `farescan tenants move`: moves a caller to another installation.

use std::io::Write as _;
use std::time::Duration;

use secrecy::SecretString;

use crate::config::{DatabaseConfig, MasterKeyConfig};
use crate::db::{self, Database};
use crate::ids::TenantId;
use crate::marketplace;
use crate::service::keyring;
use crate::tenants::relocate::{Relocated, relocate};
use farescan_client::Failure;

/// Settings of `tenants move`.
#[derive(Debug, clap::Args)]
pub struct MoveArgs {
    /// The caller: ten_ and the 32 hexadecimal digits of its `tenants.tenant_id`
    #[arg(long, value_name = "ID")]
    tenant: TenantId,
    /// The other installation's database. Prefer the variable, a flag shows in the process list
    #[arg(
        long,
        env = "FARESCAN_TARGET_DATABASE_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    target_database_url: SecretString,
    /// How long to wait for calls in flight
    #[arg(long, value_name = "SECONDS", default_value_t = 240)]
    patience_seconds: u64,
    #[command(flatten)]
    database: DatabaseConfig,
    #[command(flatten)]
    keys: MasterKeyConfig,
}

/// Moves the caller. Run again after a failure, it finishes the move.
pub async fn run(args: MoveArgs) -> Result<(), Failure> {
    let source = Database::open(&args.database).await?;
    let target = DatabaseConfig {
        url: Some(args.target_database_url.clone()),
        read_url: None,
        ..args.database.clone()
    };
    let target = match Database::open(&target).await {
        Ok(target) => target,
        Err(error) => {
            source.close().await;
            return Err(format!("FARESCAN_TARGET_DATABASE_URL: {error}").into());
        }
    };
    let moved = relocate_between(&args, &source, &target).await;
    source.close().await;
    target.close().await;
    let Relocated { rows } = moved?;
    let mut out = anstream::stdout();
    if rows.is_empty() {
        writeln!(
            out,
            "{} was moved by an earlier run and is active at the target now",
            args.tenant
        )?;
    } else {
        let all: u64 = rows.iter().map(|(_, count)| count).sum();
        let each: Vec<_> = rows
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(table, count)| format!("{table} {count}"))
            .collect();
        writeln!(
            out,
            "{} moved: {all} rows ({})",
            args.tenant,
            each.join(", ")
        )?;
    }
    Ok(())
}

async fn relocate_between(
    args: &MoveArgs,
    source: &Database,
    target: &Database,
) -> Result<Relocated, Failure> {
    let ring = keyring(&args.keys, None)?
        .ok_or("there is no master key: set FARESCAN_MASTER_KEY_FILE to the target's")?;
    for (database, name) in [(source, "the source's"), (target, "the target's")] {
        if !db::is_migrated(database.pool()).await? {
            return Err(format!(
                "{name} tables are of another version: run `farescan migrate` there first"
            )
            .into());
        }
    }
    let (from, to) = (
        marketplace::stored(source.pool()).await?,
        marketplace::stored(target.pool()).await?,
    );
    if let (Some(from), Some(to)) = (&from, &to)
        && from != to
    {
        return Err(format!(
            "the source belongs to the marketplace `{from}`, the target to `{to}`: their prices must not be mixed"
        )
        .into());
    }
    let patience = Duration::from_secs(args.patience_seconds);
    Ok(relocate(source.pool(), target.pool(), &ring, args.tenant, patience).await?)
}
