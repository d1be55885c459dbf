//! The rate at which this process forwards unknown keys to the marketplace (docs/decisions/0029).
//!
//! Verify and the searches forward the key that came. Somebody could try out keys from our address.
//! So each key that is seen for the first time takes a token of the bucket of its client's network
//! and one of the bucket for the whole process, and returns them unless the marketplace refuses the
//! key. While either is empty, only accepted keys are forwarded. A network's bucket is a quarter of
//! the other, so the guesses of one network keep no newcomer of another out. Concurrent requests with
//! one key take one token together. Keys are remembered as a hash under a secret of this process. Not
//! here: the database lookup of accepted keys (`AppState::admit_search`).

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;

use super::network_buckets::{BucketSize, NetworkBuckets, TokenBucket};
use crate::search::CallerKey;

/// Refused keys of this process.
const REFUSED: BucketSize = BucketSize {
    per_second: 20.0,
    burst: 200.0,
};
/// Those of one client network.
const REFUSED_OF_NETWORK: BucketSize = BucketSize {
    per_second: 5.0,
    burst: 50.0,
};
/// Submissions of callers that are not accepted yet, from one client network: in each minute, the
/// first one too, at most half of the callers that may be new within it (`tenants::acceptance`).
const ORDERS_OF_NETWORK: BucketSize = BucketSize {
    per_second: 10.0 / 60.0,
    burst: 40.0,
};
/// The maximum number of keys remembered as accepted, and as refused.
const MAX_REMEMBERED: usize = 1 << 16;

/// The marketplace's verdict on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyVerdict {
    Accepted,
    Refused,
    /// The marketplace was not reached or did not answer.
    Unknown,
}

/// What this process knows of keys. Cheap to clone.
#[derive(Debug, Clone)]
pub struct UnknownKeys {
    secret: RandomState,
    state: Arc<Mutex<KnownKeys>>,
}

#[derive(Debug)]
struct KnownKeys {
    tokens: TokenBucket,
    networks: NetworkBuckets,
    orders: NetworkBuckets,
    accepted: HashSet<u64>,
    /// The accepted keys that this process has stored in the database.
    recorded: HashSet<u64>,
    refused: HashSet<u64>,
    /// Keys in flight for the first time; each holds one token.
    in_flight: HashMap<u64, KeyInFlight>,
}

#[derive(Debug)]
struct KeyInFlight {
    requests: usize,
    /// Whose bucket has given a token too.
    network: Option<IpNet>,
}

/// Permission for one marketplace call with one key. Dropped without a verdict, its token is spent:
/// the client did not wait for the response.
#[derive(Debug)]
pub struct KeyPermit {
    unknown_keys: UnknownKeys,
    key: u64,
    /// Whether this request counts in `KnownKeys::in_flight`.
    is_first: bool,
}

impl Default for UnknownKeys {
    fn default() -> Self {
        let state = KnownKeys {
            tokens: TokenBucket::full(REFUSED, Instant::now()),
            networks: NetworkBuckets::new(REFUSED_OF_NETWORK),
            orders: NetworkBuckets::new(ORDERS_OF_NETWORK),
            accepted: HashSet::new(),
            recorded: HashSet::new(),
            refused: HashSet::new(),
            in_flight: HashMap::new(),
        };
        Self {
            secret: RandomState::new(),
            state: Arc::new(Mutex::new(state)),
        }
    }
}

impl UnknownKeys {
    /// Admits a request with this key from this network.
    ///
    /// # Errors
    /// The time until the next token.
    pub fn admit(
        &self,
        key: &CallerKey,
        network: Option<IpNet>,
        now: Instant,
    ) -> Result<KeyPermit, Duration> {
        let key = self.hash(key);
        let mut state = self.state();
        let permit = |is_first| KeyPermit {
            unknown_keys: self.clone(),
            key,
            is_first,
        };
        if state.accepted.contains(&key) {
            return Ok(permit(false));
        }
        if let Some(known) = state.in_flight.get_mut(&key) {
            known.requests += 1;
            return Ok(permit(true));
        }
        let KnownKeys {
            tokens, networks, ..
        } = &mut *state;
        let mut of_network = networks.of(network, now);
        let wait = of_network.as_mut().map_or(0.0, |bucket| bucket.wait(now));
        let wait = tokens.wait(now).max(wait);
        if wait > 0.0 {
            return Err(Duration::from_secs_f64(wait));
        }
        if state.refused.contains(&key) {
            return Ok(permit(false));
        }
        state.take_tokens(key, network, now);
        Ok(permit(true))
    }

