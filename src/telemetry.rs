//! Logs: one subscriber for the process, on standard error. No module logs a key; what could hold one (URLs, reqwest errors) is
//! stripped where it arises.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::config::{LogConfig, LogFormat};

/// Starts logging as `config` says. To be called once, first.
///
/// # Errors
/// The filter cannot be parsed.
pub fn start(config: &LogConfig) -> Result<(), ParseError> {
    let filter = EnvFilter::try_new(&config.filter)?;
    let stderr = std::io::stderr;
    let terminal = stderr().is_terminal();
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    match config.format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json }) {
        LogFormat::Text => lines.with_ansi(terminal).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    Ok(())
}
