//! Trying a move again until the database does it.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::db;

/// The longest that one move may take before it is tried on another connection.
pub(super) const MOVE_TIMEOUT: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Why a move was not made.
#[derive(Debug)]
pub(super) enum Failed {
    /// The database refuses it: again would be the same.
    Refused(sqlx::Error),
    /// The time was over, or the process stops.
    Stopped,
}

/// How long to go on.
#[derive(Debug, Clone)]
pub(super) enum Until {
    /// As long as the process runs.
    Stop(CancellationToken),
    /// No longer than this.
    Deadline(Instant),
}

/// Makes a move, again after each failure that may pass: a deadlock, a lost connection, a server that is away.
pub(super) async fn retry<T, F>(
    what: &'static str,
    until: &Until,
    mut make: impl FnMut() -> F,
) -> Result<T, Failed>
where
    F: Future<Output = sqlx::Result<T>>,
{
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match timeout(MOVE_TIMEOUT, make()).await {
            Ok(Ok(made)) => return Ok(made),
            Ok(Err(error)) if !db::may_pass(&error) => return Err(Failed::Refused(error)),
            Ok(Err(error)) => error,
            Err(_) => sqlx::Error::Io(std::io::Error::from(std::io::ErrorKind::TimedOut)),
        };
        tracing::warn!(%error, what, "the database did not do it; again in {pause:?}");
        let over = match until {
            Until::Stop(stop) => timeout(pause, stop.cancelled()).await.is_ok(),
            Until::Deadline(end) if Instant::now() + pause >= *end => true,
            Until::Deadline(_) => {
                tokio::time::sleep(pause).await;
                false
            }
        };
        if over {
            return Err(Failed::Stopped);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
