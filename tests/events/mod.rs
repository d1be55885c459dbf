//! The events of scans over real HTTP: live, resumed from any id, and for many clients.

pub mod client;
mod ends;
mod live;
mod many;
mod resume;
