//! `farescan marketplace`: which marketplace the database belongs to (`crate::marketplace`).

use std::io::Write as _;

use super::serve::sandbox_folder;
use super::{Failure, serve};
use crate::config::{DatabaseConfig, UpstreamConfig};
use crate::db::{self, Database};
use crate::marketplace;
use crate::upstream::Client;

/// What to do with it.
#[derive(Debug, clap::Subcommand)]
pub enum Marketplace {
    /// Show which marketplace the database belongs to
    Show(ShowArgs),
    /// Move the database to the marketplace that the settings name: its address has changed. Needs every process stopped
    Set(Box<SetArgs>),
}

/// Settings of `marketplace show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    #[command(flatten)]
    database: DatabaseConfig,
}

/// Settings of `marketplace set`.
#[derive(Debug, clap::Args)]
pub struct SetArgs {
    /// The database holds invented prices alone, of `serve --sandbox`
    #[arg(long)]
    sandbox: bool,
    #[command(flatten)]
    upstream: UpstreamConfig,
    #[command(flatten)]
    database: DatabaseConfig,
}

/// Does it.
pub async fn run(command: Marketplace) -> Result<(), Failure> {
    match command {
        Marketplace::Show(args) => show(&args.database).await,
        Marketplace::Set(args) => set(*args).await,
    }
}

async fn show(config: &DatabaseConfig) -> Result<(), Failure> {
    let database = Database::open(config).await?;
    let held = async {
        if db::is_migrated(database.pool()).await? {
            Ok(marketplace::held(database.pool()).await?)
        } else {
            Err(NOT_MIGRATED.into())
        }
    };
    let held: Result<_, Failure> = held.await;
    database.close().await;
    writeln!(anstream::stdout(), "{}", held?.as_deref().unwrap_or(NONE))?;
    Ok(())
}

const NONE: &str = "none yet: the first `serve` or `worker` that starts sets it";
const NOT_MIGRATED: &str =
    "the database's tables are not this version's: run `farescan migrate` first";

async fn set(mut args: SetArgs) -> Result<(), Failure> {
    if args.sandbox {
        // No simulator is started: only its name is wanted, and every one of this program has the same.
        args.upstream = serve::sandbox_upstream(([127, 0, 0, 1], 0).into())?;
        sandbox_folder(&mut args.database)?;
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
        "the database belongs to the marketplace `{named}`; before: `{before}`"
    )?;
    Ok(())
}
