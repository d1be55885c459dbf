//! Observations and latest prices in the database.

pub(super) mod buckets;
pub(super) mod find;
pub(super) mod grid;
pub(super) mod keep;
