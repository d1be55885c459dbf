//! A caller's account over HTTP: usage, quota and key rotation.

mod quota;
mod restore;
pub mod rotate;
mod rotate_races;
mod settings;
mod usage;
