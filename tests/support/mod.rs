//! What the tests stand on.

pub mod app;
pub mod db;
pub mod reply;
pub mod upstream;
pub mod wire;

/// How long a test waits for what it waits for. It never takes as long: a machine that is loaded to twenty may take a hundred times what
/// another takes, and a bound in seconds would tell of the machine. nextest ends a test that hangs after 300 s.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(240);
