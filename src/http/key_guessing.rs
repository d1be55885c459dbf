//! The rate at which this process forwards unknown keys to the marketplace (docs/decisions/0029).
//!
//! Verify and the searches forward the key that came. Somebody could try out keys from our address.
//! So each key that is seen for the first time takes a token of one bucket for the whole process,
//! and returns it unless the marketplace refuses the key. While the bucket is empty, only accepted
//! keys are forwarded. Concurrent requests with one key take one token together. Keys are
//! remembered as a hash under a secret of this process. Not here: the database lookup of accepted
//! keys (`AppState::admit_search`).

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::search::CallerKey;

/// Refused keys per second, sustained.
const REFUSED_PER_SECOND: f64 = 20.0;
/// Refused keys in a burst.
const REFUSED_BURST: f64 = 200.0;
/// The maximum number of keys remembered as accepted, and as refused.
const MAX_REMEMBERED: usize = 1 << 16;

/// The marketplace's verdict on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyVerdict {
    Accepted,
    Refused,
    /// The marketplace was not reached or did not answer.
    Unknown,
}

/// What this process knows of keys. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct UnknownKeys {
    secret: RandomState,
    state: Arc<Mutex<KnownKeys>>,
}

#[derive(Debug)]
struct KnownKeys {
    tokens: f64,
    filled_at: Instant,
    accepted: HashSet<u64>,
    /// The accepted keys that this process has stored in the database.
    recorded: HashSet<u64>,
    refused: HashSet<u64>,
    /// Keys in flight for the first time, with their number of requests; each key holds one token.
    in_flight: HashMap<u64, usize>,
}

/// Permission for one marketplace call with one key. Dropped without a verdict, its token is spent:
/// the client did not wait for the response.
#[derive(Debug)]
pub(super) struct KeyPermit {
    unknown_keys: UnknownKeys,
    key: u64,
    /// Whether this request counts in `KnownKeys::in_flight`.
    is_first: bool,
}

impl Default for UnknownKeys {
    fn default() -> Self {
        let state = KnownKeys {
            tokens: REFUSED_BURST,
            filled_at: Instant::now(),
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
    /// Admits a request with this key.
    ///
    /// # Errors
    /// The time until the next token.
    pub(super) fn admit(&self, key: &CallerKey, now: Instant) -> Result<KeyPermit, Duration> {
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
        if let Some(requests) = state.in_flight.get_mut(&key) {
            *requests += 1;
            return Ok(permit(true));
        }
        state.fill(now);
        if state.tokens < 1.0 {
            return Err(Duration::from_secs_f64(
                (1.0 - state.tokens) / REFUSED_PER_SECOND,
            ));
        }
        if state.refused.contains(&key) {
            return Ok(permit(false));
        }
        state.tokens -= 1.0;
        state.in_flight.insert(key, 1);
        Ok(permit(true))
    }

    /// Admits a request with a key that the database knows as accepted.
    pub(super) fn admit_accepted(&self, key: &CallerKey) -> KeyPermit {
        let key = self.hash(key);
        self.state().record_verdict(key, KeyVerdict::Accepted);
        KeyPermit {
            unknown_keys: self.clone(),
            key,
            is_first: false,
        }
    }

    /// Whether this process has seen the key accepted and has not stored that yet.
    pub(super) fn is_unrecorded(&self, key: &CallerKey) -> bool {
        let key = self.hash(key);
        let state = self.state();
        state.accepted.contains(&key) && !state.recorded.contains(&key)
    }

    /// Notes that the database has stored this key as accepted.
    pub(super) fn mark_recorded(&self, key: &CallerKey) {
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
    fn fill(&mut self, now: Instant) {
        let since = now.saturating_duration_since(self.filled_at);
        self.tokens = (self.tokens + since.as_secs_f64() * REFUSED_PER_SECOND).min(REFUSED_BURST);
        self.filled_at = now;
    }

    fn return_token(&mut self) {
        self.tokens = (self.tokens + 1.0).min(REFUSED_BURST);
    }

    fn record_verdict(&mut self, key: u64, verdict: KeyVerdict) {
        match verdict {
            KeyVerdict::Accepted => {
                self.refused.remove(&key);
                if self.accepted.len() < MAX_REMEMBERED {
                    self.accepted.insert(key);
                }
                if self.in_flight.remove(&key).is_some() {
                    self.return_token();
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
        let Some(requests) = self.in_flight.get_mut(&key) else {
            return;
        };
        *requests -= 1;
        if *requests == 0 {
            self.in_flight.remove(&key);
            if returns {
                self.return_token();
            }
        }
    }
}

impl KeyPermit {
    /// Records the marketplace's verdict on the key.
    pub(super) fn record_verdict(mut self, verdict: KeyVerdict) {
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
        let permits = keys.filter_map(|number| unknown_keys.admit(&key(number), now).ok());
        permits.fold(0, |count, permit| {
            permit.record_verdict(KeyVerdict::Refused);
            count + 1
        })
    }

    #[test]
    fn refused_keys_empty_the_bucket_and_accepted_keys_pass() {
        let (unknown_keys, now) = (UnknownKeys::default(), Instant::now());
        unknown_keys
            .admit(&key(0), now)
            .unwrap()
            .record_verdict(KeyVerdict::Accepted);
        assert_eq!(relayed(&unknown_keys, 1..1_000, now), 200);
        assert!(
            unknown_keys.admit(&key(1), now).is_err(),
            "a refused key is not known as accepted"
        );
        let wait = unknown_keys.admit(&key(2_000), now).unwrap_err();
        assert!(wait <= Duration::from_millis(50), "{wait:?}");
        assert!(unknown_keys.admit(&key(0), now).is_ok());
        assert_eq!(
            relayed(&unknown_keys, 3_000..4_000, now + Duration::from_secs(1)),
            20
        );
    }

    #[test]
    fn a_token_is_returned_unless_the_key_was_refused() {
        let (unknown_keys, now) = (UnknownKeys::default(), Instant::now());
        for verdict in [KeyVerdict::Unknown, KeyVerdict::Accepted] {
            for number in 0..1_000 {
                unknown_keys
                    .admit(&key(number), now)
                    .unwrap()
                    .record_verdict(verdict);
            }
        }
        let at_once: Vec<_> = (0..1_000)
            .map(|_| unknown_keys.admit(&key(5_000), now).unwrap())
            .collect();
        for permit in at_once {
            permit.record_verdict(KeyVerdict::Refused);
        }
        unknown_keys
            .admit(&key(5_000), now)
            .unwrap()
            .record_verdict(KeyVerdict::Refused);
        drop(unknown_keys.admit(&key(6_000), now).unwrap());
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
            .admit(&key(0), now)
            .unwrap()
            .record_verdict(KeyVerdict::Accepted);
        assert!(unknown_keys.is_unrecorded(&key(0)));
        unknown_keys.mark_recorded(&key(0));
        assert!(!unknown_keys.is_unrecorded(&key(0)));
        unknown_keys
            .admit(&key(0), now)
            .unwrap()
            .record_verdict(KeyVerdict::Refused);
        assert!(!unknown_keys.is_unrecorded(&key(0)));
        assert_eq!(unknown_keys.state().refused.len(), 1);
    }
}
