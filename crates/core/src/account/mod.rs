//! A caller's account: the bill ([`usage`]) with the forecast of its plans, the quota of its lanes
//! ([`quota`]), its own limits of a lane ([`lane_bounds`]), and what holds for all of its work
//! ([`settings`]).
//!
//! Not here: how a lane applies its limits (`queue`), how usage is counted (`charges` and the functions
//! of the queue), and key rotation (`tenants`).

mod forecast;
pub mod lane_bounds;
pub mod quota;
pub mod settings;
mod store;
pub mod usage;
