//! A worker in the test's process: real scans, a real Postgres, the scripted marketplace and its
//! ledger.

mod begin;
mod calls;
pub mod fixture;
mod grid;
mod locked_lane;
mod statistics;
mod stop;
