//! Computing over the history of a product: a year takes milliseconds, for which an async thread
//! would answer nobody else.

/// Runs the work on a blocking thread.
pub(super) async fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