    /// Whether this process has seen the key accepted.
    pub fn has_accepted(&self, key: &CallerKey) -> bool {
        let key = self.hash(key);
        self.state().accepted.contains(&key)
    }

    /// Admits a submission of a caller that is not accepted yet.
    ///
    /// # Errors
    /// The time until the next one of this network.
    pub fn admit_order(&self, network: Option<IpNet>, now: Instant) -> Result<(), Duration> {
        let mut state = self.state();
        let Some(bucket) = state.orders.of(network, now) else {
            return Ok(());
        };
        let wait = bucket.wait(now);
        if wait > 0.0 {
            return Err(Duration::from_secs_f64(wait));
        }
        bucket.take();
        Ok(())
    }

    /// Admits a request with a key that the database knows as accepted.
    pub fn admit_accepted(&self, key: &CallerKey) -> KeyPermit {
        let key = self.hash(key);
        self.state().record_verdict(key, KeyVerdict::Accepted);
        KeyPermit {
            unknown_keys: self.clone(),
            key,
            is_first: false,
        }
    }

    /// Whether this process has seen the key accepted and has not stored that yet.
    pub fn is_unrecorded(&self, key: &CallerKey) -> bool {
        let key = self.hash(key);
        let state = self.state();
        state.accepted.contains(&key) && !state.recorded.contains(&key)
    }

    /// Notes that the database has stored this key as accepted.
    pub fn mark_recorded(&self, key: &CallerKey) {
        let key = self.hash(key);
        self.state().recorded.insert(key);
    }

    fn hash(&self, key: &CallerKey) -> u64 {
        self.secret.hash_one(key.expose())
    }

    fn state(&self) -> MutexGuard<'_, KnownKeys> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownKeys {
    fn take_tokens(&mut self, key: u64, network: Option<IpNet>, now: Instant) {
        self.tokens.take();
        let of_network = self.networks.of(network, now);
        let network = network.filter(|_| of_network.is_some());
        if let Some(bucket) = of_network {
            bucket.take();
        }
        let requests = 1;
        let first = KeyInFlight { requests, network };
        self.in_flight.insert(key, first);
    }

    fn return_tokens(&mut self, key: &KeyInFlight) {
        self.tokens.give_back();
        if let Some(bucket) = self.networks.of(key.network, Instant::now()) {
            bucket.give_back();
        }
    }

    fn record_verdict(&mut self, key: u64, verdict: KeyVerdict) {
        match verdict {
            KeyVerdict::Accepted => {
                self.refused.remove(&key);
                if self.accepted.len() < MAX_REMEMBERED {
                    self.accepted.insert(key);
                }
                if let Some(first) = self.in_flight.remove(&key) {
                    self.return_tokens(&first);
                }
            }
            KeyVerdict::Refused => {
                self.accepted.remove(&key);
                self.recorded.remove(&key);
                if self.refused.len() >= MAX_REMEMBERED {
                    self.refused.clear();
                }
                self.refused.insert(key);
                self.in_flight.remove(&key);
            }
            KeyVerdict::Unknown => {}
        }
    }

    /// Ends a request of a key in flight for the first time; the last one returns the token if
    /// `returns`.
    fn end_request(&mut self, key: u64, returns: bool) {
        let Some(first) = self.in_flight.get_mut(&key) else {
            return;
        };
        first.requests -= 1;
        if first.requests > 0 {
            return;
        }
        if let Some(first) = self.in_flight.remove(&key)
            && returns
        {
            self.return_tokens(&first);
        }
    }
}

impl KeyPermit {
    /// Records the marketplace's verdict on the key.
    pub fn record_verdict(mut self, verdict: KeyVerdict) {
        let mut state = self.unknown_keys.state();
        state.record_verdict(self.key, verdict);
        if self.is_first {
            state.end_request(self.key, true);
        }
        drop(state);
        self.is_first = false;
    }
}

