//! What operators have: the admin listener, the limits, the commands for keys and settings, the container's files.

mod admin;
mod clock;
mod commands;
mod compose;
mod limits;
pub mod process;
mod rewrap;
mod stack;
mod transactions;
