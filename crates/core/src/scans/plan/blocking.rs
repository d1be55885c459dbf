//! Planning on blocking threads, a bounded number at a time.

use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::{ScanPlan, earliest_today};
use crate::commands::CommandError;
use crate::contract::ValidationErrors;

/// How long a request waits for a planning permit.
const PLAN_TIMEOUT: Duration = Duration::from_secs(5);

/// Plans with [`plan`](super::plan) or, what a caller asks for, with [`plan_new`](super::plan_new), on a
/// blocking thread, because thousands of items take long; at most one plan per processor at a time.
pub async fn plan_blocking(
    plan: fn(&Map<String, Value>, Date) -> Result<ScanPlan, ValidationErrors>,
    body: Map<String, Value>,
    now: Timestamp,
) -> Result<ScanPlan, CommandError> {
    Ok(with_permit(move || plan(&body, earliest_today(now))).await??)
}

/// Runs work of many items on a blocking thread under a planning permit.
///
/// # Errors
/// `Busy` when no permit is free in time.
pub async fn with_permit<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CommandError> {
    let permit = plan_permit().await?;
    let working = move || {
        // Owned by the work, which continues when the client has disconnected.
        let _permit = permit;
        work()
    };
    match tokio::task::spawn_blocking(working).await {
        Ok(done) => Ok(done),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// # Errors
/// `Busy` when no permit is free in time.
async fn plan_permit() -> Result<SemaphorePermit<'static>, CommandError> {
    static PERMITS: LazyLock<Semaphore> =
        LazyLock::new(|| Semaphore::new(available_parallelism().map_or(1, NonZeroUsize::get)));
    match timeout(PLAN_TIMEOUT, PERMITS.acquire()).await {
        Ok(Ok(permit)) => Ok(permit),
        // The semaphore is never closed.
        Ok(Err(_)) | Err(_) => Err(CommandError::Busy),
    }
}
