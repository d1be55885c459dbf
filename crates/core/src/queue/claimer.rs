//! Claims as many items as there are free call permits, whenever a lane is due.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::WorkerId;
use super::apalis_backend::ReadyQueue;
use super::begin::BeginHandle;
use super::claimed_item::CallPermits;
use super::database_retry::TRANSACTION_TIMEOUT;
use super::lease::Lease;
use super::result_writer::SpoolCapacity;
use super::store::{self, ClaimResult, ClaimRow};
use crate::{db, metrics};

/// The most items of one claim: a larger transaction would lock its lanes too long.
const MAX_CLAIMS: u32 = 100;
/// The wait after a poll that found every due lane locked. It doubles with each such poll.
const MIN_WAIT: Duration = Duration::from_millis(2);
/// The wait between two checks whether all calls are stored after a promotion, in milliseconds.
const PROMOTION_WAIT_MS: u64 = 500;
const MAX_LOCKED_WAIT: Duration = Duration::from_millis(50);
/// The wait before the next attempt to reach the database.
const RETRY_WAIT: Duration = Duration::from_millis(500);

pub(super) struct Claimer {
    pub(super) pool: PgPool,
    pub(super) lease: Arc<Lease>,
    pub(super) permits: CallPermits,
    pub(super) begin: BeginHandle,
    pub(super) ready_queue: Arc<ReadyQueue>,
    pub(super) spool_capacity: Arc<SpoolCapacity>,
    /// The database's timeline at the last claim.
    pub(super) timeline: Option<i32>,
}

impl Claimer {
    /// Claims until `stop`; then releases the items that no call has started for.
    pub(super) async fn run(mut self, wake: Arc<Notify>, stop: CancellationToken) {
        let mut locked = 0;
        while !stop.is_cancelled() {
            let Some(polled) = stop.run_until_cancelled(self.poll()).await else {
                break;
            };
            let wait = match polled {
                NextPoll::Wait(wait) => {
                    locked = 0;
                    wait
                }
                NextPoll::Locked => {
                    locked += 1;
                    locked_wait(locked)
                }
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = wake.notified() => {}
                () = stop.cancelled() => {}
            }
        }
        drop(self.ready_queue.drain());
    }

    /// Polls the due lanes once.
    ///
    /// If this future is dropped, its claim may still commit: the lease task or the sweeper
    /// abandons it.
    async fn poll(&mut self) -> NextPoll {
        let mut permits = self.permits.acquire(MAX_CLAIMS).await;
        let Some(worker) = self
            .lease
            .worker()
            .filter(|_| self.spool_capacity.allows_claims())
        else {
            return NextPoll::Wait(RETRY_WAIT);
        };
        let (requested_at, requested) = (Instant::now(), permits.num_permits());
        let (claims, wait_ms) =
            match timeout(TRANSACTION_TIMEOUT, self.claim(worker, requested)).await {
                Ok(Ok(ClaimResult::Claims(claims, wait_ms))) => (claims, wait_ms),
                Ok(Ok(ClaimResult::Fenced)) => {
                    self.lease.mark_lost(worker);
                    return NextPoll::Wait(RETRY_WAIT);
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "claim failed");
                    return NextPoll::Wait(RETRY_WAIT);
                }
                Err(_) => {
                    tracing::warn!("claim timed out");
                    return NextPoll::Wait(RETRY_WAIT);
                }
            };
        let count = claims.len();
        let claims = round_robin(claims);
        metrics::batch_finished("claim", count, requested_at.elapsed());
        self.ready_queue
            .extend(claims.into_iter().filter_map(|row| {
                let permit = permits.split(1)?;
                Some(
                    self.permits
                        .track(row, requested_at, self.begin.expect(), permit),
                )
            }));
        match count {
            0 if wait_ms == 0 => NextPoll::Locked,
            _ if count == requested => NextPoll::Wait(Duration::ZERO),
            _ => NextPoll::Wait(Duration::from_millis(wait_ms).max(MIN_WAIT)),
        }
    }
}

impl Claimer {
    /// Claims, unless a standby was promoted: it may have lost recorded calls, and would offer
    /// their items again. This process first stores all its calls.
    async fn claim(&mut self, worker: WorkerId, limit: usize) -> sqlx::Result<ClaimResult> {
        let mut connection = self.pool.acquire().await?;
        // Some servers do not report it.
        let timeline = store::timeline(&mut connection).await.ok();
        let is_new = timeline.is_some() && self.timeline.is_some() && timeline != self.timeline;
        if is_new && !self.permits.has_no_open_claims() {
            tracing::warn!(
                ?timeline,
                "standby promoted: claims wait until all calls of this process are stored"
            );
            return Ok(ClaimResult::Claims(Vec::new(), PROMOTION_WAIT_MS));
        }
        self.timeline = timeline.or(self.timeline);
        store::claim(&mut *connection, worker, limit).await
    }
}

/// When to poll next.
enum NextPoll {
    /// After this time, or when the claimer is woken.
    Wait(Duration),
    /// Every due lane is locked.
    Locked,
}

/// The wait after so many polls in a row that found every due lane locked.
fn locked_wait(polls: u32) -> Duration {
    MIN_WAIT
        .saturating_mul(1 << polls.clamp(1, 6).saturating_sub(1))
        .min(MAX_LOCKED_WAIT)
}

/// Orders claims round-robin over their lanes, so that five items of one lane do not wait for a
/// hundred of another.
fn round_robin(claims: Vec<ClaimRow>) -> Vec<ClaimRow> {
    let mut counts = HashMap::new();
    let mut ordered: Vec<_> = claims
        .into_iter()
        .map(|row| {
            let position = counts
                .entry((row.claim.tenant, row.lane))
                .or_insert(0_usize);
            *position += 1;
            (*position, row)
        })
        .collect();
    // Stable: the claims of a lane keep their order.
    ordered.sort_by_key(|(position, _)| *position);
    ordered.into_iter().map(|(_, row)| row).collect()
}

/// Wakes the claimer when a lane becomes due. While it cannot listen, the claimer polls at least
/// once a second.
pub(super) async fn listen(pool: PgPool, wake: Arc<Notify>, stop: CancellationToken) {
    let options = (*pool.connect_options()).clone();
    db::listen(options, "farescan_lane", &stop, |_| wake.notify_one()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_for_a_locked_lane_doubles_to_its_maximum() {
        let waits: Vec<_> = (1..=8)
            .chain([u32::MAX])
            .map(|polls| locked_wait(polls).as_millis())
            .collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 50, 50, 50, 50]);
    }
}
