//! Real processes and real faults: a test for each row of `docs/faults.md`, except those of pacing
//! and monitors, which are in `control` and
//! `monitors`. The tests kill, stop and terminate `farescan` during calls, crash, stop and fill
//! Postgres, and make the marketplace misbehave. Afterwards they compare the marketplace's ledger
//! with the database ([`ledger`]).
//!
//! Leases and time limits are short, so that all tests take a minute. `FARESCAN_SOAK=1` uses the
//! real ones and adds the long run ([`soak`]).

mod chaos;
mod commands;
mod database_outage;
mod disk;
mod failover;
mod kill;
pub mod ledger;
mod marketplace;
mod pace;
mod postgres;
pub mod process;
mod shutdown;
mod soak;
pub mod spool_files;

/// Whether to run the long form of the tests.
pub fn is_soak() -> bool {
    std::env::var_os("FARESCAN_SOAK").is_some()
}

/// The seed of random choices. It is printed, and `FARESCAN_SEED` repeats it.
pub fn seed() -> u64 {
    let seed = std::env::var("FARESCAN_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(rand::random::<u64>);
    println!("FARESCAN_SEED={seed}");
    seed
}
