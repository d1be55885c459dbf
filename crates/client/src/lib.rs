//! The command line of farescan as a client of a running service: one file per command. A command
//! reads its arguments, calls the service over HTTP and prints the result.
//!
//! The crate uses neither the database nor the server. The program `farescan` of the root package
//! adds the commands of operators.

mod age;
mod alerts;
mod amount;
mod ask;
mod channels;
pub mod client;
mod commands;
mod compare;
mod completions;
mod control;
mod dates;
mod deliveries;
mod env_file;
pub mod exit;
mod export;
mod find;
mod for_terminal;
pub mod format;
mod hints;
mod history;
mod ids;
pub mod interrupt;
mod list;
mod login;
mod man;
mod memory;
mod monitors;
pub mod pages;
mod partial_file;
pub mod program;
pub mod progress;
mod question;
mod quota;
pub mod render;
mod report;
mod reported;
mod request;
mod retry;
mod rotate_key;
mod scan;
pub mod scan_table;
mod scans;
mod search;
mod settings;
pub mod terminal;
mod test_message;
mod usage;
mod verify;
mod watch;
mod why;
pub mod wrap;

pub use commands::ClientCommand;
pub use program::ClientProgram;

/// A command's error: its message is printed for the user.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
