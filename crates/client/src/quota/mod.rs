//! `farescan quota`: what is left of each plan, the pace of scans, and the caller's own limits.

mod set;
mod show;

use super::Failure;
use super::client::ClientArgs;

/// Shows the quota, or sets own limits.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct QuotaArgs {
    #[command(subcommand)]
    command: Option<QuotaCommand>,
    #[command(flatten)]
    client: ClientArgs,
}

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
enum QuotaCommand {
    /// Set your own limits of scans: pace, concurrent searches, requests kept in reserve
    #[command(
        after_help = "Examples:\n  farescan quota set flights --keep-in-reserve 200\n  farescan quota set hotels --requests-per-minute 20 --max-in-flight none"
    )]
    Set(set::LimitArgs),
}

/// Runs the command.
pub async fn run(args: QuotaArgs) -> Result<(), Failure> {
    match args.command {
        None => show::run(args.client).await,
        Some(QuotaCommand::Set(limits)) => set::run(limits).await,
    }
}
