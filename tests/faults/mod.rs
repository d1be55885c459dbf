//! Real processes and real faults: a test for each row of the engine's table of faults, but for those of pacing and monitors, which stand
//! beside their parts. `farescan` is killed, stopped and told to end in the middle of calls; Postgres is crashed, taken away and filled;
//! the marketplace misbehaves. Afterwards the marketplace's ledger is compared with what is on record ([`books`]).
//!
//! Leases and time limits are shortened, so that all of it takes a minute; `FARESCAN_SOAK=1` has the real ones, and the long run ([`soak`]).

mod away;
pub mod books;
mod disk;
mod kill;
mod life;
mod marketplace;
mod orders;
mod pace;
mod postgres;
pub mod process;
mod promoted;
mod soak;
pub mod spooled;
mod stop;

/// Whether the long form is wanted.
pub fn is_soak() -> bool {
    std::env::var_os("FARESCAN_SOAK").is_some()
}

/// Random moments from a seed that is printed; `FARESCAN_SEED` repeats them.
pub fn seed() -> u64 {
    let seed = std::env::var("FARESCAN_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(rand::random::<u64>);
    println!("FARESCAN_SEED={seed}");
    seed
}
