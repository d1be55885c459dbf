//! Real processes and real faults: `farescan serve` killed, stopped and told to end in the middle of calls, Postgres crashed under load.
//! Afterwards the marketplace's ledger is compared with what is on record.

mod kill;
mod pace;
mod postgres;
pub mod process;