impl Drop for KeyPermit {
    fn drop(&mut self) {
        if self.is_first {
            self.unknown_keys.state().end_request(self.key, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> CallerKey {
        CallerKey::new(format!("made-up-{number}"))
    }

    /// How many of these keys are forwarded, all of them refused.
    fn relayed(unknown_keys: &UnknownKeys, keys: std::ops::Range<usize>, now: Instant) -> usize {
        let permits = keys.filter_map(|number| unknown_keys.admit(&key(number), None, now).ok());
        permits.fold(0, |count, permit| {
            permit.record_verdict(KeyVerdict::Refused);
            count + 1
        })
    }

    #[test]
    fn refused_keys_empty_the_bucket_and_accepted_keys_pass() {
        let (unknown_keys, now) = (UnknownKeys::default(), Instant::now());
        unknown_keys
            .admit(&key(0), None, now)
            .unwrap()
            .record_verdict(KeyVerdict::Accepted);
        assert_eq!(relayed(&unknown_keys, 1..1_000, now), 200);
        assert!(
            unknown_keys.admit(&key(1), None, now).is_err(),
            "a refused key is not known as accepted"
        );
        let wait = unknown_keys.admit(&key(2_000), None, now).unwrap_err();
        assert!(wait <= Duration::from_millis(50), "{wait:?}");
        assert!(unknown_keys.admit(&key(0), None, now).is_ok());
        assert_eq!(
            relayed(&unknown_keys, 3_000..4_000, now + Duration::from_secs(1)),
            20
        );
    }

    #[test]
    fn one_network_takes_a_quarter() {
        let (unknown_keys, now) = (UnknownKeys::default(), Instant::now());
        let relayed = |network: &str, first: usize, now| {
            let network = Some(network.parse().unwrap());
            let permits = (first..first + 300)
                .filter_map(|number| unknown_keys.admit(&key(number), network, now).ok());
            permits.fold(0, |count, permit| {
                permit.record_verdict(KeyVerdict::Refused);
                count + 1
            })
        };
        let networks = ["192.0.2.0/24", "198.51.100.0/24", "2001:db8::/48"];
        for (number, network) in networks.into_iter().enumerate() {
            assert_eq!(relayed(network, 1_000 * number, now), 50, "{network}");
        }
        let later = now + Duration::from_secs(2);
        assert_eq!(relayed(networks[0], 5_000, later), 10);
        for number in 0..500 {
            let network = Some("203.0.113.0/24".parse().unwrap());
            let good = unknown_keys.admit(&key(10_000 + number), network, later);
            good.unwrap().record_verdict(KeyVerdict::Accepted);
        }
    }

    #[test]
    fn a_token_is_returned_unless_the_key_was_refused() {
        let (unknown_keys, now) = (UnknownKeys::default(), Instant::now());
        for verdict in [KeyVerdict::Unknown, KeyVerdict::Accepted] {
            for number in 0..1_000 {
                unknown_keys
                    .admit(&key(number), None, now)
                    .unwrap()
                    .record_verdict(verdict);
            }
        }
        let at_once: Vec<_> = (0..1_000)
            .map(|_| unknown_keys.admit(&key(5_000), None, now).unwrap())
            .collect();
        for permit in at_once {
            permit.record_verdict(KeyVerdict::Refused);
        }
        unknown_keys
            .admit(&key(5_000), None, now)
            .unwrap()
            .record_verdict(KeyVerdict::Refused);
        drop(unknown_keys.admit(&key(6_000), None, now).unwrap());
        assert!(unknown_keys.state().in_flight.is_empty());
        let left = relayed(&unknown_keys, 10_000..11_000, now);
        assert_eq!(
            left, 198,
            "requests with one key take one token; an aborted request spends its token"
        );
    }

    #[test]
    fn a_key_refused_later_is_no_longer_accepted() {
        let (unknown_keys, now) = (UnknownKeys::default(), Instant::now());
        unknown_keys
            .admit(&key(0), None, now)
            .unwrap()
            .record_verdict(KeyVerdict::Accepted);
        assert!(unknown_keys.is_unrecorded(&key(0)));
        unknown_keys.mark_recorded(&key(0));
        assert!(!unknown_keys.is_unrecorded(&key(0)));
        unknown_keys
            .admit(&key(0), None, now)
            .unwrap()
            .record_verdict(KeyVerdict::Refused);
        assert!(!unknown_keys.is_unrecorded(&key(0)));
        assert_eq!(unknown_keys.state().refused.len(), 1);
    }
}
