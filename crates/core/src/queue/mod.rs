//! The queue: the items of scans as work for apalis workers. Its storage is the table `scan_items`
//! itself, so submitting a scan is one plain transaction (engine.md, rule 1; docs/decisions/0001
//! says why no ready-made storage is used).
//!
//! The steps of one call, and the tasks around them:
//!
//! ```text
//!  claim      items of due lanes, fairly and paced, each
//!             with its caller's sealed key                  claimer, claimed_item, apalis_backend
//!  begin      record the attempt before it is sent          begin
//!  call       call the marketplace                          call
//!  write      batch the completed calls, spool what the
//!             database cannot store now                     pending_write, result_writer, spool
//!  record     store attempt, answer, observation, item      record, completed_call
//!  circuit    probe the marketplace while it fails          circuit
//!  lanes      free a slot, update pace and quota            lanes
//!  lease      one row per process start, renewed            lease, abandon
//! ```
//!
//! The state changes are database functions ([`store`] calls them). Not here: what an outcome means
//! for an item (`search::outcome_status`), how scans are made, read and cancelled (`scans`), the claims
//! of dead workers (`upkeep`).

pub mod abandon;
mod apalis_backend;
mod begin;
mod call;
mod circuit;
mod claimed_item;
mod claimer;
mod completed_call;
mod database_retry;
pub mod lanes;
mod lease;
pub mod pause_scan;
mod pending_write;
mod record;
pub mod recorded_search;
mod result_writer;
pub mod spool;
mod storable_text;
pub mod store;

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use sqlx::PgPool;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use apalis_backend::{ReadyQueue, ScanItemBackend};
pub use call::CallExecutor;
pub use claimed_item::ClaimedItem;
pub use database_retry::TRANSACTION_TIMEOUT;
pub use lease::Lease;

use crate::config::WorkerConfig;
use crate::ids::{ItemId, TenantId};
use crate::tenants::Keyring;
use crate::upstream;
use begin::BeginHandle;
use claimed_item::CallPermits;
use pending_write::RecordHandle;
use result_writer::ResultWriter;
use spool::Spool;

/// The database's id of a process start. It is not a host name, so a restart does not inherit
/// claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkerId(pub i64);

/// One claim of one item. Its number is never used again, so an old claim cannot change a newer
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    pub worker: WorkerId,
    pub tenant: TenantId,
    pub item: ItemId,
    /// The number of this claim, and of its attempt.
    pub number: i32,
}

/// The running queue of one process: the ready queue, the call executor and the tasks around them.
pub struct Queue {
    /// The items for the apalis backend.
    pub ready_queue: Arc<ReadyQueue>,
    /// The executor for the apalis handler.
    pub executor: Arc<CallExecutor>,
    /// The lease of this process.
    pub lease: Arc<Lease>,
    /// Cancelled when a task of the queue panics or the process can get no lease any more.
    pub failed: CancellationToken,
    tasks: TaskTracker,
    stop_work: CancellationToken,
    stop_upkeep: CancellationToken,
    permits: CallPermits,
    pool: PgPool,
}

impl Queue {
    /// Starts claiming, and storing the spool. The apalis worker passes each ready item to the
    /// executor.
    pub fn start(
        pool: PgPool,
        ring: Arc<Keyring>,
        upstream: upstream::Client,
        config: &WorkerConfig,
        spool: Option<Spool>,
    ) -> Self {
        let (stop_work, stop_upkeep, failed) = (
            CancellationToken::new(),
            CancellationToken::new(),
            CancellationToken::new(),
        );
        let tasks = TaskTracker::new();
        let lease = Arc::new(Lease::new(config.lease(), upstream.marketplace().clone()));
        let wake = Arc::new(Notify::new());
        let ready_queue = Arc::new(ReadyQueue::default());
        let (permits, dropped_claims) = CallPermits::new(config.worker_concurrency);
        let (begin, begin_queue) = BeginHandle::new();
        let (record, pending_writes) = RecordHandle::new();

        let spawn_vital = |task: BoxFuture<'static, ()>| spawn_vital(&tasks, failed.clone(), task);
        spawn_vital(
            lease::run(
                pool.clone(),
                lease.clone(),
                permits.clone(),
                failed.clone(),
                stop_upkeep.clone(),
            )
            .boxed(),
        );
        spawn_vital(
            claimed_item::abandon_dropped(pool.clone(), dropped_claims, stop_upkeep.clone())
                .boxed(),
        );
        spawn_vital(begin::run(pool.clone(), begin_queue, stop_upkeep.clone()).boxed());
        let writer = ResultWriter::new(
            pool.clone(),
            permits.clone(),
            wake.clone(),
            spool,
            stop_upkeep.clone(),
        );
        let spool_capacity = writer.spool_capacity.clone();
        spawn_vital(result_writer::run(writer, pending_writes).boxed());
        spawn_vital(claimer::listen(pool.clone(), wake.clone(), stop_work.clone()).boxed());
        let claimer = claimer::Claimer {
            pool: pool.clone(),
            lease: lease.clone(),
            permits: permits.clone(),
            begin: begin.clone(),
            ready_queue: ready_queue.clone(),
            spool_capacity,
            timeline: None,
        };
        spawn_vital(claimer.run(wake, stop_work.clone()).boxed());

        let executor = Arc::new(CallExecutor {
            pool: pool.clone(),
            ring,
            upstream,
            lease: lease.clone(),
            begin,
            record,
        });
        Self {
            ready_queue,
            executor,
            lease,
            failed,
            tasks,
            stop_work,
            stop_upkeep,
            permits,
            pool,
        }
    }

    /// Starts another task. It gets a token that is cancelled once all calls are stored or spooled;
    /// [`finish`](Self::finish) waits for it. If it panics, [`failed`](Self::failed) is cancelled.
    pub fn spawn<F>(&self, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        spawn_vital(
            &self.tasks,
            self.failed.clone(),
            task(self.stop_upkeep.clone()),
        );
    }

    /// Stops claiming and releases the items whose calls have not started. Running calls go on.
    pub fn stop_claiming(&self) {
        self.stop_work.cancel();
    }

    /// Called after the last call: waits until all calls are stored or spooled and all claims are
    /// released, then releases the lease.
    pub async fn finish(self) {
        self.stop_work.cancel();
        self.permits.wait_until_stored().await;
        self.stop_upkeep.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        lease::release(&self.pool, &self.lease).await;
    }
}

/// Spawns a task whose panic cancels `failed`.
fn spawn_vital(
    tasks: &TaskTracker,
    failed: CancellationToken,
    task: impl Future<Output = ()> + Send + 'static,
) {
    tasks.spawn(async move {
        let fail_on_panic = failed.drop_guard();
        task.await;
        fail_on_panic.disarm();
    });
}
