//! Logs: one subscriber for the process, on standard error. No module logs a key; what could hold one (URLs, reqwest errors) is
//! stripped where it arises.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::config::{LogConfig, LogFormat};

/// What `--log` holds is no filter.
#[derive(Debug, thiserror::Error)]
#[error(
    "FARESCAN_LOG (or --log) holds `{held}` ({source}); allowed: off, error, warn, info, debug or trace, or directives such as \
     info,farescan=debug"
)]
pub struct BadFilter {
    held: String,
    source: ParseError,
}

/// Starts logging as `config` says. To be called once, first.
///
/// # Errors
/// The filter cannot be parsed.
pub fn start(config: &LogConfig) -> Result<(), BadFilter> {
    let filter = EnvFilter::try_new(&config.filter).map_err(|source| BadFilter {
        held: config.filter.clone(),
        source,
    })?;
    let stderr = std::io::stderr;
    let terminal = stderr().is_terminal();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr);
    match config.format.unwrap_or(if terminal {
        LogFormat::Text
    } else {
        LogFormat::Json
    }) {
        LogFormat::Text => lines.with_ansi(terminal).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    Ok(())
}
