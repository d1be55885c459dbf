//! Operator features: admin listener, limits, commands, the container's files.

mod admin;
mod clock;
mod commands;
mod compose;
mod connections;
mod containers;
mod fewer_rules;
mod first_hour;
// The counts below are those of one instruction set.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod instructions;
mod laboratory;
mod limits;
mod marketplace;
mod packages;
pub mod process;
mod rewrap;
mod stack;
mod start;
mod transactions;
mod upgrade;
