//! Operator features: admin listener, limits, commands, the container's files.

mod admin;
mod clock;
mod commands;
mod compose;
mod connections;
mod limits;
mod marketplace;
pub mod process;
mod rewrap;
mod stack;
mod start;
mod transactions;
mod upgrade;
