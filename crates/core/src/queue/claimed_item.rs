//! A claimed item in this process: from the claim until its call is recorded or the claim is
//! released.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Claim;
use super::abandon::{abandon, abandon_unsent};
use super::begin::ExpectedBegin;
use super::database_retry::{RetryError, RetryUntil, retry};
use super::store::{ClaimRow, LaneClaims};
use crate::contract::Api;

/// How long a claim waits for enough free permits.
const COLLECT_PERMITS: Duration = Duration::from_millis(5);
/// How long a process that stops waits for calls to be stored.
const STORE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a process that stops waits for claims that were not begun to be released.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Permits for the calls of this process, and its open claims. An apalis backend cannot see how
/// many of the worker's slots are free, so this type counts them: the claimer claims as many items
/// as there are free permits.
///
/// A call that is answered exchanges its call permit for a storing permit, so that the next call
/// does not wait for the database. There are as many storing permits as call permits; while the
/// database is slow, calls keep their call permits. So does a call whose answer may stop its lane,
/// until the lane is updated: no other call begins in between.
#[derive(Debug, Clone)]
pub(super) struct CallPermits {
    calls: Arc<Semaphore>,
    storing: Arc<Semaphore>,
    capacity: u32,
    open: Arc<Mutex<OpenClaims>>,
    dropped: UnboundedSender<DroppedClaim>,
}

/// The open claims of this process: item and attempt number.
#[derive(Debug, Default)]
struct OpenClaims {
    /// The call runs, or the claim is being released.
    in_process: HashSet<(Uuid, i32)>,
    /// The answer is in the spool: the claim has no permit, but must not count as leaked.
    spooled: HashSet<(Uuid, i32)>,
}

/// A claim whose [`ClaimedItem`] was dropped. It stays open until the database has abandoned it.
#[derive(Debug)]
pub(super) struct DroppedClaim {
    claim: Claim,
    lane: Api,
    was_sent: bool,
    permits: CallPermits,
}

impl CallPermits {
    /// `count` call permits, and the receiver for [`abandon_dropped`].
    pub(super) fn new(count: u16) -> (Self, UnboundedReceiver<DroppedClaim>) {
        let (dropped, dropped_claims) = unbounded_channel();
        let [calls, storing] = [count, count].map(|count| Arc::new(Semaphore::new(count.into())));
        (
            Self {
                calls,
                storing,
                capacity: count.into(),
                open: Arc::default(),
                dropped,
            },
            dropped_claims,
        )
    }

    /// Waits for free call permits, then takes up to `most` of those that are free. While fewer
    /// than an eighth of all permits are free, it waits [`COLLECT_PERMITS`] for more: in a claim of
    /// 10 items each costs the database twice as much as in one of 25 (docs/decisions/0037). An idle
    /// process does not wait.
    pub(super) async fn acquire(&self, most: u32) -> OwnedSemaphorePermit {
        let enough = (self.capacity / 8).clamp(1, most);
        let collecting = self.calls.clone().acquire_many_owned(enough);
        let acquired = match timeout(COLLECT_PERMITS, collecting).await {
            Ok(acquired) => acquired,
            Err(_) => self.calls.clone().acquire_owned().await,
        };
        // The semaphore is never closed.
        let Ok(mut acquired) = acquired else {
            return std::future::pending().await;
        };
        let more = u32::try_from(self.calls.available_permits())
            .unwrap_or(u32::MAX)
            .min(most - u32::try_from(acquired.num_permits()).unwrap_or(most));
        if let Ok(rest) = self.calls.clone().try_acquire_many_owned(more) {
            acquired.merge(rest);
        }
        acquired
    }

    /// Opens a claim that has a call permit.
    pub(super) fn track(
        &self,
        row: ClaimRow,
        requested_at: Instant,
        expected_begin: ExpectedBegin,
        permit: OwnedSemaphorePermit,
    ) -> ClaimedItem {
        self.with_open(|open| {
            open.in_process
                .insert((row.claim.item.uuid(), row.claim.number))
        });
        ClaimedItem {
            row,
            requested_at,
            expected_begin: Some(expected_begin),
            permits: self.clone(),
            ended: false,
            was_sent: false,
            permit,
        }
    }

