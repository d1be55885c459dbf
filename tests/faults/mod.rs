//! Real processes and real faults: a test for each row of `docs/faults.md`, except those of pacing
//! and monitors, which are in `control` and
//! `monitors`. The tests kill, stop and terminate `farescan` during calls, crash, stop and fill
//! Postgres, and make the marketplace misbehave. Afterwards they compare the marketplace's ledger
//! with the database ([`ledger`]).
//!
//! Leases and time limits are short, so that all tests take a minute. `FARESCAN_SOAK=1` uses the
//! real ones and adds the long run ([`soak`]).

mod bill;
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
mod savings;
mod shutdown;
mod soak;
pub mod spool_files;

/// Whether to run the long form of the tests.
pub fn is_soak() -> bool {
    std::env::var_os("FARESCAN_SOAK").is_some()
}

/// The seed of random choices: the same in each short run, another in each long one. It is printed, and
/// `FARESCAN_SEED` repeats it.
pub fn seed() -> u64 {
    let given = std::env::var("FARESCAN_SEED").ok();
    let seed = match given.map(|seed| seed.parse().expect("FARESCAN_SEED is a whole number")) {
        Some(seed) => seed,
        None if is_soak() => rand::random(),
        None => 20_261_122,
    };
    println!("FARESCAN_SEED={seed}");
    seed
}
