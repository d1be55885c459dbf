//! The queue: the items of scans as work for apalis workers. Its storage is the table `scan_items` itself, so submitting a scan is one
//! plain transaction and there is one truth (engine.md; `docs/decisions/` says why no ready-made storage is used).
//!
//! One call's way, and the room of each step:
//!
//! ```text
//!  claim     due lanes, fair and paced; a Ticket for each item            (claimer, ticket, backend)
//!  keys      the callers' keys are opened                                 (keys)
//!  begin     the ledger: on record, with its place in the budget, unsent  (begin)
//!  call      the marketplace is asked                                     (call)
//!  record    attempt, answer, observation, item, scan in one transaction  (record, finished)
//!  keep      what the database cannot take now waits on disk              (keep, spool)
//!  circuit   while the marketplace fails, one probe now and then          (circuit)
//!  tell      the lane: places again, and what the headers said          (lanes; synchronous calls: charge)
//!  lease     one row per process start; a lost one never aborts a call    (lease)
//!  sweep     what dead processes left, retries that are due              (sweep)
//!  upkeep    what was kept for its time, keys that have expired           (upkeep)
//!  retain    partitions made ahead, and what is too old                   (retain)
//! ```
//!
//! The moves in the database are functions of the migration `queue` ([`store`] calls them), whose head draws the states of an item;
//! those of a lane's pace are in the migration `pace`.
//! Not here: what an outcome means for an item (`search::fate`), how scans are made, read and cancelled (`scans`).

mod backend;
mod begin;
mod call;
pub mod charge;
mod circuit;
mod claimer;
mod finished;
pub mod give_up;
pub mod hold;
mod keep;
mod keys;
pub mod lanes;
mod lease;
mod record;
pub mod retain;
mod retry;
pub mod spool;
pub mod store;
pub mod sweep;
mod ticket;
mod upkeep;

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use sqlx::PgPool;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use backend::{Inbox, ScanItems};
pub use call::Caller;
pub use ticket::Ticket;

use crate::config::WorkerConfig;
use crate::history::days;
use crate::ids::{ItemId, TenantId};
use crate::tenants::Keyring;
use crate::upstream;
use begin::Beginner;
use keep::Keeper;
use keys::Keys;
use lease::Lease;
use record::Writer;
use spool::Spool;
use ticket::Slots;

/// A process start, as the database knows it: never a host's name, so that no restart inherits another's claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkerId(pub i64);

/// One taking of one item. Its number is never used again, so an old claim can touch no newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    /// Who took it.
    pub worker: WorkerId,
    /// Whose item it is.
    pub tenant: TenantId,
    /// The item.
    pub item: ItemId,
    /// The number of this taking: the attempt's number, if it comes to one.
    pub number: i32,
}

/// The running queue of one process: the backend's inbox, the calls' caller, and the tasks around them.
pub struct Queue {
    /// What the apalis backend yields.
    pub inbox: Arc<Inbox>,
    /// What the apalis handler runs.
    pub caller: Arc<Caller>,
    /// Cancelled when a part of the queue has panicked, or gets no lease any more: no more calls would be made, or none would be stored.
    pub failed: CancellationToken,
    tasks: TaskTracker,
    work_stops: CancellationToken,
    upkeep_stops: CancellationToken,
    slots: Slots,
    lease: Arc<Lease>,
    pool: PgPool,
}

impl Queue {
    /// Starts claiming, and storing what is in the spool. Calls that are yielded through the inbox are to be carried out by the caller.
    #[must_use]
    pub fn start(
        pool: PgPool,
        ring: Arc<Keyring>,
        upstream: upstream::Client,
        config: &WorkerConfig,
        spool: Option<Spool>,
    ) -> Self {
        let (work_stops, upkeep_stops, failed) = (
            CancellationToken::new(),
            CancellationToken::new(),
            CancellationToken::new(),
        );
        let tasks = TaskTracker::new();
        let lease = Arc::new(Lease::new(config.lease(), upstream.marketplace().clone()));
        let wake = Arc::new(Notify::new());
        let inbox = Arc::new(Inbox::default());
        let (slots, given_up) = Slots::new(config.worker_concurrency);
        let (begin, asked) = Beginner::new();
        let (keys, awaited) = Keys::new();
        let (record, handed) = Writer::new();

        let vital = |part: BoxFuture<'static, ()>| {
            let failed = failed.clone();
            tasks.spawn(async move {
                let panicked = failed.drop_guard();
                part.await;
                panicked.disarm();
            });
        };
        vital(
            lease::keep(
                pool.clone(),
                lease.clone(),
                slots.clone(),
                failed.clone(),
                upkeep_stops.clone(),
            )
            .boxed(),
        );
        vital(ticket::give_up_dropped(pool.clone(), given_up, upkeep_stops.clone()).boxed());
        vital(sweep::run(pool.clone(), lease.clone(), upkeep_stops.clone()).boxed());
        vital(keys::serve(pool.clone(), ring.clone(), awaited, upkeep_stops.clone()).boxed());
        vital(retain::run(pool.clone(), config.retention.clone(), upkeep_stops.clone()).boxed());
        vital(
            days::keep_packed(
                pool.clone(),
                config.retention.upkeep(),
                upkeep_stops.clone(),
            )
            .boxed(),
        );
        vital(begin::serve(pool.clone(), asked, upkeep_stops.clone()).boxed());
        let keeper = Keeper::new(
            pool.clone(),
            slots.clone(),
            wake.clone(),
            spool,
            upkeep_stops.clone(),
        );
        let room = keeper.room.clone();
        vital(record::serve(keeper, handed).boxed());
        vital(claimer::listen(pool.clone(), wake.clone(), work_stops.clone()).boxed());
        let claimer = claimer::Claimer {
            pool: pool.clone(),
            lease: lease.clone(),
            slots: slots.clone(),
            inbox: inbox.clone(),
            room,
            timeline: None,
        };
        vital(claimer.run(wake, work_stops.clone()).boxed());

        let caller = Arc::new(Caller {
            pool: pool.clone(),
            ring,
            upstream,
            lease: lease.clone(),
            keys,
            begin,
            record,
        });
        tasks.close();
        Self {
            inbox,
            caller,
            failed,
            tasks,
            work_stops,
            upkeep_stops,
            slots,
            lease,
            pool,
        }
    }

    /// No new claims; what was claimed and is not being carried out goes back. Calls that run are left alone.
    pub fn stop_claiming(&self) {
        self.work_stops.cancel();
    }

    /// After the last call: waits until everything is stored or spooled and given back, and hands back the lease.
    pub async fn finish(self) {
        self.work_stops.cancel();
        self.slots.wait_until_settled().await;
        self.upkeep_stops.cancel();
        self.tasks.wait().await;
        lease::give_back(&self.pool, &self.lease).await;
    }
}
