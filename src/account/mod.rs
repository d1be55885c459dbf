//! A caller's account: what the scans have cost ([`usage`]), and what the lanes allow ([`quota`]).
//!
//! Here: reading. What moves a lane is the queue's; how a key passes on to another is `tenants`'. What synchronous searches cost is not
//! known here: the gateway keeps nothing.

pub mod quota;
mod store;
pub mod usage;
