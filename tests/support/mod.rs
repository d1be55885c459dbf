//! What the tests stand on.

pub mod app;
pub mod db;
pub mod reply;
pub mod upstream;
pub mod wire;
