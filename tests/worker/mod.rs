//! The running worker in this process: real scans, a real Postgres, the scripted marketplace and its ledger.

mod begin;
mod calls;
mod ends;
mod grid;
mod locked;
pub mod stage;
mod statistics;
mod two_phase;
