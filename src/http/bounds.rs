//! How much of this process one caller may use at the same time.
//!
//! ```text
//!  in flight   requests of a caller at the same time              (events and long polls have bounds of their own)
//!  writes      of those, requests that change something           taken before a connection of the writes' pool
//!  heavy       compare, grids, series, whole answers              a caller's part of a bound of the process
//!  exports     files that are being written                       the same
//!  bodies      of more than 64 KiB, and orders of any size         the same
//! ```
//!
//! A request over a bound waits in a queue without a connection, at most for [`PATIENCE`]. Then it is answered 429 if the caller's own requests
//! are in the way, 503 if the process has too much to do, both with `Retry-After`. The queues are first come, first served. No caller has
//! more in the queue of the process than its part, so callers take turns.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::error::ApiError;
use crate::search::CallerKey;

/// Requests of one caller at the same time.
pub(super) const IN_FLIGHT: usize = 8;
/// Of those, requests that change something. A lock that they wait for costs this many connections at most.
pub(super) const WRITES: usize = 2;
/// Heavy reads of one caller, and of all callers: fewer than the connections for reads.
const HEAVY: Shares = Shares { each: 1, all: 2 };
/// Exports of one caller, and of all callers. What one holds is bounded (`export`), so all of them are.
const EXPORTS: Shares = Shares { each: 4, all: 32 };
/// Bodies of more than 64 KiB of one caller, and of all callers, while they are read, planned and stored.
const LARGE_BODIES: Shares = Shares { each: 2, all: 32 };
/// Orders of one caller, and of all callers, from their body on until they are stored: one may stand for 10,000 searches.
const ORDERS: Shares = Shares { each: 2, all: 8 };
/// How long a request waits for a permit.
const PATIENCE: Duration = Duration::from_secs(5);
/// When it is worth asking again.
const RETRY: Duration = Duration::from_secs(1);
/// From so many entries on, those that nobody uses are dropped before another is made.
const SWEEP_AT: usize = 1_024;

/// Dropped, it is free for the next request.
pub(super) type Permit = OwnedSemaphorePermit;

#[derive(Debug, Clone, Copy)]
struct Shares {
    each: usize,
    all: usize,
}

/// The bounds of one process.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Made anew with each process, so that nobody can choose a key that shares another's permits.
    secret: RandomState,
    /// How long a request waits for a permit.
    patience: Duration,
    in_flight: PerCaller,
    writes: PerCaller,
    heavy: Shared,
    exports: Shared,
    large_bodies: Shared,
    orders: Shared,
}

impl Default for Bounds {
    fn default() -> Self {
        Self::of_patience(PATIENCE)
    }
}

impl Bounds {
    /// Bounds at which a request waits so long for a permit.
    pub(super) fn of_patience(patience: Duration) -> Self {
        Self {
            secret: RandomState::new(),
            patience,
            in_flight: PerCaller::new(IN_FLIGHT),
            writes: PerCaller::new(WRITES),
            heavy: Shared::new(HEAVY),
            exports: Shared::new(EXPORTS),
            large_bodies: Shared::new(LARGE_BODIES),
            orders: Shared::new(ORDERS),
        }
    }

    /// The permits of a request: one, or for a request that changes something two.
    ///
    /// # Errors
    /// 429 when the caller's other requests hold them for too long.
    pub(super) async fn enter(
        &self,
        key: &CallerKey,
        writes: bool,
    ) -> Result<Vec<Permit>, ApiError> {
        let (caller, until) = (self.caller(key), self.until());
        let permit = self.in_flight.permit(caller, until).await;
        let permit = permit.ok_or_else(|| busy_caller(IN_FLIGHT, "requests"))?;
        if !writes {
            return Ok(vec![permit]);
        }
        let writing = self.writes.permit(caller, until).await;
        let writing =
            writing.ok_or_else(|| busy_caller(WRITES, "requests that change something"))?;
        Ok(vec![permit, writing])
    }

    /// The permits of a heavy read.
    ///
    /// # Errors
    /// 429 or 503 when they do not come in time.
    pub(super) async fn heavy(&self, key: &CallerKey) -> Result<[Permit; 2], ApiError> {
        self.heavy
            .permits(self.caller(key), self.until(), "large reads")
            .await
    }

    /// The permits of an export, to be held until its body has ended.
    ///
    /// # Errors
    /// 429 or 503 when there is none in time.
    pub(super) async fn export(&self, key: &CallerKey) -> Result<[Permit; 2], ApiError> {
        self.exports
            .permits(self.caller(key), self.until(), "exports")
            .await
    }

    /// The permits of a body of more than 64 KiB.
    ///
    /// # Errors
    /// 429 or 503 when there is none in time.
    pub(super) async fn large_body(&self, key: &CallerKey) -> Result<[Permit; 2], ApiError> {
        self.large_bodies
            .permits(self.caller(key), self.until(), "large bodies")
            .await
    }

    /// The permits of an order.
    ///
    /// # Errors
    /// 429 or 503 when there is none in time.
    pub(super) async fn order(&self, key: &CallerKey) -> Result<[Permit; 2], ApiError> {
        self.orders
            .permits(self.caller(key), self.until(), "orders")
            .await
    }

    fn until(&self) -> Instant {
        Instant::now() + self.patience
    }

