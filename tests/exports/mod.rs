//! Lists as files: CSV, NDJSON and Parquet of items and of the history, whole or broken off, never in between; and what they cost in memory.

mod breaks;
mod forms;
mod history;
pub mod memory;
mod parquet;
pub mod seed;
