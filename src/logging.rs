//! Logging: one subscriber for the process, on standard error. No module logs a key; URLs and
//! reqwest errors, which may hold one, are redacted where they arise.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::config::{LogConfig, LogFormat};

/// The value of `--log` is not a filter.
#[derive(Debug, thiserror::Error)]
#[error(
    "invalid FARESCAN_LOG (or --log) `{found}` ({source}); expected off, error, warn, info, debug or trace, or \
     directives such as info,farescan=debug"
)]
pub struct InvalidLogFilter {
    found: String,
    source: ParseError,
}

/// Installs the subscriber. Call it once, before anything is logged.
///
/// # Errors
/// When the filter cannot be parsed.
pub fn init(config: &LogConfig) -> Result<(), InvalidLogFilter> {
    let filter = config.filter.as_deref().unwrap_or(LogConfig::DEFAULT);
    let filter = EnvFilter::try_new(filter).map_err(|source| InvalidLogFilter {
        found: filter.to_owned(),
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
        // A line has at most one span.
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .init(),
    }
    Ok(())
}
