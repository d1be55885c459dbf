//! The running worker in this process: real scans, a real Postgres, the scripted marketplace and its ledger.

mod calls;
mod ends;
pub mod stage;
