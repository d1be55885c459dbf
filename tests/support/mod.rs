//! Test databases, the service under test and the scripted marketplace.

pub mod app;
pub mod db;
pub mod reply;
pub mod upstream;

/// The longest that a test waits for a condition. It is generous because an overloaded machine may
/// take a hundred times the usual time. nextest ends a test that hangs after 300 s.
pub const WAIT_LIMIT: std::time::Duration = std::time::Duration::from_secs(240);
