//! The request rate of each caller on this service's own routes: one token bucket each
//! (security.md, rule 23).
//!
//! The seven specified endpoints are not counted: the marketplace limits them by the caller's plan,
//! and its 429 is passed on unchanged. The buckets belong to this process; limits that hold for all
//! processes (pending items, live scans) are in the database.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use governor::clock::{Clock as _, MonotonicClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::config::RateLimitConfig;
use crate::search::CallerKey;

/// The maximum number of buckets. A keyed hash of the key selects the bucket: with a thousand
/// active callers one in 260 shares a bucket, and made-up keys cannot take more memory than this.
const BUCKETS: u64 = 1 << 18;
/// How often full buckets are removed.
const SWEEP: Duration = Duration::from_secs(60);

/// The buckets of one process.
#[derive(Debug)]
pub struct RateLimits {
    buckets: RateLimiter<u64, HashMapStateStore<u64>, MonotonicClock>,
    clock: MonotonicClock,
    /// New in each process, so that nobody can choose a key that shares another caller's bucket.
    secret: RandomState,
    swept_at: Mutex<Instant>,
    /// The limits as text, for error messages.
    rate: String,
}

impl RateLimits {
    pub fn new(config: &RateLimitConfig) -> Self {
        let quota = Quota::per_second(config.requests_per_second).allow_burst(config.request_burst);
        Self {
            buckets: RateLimiter::hashmap(quota),
            clock: MonotonicClock,
            secret: RandomState::new(),
            swept_at: Mutex::new(Instant::now()),
            rate: format!(
                "{} requests/s sustained, burst {}",
                config.requests_per_second, config.request_burst
            ),
        }
    }

    /// The limits as text, for error messages.
    pub fn rate(&self) -> &str {
        &self.rate
    }

    /// Takes a token from the caller's bucket.
    ///
    /// # Errors
    /// The time until the next token.
    pub fn admit(&self, key: &CallerKey) -> Result<(), Duration> {
        self.sweep();
        let bucket = self.secret.hash_one(key.expose()) % BUCKETS;
        self.buckets
            .check_key(&bucket)
            .map_err(|refused| refused.wait_time_from(self.clock.now()))
    }

    /// Removes full buckets, which are equal to new ones.
    fn sweep(&self) {
        let mut swept_at = self.swept_at.lock().unwrap_or_else(PoisonError::into_inner);
        if swept_at.elapsed() >= SWEEP {
            *swept_at = Instant::now();
            drop(swept_at);
            self.buckets.retain_recent();
            self.buckets.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn limits(per_second: u32, burst: u32) -> RateLimits {
        let count = |number| NonZeroU32::new(number).unwrap();
        RateLimits::new(&RateLimitConfig {
            requests_per_second: count(per_second),
            request_burst: count(burst),
        })
    }

    #[test]
    fn a_caller_has_a_burst_and_then_waits() {
        let limits = limits(1, 5);
        let key = CallerKey::new("one");
        let admitted = (0..1_000)
            .take_while(|_| limits.admit(&key).is_ok())
            .count();
        assert!((5..1_000).contains(&admitted), "{admitted}");
        let wait = limits.admit(&key).unwrap_err();
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
    }

    #[test]
    fn made_up_keys_take_bounded_memory() {
        let limits = limits(1, 1_000_000);
        for number in 0..300_000 {
            limits
                .admit(&CallerKey::new(format!("made up {number}")))
                .unwrap();
        }
        assert!(limits.buckets.len() as u64 <= BUCKETS);
    }
}
