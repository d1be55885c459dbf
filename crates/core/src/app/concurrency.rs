//! Limits of concurrent requests, for each caller and for the process (security.md, rule 24).
//!
//! ```text
//!  in flight   concurrent requests of a caller            not event streams and long polls
//!  writes      those of them that change data             taken before a connection of the write pool
//!  heavy       compare, grids, series, expanded answers,  per caller and per process
//!              filtered lists of the dashboard
//!  backtests   replayed monitors                         per caller and one per process
//!  exports     files being written                        per caller and per process
//!  bodies      over 64 KiB, and all submissions           per caller and per process
//! ```
//!
//! A request over a limit waits in a queue without a connection for at most [`PERMIT_TIMEOUT`].
//! Then it gets 429 if the caller's own requests hold the permits, or 503 if the process is at its
//! limit, both with `Retry-After`. Queues are first come, first served. A caller waits in the
//! process queue with at most its own share, so callers take turns.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::error::ApiError;
use crate::search::CallerKey;

/// Concurrent requests of one caller.
pub const MAX_IN_FLIGHT: usize = 8;
/// Of those, requests that change data. Requests that wait for a lock hold at most this many
/// connections.
pub const MAX_WRITES: usize = 2;
/// Heavy reads of one caller and of all callers: fewer than the connections of the read pool.
const HEAVY: PermitCounts = PermitCounts { each: 1, all: 2 };
/// Backtests of one caller and of all callers: each plans up to 100,000 searches. They have permits
/// of their own, so that no read waits for one.
const BACKTESTS: PermitCounts = PermitCounts { each: 1, all: 1 };
/// Exports of one caller and of all callers. The memory of each is bounded (`export`), so the total
/// is.
const EXPORTS: PermitCounts = PermitCounts { each: 4, all: 32 };
/// Bodies of more than 64 KiB of one caller and of all callers, while they are read, planned and
/// stored.
const LARGE_BODIES: PermitCounts = PermitCounts { each: 2, all: 32 };
/// Submissions of one caller and of all callers, until they are stored: one may contain 10,000
/// searches.
const SUBMISSIONS: PermitCounts = PermitCounts { each: 2, all: 8 };
/// How long a request waits for a permit.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(5);
/// `Retry-After` of a refused request.
const RETRY: Duration = Duration::from_secs(1);
/// From this many entries on, unused ones are removed before another is added.
const CLEANUP_THRESHOLD: usize = 1_024;

/// Released on drop.
pub type Permit = OwnedSemaphorePermit;

#[derive(Debug, Clone, Copy)]
struct PermitCounts {
    each: usize,
    all: usize,
}

/// The limits of one process.
#[derive(Debug)]
pub struct ConcurrencyLimits {
    /// New in each process, so that nobody can choose a key that shares another caller's permits.
    secret: RandomState,
    /// How long a request waits for a permit.
    permit_timeout: Duration,
    in_flight: CallerPermits,
    writes: CallerPermits,
    heavy: SharedPermits,
    backtests: SharedPermits,
    exports: SharedPermits,
    large_bodies: SharedPermits,
    submissions: SharedPermits,
}

impl Default for ConcurrencyLimits {
    fn default() -> Self {
        Self::with_timeout(PERMIT_TIMEOUT)
    }
}

impl ConcurrencyLimits {
    /// Limits whose requests wait at most `permit_timeout` for a permit.
    pub fn with_timeout(permit_timeout: Duration) -> Self {
        Self {
            secret: RandomState::new(),
            permit_timeout,
            in_flight: CallerPermits::new(MAX_IN_FLIGHT),
            writes: CallerPermits::new(MAX_WRITES),
            heavy: SharedPermits::new(HEAVY),
            backtests: SharedPermits::new(BACKTESTS),
            exports: SharedPermits::new(EXPORTS),
            large_bodies: SharedPermits::new(LARGE_BODIES),
            submissions: SharedPermits::new(SUBMISSIONS),
        }
    }

