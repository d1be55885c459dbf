//! Exports of items and of the history as CSV, NDJSON and Parquet: complete or aborted, and their
//! memory.

mod breaks;
mod forms;
mod history;
pub mod memory;
mod parquet;
pub mod seed;
