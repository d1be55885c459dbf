//! Token buckets of client networks: one for each network that has lately taken a token.

use std::collections::HashMap;
use std::time::Instant;

use ipnet::IpNet;

/// The maximum number of networks with a bucket; further ones have none.
const MAX_NETWORKS: usize = 1 << 16;

/// How fast a bucket fills, and how much it holds.
#[derive(Debug, Clone, Copy)]
pub struct BucketSize {
    pub per_second: f64,
    pub burst: f64,
}

#[derive(Debug)]
pub struct TokenBucket {
    size: BucketSize,
    tokens: f64,
    filled_at: Instant,
}

impl TokenBucket {
    pub fn full(size: BucketSize, now: Instant) -> Self {
        Self {
            size,
            tokens: size.burst,
            filled_at: now,
        }
    }

    fn fill(&mut self, now: Instant) {
        let seconds = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.tokens = (self.tokens + seconds * self.size.per_second).min(self.size.burst);
        self.filled_at = now;
    }

    /// The seconds until there is a token.
    pub fn wait(&mut self, now: Instant) -> f64 {
        self.fill(now);
        (1.0 - self.tokens).max(0.0) / self.size.per_second
    }

    /// Takes a token that [`Self::wait`] found.
    pub fn take(&mut self) {
        self.tokens -= 1.0;
    }

    pub fn give_back(&mut self) {
        self.tokens = (self.tokens + 1.0).min(self.size.burst);
    }

    fn is_full(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.tokens >= self.size.burst
    }
}

#[derive(Debug)]
pub struct NetworkBuckets {
    size: BucketSize,
    buckets: HashMap<IpNet, TokenBucket>,
}

impl NetworkBuckets {
    pub fn new(size: BucketSize) -> Self {
        Self {
            size,
            buckets: HashMap::new(),
        }
    }

    /// The bucket of a network; `None` if it is unknown or too many networks have one.
    pub fn of(&mut self, network: Option<IpNet>, now: Instant) -> Option<&mut TokenBucket> {
        let network = network?;
        if self.buckets.len() >= MAX_NETWORKS && !self.buckets.contains_key(&network) {
            self.buckets.retain(|_, bucket| !bucket.is_full(now));
            if self.buckets.len() >= MAX_NETWORKS {
                return None;
            }
        }
        let full = || TokenBucket::full(self.size, now);
        Some(self.buckets.entry(network).or_insert_with(full))
    }
}
