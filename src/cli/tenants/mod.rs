//! `farescan tenants`: what an operator does with callers (docs/running.md, "A caller who lost access"; docs/scaling.md, "Cells").

mod relocate;
mod restore;

use super::Failure;

/// What to do with callers.
#[derive(Debug, clap::Subcommand)]
pub enum Tenants {
    /// Move a caller, with scans, history and monitors, to the database of another installation
    Move(relocate::Args),
    /// Undo a rotation of the last 48 hours: what a key owned before is its own again
    Restore(restore::Args),
}

/// Does it.
pub async fn run(tenants: Tenants) -> Result<(), Failure> {
    match tenants {
        Tenants::Move(args) => relocate::run(args).await,
        Tenants::Restore(args) => restore::run(args).await,
    }
}
