//! The worker: apalis runs the queue's calls, many at a time, and drains them when the process is told to stop.
//!
//! Here: how the queue and apalis are put together. Not here: what a call is (`queue`), signals and exit codes (`cli`).

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
use crate::queue::{Queue, ScanItems, Ticket};
use crate::tenants::Keyring;
use crate::upstream;

/// How long calls in flight may take after the signal: a search's 180 seconds, and the time to store it (engine.md, "Shutdown").
const DRAIN: Duration = Duration::from_secs(200);

/// What a worker works with.
#[derive(Debug, Clone)]
pub struct WorkerDeps {
    /// A migrated database. Leases and notifications take a connection each on top of the pool's.
    pub pool: PgPool,
    /// Opens the callers' keys.
    pub ring: Arc<Keyring>,
    /// Who is asked.
    pub upstream: upstream::Client,
    /// How much at once, and where answers are kept while the database is away; without a folder they wait in memory then.
    pub config: WorkerConfig,
}

/// Why a worker does not start, or ended although nobody told it to.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("the worker ended by itself: {0}")]
    Ended(String),
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error(transparent)]
    Marketplace(#[from] MarketplaceError),
}

/// Claims and carries out items of scans until `shutdown`; then takes no more, lets calls in flight end, stores them and gives back its
/// lease. An outage of the database does not end it.
///
/// # Errors
/// When the database belongs to another marketplace, when its spool cannot be opened, or when it ends without having been told to.
pub async fn run(deps: WorkerDeps, shutdown: CancellationToken) -> Result<(), WorkerError> {
    if !marketplace::bind_when_it_answers(&deps.pool, deps.upstream.marketplace(), &shutdown)
        .await?
    {
        return Ok(());
    }
    let spool = match &deps.config.spool_dir {
        Some(folder) => {
            match Spool::of_database(&deps.pool, folder, deps.config.spool_bytes(), &shutdown)
                .await?
            {
                None => return Ok(()),
                opened => opened,
            }
        }
        None => None,
    };
    let queue = Queue::start(deps.pool, deps.ring, deps.upstream, &deps.config, spool);
    let (inbox, caller, failed) = (
        queue.inbox.clone(),
        queue.caller.clone(),
        queue.failed.clone(),
    );
    let ends =
        async || tokio::select! { () = shutdown.cancelled() => {}, () = failed.cancelled() => {} };
    let monitor = Monitor::new().register(move |_| {
        let caller = caller.clone();
        WorkerBuilder::new("scan-items")
            .backend(ScanItems(inbox.clone()))
            .parallelize(tokio::spawn)
            .catch_panic()
            .build(move |ticket: Ticket| {
                let caller = caller.clone();
                async move { caller.carry_out(ticket).await }
            })
    });
    let stopped = async {
        ends().await;
        queue.stop_claiming();
        Ok(())
    };
    // No shutdown timeout of the monitor's own: it would drop calls in flight.
    let monitored = monitor.run_with_signal(stopped);
    let drained = async {
        ends().await;
        tokio::time::sleep(DRAIN).await;
    };
    let ended = tokio::select! {
        ended = monitored => ended.map_err(|error| WorkerError::Ended(error.to_string())),
        () = drained => {
            tracing::error!("calls were still in flight at the end; they will read worker_lost");
            Ok(())
        }
    };
    let (told, broken) = (shutdown.is_cancelled(), failed.is_cancelled());
    queue.finish().await;
    if broken {
        return Err(WorkerError::Ended(
            "a part of the queue ended; the log says why".to_owned(),
        ));
    }
    if told {
        ended
    } else {
        ended.and(Err(WorkerError::Ended("its stream ended".to_owned())))
    }
}
