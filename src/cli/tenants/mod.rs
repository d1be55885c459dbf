//! `farescan tenants`: an operator's commands on callers (docs/running.md, "A caller who lost
//! access"; docs/scaling.md, "Cells").

mod relocate;
mod restore;

use farescan_client::Failure;

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub enum TenantsCommand {
    /// Move a caller, with scans, history and monitors, to the database of another installation
    #[command(
        after_help = "Examples:\n  farescan tenants move --tenant ten_01a203c0e34277d8a336dcd2cb234bba --target-database-url postgres://other/farescan\n  farescan tenants move --tenant ten_01a203c0e34277d8a336dcd2cb234bba --target-database-url postgres://other/farescan --patience-seconds 600"
    )]
    Move(relocate::MoveArgs),
    /// Undo a key rotation of the last 48 hours
    Restore(restore::RestoreArgs),
}

/// Runs the subcommand.
pub async fn run(tenants: TenantsCommand) -> Result<(), Failure> {
    match tenants {
        TenantsCommand::Move(args) => relocate::run(args).await,
        TenantsCommand::Restore(args) => restore::run(args).await,
    }
}