    /// The permits of a request: one, or two for a request that changes data.
    ///
    /// # Errors
    /// 429 when the caller's other requests hold them for too long.
    pub async fn request(&self, key: &CallerKey, writes: bool) -> Result<Vec<Permit>, ApiError> {
        let (caller, deadline) = (self.caller_hash(key), self.deadline());
        let permit = self.in_flight.permit(caller, deadline).await;
        let permit = permit.ok_or_else(|| caller_limit_error(MAX_IN_FLIGHT, "requests"))?;
        if !writes {
            return Ok(vec![permit]);
        }
        let writing = self.writes.permit(caller, deadline).await;
        let writing =
            writing.ok_or_else(|| caller_limit_error(MAX_WRITES, "requests that change data"))?;
        Ok(vec![permit, writing])
    }

    /// The permits of a heavy read.
    ///
    /// # Errors
    /// 429 or 503 after the timeout.
    pub async fn heavy(&self, key: &CallerKey) -> Result<[Permit; 2], ApiError> {
        self.heavy
            .permits(self.caller_hash(key), self.deadline(), "large reads")
            .await
    }

    /// The permits of a backtest.
    ///
    /// # Errors
    /// 429 or 503 after the timeout.
    pub async fn backtest(&self, key: &CallerKey) -> Result<[Permit; 2], ApiError> {
        self.backtests
            .permits(self.caller_hash(key), self.deadline(), "backtests")
            .await
    }

    /// The permits of an export; hold them until its body has ended.
    ///
    /// # Errors
    /// 429 or 503 after the timeout.
    pub async fn export(&self, key: &CallerKey) -> Result<[Permit; 2], ApiError> {
        self.exports
            .permits(self.caller_hash(key), self.deadline(), "exports")
            .await
    }

    /// The permits of a body of more than 64 KiB.
    ///
    /// # Errors
    /// 429 or 503 after the timeout.
    pub async fn large_body(&self, key: &CallerKey) -> Result<[Permit; 2], ApiError> {
        self.large_bodies
            .permits(self.caller_hash(key), self.deadline(), "large bodies")
            .await
    }

    /// The permits of a submission.
    ///
    /// # Errors
    /// 429 or 503 after the timeout.
    pub async fn submission(&self, key: &CallerKey) -> Result<[Permit; 2], ApiError> {
        self.submissions
            .permits(self.caller_hash(key), self.deadline(), "submissions")
            .await
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.permit_timeout
    }

    fn caller_hash(&self, key: &CallerKey) -> u64 {
        self.secret.hash_one(key.expose())
    }
}

/// A number of permits for each caller.
#[derive(Debug)]
struct CallerPermits {
    each: usize,
    callers: Mutex<HashMap<u64, Weak<Semaphore>>>,
}

impl CallerPermits {
    fn new(each: usize) -> Self {
        Self {
            each,
            callers: Mutex::default(),
        }
    }

    /// A permit of this caller; `None` after `deadline`.
    async fn permit(&self, caller: u64, deadline: Instant) -> Option<Permit> {
        acquire_until(self.semaphore(caller), deadline).await
    }

    /// The caller's semaphore. It lives as long as a request holds or awaits one of its permits.
    fn semaphore(&self, caller: u64) -> Arc<Semaphore> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permits) = callers.get(&caller).and_then(Weak::upgrade) {
            return permits;
        }
        if callers.len() >= CLEANUP_THRESHOLD && callers.len() == callers.capacity() {
            callers.retain(|_, permits| permits.strong_count() > 0);
        }
        let permits = Arc::new(Semaphore::new(self.each));
        callers.insert(caller, Arc::downgrade(&permits));
        permits
    }
}

/// Permits for the process, of which each caller holds and awaits at most its share.
#[derive(Debug)]
struct SharedPermits {
    each: CallerPermits,
    all: Arc<Semaphore>,
}

impl SharedPermits {
    fn new(shares: PermitCounts) -> Self {
        Self {
            each: CallerPermits::new(shares.each),
            all: Arc::new(Semaphore::new(shares.all)),
        }
    }

