//! More than one machine: sharding by tenant, several processes, cells and a replica.

mod catalogue;
mod cells;
mod processes;
mod replica;
