//! More than one machine: what lets the tables be spread, and several processes on one database.

mod catalogue;
mod cells;
mod processes;
mod replica;
