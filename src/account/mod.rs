//! A caller's account: billed requests of scans ([`usage`]), the quota of its lanes ([`quota`]),
//! its own limits of a lane ([`lane_bounds`]), and what holds for all of its work ([`settings`]).
//!
//! Not here: how a lane applies its limits (`queue`), key rotation (`tenants`), and the cost of
//! synchronous searches, which are not stored.

pub mod lane_bounds;
pub mod quota;
pub mod settings;
mod store;
pub mod usage;
