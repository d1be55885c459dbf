//! A caller's account: what the scans have cost ([`usage`]), what the lanes allow ([`quota`]), and the caller's own bounds ([`bound`]).
//!
//! What a lane makes of its bounds and what else moves it is the queue's; how a key passes on to another is `tenants`'. What synchronous searches cost is not
//! known here: the gateway keeps nothing.

pub mod bound;
pub mod quota;
mod store;
pub mod usage;
