//! `farescan tenants`: what an operator does with callers (docs/scaling.md, "Cells").

mod relocate;

use super::Failure;

/// What to do with callers.
#[derive(Debug, clap::Subcommand)]
pub enum Tenants {
    /// Move a caller, with scans, history and monitors, to the database of another installation
    Move(relocate::Args),
}

/// Does it.
pub async fn run(tenants: Tenants) -> Result<(), Failure> {
    match tenants {
        Tenants::Move(args) => relocate::run(args).await,
    }
}
