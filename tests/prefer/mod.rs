//! `Prefer` (RFC 7240) on the five searches: a synchronous search that may become a scan of one
//! item.

pub mod answers;
mod ignored;
mod scans;
