//! The worker: apalis runs the queue's calls concurrently, and drains them when the process stops.
//!
//! Here: the connection of the queue with apalis. Not here: the calls (`queue`), signals and exit
//! codes (`cli`).

use std::sync::Arc;
use std::time::Duration;

use apalis::layers::WorkerBuilderExt as _;
use apalis_core::monitor::Monitor;
use apalis_core::worker::builder::WorkerBuilder;
use apalis_core::worker::ext::parallelize::ParallelizeExt as _;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::config::WorkerConfig;
use crate::marketplace::{self, MarketplaceError};
use crate::queue::spool::{Spool, SpoolError};
use crate::queue::{ClaimedItem, Queue, ScanItemBackend};
use crate::tenants::Keyring;
use crate::{upkeep, upstream};

/// How long calls in flight may take after the signal: a search's 180 seconds, and the time to
/// store it (engine.md, rule 65).
const DRAIN_TIMEOUT: Duration = Duration::from_secs(200);

/// The dependencies of a worker.
#[derive(Debug, Clone)]
pub struct WorkerDeps {
    /// A migrated database. Leases and notifications take a connection each on top of the pool's.
    pub pool: PgPool,
    /// Opens the callers' keys.
    pub ring: Arc<Keyring>,
    /// Sends the searches.
    pub upstream: upstream::Client,
    /// Without a spool folder answers wait in memory while the database is unavailable.
    pub config: WorkerConfig,
}

/// Why a worker does not start, or ended before its shutdown was requested.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("the worker ended unexpectedly: {0}")]
    Ended(String),
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error(transparent)]
    Marketplace(#[from] MarketplaceError),
}

/// Claims and executes items of scans until `shutdown`; then claims no more, waits for calls in
/// flight, stores them and releases its lease. It survives an outage of the database.
///
/// # Errors
/// When the database belongs to another marketplace, when the spool cannot be opened, or when the
/// worker ends before `shutdown`.
pub async fn run(deps: WorkerDeps, shutdown: CancellationToken) -> Result<(), WorkerError> {
    if !marketplace::bind_with_retry(&deps.pool, deps.upstream.marketplace(), &shutdown).await? {
        return Ok(());
    }
    let mut spool = None;
    if let Some(folder) = &deps.config.spool_dir {
        let bytes = deps.config.spool_bytes();
        spool = Spool::open_for_database(&deps.pool, folder, bytes, &shutdown).await?;
        if spool.is_none() {
            return Ok(());
        }
    }
    let queue = Queue::start(
        deps.pool.clone(),
        deps.ring,
        deps.upstream,
        &deps.config,
        spool,
    );
    upkeep::start(&queue, &deps.pool, &deps.config.retention);
    let (ready_queue, executor, failed) = (
        queue.ready_queue.clone(),
        queue.executor.clone(),
        queue.failed.clone(),
    );
    let until_stop =
        async || tokio::select! { () = shutdown.cancelled() => {}, () = failed.cancelled() => {} };
    let monitor = Monitor::new().register(move |_| {
        let executor = executor.clone();
        WorkerBuilder::new("scan-items")
            .backend(ScanItemBackend(ready_queue.clone()))
            .parallelize(tokio::spawn)
            .catch_panic()
            .build(move |claimed_item: ClaimedItem| {
                let executor = executor.clone();
                async move { executor.execute(claimed_item).await }
            })
    });
    let stopped = async {
        until_stop().await;
        queue.stop_claiming();
        Ok(())
    };
    // Without the monitor's shutdown timeout, which would drop calls in flight.
    let monitored = monitor.run_with_signal(stopped);
    let drained = async {
        until_stop().await;
        tokio::time::sleep(DRAIN_TIMEOUT).await;
    };
    let ended = tokio::select! {
        ended = monitored => ended.map_err(|error| WorkerError::Ended(error.to_string())),
        () = drained => {
            tracing::error!("shutdown timed out with calls in flight; they end as worker_lost");
            Ok(())
        }
    };
    let (was_requested, has_failed) = (shutdown.is_cancelled(), failed.is_cancelled());
    queue.finish().await;
    if has_failed {
        return Err(WorkerError::Ended(
            "a task of the queue failed; see the log".to_owned(),
        ));
    }
    if was_requested {
        ended
    } else {
        ended.and(Err(WorkerError::Ended("its stream ended".to_owned())))
    }
}
