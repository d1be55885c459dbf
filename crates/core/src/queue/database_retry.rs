//! Retries database operations.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::db;

/// How long one attempt may take before it is repeated on another connection.
pub const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(5);
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Why an operation failed.
#[derive(Debug)]
pub(super) enum RetryError {
    /// The database rejects it; a retry would fail alike.
    Permanent(sqlx::Error),
    /// The deadline has passed, or the process stops.
    Stopped,
}

/// How long to retry.
#[derive(Debug, Clone)]
pub(super) enum RetryUntil {
    /// Until the process stops.
    Stop(CancellationToken),
    /// Until this time.
    Deadline(Instant),
}

/// Runs an operation, again after each transient error: a deadlock, a lost connection, an
/// unreachable server.
pub(super) async fn retry<T, F>(
    name: &'static str,
    until: &RetryUntil,
    mut operation: impl FnMut() -> F,
) -> Result<T, RetryError>
where
    F: Future<Output = sqlx::Result<T>>,
{
    let mut pause = MIN_PAUSE;
    loop {
        let error = match timeout(TRANSACTION_TIMEOUT, operation()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) if !db::is_transient(&error) => {
                return Err(RetryError::Permanent(error));
            }
            Ok(Err(error)) => error,
            Err(_) => sqlx::Error::Io(std::io::Error::from(std::io::ErrorKind::TimedOut)),
        };
        tracing::warn!(%error, operation = name, ?pause, "database call failed; retrying");
        let over = match until {
            RetryUntil::Stop(stop) => timeout(pause, stop.cancelled()).await.is_ok(),
            RetryUntil::Deadline(end) if Instant::now() + pause >= *end => true,
            RetryUntil::Deadline(_) => {
                tokio::time::sleep(pause).await;
                false
            }
        };
        if over {
            return Err(RetryError::Stopped);
        }
        pause = (pause * 2).min(MAX_PAUSE);
    }
}
