//! `farescan keys`: the master key, which seals the callers' keys (security.md, rule 4).

mod new;
mod rewrap;

use farescan_client::Failure;

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub enum KeysCommand {
    /// Generate a new entry for the master key, or with `--out` a new master key file
    #[command(
        after_help = "Examples:\n  farescan keys new --out master.key\n  farescan keys new --id 2027-05 >> master.key"
    )]
    New(new::NewKeyArgs),
    /// Seal the stored keys anew under the master key's first entry, so that older entries can be removed
    #[command(
        after_help = "Examples:\n  farescan keys rewrap\n  farescan keys rewrap --master-key-file master.key"
    )]
    Rewrap(rewrap::RewrapArgs),
}

/// Runs the subcommand.
pub async fn run(keys: KeysCommand) -> Result<(), Failure> {
    match keys {
        KeysCommand::New(args) => new::run(&args),
        KeysCommand::Rewrap(args) => rewrap::run(args).await,
    }
}