    fn caller(&self, key: &CallerKey) -> u64 {
        self.secret.hash_one(key.expose())
    }
}

/// So many permits for each caller.
#[derive(Debug)]
struct PerCaller {
    each: usize,
    callers: Mutex<HashMap<u64, Weak<Semaphore>>>,
}

impl PerCaller {
    fn new(each: usize) -> Self {
        Self {
            each,
            callers: Mutex::default(),
        }
    }

    /// A permit of this caller; `None`: not before `until`.
    async fn permit(&self, caller: u64, until: Instant) -> Option<Permit> {
        in_time(self.of(caller), until).await
    }

    /// The permits of a caller, which live as long as somebody holds one or waits for one.
    fn of(&self, caller: u64) -> Arc<Semaphore> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permits) = callers.get(&caller).and_then(Weak::upgrade) {
            return permits;
        }
        if callers.len() >= SWEEP_AT && callers.len() == callers.capacity() {
            callers.retain(|_, permits| permits.strong_count() > 0);
        }
        let permits = Arc::new(Semaphore::new(self.each));
        callers.insert(caller, Arc::downgrade(&permits));
        permits
    }
}

/// So many permits for all, of which each caller holds and waits for its part at most.
#[derive(Debug)]
struct Shared {
    each: PerCaller,
    all: Arc<Semaphore>,
}

impl Shared {
    fn new(shares: Shares) -> Self {
        Self {
            each: PerCaller::new(shares.each),
            all: Arc::new(Semaphore::new(shares.all)),
        }
    }

    async fn permits(
        &self,
        caller: u64,
        until: Instant,
        what: &str,
    ) -> Result<[Permit; 2], ApiError> {
        let own = self
            .each
            .permit(caller, until)
            .await
            .ok_or_else(|| busy_caller(self.each.each, what))?;
        let permit = in_time(Arc::clone(&self.all), until).await.ok_or_else(|| {
            ApiError::busy(format!(
                "this service has too many {what} at the same time; nothing was done. Wait as Retry-After says"
            ))
        })?;
        Ok([own, permit])
    }
}

async fn in_time(permits: Arc<Semaphore>, until: Instant) -> Option<Permit> {
    // The semaphores are never closed.
    timeout_at(until, permits.acquire_owned()).await.ok()?.ok()
}

fn busy_caller(most: usize, what: &str) -> ApiError {
    let message = format!(
        "{most} {what} with this key are in progress, and others wait; allowed: {most} at the same time. Nothing was done. Wait as \
         Retry-After says"
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

    fn impatient() -> Bounds {
        Bounds::of_patience(Duration::from_millis(20))
    }

    #[tokio::test]
    async fn a_caller_over_its_bound_is_refused_and_others_enter() {
        let bounds = impatient();
        let mut held = Vec::new();
        for _ in 0..IN_FLIGHT {
            held.push(bounds.enter(&key("a"), false).await.unwrap());
        }
        let refused = bounds.enter(&key("a"), false).await.unwrap_err();
        assert_eq!(refused.error_type(), ErrorType::TooManyRequests);
        assert!(bounds.enter(&key("b"), true).await.is_ok());
        held.pop();
        assert!(
            bounds.enter(&key("a"), false).await.is_ok(),
            "a permit that is dropped is free"
        );
    }

    #[tokio::test]
    async fn writes_leave_permits_for_the_same_callers_reads() {
        let bounds = impatient();
        let mut held = Vec::new();
        for _ in 0..WRITES {
            held.push(bounds.enter(&key("a"), true).await.unwrap());
        }
        assert!(bounds.enter(&key("a"), false).await.is_ok());
        assert!(bounds.enter(&key("a"), true).await.is_err());
    }

    #[tokio::test]
    async fn one_callers_queue_does_not_delay_another() {
        let bounds = Arc::new(Bounds::default());
        let first = bounds.heavy(&key("a")).await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..60 {
            let bounds = Arc::clone(&bounds);
            waiting.push(tokio::spawn(async move {
                bounds.heavy(&key("a")).await.map(drop)
            }));
        }
        tokio::task::yield_now().await;
        let permits = bounds
            .heavy(&key("b"))
            .now_or_never()
            .expect("60 of another caller wait in its own queue");
        drop(permits.unwrap());
        drop(first);
        for one in waiting {
            assert!(one.await.unwrap().is_ok(), "each is served");
        }
    }

    #[tokio::test]
    async fn when_the_process_has_too_much_to_do_it_is_503() {
        let bounds = impatient();
        let mut held = Vec::new();
        for number in 0..HEAVY.all {
            held.push(
                bounds
                    .heavy(&key(&format!("caller {number}")))
                    .await
                    .unwrap(),
            );
        }
        assert_eq!(
            bounds.heavy(&key("last")).await.unwrap_err().error_type(),
            ErrorType::Unavailable
        );
    }

    #[tokio::test]
    async fn callers_that_have_gone_take_no_memory() {
        let bounds = Bounds::default();
        for number in 0..100_000 {
            bounds
                .enter(&key(&format!("made up {number}")), false)
                .await
                .unwrap();
        }
        assert!(bounds.in_flight.callers.lock().unwrap().capacity() <= 4 * SWEEP_AT);
    }
}
