//! Keys that nobody knows: how many of them this process passes on to the marketplace (docs/decisions/0029).
//!
//! Verify and the searches send whatever key came. So that nobody can try keys from our address, each key that is seen for the first time
//! takes a token of one bucket for the whole process, and gets it back unless the marketplace refuses the key. While the bucket is empty
//! only keys that are known as accepted go on. Requests with one key that come at once take one token together. A key is remembered as a
//! hash under a secret of this process, never as itself. Here: the bucket, pure but for the clock. Not here: asking the database
//! whether a key is accepted (`AppState::admit_search`).

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::search::CallerKey;

/// Refused keys a second, in the long run.
const REFUSED_PER_SECOND: f64 = 20.0;
/// Refused keys at once.
const REFUSED_BURST: f64 = 200.0;
/// The most keys that are remembered as accepted, and the most that are remembered as refused.
const REMEMBERED: usize = 1 << 16;

/// What the marketplace said of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Accepted,
    Refused,
    /// Nothing: it could not be asked, or did not answer.
    Unknown,
}

/// What one process knows of keys. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Guesses {
    secret: RandomState,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    tokens: f64,
    filled_at: Instant,
    accepted: HashSet<u64>,
    /// Those of the accepted that the database was told of by this process.
    recorded: HashSet<u64>,
    refused: HashSet<u64>,
    /// Keys on their way for the first time, each with its requests; a token is taken for each key.
    asked: HashMap<u64, usize>,
}

/// Leave to ask the marketplace with one key. Dropped without a verdict, its token is spent: nobody waited for the answer.
#[derive(Debug)]
pub(super) struct Pass {
    guesses: Guesses,
    key: u64,
    /// It counts among the requests of a key that is asked for the first time.
    is_first: bool,
}

impl Default for Guesses {
    fn default() -> Self {
        let state = State {
            tokens: REFUSED_BURST,
            filled_at: Instant::now(),
            accepted: HashSet::new(),
            recorded: HashSet::new(),
            refused: HashSet::new(),
            asked: HashMap::new(),
        };
        Self {
            secret: RandomState::new(),
            state: Arc::new(Mutex::new(state)),
        }
    }
}

impl Guesses {
    /// Lets a request with this key go on.
    ///
    /// # Errors
    /// How long until there is a token.
    pub(super) fn admit(&self, key: &CallerKey, now: Instant) -> Result<Pass, Duration> {
        let key = self.hash(key);
        let mut state = self.state();
        let pass = |is_first| Pass {
            guesses: self.clone(),
            key,
            is_first,
        };
        if state.accepted.contains(&key) {
            return Ok(pass(false));
        }
        if let Some(requests) = state.asked.get_mut(&key) {
            *requests += 1;
            return Ok(pass(true));
        }
        state.fill(now);
        if state.tokens < 1.0 {
            return Err(Duration::from_secs_f64(
                (1.0 - state.tokens) / REFUSED_PER_SECOND,
            ));
        }
        if state.refused.contains(&key) {
            return Ok(pass(false));
        }
        state.tokens -= 1.0;
        state.asked.insert(key, 1);
        Ok(pass(true))
    }

    /// Lets a request with a key go on that is known as accepted from elsewhere.
    pub(super) fn admit_accepted(&self, key: &CallerKey) -> Pass {
        let key = self.hash(key);
        self.state().learn(key, Verdict::Accepted);
        Pass {
            guesses: self.clone(),
            key,
            is_first: false,
        }
    }

    /// Whether the marketplace accepted this key here and the database was not told of it here.
    pub(super) fn is_unrecorded(&self, key: &CallerKey) -> bool {
        let key = self.hash(key);
        let state = self.state();
        state.accepted.contains(&key) && !state.recorded.contains(&key)
    }

    /// The database was told that this key is accepted.
    pub(super) fn recorded(&self, key: &CallerKey) {
        let key = self.hash(key);
        self.state().recorded.insert(key);
    }

