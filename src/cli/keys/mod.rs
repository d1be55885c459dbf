//! `farescan keys`: the master key that seals the callers' keys while their scans run (security.md, "Keys").

mod new;
mod rewrap;

use super::Failure;

/// What to do with the master key.
#[derive(Debug, clap::Subcommand)]
pub enum Keys {
    /// Make a new entry for the master key, or with `--out` a new master key file
    New(new::Args),
    /// Seal the held keys anew under the master key's first entry, so that older entries can go
    Rewrap(rewrap::Args),
}

/// Does it.
pub async fn run(keys: Keys) -> Result<(), Failure> {
    match keys {
        Keys::New(args) => new::run(&args),
        Keys::Rewrap(args) => rewrap::run(args).await,
    }
}