    /// The open claims: items and attempt numbers.
    pub(super) fn open_claims(&self) -> Vec<(Uuid, i32)> {
        self.with_open(|open| {
            open.in_process
                .iter()
                .chain(&open.spooled)
                .copied()
                .collect()
        })
    }

    /// How many claims are open whose answers are not in the spool.
    pub(super) fn open_count(&self) -> usize {
        self.with_open(|open| open.in_process.len())
    }

    /// Whether no call runs, waits to be stored or is in the spool.
    pub(super) fn has_no_open_claims(&self) -> bool {
        self.with_open(|open| open.in_process.is_empty() && open.spooled.is_empty())
    }

    /// Called when the spool holds no answer of this process any more.
    pub(super) fn clear_spooled(&self) {
        self.with_open(|open| open.spooled = HashSet::new());
    }

    /// Waits until every call is stored or spooled, then until claims that were not begun are
    /// released (the sweeper of another process does that too). Both waits are bounded, because the
    /// database and the disk may both be unavailable.
    pub(super) async fn wait_until_stored(&self) {
        // In the order in which a call takes them: when all call permits are free, only storing
        // permits are left.
        let calls = async {
            drop(self.calls.clone().acquire_many_owned(self.capacity).await);
            drop(self.storing.clone().acquire_many_owned(self.capacity).await);
        };
        if timeout(STORE_TIMEOUT, calls).await.is_err() {
            let calls = 2 * self.capacity as usize
                - self.calls.available_permits()
                - self.storing.available_permits();
            return tracing::error!(
                calls,
                "shutdown timed out before these calls were stored: they end as worker_lost"
            );
        }
        let released = async {
            while self.with_open(|open| !open.in_process.is_empty()) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        if timeout(RELEASE_TIMEOUT, released).await.is_err() {
            let claims = self.with_open(|open| open.in_process.len());
            tracing::warn!(
                claims,
                "shutdown timed out before these claims were released: another process abandons them"
            );
        }
    }

    fn with_open<T>(&self, change: impl FnOnce(&mut OpenClaims) -> T) -> T {
        // The sets are consistent between any two operations, so a poisoned lock is safe to use.
        change(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A claimed item and its permit. Dropped before its call is sent, the item can be claimed again;
/// dropped after that, its call counts as lost.
#[derive(Debug)]
pub struct ClaimedItem {
    /// The item and the data of its call.
    pub row: ClaimRow,
    requested_at: Instant,
    /// Until its begin is requested.
    expected_begin: Option<ExpectedBegin>,
    permits: CallPermits,
    /// The call is stored or spooled.
    ended: bool,
    /// The call may have been sent, and billed.
    was_sent: bool,
    permit: OwnedSemaphorePermit,
}

impl ClaimedItem {
    /// The claim.
    pub fn claim(&self) -> Claim {
        self.row.claim
    }

    /// When the claim was requested: the lease was valid then.
    pub(super) fn requested_at(&self) -> Instant {
        self.requested_at
    }

    /// To be passed on to its begin.
    pub(super) fn take_expected_begin(&mut self) -> Option<ExpectedBegin> {
        self.expected_begin.take()
    }

    /// Called before the call is sent: from here on it may be billed.
    pub(super) fn mark_sent(&mut self) {
        self.was_sent = true;
    }

    /// Frees the call permit as soon as a storing permit is free.
    pub(super) async fn switch_to_storing_permit(&mut self) {
        // The semaphore is never closed.
        if let Ok(permit) = self.permits.storing.clone().acquire_owned().await {
            self.permit = permit;
        }
    }

    /// The call is recorded, or the item needs none: closes the claim.
    pub(super) fn mark_stored(mut self) {
        self.ended = true;
        let key = (self.row.claim.item.uuid(), self.row.claim.number);
        self.permits.with_open(|open| open.in_process.remove(&key));
    }

    /// The answer is in the spool: frees the permit; the claim stays open until the answer is
    /// stored.
    pub(super) fn mark_spooled(mut self) {
        self.ended = true;
        let key = (self.row.claim.item.uuid(), self.row.claim.number);
        self.permits.with_open(|open| {
            open.in_process.remove(&key);
            open.spooled.insert(key);
        });
    }
}

impl Drop for ClaimedItem {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let (claim, lane, was_sent, permits) = (
            self.row.claim,
            self.row.lane,
            self.was_sent,
            self.permits.clone(),
        );
        // The receiver is closed only while the process stops: then the sweeper finds the claim.
        drop(self.permits.dropped.send(DroppedClaim {
            claim,
            lane,
            was_sent,
            permits,
        }));
    }
}

/// Abandons dropped claims in the database, lane by lane, as they arrive.
pub(super) async fn abandon_dropped(
    pool: PgPool,
    mut dropped: UnboundedReceiver<DroppedClaim>,
    stop: CancellationToken,
) {
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            count = dropped.recv_many(&mut batch, 1000) => if count == 0 { return },
            () = stop.cancelled() => return,
        }
        let until = RetryUntil::Stop(stop.clone());
        for lane in by_lane(batch.iter().filter(|dropped| dropped.was_sent)) {
            log_result(retry("abandon", &until, || abandon(&pool, &lane)).await);
        }
        for lane in by_lane(batch.iter().filter(|dropped| !dropped.was_sent)) {
            log_result(retry("abandon", &until, || abandon_unsent(&pool, &lane)).await);
        }
        for DroppedClaim { claim, permits, .. } in batch.drain(..) {
            permits.with_open(|open| open.in_process.remove(&(claim.item.uuid(), claim.number)));
        }
    }
}

fn log_result(lost_calls: Result<usize, RetryError>) {
    match lost_calls {
        Ok(0) => {}
        Ok(lost) => tracing::error!(lost, "calls lost in this process"),
        Err(error) => {
            tracing::error!(?error, "failed to abandon claims; the sweeper will retry");
        }
    }
}

fn by_lane<'a>(batch: impl Iterator<Item = &'a DroppedClaim>) -> Vec<LaneClaims> {
    let mut lanes = Vec::<LaneClaims>::new();
    for DroppedClaim {
        claim, lane: api, ..
    } in batch
    {
        let at = lanes
            .iter()
            .position(|lane| lane.tenant == claim.tenant && lane.api == api.as_str())
            .unwrap_or_else(|| {
                lanes.push(LaneClaims {
                    tenant: claim.tenant,
                    api: api.as_str().to_owned(),
                    items: Vec::new(),
                    numbers: Vec::new(),
                });
                lanes.len() - 1
            });
        lanes[at].items.push(claim.item.uuid());
        lanes[at].numbers.push(claim.number);
    }
    lanes
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use serde_json::Map;

    use super::*;
    use crate::ids::{ItemId, ScanId, TenantId};
    use crate::queue::WorkerId;
    use crate::queue::begin::BeginHandle;

    fn row() -> ClaimRow {
        let claim = Claim {
            worker: WorkerId(1),
            tenant: TenantId::new(),
            item: ItemId::new(),
            number: 1,
        };
        ClaimRow {
            claim,
            lane: Api::Flights,
            scan: ScanId::new(),
            endpoint: String::new(),
            body: Map::new(),
            upstream_filters: false,
            upstream_limit: None,
            verbatim: false,
            shares: false,
            grant: None,
        }
    }

    #[tokio::test]
    async fn an_answered_call_frees_its_permit_for_the_next_call() {
        let (permits, _dropped) = CallPermits::new(2);
        let (begin, _queue) = BeginHandle::new();
        let call = async || {
            let permit = permits.acquire(1).await;
            permits.track(row(), Instant::now(), begin.expect(), permit)
        };
        let (mut one, mut two) = (call().await, call().await);
        assert!(
            permits.acquire(1).now_or_never().is_none(),
            "two calls are underway"
        );
        one.switch_to_storing_permit().await;
        two.switch_to_storing_permit().await;
        let (mut three, four) = (call().await, call().await);
        assert!(
            three.switch_to_storing_permit().now_or_never().is_none(),
            "two answers wait, so the third call keeps its call permit"
        );
        assert!(permits.acquire(1).now_or_never().is_none());
        one.mark_stored();
        three.switch_to_storing_permit().await;
        assert_eq!(permits.acquire(9).await.num_permits(), 1);
        assert!(
            permits.wait_until_stored().now_or_never().is_none(),
            "answers and a call are not stored"
        );
        for claimed_item in [two, three, four] {
            claimed_item.mark_stored();
        }
        assert!(permits.wait_until_stored().now_or_never().is_some());
        assert!(permits.open_claims().is_empty());
    }
}