    fn hash(&self, key: &CallerKey) -> u64 {
        self.secret.hash_one(key.expose())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fill(&mut self, now: Instant) {
        let since = now.saturating_duration_since(self.filled_at);
        self.tokens = (self.tokens + since.as_secs_f64() * REFUSED_PER_SECOND).min(REFUSED_BURST);
        self.filled_at = now;
    }

    fn give_back(&mut self) {
        self.tokens = (self.tokens + 1.0).min(REFUSED_BURST);
    }

    fn learn(&mut self, key: u64, verdict: Verdict) {
        match verdict {
            Verdict::Accepted => {
                self.refused.remove(&key);
                if self.accepted.len() < REMEMBERED {
                    self.accepted.insert(key);
                }
                if self.asked.remove(&key).is_some() {
                    self.give_back();
                }
            }
            Verdict::Refused => {
                self.accepted.remove(&key);
                self.recorded.remove(&key);
                if self.refused.len() >= REMEMBERED {
                    self.refused.clear();
                }
                self.refused.insert(key);
                self.asked.remove(&key);
            }
            Verdict::Unknown => {}
        }
    }

    /// A request of a key that is asked for the first time has ended; the last one gives the token back if nothing was learned.
    fn leave(&mut self, key: u64, returns: bool) {
        let Some(requests) = self.asked.get_mut(&key) else {
            return;
        };
        *requests -= 1;
        if *requests == 0 {
            self.asked.remove(&key);
            if returns {
                self.give_back();
            }
        }
    }
}

impl Pass {
    /// The marketplace said so.
    pub(super) fn learn(mut self, verdict: Verdict) {
        let mut state = self.guesses.state();
        state.learn(self.key, verdict);
        if self.is_first {
            state.leave(self.key, true);
        }
        drop(state);
        self.is_first = false;
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.is_first {
            self.guesses.state().leave(self.key, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> CallerKey {
        CallerKey::new(format!("made-up-{number}"))
    }

    /// How many of these keys go on, all of them refused.
    fn relayed(guesses: &Guesses, keys: std::ops::Range<usize>, now: Instant) -> usize {
        let passes = keys.filter_map(|number| guesses.admit(&key(number), now).ok());
        passes.fold(0, |count, pass| {
            pass.learn(Verdict::Refused);
            count + 1
        })
    }

    #[test]
    fn refused_keys_empty_the_bucket_and_accepted_ones_go_on() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        guesses
            .admit(&key(0), now)
            .unwrap()
            .learn(Verdict::Accepted);
        assert_eq!(relayed(&guesses, 1..1_000, now), 200);
        assert!(
            guesses.admit(&key(1), now).is_err(),
            "a refused key is not known as accepted"
        );
        let wait = guesses.admit(&key(2_000), now).unwrap_err();
        assert!(wait <= Duration::from_millis(50), "{wait:?}");
        assert!(guesses.admit(&key(0), now).is_ok());
        assert_eq!(
            relayed(&guesses, 3_000..4_000, now + Duration::from_secs(1)),
            20
        );
    }

    #[test]
    fn a_token_comes_back_unless_the_key_was_refused() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for verdict in [Verdict::Unknown, Verdict::Accepted] {
            for number in 0..1_000 {
                guesses.admit(&key(number), now).unwrap().learn(verdict);
            }
        }
        let at_once: Vec<_> = (0..1_000)
            .map(|_| guesses.admit(&key(5_000), now).unwrap())
            .collect();
        for pass in at_once {
            pass.learn(Verdict::Refused);
        }
        guesses
            .admit(&key(5_000), now)
            .unwrap()
            .learn(Verdict::Refused);
        drop(guesses.admit(&key(6_000), now).unwrap());
        assert!(guesses.state().asked.is_empty());
        let left = relayed(&guesses, 10_000..11_000, now);
        assert_eq!(
            left, 198,
            "requests with one key take one token, and who breaks off has tried a key too"
        );
    }

    #[test]
    fn a_key_that_is_refused_later_is_no_longer_known() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        guesses
            .admit(&key(0), now)
            .unwrap()
            .learn(Verdict::Accepted);
        assert!(guesses.is_unrecorded(&key(0)));
        guesses.recorded(&key(0));
        assert!(!guesses.is_unrecorded(&key(0)));
        guesses.admit(&key(0), now).unwrap().learn(Verdict::Refused);
        assert!(!guesses.is_unrecorded(&key(0)));
        assert_eq!(guesses.state().refused.len(), 1);
    }
}
