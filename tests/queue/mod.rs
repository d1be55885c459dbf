//! The queue's moves against a real Postgres, one at a time and against each other.

mod begin;
mod claim;
mod hold;
mod late;
mod lost;
mod model;
mod order;
mod pace;
mod plans;
mod races;
mod record;
mod sweep;
pub mod yard;
