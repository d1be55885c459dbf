//! The queue's operations against a real Postgres, one at a time and concurrently.

mod begin;
mod claim;
mod fairness;
pub mod fixture;
mod late_answers;
mod lost_calls;
mod model;
mod pace;
mod page_reads;
mod pause;
mod races;
mod record;
mod sweep;
