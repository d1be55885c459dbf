//! Observations and latest prices in the database.

pub(super) mod days;
pub(super) mod find;
pub(super) mod grid;
pub(super) mod keep;
pub(super) mod products;