    async fn permits(
        &self,
        caller: u64,
        deadline: Instant,
        what: &str,
    ) -> Result<[Permit; 2], ApiError> {
        let own = self
            .each
            .permit(caller, deadline)
            .await
            .ok_or_else(|| caller_limit_error(self.each.each, what))?;
        let permit = acquire_until(Arc::clone(&self.all), deadline).await.ok_or_else(|| {
            ApiError::busy(format!(
                "this service has reached its limit of concurrent {what}; nothing was done. Retry after the time in Retry-After"
            ))
        })?;
        Ok([own, permit])
    }
}

async fn acquire_until(permits: Arc<Semaphore>, deadline: Instant) -> Option<Permit> {
    // The semaphores are never closed.
    timeout_at(deadline, permits.acquire_owned())
        .await
        .ok()?
        .ok()
}

fn caller_limit_error(most: usize, what: &str) -> ApiError {
    let message = format!(
        "this key has reached its limit of {most} concurrent {what}; nothing was done. Retry after the \
         time in Retry-After"
    );
    ApiError::too_many_requests(message, RETRY)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::contract::ErrorType;

    fn key(name: &str) -> CallerKey {
        CallerKey::new(name)
    }

    fn short_timeout() -> ConcurrencyLimits {
        ConcurrencyLimits::with_timeout(Duration::from_millis(20))
    }

    #[tokio::test]
    async fn a_caller_over_its_limit_is_refused_and_others_enter() {
        let limits = short_timeout();
        let mut held = Vec::new();
        for _ in 0..MAX_IN_FLIGHT {
            held.push(limits.request(&key("a"), false).await.unwrap());
        }
        let refused = limits.request(&key("a"), false).await.unwrap_err();
        assert_eq!(refused.error_type(), ErrorType::TooManyRequests);
        assert!(limits.request(&key("b"), true).await.is_ok());
        held.pop();
        assert!(
            limits.request(&key("a"), false).await.is_ok(),
            "a permit that is dropped is free"
        );
    }

    #[tokio::test]
    async fn writes_leave_permits_for_the_same_callers_reads() {
        let limits = short_timeout();
        let mut held = Vec::new();
        for _ in 0..MAX_WRITES {
            held.push(limits.request(&key("a"), true).await.unwrap());
        }
        assert!(limits.request(&key("a"), false).await.is_ok());
        assert!(limits.request(&key("a"), true).await.is_err());
    }

    #[tokio::test]
    async fn one_callers_queue_does_not_delay_another() {
        let limits = Arc::new(ConcurrencyLimits::default());
        let first = limits.heavy(&key("a")).await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..60 {
            let limits = Arc::clone(&limits);
            waiting.push(tokio::spawn(async move {
                limits.heavy(&key("a")).await.map(drop)
            }));
        }
        tokio::task::yield_now().await;
        let permits = limits
            .heavy(&key("b"))
            .now_or_never()
            .expect("60 requests of another caller wait in that caller's queue");
        drop(permits.unwrap());
        drop(first);
        for one in waiting {
            assert!(one.await.unwrap().is_ok(), "each is served");
        }
    }

    #[tokio::test]
    async fn a_process_at_its_limit_answers_503() {
        let limits = short_timeout();
        let mut held = Vec::new();
        for number in 0..HEAVY.all {
            held.push(
                limits
                    .heavy(&key(&format!("caller {number}")))
                    .await
                    .unwrap(),
            );
        }
        assert_eq!(
            limits.heavy(&key("last")).await.unwrap_err().error_type(),
            ErrorType::Unavailable
        );
    }

    #[tokio::test]
    async fn inactive_callers_take_no_memory() {
        let limits = ConcurrencyLimits::default();
        for number in 0..100_000 {
            limits
                .request(&key(&format!("made up {number}")), false)
                .await
                .unwrap();
        }
        assert!(limits.in_flight.callers.lock().unwrap().capacity() <= 4 * CLEANUP_THRESHOLD);
    }
}
