//! Scans: one request with some fields swept, so many searches.

pub mod plan;
