//! `farescan marketplace`: which marketplace the database belongs to (`crate::marketplace`).

use std::io::Write as _;

use farescan_client::Failure;

use super::trial::{sandbox_upstream, use_sandbox_folder};
use crate::config::{DatabaseConfig, UpstreamConfig};
use crate::db::{self, Database};
use crate::marketplace;
use crate::upstream::Client;

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub enum MarketplaceCommand {
    /// Show which marketplace the database belongs to
    #[command(
        after_help = "Examples:\n  farescan marketplace show\n  farescan marketplace show --database-url postgres://db.example/farescan"
    )]
    Show(ShowMarketplaceArgs),
    /// Set the marketplace to that of the settings, after its address changed; stop every process first
    #[command(
        after_help = "Examples:\n  farescan marketplace set\n  farescan marketplace set --sandbox"
    )]
    Set(Box<SetMarketplaceArgs>),
}

/// Settings of `marketplace show`.
#[derive(Debug, clap::Args)]
pub struct ShowMarketplaceArgs {
    #[command(flatten)]
    database: DatabaseConfig,
}

/// Settings of `marketplace set`.
#[derive(Debug, clap::Args)]
pub struct SetMarketplaceArgs {
    /// Set the marketplace to the sandbox, for a database of `serve --sandbox`
    #[arg(long)]
    sandbox: bool,
    #[command(flatten)]
    upstream: UpstreamConfig,
    #[command(flatten)]
    database: DatabaseConfig,
}

/// Runs the subcommand.
pub async fn run(command: MarketplaceCommand) -> Result<(), Failure> {
    match command {
        MarketplaceCommand::Show(args) => show(&args.database).await,
        MarketplaceCommand::Set(args) => set(*args).await,
    }
}

async fn show(config: &DatabaseConfig) -> Result<(), Failure> {
    let database = Database::open(config).await?;
    let stored = async {
        if db::is_migrated(database.pool()).await? {
            Ok(marketplace::stored(database.pool()).await?)
        } else {
            Err(NOT_MIGRATED.into())
        }
    };
    let stored: Result<_, Failure> = stored.await;
    database.close().await;
    writeln!(anstream::stdout(), "{}", stored?.as_deref().unwrap_or(NONE))?;
    Ok(())
}

const NONE: &str = "none yet: the first `serve` or `worker` sets it";
const NOT_MIGRATED: &str =
    "the database's tables are of another version: run `farescan migrate` first";

async fn set(mut args: SetMarketplaceArgs) -> Result<(), Failure> {
    if args.sandbox {
        // Starts no simulator: only its name matters, which all sandboxes share.
        args.upstream = sandbox_upstream(([127, 0, 0, 1], 0).into())?;
        use_sandbox_folder(&mut args.database)?;
    }
    let named = Client::new(&args.upstream)?.marketplace().clone();
    let database = Database::open(&args.database).await?;
    let before = async {
        database.migrate().await?;
        Ok(marketplace::set(database.pool(), &named).await?)
    };
    let before: Result<_, Failure> = before.await;
    database.close().await;
    let before = before?.unwrap_or_else(|| "none".to_owned());
    writeln!(
        anstream::stdout(),
        "the database now belongs to the marketplace `{named}`; before: `{before}`"
    )?;
    Ok(())
}
